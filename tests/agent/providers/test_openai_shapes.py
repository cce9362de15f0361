"""What servers that call themselves OpenAI-compatible really send, and what is sent to them."""

from __future__ import annotations

import json

import pytest

from agent.messages import Assistant, Note, Result, ToolCall, User
from agent.providers.base import BrainBusy, BrainUnreachable, ContextOverflow, RequestRefused, Tokens
from tests.model_server import Call, Events, Fail, ModelServer, Raw, Say
from tests.model_server.clients import BASH, ask, provider, sent

LS, DF = '{"command": "ls"}', '{"command": "df"}'


@pytest.fixture
def kind():
    return "openai"


def chunk(finish=None, **delta):
    return {"model": "mock-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def row(name=None, arguments=None, **more):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**more, "function": function}


ONE = [("bash", {"command": "ls"})]
TWO = [("bash", {"command": "ls"}), ("bash", {"command": "df"})]

# Deltas of tool calls as they have been seen; then the calls that they mean.
DELTAS = {
    "by index": (
        [[row("bash", "", index=0, id="a")], [row(None, LS[:5], index=0)], [row(None, LS[5:], index=0)]],
        ONE,
    ),
    "two, mixed": (
        [
            [row("bash", "", index=0, id="a"), row("bash", "", index=1, id="b")],
            [row(None, DF[:7], index=1), row(None, LS[:3], index=0)],
            [row(None, LS[3:], index=0), row(None, DF[7:], index=1)],
        ],
        TWO,
    ),
    "whole at once": ([[row("bash", LS, index=0, id="a"), row("bash", DF, index=1, id="b")]], TWO),
    "no index, ids": ([[row("bash", LS, id="a")], [row("bash", DF, id="b")]], TWO),
    "no index, pieces by id": (
        [[row("bash", "", id="a")], [row(None, LS[:4], id="a")], [row(None, LS[4:], id="a")]],
        ONE,
    ),
    "no index, pieces without id": ([[row("bash", "", id="a")], [row(None, LS[:4])], [row(None, LS[4:])]], ONE),
    "neither index nor id": ([[row("bash", LS)], [row("bash", DF)]], TWO),
    "neither, in one delta": ([[row("bash", LS), row("bash", DF)]], TWO),
    "one index for all, ids": ([[row("bash", LS, index=0, id="a")], [row("bash", DF, index=0, id="b")]], TWO),
    "one index for all, no ids": ([[row("bash", LS, index=0)], [row("bash", DF, index=0)]], TWO),
    "one index for all, in pieces": (
        [
            [row("bash", "", index=0, id="a")],
            [row(None, LS, index=0)],
            [row("bash", "", index=0, id="b")],
            [row(None, DF, index=0)],
        ],
        TWO,
    ),
    "id only at the end": ([[row("bash", LS[:4], index=0)], [row(None, LS[4:], index=0, id="a")]], ONE),
    "id each time": ([[row("bash", LS[:4], index=0, id="a")], [row(None, LS[4:], index=0, id="a")]], ONE),
    "name each time": ([[row("bash", LS[:4], index=0, id="a")], [row("bash", LS[4:], index=0, id="a")]], ONE),
    "another id in each piece": ([[row("bash", LS[:4], index=0, id="a")], [row("", LS[4:], index=0, id="z")]], ONE),
    "name in pieces": ([[row("ba", index=0, id="a")], [row("sh", "", index=0)], [row(None, LS, index=0)]], ONE),
    "arguments as an object": ([[row("bash", {"command": "ls"}, index=0, id="a")]], ONE),
    "arguments twice as text": ([[row("bash", json.dumps(LS), index=0, id="a")]], ONE),
    "null fields": (
        [
            [{"index": 0, "id": "a", "type": None, "function": {"name": "bash", "arguments": None}}],
            [{"index": 0, "id": None, "function": {"name": None, "arguments": LS}}],
        ],
        ONE,
    ),
    "index as text": ([[row("bash", LS, index="0", id="a")], [row("bash", DF, index="1", id="b")]], TWO),
    "indices with a hole": ([[row("bash", LS, index=1, id="a")], [row("bash", DF, index=4, id="b")]], TWO),
}


@pytest.mark.parametrize("name", DELTAS)
def test_deltas_of_calls_are_put_together(talk, name):
    deltas, meant = DELTAS[name]
    _, api = talk(
        Events([chunk(role="assistant"), *[chunk(tool_calls=rows) for rows in deltas], chunk("tool_calls"), "[DONE]"])
    )
    _, reply = ask(api)
    assert [(call.name, call.arguments, call.fault) for call in reply.calls] == [(*one, "") for one in meant]
    assert len({call.id for call in reply.calls}) == len(meant)


def test_the_old_form_of_a_call_is_read(talk):
    deltas = [chunk(function_call={"name": "bash", "arguments": ""}), chunk(function_call={"arguments": LS})]
    _, api = talk(Events([*deltas, chunk("function_call"), "[DONE]"]))
    assert [call.arguments for call in ask(api)[1].calls] == [{"command": "ls"}]


def test_content_in_parts_is_text_without_reasoning(talk, stream):
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "fine"}]
    whole = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    script = (
        Events([chunk(content=parts), chunk("stop"), "[DONE]"])
        if stream
        else Raw([json.dumps(whole).encode()], "application/json")
    )
    _, api = talk(script, stream=stream)
    assert ask(api)[1].text == "fine"


