"""What happens on the line: keys, redirects, proxies, certificates, cuts, silence, and stops at any byte."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import contextmanager

import pytest

from agent.messages import User
from agent.providers import http
from agent.providers.base import BrainError, BrainUnreachable, RequestRefused
from capabilities.jobs import Cancelled
from guard.hands.cancel import CancelToken
from guard.redact import Redactor
from tests.model_server import Call, Delivery, Fail, Gate, ModelServer, Raw, Say
from tests.model_server.clients import KEY, ask, provider, sent, url_of

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def key_in(headers, kind):
    return headers.get("authorization" if kind == "openai" else "x-api-key")


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────


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


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Files with a certificate of its own for 127.0.0.1, and its key."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("models.example")]
            ),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("certificate")
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(built.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(private)
    return folder


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


# ── cuts, silence, rubbish ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guarantee("G-WHOLE-REPLY")
@pytest.mark.parametrize("cut", ["fin", "rst"])
@pytest.mark.parametrize("after", [0, 1, 2, 3, 4])
def test_a_reply_that_breaks_off_runs_nothing_and_the_next_turn_works(talk, cut, after):
    broken = Say("some words first", [Call("bash", {"command": "ls"})], delivery=Delivery(cut_after=after, cut=cut))
    _, api = talk(broken, Say("fine"))
    with pytest.raises(BrainUnreachable) as caught:
        ask(api)
    assert caught.value.retryable
    assert ask(api)[1].text == "fine"


@pytest.mark.guarantee("G-WHOLE-REPLY")
def test_a_reply_without_its_end_is_a_cut_although_the_line_ended_well(talk, kind):
    from tests.model_server.wire import Anthropic, OpenAI

    wire = {"openai": OpenAI, "anthropic": Anthropic}[kind]
    frames = [wire.frame(item) for item in wire.events(Say(calls=[Call("bash", {"command": "ls"})]), "mock-1", 1, {})]
    end = {"openai": 2, "anthropic": 2}[kind]
    _, api = talk(Raw(frames[:-end]))
    with pytest.raises(BrainUnreachable, match="broke off in the middle"):
        ask(api)


def test_a_cut_after_the_model_s_end_loses_only_figures(talk, kind):
    from tests.model_server.wire import Anthropic, OpenAI

    wire = {"openai": OpenAI, "anthropic": Anthropic}[kind]
    count = len(list(wire.events(Say("all of it"), "mock-1", 1, {})))
    _, api = talk(Say("all of it", delivery=Delivery(cut_after=count - 1, cut="rst")))
    assert ask(api)[1].text == "all of it"


def test_a_whole_reply_that_breaks_off_is_unreachable(talk):
    _, api = talk(Say("words", delivery=Delivery(cut_after=1)), stream=False)
    with pytest.raises(BrainUnreachable):
        ask(api)


def test_silence_in_the_middle_is_unreachable(talk):
    gate = Gate(after=2)
    _, api = talk(Say("x" * 100, delivery=Delivery(gate=gate)), idle_s=0.05)
    with pytest.raises(BrainUnreachable, match=r"nothing came for 0\.05 s"):
        ask(api)


def test_silence_before_the_first_byte_is_unreachable(talk):
    release = threading.Event()

    def slow(_):
        release.wait(30)
        return Say("late")

    _, api = talk(slow, idle_s=0.05)
    with pytest.raises(BrainUnreachable, match="nothing came"):
        ask(api)
    release.set()


def test_nobody_there_is_unreachable(kind):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    api = provider(kind, f"http://127.0.0.1:{port}")
    with pytest.raises(BrainUnreachable, match="no connection") as caught:
        ask(api)
    assert caught.value.not_done == "nothing was sent"


def test_a_line_that_is_no_http_is_unreachable(kind):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            other, _ = listening.accept()
            with other:
                other.recv(65_536)
                other.sendall(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        api = provider(kind, f"http://127.0.0.1:{listening.getsockname()[1]}")
        with pytest.raises(BrainUnreachable, match="the connection broke"):
            ask(api)
        thread.join()


def test_bytes_that_are_no_utf8_are_replaced_and_noted(talk, kind):
    from tests.model_server.wire import Anthropic, OpenAI

    wire = {"openai": OpenAI, "anthropic": Anthropic}[kind]
    frames = [wire.frame(item).replace(b"BAD", b"\xff\xc3") for item in wire.events(Say("a BAD b"), "mock-1", 1, {})]
    _, api = talk(Raw(frames))
    _, reply = ask(api)
    assert reply.text == "a \ufffd\ufffd b"
    assert reply.notes == ("the reply held bytes that are no UTF-8; they were replaced",)


def test_a_packed_reply_is_unpacked(talk, stream):
    server, api = talk(Say("y" * 300_000, split=5_000, delivery=Delivery(packed=True)), stream=stream)
    assert ask(api)[1].text == "y" * 300_000
    assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("encoding", ["gzip", "br", "gzip, gzip"])
def test_a_reply_packed_otherwise_than_it_says_is_an_error(talk, encoding):
    _, api = talk(Say("x", delivery=Delivery(headers={"Content-Encoding": encoding})))
    with pytest.raises(BrainError, match="the answer is") as caught:
        ask(api)
    assert not caught.value.retryable


def test_a_web_page_says_what_is_wrong_with_the_address(talk):
    _, api = talk(Raw([b"<!DOCTYPE html><title>Welcome</title>"], type="text/html"))
    with pytest.raises(BrainError, match="it is a web page") as caught:
        ask(api)
    assert "base_url" in caught.value.hint


def test_an_event_without_end_is_an_error(talk, monkeypatch):
    from agent.providers import sse

    monkeypatch.setattr(sse, "EVENT_BYTES", 100_000)
    _, api = talk(Raw([b"data: "] + [b"x" * 10_000] * 50))
    with pytest.raises(BrainError, match="one event is longer"):
        ask(api)


def test_a_whole_reply_without_end_is_an_error(talk, monkeypatch):
    monkeypatch.setattr(http.Answer.body, "__defaults__", (100_000,))
    _, api = talk(Raw([b'{"x": "'] + [b"x" * 10_000] * 50, type="application/json"), stream=False)
    with pytest.raises(BrainError, match="in one piece"):
        ask(api)


def test_an_answer_without_end_is_an_error(talk, monkeypatch):
    monkeypatch.setattr(http, "ANSWER_BYTES", 100_000)
    _, api = talk(Raw([b": nothing\n"] * 50_000))
    with pytest.raises(BrainError, match="more than 100,000 bytes"):
        ask(api)


# ── stops ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def at(gate: Gate, act):
    """Acts in another thread once the server has come to the gate."""
    thread = threading.Thread(target=lambda: (gate.wait_until_reached(), act()))
    thread.start()
    try:
        yield
    finally:
        thread.join()


@pytest.mark.parametrize("after", [0, 1, 2, 5])
def test_a_stop_ends_the_reply_while_the_server_holds_it(talk, cancel, after, stream):
    # The gate opens only when the server closes: nothing but the stop can have ended the wait.
    gate = Gate(after=after if stream else min(after, 1))
    server, api = talk(Say("x" * 100, delivery=Delivery(gate=gate)), Say("again"), stream=stream)
    with at(gate, cancel.set), pytest.raises(Cancelled):
        ask(api, cancel=cancel)
    assert ask(api)[1].text == "again"
    assert len(server.requests) == 2


def test_a_stop_before_the_status_ends_the_wait(talk, cancel):
    release = threading.Event()

    def holding(_):
        cancel.set()
        release.wait(30)
        return Say("late")

    _, api = talk(holding)
    with pytest.raises(Cancelled):
        ask(api, cancel=cancel)
    release.set()


def test_a_stop_that_came_before_sends_nothing(talk, cancel):
    server, api = talk(Say("x"))
    cancel.set()
    with pytest.raises(Cancelled) as caught:
        ask(api, cancel=cancel)
    assert (server.requests, caught.value.not_done) == ([], "nothing was sent")


def test_a_stop_while_connecting_ends_the_wait(kind, cancel):
    # A full queue of an address that accepts nobody: connecting takes as long as it may.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        fillers = []
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            fillers.append(one)
        api = provider(kind, f"http://127.0.0.1:{full.getsockname()[1]}", connect_s=60.0)
        timer = threading.Timer(0.05, cancel.set)
        timer.start()
        with pytest.raises(Cancelled):
            ask(api, cancel=cancel)
        timer.join()
        for one in fillers:
            one.close()
    api.close()


def test_a_reader_that_goes_away_ends_the_connection(talk, cancel):
    gate = Gate(after=4)
    _, api = talk(Say("x" * 100, delivery=Delivery(gate=gate)), Say("fine"))
    reading = api.stream(sent(), cancel=cancel)
    assert next(reading)
    reading.close()
    assert ask(api)[1].text == "fine"


def test_closing_from_another_thread_ends_a_reply(talk, cancel):
    gate = Gate(after=2)
    _, api = talk(Say("x" * 100, delivery=Delivery(gate=gate)))
    with at(gate, api.close), pytest.raises(BrainUnreachable):
        ask(api, cancel=cancel)
    api.close()


def test_stops_leave_no_descriptor_behind(talk):
    gates = [Gate(after=2) for _ in range(12)]
    _, api = talk(*[Say("x" * 100, delivery=Delivery(gate=gate)) for gate in gates], Say("end"))
    counts = []
    for gate in gates:
        token = CancelToken()
        with at(gate, token.set), pytest.raises(Cancelled):
            ask(api, cancel=token)
        token.close()
        for thread in threading.enumerate():
            if thread.name.startswith("brain-"):
                thread.join(30)
        gate.open()
        counts.append(len(os.listdir("/dev/fd")))
    assert max(counts[2:]) <= counts[1] + 2  # the server's side closes in its own time


# ── connections ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_connection_serves_one_reply_after_the_other(talk, stream):
    ports = set()
    server, api = talk(*[Say(f"{n}", [Call("bash", {"command": "x"})]) for n in range(4)], stream=stream)
    server.on_request = lambda handler: ports.add(handler.client_address[1])
    for _ in range(4):
        ask(api)
    assert len(ports) == 1


def test_a_connection_that_the_server_has_ended_meanwhile_is_made_anew(talk):
    server, api = talk(Say("one"), Say("two"))
    ask(api)
    server.drop_connections()
    assert ask(api)[1].text == "two"


def test_a_server_that_keeps_no_connection_is_asked_on_a_new_one(talk, stream):
    closing = Delivery(headers={"Connection": "close"})
    _, api = talk(Say("one", delivery=closing), Say("two", delivery=closing), stream=stream)
    assert [ask(api)[1].text for _ in range(2)] == ["one", "two"]


def test_warming_is_done_in_a_thread_and_spends_no_request(talk):
    server, api = talk(Say("x"))
    thread = api.warm()
    thread.join(30)
    assert (server.requests, server.looked) == ([], [])
    assert ask(api)[1].text == "x"


def test_models_are_listed(talk):
    server, api = talk()
    server.models = ["b-2", "", "a-1"]
    token = CancelToken()
    assert api.models(cancel=token) == ("b-2", "a-1")
    token.close()
    assert server.looked[0].path == "/v1/models"


def test_large_requests_arrive_whole(talk, kind):
    server, api = talk(Say("x"))
    ask(api, sent(User("ü" * 2_000_000)))
    assert "ü" * 2_000_000 in str(server.requests[0].json["messages"])
