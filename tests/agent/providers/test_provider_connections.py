"""What happens on the line: cuts, silence, packed and endless answers, and connections that are used again."""

from __future__ import annotations

import socket
import threading

import pytest

from agent.messages import User
from agent.providers import http
from agent.providers.base import BrainError, BrainUnreachable
from guard.hands.cancel import CancelToken
from tests.model_server import Call, Delivery, Gate, Raw, Say
from tests.model_server.clients import ask, provider, sent


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
