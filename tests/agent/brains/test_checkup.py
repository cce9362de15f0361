"""What a check-up of brains says: key, address, model, tools; against a model server on loopback."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.brains import checkup, sides
from agent.brains.checkup import BAD, OK, WARN, check_brains
from agent.brains.choice import RUNBOOKS, Without
from agent.brains.entries import entry_of
from agent.brains.making import Maker
from agent.providers.base import BrainUnreachable
from guard.redact import Redactor
from tests.model_server import Call, Delivery, Fail, Gate, ModelServer, Say

KEY = {"THE_KEY": "a-key-of-this-test-4711"}


def entry(url, kind="openai", **table):
    table = {"kind": kind, "base_url": url, "model": "mock-1", "key_env": "THE_KEY", **table}
    return entry_of("near", table, redact=str)


def check(*links, call=False, environ=KEY):
    return check_brains(links, Maker(environ, Redactor()), call=call)


@pytest.fixture(params=["openai", "anthropic"])
def kind(request):
    return request.param


def url_of(server, kind):
    return server.openai_url if kind == "openai" else server.anthropic_url


def test_a_brain_that_answers_is_well_and_its_list_costs_nothing(kind):
    with ModelServer() as server:
        (one,) = check(entry(url_of(server, kind), kind))
        assert (one.name, one.state, one.mend) == ("brain near", OK, "") and "model mock-1" in one.detail
        assert server.requests == [] and len(server.looked) == 1
    assert KEY["THE_KEY"] not in one.detail and "the variable THE_KEY" in one.detail


def test_a_missing_key_is_said_before_anything_is_sent(kind):
    with ModelServer() as server:
        (one,) = check(entry(url_of(server, kind), kind), environ={})
        assert one.state == BAD and "THE_KEY is not set" in one.detail and one.mend
        assert server.looked == []


def test_nobody_there_is_said_with_the_address():
    (one,) = check(entry("http://127.0.0.1:1/v1"))
    assert one.state == BAD and "no connection" in one.detail and "http://127.0.0.1:1/v1" in one.mend


def test_a_model_that_is_not_listed_is_said_with_those_that_are(kind):
    with ModelServer(models=("a-1", "b-2")) as server:
        (one,) = check(entry(url_of(server, kind), kind))
    assert one.state == WARN and "mock-1" in one.detail and "a-1, b-2" in one.detail


@pytest.mark.parametrize(("models", "state"), [(("only-1",), OK), (("a-1", "b-2"), BAD)])
def test_without_a_name_the_server_has_to_have_one_model(models, state):
    with ModelServer(models=models) as server:
        (one,) = check(replace(entry(server.openai_url), model=""))
    assert one.state == state and models[0] in one.detail


def test_a_tool_that_is_used_as_asked_is_well(kind):
    with ModelServer(Say(calls=[Call("say", {"word": checkup.WORD})])) as server:
        listed, called = check(entry(url_of(server, kind), kind), call=True)
    assert (listed.state, called.name, called.state) == (OK, "tools of near", OK)


@pytest.mark.parametrize(
    ("reply", "state"), [(Say("ping"), BAD), (Say(calls=[Call("say", {"word": "pong"})]), WARN), (Say(calls=[]), BAD)]
)
def test_a_model_that_does_not_use_tools_is_told(reply, state):
    with ModelServer(reply) as server:
        *_, called = check(entry(server.openai_url), call=True)
    assert called.state == state and called.mend


def test_a_refused_key_is_told_in_the_apis_words(kind):
    with ModelServer(Fail(401, {"error": {"message": f"wrong key {KEY['THE_KEY']}"}})) as server:
        *_, called = check(entry(url_of(server, kind), kind), call=True)
    assert called.state == BAD and "wrong key" in called.detail and KEY["THE_KEY"] not in called.detail


@pytest.mark.parametrize(
    ("reply", "side", "what"),
    [
        (Fail(401, {"error": {"message": "no"}}), "here: ", "the variable THE_KEY"),
        (Fail(403, {"error": {"message": "no"}}), "here: ", "allowed this model"),
        (Fail(402, {"error": {"message": "pay"}}), "there, in your account", "no credit"),
        (
            Fail(429, {"error": {"message": "quota", "type": "insufficient_quota"}}),
            "there, in your account",
            "no credit",
        ),
        (Fail(429, {"error": {"message": "slow down"}}, {"Retry-After": "7"}), "there: ", "wait 7 s"),
        (Fail(429, "slow down"), "there: ", "wait a moment"),
        (Fail(500, {"error": {"message": "boom"}}), "there: nothing is wrong here", "another brain"),
        (Fail(503, "<html>down"), "there: nothing is wrong here", "status page"),
        (Fail(404, {"error": {"message": "no model"}}), "here: base_url", "mock-1"),
        (Fail(400, {"error": {"message": "bad"}}), "here: it does not take this request", "kind (openai)"),
        (Fail(308, "", {"Location": "https://other.example/v1"}), "here: ", "base_url"),
    ],
)
def test_an_answer_that_refuses_says_on_whose_side_it_is_and_what_to_do(reply, side, what):
    with ModelServer(reply) as server:
        *_, called = check(entry(server.openai_url), call=True)
    assert called.state == BAD and called.mend.startswith(side) and what in called.mend, called
    assert "doctor" not in called.mend and KEY["THE_KEY"] not in called.mend


def test_no_answer_says_what_kept_it_away(monkeypatch):
    import socket

    here = entry("http://127.0.0.1:1/v1")
    (one,) = check(here)
    assert one.mend.startswith("here: nothing listens at http://127.0.0.1:1/v1")

    def unknown(*arguments, **more):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    *_, one = check(entry("http://models.invalid/v1"))
    assert one.state == BAD and "the name is not known" in one.detail
    assert one.mend.startswith("here: is models.invalid spelled right") and "getent hosts models.invalid" in one.mend


@pytest.mark.parametrize(
    ("cause", "side"),
    [
        ("refused", "there, or here if https://far.example/v1"),
        ("no-way", "on the way: "),
        ("proxy", "on the way: the proxy"),
        ("cut", "on the way or there"),
        ("silent", "on the way or there"),
        ("tls", "here: ca_bundle"),
        ("name", "here: is far.example"),
    ],
)
def test_every_cause_has_a_side(cause, side):
    error = BrainUnreachable("x", hint="opsagent doctor tells")
    error.cause = cause
    assert sides.mend(error, entry("https://far.example/v1")).startswith(side)
    assert "None" not in sides.mend(error, entry("http://localhost:1/v1"))


def test_a_fault_without_a_cause_keeps_its_own_hint_unless_it_sends_back_to_doctor():
    far = entry("https://far.example/v1")
    assert sides.mend(BrainUnreachable("x", hint="do this"), far) == "do this"
    assert "is base_url" in sides.mend(BrainUnreachable("x", hint="opsagent doctor tells"), far)


def test_a_silent_brain_takes_no_longer_than_its_time(monkeypatch):
    monkeypatch.setattr(checkup, "CALL_S", 0.3)
    gate = Gate(0)
    with ModelServer(Say("late", delivery=Delivery(gate=gate))) as server:
        *_, called = check(entry(server.openai_url), call=True)
    assert called.state == BAD and "in time" in called.detail


def test_a_key_on_an_open_network_is_a_drawback(monkeypatch):
    monkeypatch.setattr(checkup, "LIST_S", 0.01)
    first, _ = check(entry("http://models.invalid/v1"))
    assert first.state == WARN and "not encrypted" in first.detail


def test_links_that_ask_no_model_are_looked_at_too(tmp_path):
    script = tmp_path / "a.jsonl"
    script.write_text('{"text": "hello"}\n')
    plays, missing, runbooks = check(Without(f"script:{script}"), Without("script:/no/such"), RUNBOOKS)
    assert (plays.state, missing.state, runbooks.state) == (OK, BAD, OK)
