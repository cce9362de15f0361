"""Both wire formats, streamed and whole: the same replies come out."""

from __future__ import annotations

import json

import pytest

from agent.messages import Assistant, Result, ToolCall, User
from agent.providers import gather, validate
from agent.providers.base import BrainError, Tokens
from tests.model_server import Call, Events, Say
from tests.model_server.clients import ask, sent


def deep(levels: int) -> str:
    return '{"command":' + "[" * levels + "]" * levels + "}"


def test_text_comes_in_pieces_and_whole_at_the_end(talk, stream):
    _, api = talk(Say("The disk is 41 % full.", split=5), stream=stream)
    pieces, reply = ask(api)
    assert "".join(pieces) == reply.text == "The disk is 41 % full."
    assert len(pieces) == (5 if stream else 1)
    assert (reply.calls, reply.stop, reply.model, reply.notes) == ((), "end", "mock-1", ())


def test_calls_keep_their_order_ids_and_arguments(talk, stream):
    calls = [Call("bash", {"command": f"echo {n} ü"}, id=f"id-{n}") for n in range(5)]
    _, api = talk(Say("I look.", calls, split=3), stream=stream)
    _, reply = ask(api)
    assert reply.text == "I look."
    assert reply.calls == tuple(ToolCall(f"id-{n}", "bash", {"command": f"echo {n} ü"}) for n in range(5))
    assert reply.stop == "calls"


def test_call_without_arguments_has_none(talk, stream):
    _, api = talk(Say(calls=[Call("bash", {})]), Say(calls=[Call("bash", "")]), stream=stream)
    for _ in range(2 if stream else 1):
        [call] = ask(api)[1].calls
        assert (call.arguments, call.fault) == ({}, "")


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("null", "null"),
        ("[]", "a list"),
        ('"x"', "a text"),
        ("17", "a number"),
        ("true", "true or false"),
        (deep(2_000), "nested deeper than 64"),
        (deep(200_000), "nested deeper than 64"),
    ],
    ids=["null", "list", "text", "number", "truth", "deep", "very-deep"],
)
def test_arguments_that_are_no_object_are_told_to_the_model_and_the_next_turn_works(talk, stream, written, why):
    if not stream and len(written) > 10_000:
        written = deep(500)  # the server itself writes these as a value
    server, api = talk(Say(calls=[Call("bash", written)], split=9_999), Say("sorry"), stream=stream)
    try:
        _, reply = ask(api)
    except BrainError as fault:
        # Whole replies hold the arguments as a value: one that is too deep makes the reply itself unreadable.
        assert not stream and "nested deeper" in fault.message
        return
    [call] = reply.calls
    assert call.arguments == {}
    assert why in call.fault
    said = Assistant("", reply.calls, brain="mine")
    _, reply = ask(api, sent(User("go"), said, Result(call.id, "bash", call.fault, "error")))
    assert reply.text == "sorry"
    replayed = json.dumps(server.requests[1].json["messages"])
    assert ('"input": {}' in replayed) != ('"arguments": "{}"' in replayed)


@pytest.mark.parametrize(
    "written", ['{"command":', '{"n": NaN}', '{"n": 1e999}', '{"n": ' + "9" * 5_000 + "}", "rm -rf"]
)
def test_arguments_that_are_no_json_are_told_to_the_model(talk, written):
    _, api = talk(Say(calls=[Call("bash", written)]))
    [call] = ask(api)[1].calls
    assert call.arguments == {}
    assert call.fault.startswith("the arguments cannot be read: ")


def test_huge_arguments_are_counted_and_not_kept(talk, monkeypatch):
    monkeypatch.setattr(validate, "ARGUMENTS_CHARS", 1_000)
    _, api = talk(Say(calls=[Call("bash", {"command": "x" * 5_000})], split=100))
    [call] = ask(api)[1].calls
    assert call.arguments == {}
    assert "5,0" in call.fault and "1,000 are the limit" in call.fault


def test_an_id_given_twice_is_one_call_each(talk, stream):
    _, api = talk(
        Say(calls=[Call("bash", {"command": "a"}, id="x"), Call("bash", {"command": "b"}, id="x")]), stream=stream
    )
    _, reply = ask(api)
    assert [call.arguments["command"] for call in reply.calls] == ["a", "b"]
    assert reply.calls[0].id == "x"
    assert reply.calls[1].id.startswith("t-")
    assert any("same id" in note for note in reply.notes)


def test_an_id_of_an_earlier_reply_is_replaced(talk, stream):
    said = Assistant("", (ToolCall("call_0", "bash", {"command": "a"}),), brain="mine")
    _, api = talk(Say(calls=[Call("bash", {"command": "b"}, id="call_0")]), stream=stream)
    _, reply = ask(api, sent(User("go"), said, Result("call_0", "bash", "ok", "succeeded")))
    assert reply.calls[0].id.startswith("t-")


@pytest.mark.parametrize("id", ["", "with blank", "x" * 500, "ünï"])
def test_a_strange_id_is_replaced(talk, stream, id):
    _, api = talk(Say(calls=[Call("bash", {"command": "a"}, id=id)]), stream=stream)
    assert ask(api)[1].calls[0].id == "t-1"


