"""Keys go to their own address only: headers, redirects, proxies and certificates."""

from __future__ import annotations

import socket
import threading

import pytest

from agent.providers.base import BrainError, BrainUnreachable, RequestRefused
from capabilities.jobs import Cancelled
from guard.redact import Redactor
from tests.model_server import Delivery, Fail, Gate, ModelServer, Say
from tests.model_server.clients import KEY, ask, at, provider, url_of


def key_in(headers, kind):
    return headers.get("authorization" if kind == "openai" else "x-api-key")


@pytest.mark.guarantee("G-KEY-HOME")
def test_key_goes_into_its_header_and_nowhere_else(talk, kind, stream):
    server, api = talk(Say("x"), stream=stream)
    ask(api)
    [request] = server.requests
    assert key_in(request.headers, kind) == (f"Bearer {KEY}" if kind == "openai" else KEY)
    others = {name: value for name, value in request.headers.items() if name not in ("authorization", "x-api-key")}
    assert KEY not in f"{others}{request.path}{request.body}"


def test_no_key_sends_no_header_for_one(talk, kind):
    server, api = talk(Say("x"), key="")
    ask(api)
    assert key_in(server.requests[0].headers, kind) is None


@pytest.mark.guarantee("G-KEY-HOME")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_key_stays(talk, kind, status):
    with ModelServer(Say("caught")) as elsewhere:
        server, api = talk(Fail(status, "", {"Location": f"{url_of(kind, elsewhere)}/chat/completions?k=1"}))
        with pytest.raises(RequestRefused, match=r"redirects to http://127\.0\.0\.1") as caught:
            ask(api)
        assert (len(server.requests), elsewhere.requests, elsewhere.looked) == (1, [], [])
    assert caught.value.not_done == "the key was not sent there"


def test_cookies_are_not_kept(talk):
    server, api = talk(Say("x", delivery=Delivery(headers={"Set-Cookie": "a=b; Path=/"})), Say("y"))
    ask(api), ask(api)
    assert "cookie" not in server.requests[1].headers


@pytest.mark.guarantee("G-KEY-HOME")
def test_a_key_never_shows_in_an_error(talk, kind):
    redactor = Redactor()
    _, api = talk(Fail(401, {"error": {"message": f"bad key {KEY}"}}), Fail(500, f"trace: {KEY}"), redactor=redactor)
    for _ in range(2):
        with pytest.raises(BrainError) as caught:
            ask(api)
        assert KEY not in f"{caught.value.as_json()}"
        assert "[REDACTED]" in caught.value.message
    assert KEY not in repr(api._endpoint)