def test_a_refusal_s_words_are_the_text(talk):
    _, api = talk(Events([chunk(refusal="I will not."), chunk("stop"), "[DONE]"]))
    _, reply = ask(api)
    assert (reply.text, reply.stop) == ("I will not.", "refused")


@pytest.mark.parametrize(
    "ending",
    [
        [chunk("stop")],
        ["[DONE]"],
        [chunk("stop"), "[DONE]"],
        [chunk("stop"), {"choices": [], "usage": {}}],
        [" [DONE] "],
    ],
)
def test_either_end_is_an_end(talk, ending):
    _, api = talk(Events([chunk(content="x"), *ending]))
    assert ask(api)[1].text == "x"


def test_usage_in_each_event_is_counted_once(talk):
    usage = [{**chunk(content="x"), "usage": {"prompt_tokens": 9, "completion_tokens": n}} for n in (1, 2, 3)]
    _, api = talk(Events([*usage, chunk("stop"), "[DONE]"]))
    assert ask(api)[1].tokens == Tokens(9, 3, 0)


def test_tokens_of_another_dialect_s_cache_count(talk):
    usage = {"prompt_tokens": 90, "completion_tokens": 1, "prompt_cache_hit_tokens": 64}
    _, api = talk(Events([chunk("stop", content="x"), {"choices": [], "usage": usage}, "[DONE]"]))
    assert ask(api)[1].tokens == Tokens(90, 1, 64)


def test_events_without_an_empty_line_between_are_read(talk):
    lines = "\n".join(f"data: {json.dumps(one)}" for one in (chunk(content="a"), chunk("stop", content="b")))
    _, api = talk(Raw([lines.encode(), b"\n\ndata: [DONE]\n\n"]))
    assert ask(api)[1].text == "ab"


@pytest.mark.parametrize(
    ("item", "kind_of_error"),
    [
        ({"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}, BrainBusy),
        ({"error": {"message": "upstream", "code": 502}}, BrainUnreachable),
        ({"error": {"message": "Provider returned error", "code": 429}}, BrainBusy),
        ({"error": "the model crashed"}, BrainUnreachable),
        ({"error": {"message": "This model's maximum context length is 8192 tokens"}}, ContextOverflow),
        ({"error": {"message": "bad tool", "type": "invalid_request_error"}}, RequestRefused),
        (chunk("error"), BrainUnreachable),
        (chunk("insufficient_system_resource"), BrainBusy),
    ],
)
def test_an_error_in_the_middle_of_a_stream_has_its_kind(talk, item, kind_of_error):
    _, api = talk(Events([chunk(content="some words"), item]), Say("fine"))
    with pytest.raises(kind_of_error) as caught:
        ask(api)
    assert type(caught.value) is kind_of_error
    assert ask(api)[1].text == "fine"


# ── what is sent ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_conversation_is_sent_as_the_format_wants_it(talk):
    server, api = talk(Say("x"))
    said = Assistant("Looking.", (ToolCall("a", "bash", {"command": "ü"}), ToolCall("b", "read")), brain="mine")
    ask(
        api,
        sent(
            User("why?"),
            said,
            Note("another brain took over"),
            Result("b", "read", "", "error"),
            Result("a", "bash", "41 %", "succeeded"),
            User("go on"),
            system="be brief",
            tools=(BASH,),
        ),
    )
    body = server.requests[0].json
    assert body == {
        "model": "mock-1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {"name": "bash", "description": BASH.description, "parameters": BASH.parameters},
            }
        ],
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "why?"},
            {
                "role": "assistant",
                "content": "Looking.",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ü"}'}},
                    {"id": "b", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "b", "content": "(no output)"},
            {"role": "tool", "tool_call_id": "a", "content": "41 %"},
            {"role": "user", "content": "[opsagent] another brain took over\n\ngo on"},
        ],
    }


def test_ids_of_another_brain_are_sent_as_every_api_takes_them(talk):
    server, api = talk(Say("x"))
    said = Assistant("", (ToolCall("functions.bash:0", "bash", {}),), brain="theirs")
    ask(api, sent(User("go"), said, Result("functions.bash:0", "bash", "ok", "succeeded")))
    _, _, call, result = server.requests[0].json["messages"]
    id = call["tool_calls"][0]["id"]
    assert id == result["tool_call_id"]
    assert (len(id), id.isalnum()) == (9, True)