def test_a_call_without_a_name_is_told_to_the_model(talk, stream):
    _, api = talk(Say(calls=[Call("", {"command": "a"})]), stream=stream)
    [call] = ask(api)[1].calls
    assert (call.name, call.arguments, call.fault) == ("", {}, "the call names no tool")


def test_tokens_are_counted_with_what_came_from_the_cache(talk, stream):
    _, api = talk(Say("x", tokens=(1_000, 30, 900)), stream=stream)
    assert ask(api)[1].tokens == Tokens(1_000, 30, 900)


STOPS = {
    "openai": [("stop", "end"), ("length", "length"), ("content_filter", "refused"), ("eos", "end")],
    "anthropic": [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refused"),
    ],
}


def test_ends_have_one_name_each(talk, stream, kind):
    script = [Say("x", stop=theirs) for theirs, _ in STOPS[kind]]
    _, api = talk(*script, stream=stream)
    assert [ask(api)[1].stop for _ in script] == [ours for _, ours in STOPS[kind]]


def test_an_unknown_end_is_noted(talk, stream):
    _, api = talk(Say("x", stop="because"), stream=stream)
    _, reply = ask(api)
    assert reply.stop == "end"
    assert any("'because'" in note for note in reply.notes)


def test_a_pause_is_noted(talk, kind):
    _, api = talk(Say("x", stop="pause_turn"))
    _, reply = ask(api)
    assert (reply.stop, len(reply.notes)) == ("end", 1)


def test_a_reply_with_calls_that_the_limit_cut_says_so(talk, stream, kind):
    cut = {"openai": "length", "anthropic": "max_tokens"}[kind]
    _, api = talk(Say(calls=[Call("bash", {"command": "ls"})], stop=cut), stream=stream)
    assert ask(api)[1].stop == "length"


def test_a_refusal_runs_nothing(talk, stream, kind):
    refused = {"openai": "content_filter", "anthropic": "refusal"}[kind]
    _, api = talk(Say("no", [Call("bash", {"command": "ls"})], stop=refused), stream=stream)
    _, reply = ask(api)
    assert (reply.stop, reply.calls) == ("refused", ())


def test_an_end_that_names_calls_without_any_is_an_ordinary_end(talk, stream, kind):
    _, api = talk(Say("x", stop={"openai": "tool_calls", "anthropic": "tool_use"}[kind]), stream=stream)
    assert ask(api)[1].stop == "end"


def test_calls_count_whatever_the_end_is_called(talk, stream, kind):
    _, api = talk(
        Say(calls=[Call("bash", {"command": "ls"})], stop={"openai": "stop", "anthropic": "end_turn"}[kind]),
        stream=stream,
    )
    assert ask(api)[1].stop == "calls"


def test_another_model_is_noted_once_and_the_conversation_goes_on(talk, stream):
    _, api = talk(Say("x", model="other-7b"), Say("y", model="other-7b"), stream=stream)
    first, second = ask(api)[1], ask(api)[1]
    assert first.notes == ("mine was asked for mock-1 and answered as other-7b",)
    assert (second.text, second.model, second.notes) == ("y", "other-7b", ())


def test_reasoning_is_not_part_of_the_reply(talk, stream):
    _, api = talk(Say("41 %", reasoning="let me think about rm -rf /"), stream=stream)
    pieces, reply = ask(api)
    assert "".join(pieces) == reply.text == "41 %"


def test_reasoning_goes_back_with_its_calls_and_to_nobody_else(talk, stream):
    server, api = talk(
        Say(calls=[Call("bash", {"command": "df"})], reasoning="first the disk"), Say("fine"), stream=stream
    )
    _, reply = ask(api)
    own = Assistant(reply.text, reply.calls, brain="mine")
    foreign = Assistant("", (ToolCall("other", "bash", {"command": "ls"}),), brain="theirs")
    results = [Result(reply.calls[0].id, "bash", "ok", "succeeded"), Result("other", "bash", "ok", "succeeded")]
    ask(api, sent(User("go"), own, results[0], foreign, results[1]))
    rows = [row for row in server.requests[1].json["messages"] if row["role"] == "assistant"]
    assert ["first the disk" in json.dumps(row) for row in rows] == [True, False]


def test_reasoning_inside_the_text_is_left_out(talk, stream):
    _, api = talk(Say("<think>\nrm -rf / ?\nno.</think>\n\nAll is well.", split=3), stream=stream)
    pieces, reply = ask(api)
    assert "".join(pieces) == reply.text == "All is well."


def test_several_blocks_of_reasoning_are_left_out_and_endless_ones_cost_little(talk, stream):
    _, api = talk(
        Say("<think>a</think>\n<think>b</think>x", split=4),
        Say("<think></think>" * 50_000, split=99_999),
        stream=stream,
    )
    assert ask(api)[1].text == "x"
    assert ask(api)[1].text.startswith("<think>")