def test_a_key_on_its_way_without_encryption_is_said_once(kind, monkeypatch):
    with ModelServer(Say("x"), Say("y")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        api = provider(kind, "http://models.example/v1" if kind == "openai" else "http://models.example")
        try:
            assert ask(api)[1].notes == ("the key of mine goes to models.example unencrypted; use https",)
            assert ask(api)[1].notes == ()
        finally:
            api.close()


# ── proxies and certificates ────────────────────────────────────────────────────────────────────────────────────────


def test_a_proxy_of_the_environment_is_used(kind, monkeypatch):
    with ModelServer(Say("through")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:proxy-pa55word@127.0.0.1:{proxy.port}")
        api = provider(kind, "http://models.example/v1" if kind == "openai" else "http://models.example")
        try:
            assert ask(api)[1].text == "through"
        finally:
            api.close()
        assert proxy.requests[0].path.startswith("http://models.example/v1/")


def test_a_proxy_s_password_never_shows_in_an_error(kind, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv("HTTP_PROXY", f"http://user:proxy-pa55word@127.0.0.1:{port}")
    api = provider(kind, "http://models.example/v1")
    try:
        with pytest.raises(BrainUnreachable) as caught:
            ask(api)
    finally:
        api.close()
    assert "pa55word" not in f"{caught.value.as_json()}"


def test_a_proxy_that_is_none_is_an_error(kind, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "ftp://user:proxy-pa55word@127.0.0.1:1")
    api = provider(kind, "http://models.example/v1")
    try:
        with pytest.raises(BrainError) as caught:
            ask(api)
    finally:
        api.close()
    assert "pa55word" not in f"{caught.value.as_json()}"


def test_this_machine_is_never_asked_through_a_proxy(talk, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    _, api = talk(Say("direct"))
    assert ask(api)[1].text == "direct"


def test_a_socks_proxy_that_nothing_uses_does_no_harm(kind, monkeypatch):
    with ModelServer(Say("through")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
        api = provider(kind, "http://models.example")
        try:
            assert ask(api)[1].text == "through"
        finally:
            api.close()


def test_a_socks_proxy_that_would_be_used_is_said(kind, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5h://user:proxy-pa55word@127.0.0.1:1080")
    api = provider(kind, "https://models.example")
    with pytest.raises(BrainUnreachable, match="'socks5h' cannot be used") as caught:
        ask(api)
    assert not caught.value.retryable
    assert "pa55word" not in f"{caught.value.as_json()}"
    api.close()


class Tunnel:
    """A proxy that only passes bytes on, and keeps what it could read."""

    def __init__(self) -> None:
        self.seen = b""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def _serve(self) -> None:
        try:
            near, _ = self._listening.accept()
        except OSError:
            return
        with near:
            head = b""
            while b"\r\n\r\n" not in head:
                head += near.recv(65_536)
            self.seen += head
            port = head.split()[1].rpartition(b":")[2]
            with socket.create_connection(("127.0.0.1", int(port))) as far:
                near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=self._pass, args=(far, near, False))
                back.start()
                self._pass(near, far, True)
                back.join()

    def _pass(self, source, to, keep) -> None:
        try:
            while data := source.recv(65_536):
                self.seen += data if keep else b""
                to.sendall(data)
        except OSError:
            pass
        for one in (source, to):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        self._listening.close()
        for thread in self._threads:
            thread.join(30)


@pytest.mark.guarantee("G-KEY-HOME")
def test_a_proxy_reads_nothing_of_an_encrypted_request(secure, certificate, monkeypatch):
    tunnel = Tunnel()
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{tunnel.port}")
    # Not this machine by its name, so that the proxy is asked; the tunnel leads to it all the same.
    api = secure(ca_bundle=str(certificate / "cert.pem"), host="models.example")
    try:
        assert ask(api)[1].text == "safe"
    finally:
        api.close()
        tunnel.close()
    assert tunnel.seen.startswith(b"CONNECT models.example:")
    assert KEY.encode() not in tunnel.seen


@pytest.fixture
def secure(kind, certificate):
    """An encrypted server that says `safe`, and a way to ask it."""
    gate = Gate(after=2)
    with ModelServer(Say("safe"), Say("x" * 100, delivery=Delivery(gate=gate)), certificate=certificate) as server:
        opened = []

        def start(host="127.0.0.1", **settings):
            opened.append(provider(kind, url_of(kind, server).replace("127.0.0.1", host), **settings))
            return opened[-1]

        start.gate = gate
        yield start
        for one in opened:
            one.close()


def test_an_unknown_certificate_is_refused_and_not_tried_again(secure):
    with pytest.raises(BrainUnreachable, match="TLS failed") as caught:
        ask(secure())
    assert not caught.value.retryable
    assert "ca_bundle" in caught.value.hint


def test_a_certificate_bundle_of_the_entry_counts(secure, certificate):
    assert ask(secure(ca_bundle=str(certificate / "cert.pem")))[1].text == "safe"


def test_a_certificate_bundle_of_the_environment_counts(secure, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    assert ask(secure())[1].text == "safe"


def test_a_certificate_bundle_that_is_not_there_is_an_error(secure, tmp_path):
    with pytest.raises(BrainError, match="ca_bundle"):
        ask(secure(ca_bundle=str(tmp_path / "none.pem")))


@pytest.mark.parametrize("cut", ["fin", "rst"])
def test_an_encrypted_reply_that_breaks_off_may_be_tried_again(kind, certificate, cut):
    broken = Say("x" * 100, delivery=Delivery(cut_after=2, cut=cut))
    with ModelServer(broken, Say("fine"), certificate=certificate) as server:
        api = provider(kind, url_of(kind, server), ca_bundle=str(certificate / "cert.pem"))
        with pytest.raises(BrainUnreachable, match="the connection broke") as caught:
            ask(api)
        assert caught.value.retryable
        assert ask(api)[1].text == "fine"
        api.close()


def test_a_line_that_is_not_encrypted_although_asked_is_not_tried_again(kind):
    with ModelServer(Say("x")) as server:
        api = provider(kind, url_of(kind, server).replace("http://", "https://"))
        with pytest.raises(BrainUnreachable, match="TLS failed") as caught:
            ask(api)
        assert not caught.value.retryable
        api.close()


def test_a_stop_ends_an_encrypted_reply_in_its_middle(secure, certificate, cancel):
    api = secure(ca_bundle=str(certificate / "cert.pem"))
    ask(api)
    with at(secure.gate, cancel.set), pytest.raises(Cancelled):
        ask(api, cancel=cancel)
