"""What Anthropic's format wants and sends."""

from __future__ import annotations

import json

import pytest

from agent.messages import Assistant, Note, Result, ToolCall, User
from agent.providers.anthropic import MAX_TOKENS
from agent.providers.base import BrainBusy, BrainUnreachable, KeyRefused, RequestRefused
from tests.model_server import Call, Events, Fail, Say
from tests.model_server.clients import BASH, ask, sent

CACHED = {"cache_control": {"type": "ephemeral"}}


@pytest.fixture
def kind():
    return "anthropic"


def test_a_conversation_is_sent_as_the_format_wants_it(talk):
    server, api = talk(Say("x"))
    said = Assistant("Looking.", (ToolCall("a", "bash", {"command": "ü"}), ToolCall("b", "read")), brain="mine")
    results = [Result("a", "bash", "41 %", "succeeded"), Result("b", "read", "", "error")]
    ask(api, sent(User("why?"), User("now"), said, Note("a note"), *results, tools=(BASH,)))
    [request] = server.requests
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.json == {
        "model": "mock-1",
        "max_tokens": MAX_TOKENS,
        "stream": True,
        "system": [{"type": "text", "text": "be brief", **CACHED}],
        "tools": [{"name": "bash", "description": BASH.description, "input_schema": BASH.parameters}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "why?\n\nnow"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ü"}},
                    {"type": "tool_use", "id": "b", "name": "read", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "41 %"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "(no output)", "is_error": True},
                    {"type": "text", "text": "[opsagent] a note", **CACHED},
                ],
            },
        ],
    }


def test_a_limit_of_the_entry_is_sent(talk):
    server, api = talk(Say("x"), max_tokens=700)
    ask(api)
    assert server.requests[0].json["max_tokens"] == 700


def test_a_model_with_a_smaller_limit_is_asked_within_it(talk):
    no = {"error": {"type": "invalid_request_error", "message": "max_tokens: 16384 > 8192, which is the maximum"}}
    server, api = talk(Fail(400, no), Say("x"), Say("y"))
    ask(api), ask(api)
    assert [request.json["max_tokens"] for request in server.requests] == [MAX_TOKENS, 8_192, 8_192]


def test_a_server_without_caching_is_asked_without(talk):
    no = {
        "error": {"type": "invalid_request_error", "message": "system.0.cache_control: Extra inputs are not permitted"}
    }
    server, api = talk(Fail(400, no), Say("x"))
    assert ask(api)[1].text == "x"
    assert "cache_control" not in json.dumps(server.requests[1].json)


def test_reasoning_goes_back_as_it_came(talk, stream):
    server, api = talk(
        Say("so", [Call("bash", {"command": "df"})], reasoning="first the disk, ü"), Say("x"), stream=stream
    )
    _, reply = ask(api)
    said = Assistant(reply.text, reply.calls, brain="mine")
    ask(api, sent(User("go"), said, Result(reply.calls[0].id, "bash", "ok", "succeeded")))
    block = server.requests[1].json["messages"][1]["content"][0]
    assert block == {"type": "thinking", "thinking": "first the disk, ü", "signature": "signed-1"}


def test_reasoning_that_is_closed_goes_back_as_it_came(talk):
    closed = {"type": "redacted_thinking", "data": "c2VjcmV0"}
    use = {"type": "tool_use", "id": "a", "name": "bash", "input": {}}
    events = [
        {"type": "content_block_start", "index": 0, "content_block": closed},
        {"type": "content_block_start", "index": 1, "content_block": use},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"command": "x"}'},
        },
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    server, api = talk(Events(events), Say("x"))
    _, reply = ask(api)
    said = Assistant("", reply.calls, brain="mine")
    ask(api, sent(User("go"), said, Result("a", "bash", "ok", "succeeded")))
    assert server.requests[1].json["messages"][1]["content"][0] == closed


def test_reasoning_that_the_server_refuses_is_left_out(talk):
    no = {"error": {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}}
    server, api = talk(Say(calls=[Call("bash", {})], reasoning="hm"), Fail(400, no), Say("x"))
    _, reply = ask(api)
    said = Assistant("", reply.calls, brain="mine")
    assert ask(api, sent(User("go"), said, Result(reply.calls[0].id, "bash", "ok", "succeeded")))[1].text == "x"
    assert "hm" not in json.dumps(server.requests[2].json["messages"][1])


def test_reasoning_without_measure_is_not_kept(talk, monkeypatch):
    from agent.providers import gather

    monkeypatch.setattr(gather, "REASONING_CHARS", 100)
    server, api = talk(Say(calls=[Call("bash", {})], reasoning="h" * 500), Say("x"))
    _, reply = ask(api)
    said = Assistant("", reply.calls, brain="mine")
    ask(api, sent(User("go"), said, Result(reply.calls[0].id, "bash", "ok", "succeeded")))
    assert "hhh" not in json.dumps(server.requests[1].json)


@pytest.mark.parametrize(
    ("type", "kind_of_error"),
    [
        ("overloaded_error", BrainBusy),
        ("rate_limit_error", BrainBusy),
        ("api_error", BrainUnreachable),
        ("authentication_error", KeyRefused),
        ("invalid_request_error", RequestRefused),
    ],
)
def test_an_error_in_the_middle_of_a_stream_has_its_kind(talk, type, kind_of_error):
    first = {"type": "message_start", "message": {"model": "mock-1"}}
    _, api = talk(Events([first, {"type": "error", "error": {"type": type, "message": "it broke"}}]))
    with pytest.raises(kind_of_error) as caught:
        ask(api)
    assert caught.type is kind_of_error


def test_an_event_that_is_named_an_error_is_one(talk):
    from tests.model_server import Raw

    _, api = talk(Raw([b'event: error\ndata: {"message": "upstream went away"}\n\n']))
    with pytest.raises(BrainUnreachable, match="upstream went away"):
        ask(api)


def test_input_at_the_start_of_a_block_counts_where_nothing_follows(talk):
    use = {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}}
    events = [{"type": "content_block_start", "index": 0, "content_block": use}, {"type": "message_stop"}]
    _, api = talk(Events(events))
    assert ask(api)[1].calls == (ToolCall("a", "bash", {"command": "ls"}),)


def test_events_are_told_by_their_names_where_the_data_has_none(talk):
    from tests.model_server import Raw

    body = b"".join(
        b"event: %s\ndata: %s\n\n" % (name, json.dumps(data).encode())
        for name, data in [
            (b"content_block_start", {"index": 0, "content_block": {"type": "text", "text": "hi"}}),
            (b"message_stop", {}),
        ]
    )
    _, api = talk(Raw([body]))
    assert ask(api)[1].text == "hi"
