"""Putting a conversation together: windows, smaller requests, keys and addresses of providers."""

from __future__ import annotations

import dataclasses

import pytest

from agent.brains import opening
from agent.brains.choice import RUNBOOKS, Without
from agent.brains.entries import entry_of
from agent.brains.making import Maker, sole_model
from agent.messages import Assistant, Result, ToolCall, User
from agent.providers.base import RequestRefused, Sent
from guard.hands.cancel import CancelToken
from guard.redact import Redactor


def entry(name="near", **table):
    return entry_of(name, {"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m", **table}, redact=str)


def test_what_is_sent_fits_the_smallest_window_of_a_chain():
    links = (entry(window_tokens=200_000), entry("small", window_tokens=8_000), entry("unknown"), RUNBOOKS)
    assert opening.window_of(links) == 8_000
    assert opening.window_of((entry(), RUNBOOKS)) == 0


def conversation(results, size):
    messages = [User("why?")]
    for number in range(results):
        call = ToolCall(f"t-{number}", "bash", {"command": "journalctl"})
        messages += [Assistant("", (call,)), Result(call.id, "bash", "x" * size, "succeeded", f"e-{number}")]
    return Sent("system", tuple(messages))


def measure(sent):
    return sum(len(message.text) for message in sent.messages)


def test_a_smaller_request_is_clearly_smaller_and_keeps_the_question():
    sent = conversation(30, 1_500)
    found = opening.smaller(sent, 0)
    assert found is not None and measure(found) < measure(sent) * 0.7
    assert found.messages[0] == User("why?") and found.system == sent.system


def test_a_request_that_is_small_already_is_made_smaller_for_a_smaller_window():
    sent = conversation(8, 2_000)
    assert measure(sent) < 30_000
    found = opening.smaller(sent, 0)
    assert found is not None and measure(found) < measure(sent)


def test_nothing_to_leave_out_is_no_smaller_request():
    assert opening.smaller(Sent("system", (User("why?"),)), 0) is None


def test_a_provider_knows_its_key_address_and_limits_and_the_redactor_the_key():
    redactor = Redactor()
    link = entry(key_env="THE_KEY", window_tokens=1000, max_tokens=50, timeout_s=7, stream=False)
    key = "a-key-of-this-test-4711"
    api = Maker({"THE_KEY": key}, redactor).provider(link, cancel=CancelToken())
    endpoint = api._endpoint
    assert dataclasses.asdict(endpoint) == {
        **dataclasses.asdict(endpoint),
        "name": "near",
        "base_url": "http://127.0.0.1:1/v1",
        "model": "m",
        "key": key,
        "window_tokens": 1000,
        "max_tokens": 50,
        "stream": False,
        "idle_s": 7.0,
    }
    assert redactor.text(f"it is {key}") == "it is [REDACTED]" and key not in repr(endpoint)
    api.close()


def test_the_wire_format_is_the_entrys(tmp_path):
    maker = Maker({"K": "a-key-of-this-test-4711"}, Redactor())
    names = [type(maker.api(entry(kind=kind, key_env="K"))).__name__ for kind in ("openai", "anthropic")]
    assert names == ["OpenAI", "Anthropic"]
    script = tmp_path / "s.jsonl"
    script.write_text('{"text": "hello"}\n')
    assert type(maker.provider(Without(f"script:{script}"), cancel=CancelToken())).__name__ == "Scripted"


def test_a_server_with_many_models_names_some():
    with pytest.raises(RequestRefused) as raised:
        sole_model(tuple(f"m-{number}" for number in range(20)), entry())
    assert "m-11 and 8 more" in raised.value.message and "[brains.near]" in raised.value.hint
    with pytest.raises(RequestRefused, match="has none"):
        sole_model((), entry_of("openai", {}, redact=str))