def test_no_tools_are_sent_as_no_field(talk):
    server, api = talk(Say("x"))
    ask(api, sent(tools=()))
    assert "tools" not in server.requests[0].json


REFUSALS = {
    "stream_options": {"error": {"message": "Unknown parameter: 'stream_options'.", "code": "unknown_parameter"}},
    "include_usage": {"detail": [{"msg": "extra fields not permitted: include_usage"}]},
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_server_without_usage_in_streams_is_asked_without(talk, name):
    server, api = talk(Fail(400 if name == "stream_options" else 422, REFUSALS[name]), Say("x"), Say("y"))
    assert ask(api)[1].text == "x"
    assert ask(api)[1].text == "y"
    assert ["stream_options" in request.json for request in server.requests] == [True, False, False]


def test_the_same_refusal_again_is_an_error(talk):
    server, api = talk(*[Fail(400, REFUSALS["stream_options"])] * 3)
    with pytest.raises(RequestRefused, match="stream_options"):
        ask(api)
    assert len(server.requests) == 2


def test_the_limit_has_the_name_that_the_server_takes(talk):
    no = {"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}
    server, api = talk(Fail(400, no), Say("x"), max_tokens=500)
    ask(api)
    first, second = [request.json for request in server.requests]
    assert (first["max_tokens"], second["max_completion_tokens"]) == (500, 500)
    assert ("max_completion_tokens" in first, "max_tokens" in second) == (False, False)


def test_the_limit_s_new_name_is_used_where_it_comes_from(monkeypatch):
    with ModelServer(Say("x")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        api = provider("openai", "http://api.openai.com/v1", max_tokens=500)
        ask(api)
        api.close()
        assert proxy.requests[0].json["max_completion_tokens"] == 500


def test_a_server_that_wants_reasoning_back_gets_what_there_is(talk):
    no = {"error": {"message": "The `reasoning_content` in the thinking mode must be passed back to the API."}}
    server, api = talk(Fail(400, no), Say("x"))
    said = Assistant("", (ToolCall("a", "bash", {}),), brain="mine")
    assert ask(api, sent(User("go"), said, Result("a", "bash", "ok", "succeeded")))[1].text == "x"
    assert server.requests[1].json["messages"][2]["reasoning_content"] == ""


def test_what_stands_beside_a_call_goes_back_with_it_and_only_with_it(talk, stream):
    signed = {"extra_content": {"google": {"thought_signature": "c2lnbmVk"}}}
    calls = [row("bash", LS, index=0, id="a", **signed), row("bash", DF, index=1, id="b")]
    whole = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    events = Events([chunk(tool_calls=calls), chunk("tool_calls"), "[DONE]"])
    server, api = talk(
        events if stream else Raw([json.dumps(whole).encode()], "application/json"), Say("x"), stream=stream
    )
    _, reply = ask(api)
    results = [Result(call.id, "bash", "ok", "succeeded") for call in reply.calls]
    ask(api, sent(User("go"), Assistant("", reply.calls, brain="mine"), *results))
    first, second = server.requests[1].json["messages"][2]["tool_calls"]
    assert first["extra_content"] == signed["extra_content"]
    assert "extra_content" not in second


def test_a_server_that_cannot_stream_is_asked_for_the_whole(talk):
    no = {"error": {"message": "Unsupported value: 'stream' does not support true with this model.", "param": "stream"}}
    server, api = talk(Fail(400, no), Say("x"))
    assert ask(api)[1].text == "x"
    assert server.requests[1].json["stream"] is False


def test_a_window_that_is_full_is_not_mended(talk):
    no = {"error": {"message": "max_tokens is too large: this model's maximum context length is 4096 tokens"}}
    server, api = talk(Fail(400, no), Say("x"), max_tokens=5_000)
    with pytest.raises(ContextOverflow):
        ask(api)
    assert len(server.requests) == 1


def test_calls_without_a_name_are_sent_with_one(talk):
    server, api = talk(Say("x"))
    said = Assistant("", (ToolCall("a", "", {}, "the call names no tool"),), brain="mine")
    ask(api, sent(User("go"), said, Result("a", "", "the call names no tool", "error")))
    assert server.requests[0].json["messages"][2]["tool_calls"][0]["function"]["name"] == "unknown"


def test_whole_replies_are_asked_for_without_options_of_streams(talk):
    server, api = talk(Say("x", [Call("bash", {"command": "ls"})]), stream=False)
    ask(api)
    assert server.requests[0].json["stream"] is False
    assert "stream_options" not in server.requests[0].json