@pytest.mark.parametrize("text", ["<thi", "< think>x", "  <b>x</b>", "a <think>b</think>", "   "])
def test_text_that_only_looks_like_reasoning_stays(talk, stream, text):
    _, api = talk(Say(text, split=1), stream=stream)
    pieces, reply = ask(api)
    assert "".join(pieces) == reply.text == text


def test_halves_of_characters_are_joined_or_replaced(talk):
    _, api = talk(Say(split=["ok \ud83d", "\ude00 and ", "\ude00 half"]))
    pieces, reply = ask(api)
    assert "".join(pieces) == reply.text == "ok 😀 and \ufffd half"
    assert any("halves of characters" in note for note in reply.notes)


def test_halves_of_characters_in_arguments_are_replaced(talk, stream):
    _, api = talk(Say(calls=[Call("bash", '{"command": "x\\ud83d"}')]), stream=stream)
    [call] = ask(api)[1].calls
    assert call.arguments == {"command": "x\ufffd"}


def test_a_delta_of_five_megabytes_is_read(talk, stream):
    text = "0123456789" * 500_000
    _, api = talk(Say(text, split=len(text)), stream=stream)
    assert ask(api)[1].text == text


def test_text_without_end_is_an_error(talk, stream, monkeypatch):
    monkeypatch.setattr(gather, "TEXT_CHARS", 10_000)
    _, api = talk(Say("x" * 20_000, split=500), stream=stream)
    with pytest.raises(BrainError, match="more than 10,000 characters"):
        ask(api)


def test_calls_without_end_are_an_error(talk, stream):
    _, api = talk(Say(calls=[Call("bash", {"command": "x"})] * 200), stream=stream)
    with pytest.raises(BrainError, match="more than 128 tools"):
        ask(api)


@pytest.mark.parametrize(
    "item",
    ["{not json", "[]", "17", '{"a":' * 500, "[" * 100_000, "\x00"],
    ids=["broken", "list", "number", "deep-broken", "very-deep", "nul"],
)
def test_an_event_that_cannot_be_read_is_an_error_and_the_next_turn_works(talk, item):
    _, api = talk(Events([item]), Say("fine"))
    with pytest.raises(BrainError, match="sent what cannot be used: an event") as caught:
        ask(api)
    assert not caught.value.retryable
    assert ask(api)[1].text == "fine"


STRANGE = {
    "openai": [
        {"choices": "no"},
        {"choices": [None, 3, {"delta": None}, {"delta": []}, {"index": 7, "delta": {"content": "other choice"}}]},
        {"choices": [{"delta": {"content": 5, "tool_calls": {"a": 1}, "reasoning_content": ["x"], "role": None}}]},
        {
            "choices": [{"delta": {"content": "fine", "reasoning": "x", "audio": {}, "tool_calls": None}}],
            "usage": "many",
        },
        {
            "choices": [{"delta": {}, "finish_reason": "stop", "logprobs": {"deep": [1]}}],
            "usage": {"prompt_tokens": -1},
        },
        {"model": 7, "choices": []},
    ],
    "anthropic": [
        {"type": "message_start", "message": None},
        {"type": "something_new", "index": 0},
        {"type": "content_block_start", "index": "0", "content_block": {"type": "text", "text": "lost"}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "server_tool_use", "id": "s", "name": "web"},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": None}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "fine"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {}}},
        {"type": "content_block_delta", "index": 9, "delta": None},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": "9"}},
        {"type": "message_stop"},
    ],
}


@pytest.mark.parametrize(
    "corner", ['{"a":' * 5_000 + "1" + "}" * 5_000, "[NaN, Infinity, 1e999]"], ids=["deep", "no-number"]
)
def test_a_strange_corner_does_not_make_an_event_unreadable(talk, kind, corner):
    from tests.model_server.wire import Anthropic, OpenAI

    wire = {"openai": OpenAI, "anthropic": Anthropic}[kind]
    items = [
        json.dumps(item)[:-1] + f', "more": {corner}}}'
        for item in wire.events(Say("fine"), "mock-1", 1, {})
        if item != "[DONE]"
    ]
    _, api = talk(Events(items))
    assert ask(api)[1].text == "fine"


def test_fields_of_wrong_kinds_and_unknown_ones_are_passed_over(talk, kind):
    _, api = talk(Events(STRANGE[kind]))
    _, reply = ask(api)
    assert (reply.text, reply.calls, reply.stop, reply.tokens) == ("fine", (), "end", Tokens())


def test_a_server_may_stream_unasked_or_not_stream_although_asked(talk, kind):
    from tests.model_server import Raw
    from tests.model_server.wire import Anthropic, OpenAI

    wire = {"openai": OpenAI, "anthropic": Anthropic}[kind]
    say = Say("hello", [Call("bash", {"command": "ls"})])
    whole = json.dumps(wire.whole(say, "mock-1", 1)).encode()
    events = [wire.frame(item) for item in wire.events(say, "mock-1", 1, {})]
    _, api = talk(Raw([whole], type="application/json"), stream=True)
    _, other = talk(Raw(events), stream=False)
    for one in (api, other):
        _, reply = ask(one)
        assert (reply.text, [call.name for call in reply.calls]) == ("hello", ["bash"])
