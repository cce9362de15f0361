"""Whatever a server sends, out comes a valid reply or a `BrainError`; nothing else, and never half a reply."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.messages import Assistant, Result, User
from agent.providers.base import BrainError, Reply
from tests.model_server import Call, Say
from tests.model_server.clients import provider, sent
from tests.model_server.wire import Anthropic, OpenAI

WIRES = {"openai": OpenAI, "anthropic": Anthropic}
SAY = Say(
    "Looking at ü 😀.",
    [Call("bash", {"command": "df -h", "timeout_s": 5}), Call("read", {"path": "/etc/hosts"})],
    reasoning="first the disk",
)


class Line:
    """An answer that is already here."""

    status = 200

    def __init__(self, pieces: list[bytes], kind: str) -> None:
        self._pieces = pieces
        self.headers = {"content-type": kind}

    def pieces(self):
        return iter(self._pieces)

    def body(self) -> bytes:
        return b"".join(self._pieces)

    def settle(self) -> None:
        """Nothing to wait for."""


def read(kind: str, data: bytes, *, stream: bool) -> Reply | BrainError:
    """What comes of these bytes, checked for all that the rest of the program relies on."""
    api = provider(kind, "http://127.0.0.1:1")
    line = Line(
        [data[at : at + 997] for at in range(0, len(data), 997)], "text/event-stream" if stream else "application/json"
    )
    request = sent()
    try:
        *shown, reply = api._read(line, request)
    except BrainError as error:
        assert error.message and error.not_done
        return error
    assert isinstance(reply, Reply)
    assert all(isinstance(piece, str) for piece in shown)
    for text in (*shown, reply.text, reply.model, *reply.notes):
        text.encode()
    ids = [call.id for call in reply.calls]
    assert len(ids) == len(set(ids)) and all(ids)
    for call in reply.calls:
        assert isinstance(call.arguments, dict) and (not call.fault or call.arguments == {})
        json.dumps([call.id, call.name, call.arguments], allow_nan=False).encode()
    assert reply.stop in ("end", "calls", "length", "refused")
    assert bool(reply.calls) == (reply.stop == "calls") or reply.stop == "length"
    # What was said can be sent back, by either format.
    said = Assistant(reply.text, reply.calls, brain="mine")
    results = [Result(call.id, call.name, "ok", "succeeded") for call in reply.calls]
    for other in (api, *(provider(one, "http://127.0.0.1:1") for one in WIRES)):
        json.dumps(other._request(sent(User("go"), said, *results)), allow_nan=False)
    return reply


def bytes_of(kind: str, *, stream: bool) -> bytes:
    wire = WIRES[kind]
    if not stream:
        return wire.body(SAY, "mock-1", 1, {})
    return b"".join(
        wire.frame(item) for item in wire.events(SAY, "mock-1", 1, {"stream_options": {"include_usage": True}})
    )


PIECES = [
    b"",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"\n",
    b"\n\n",
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"NaN",
    b"0",
    b"\xff",
    b"\\ud83d",
]
PIECES += [
    b"data: ",
    b"data: {}\n\n",
    b"data: null\n\n",
    b"data: [DONE]\n\n",
    b"event: error\n",
    b'"index":',
    b'"type":',
    b"[" * 200,
    b"9" * 5_000,
]
CHANGES = st.lists(
    st.tuples(st.integers(min_value=0), st.integers(min_value=0, max_value=40), st.sampled_from(PIECES)),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(changes=CHANGES)
def test_a_reply_that_was_changed_anywhere_is_valid_or_an_error(kind, stream, changes):
    data = bytes_of(kind, stream=stream)
    for at, gone, new in changes:
        at %= len(data) + 1
        data = data[:at] + new + data[at + gone :]
    read(kind, data, stream=stream)


ODD = [
    None,
    True,
    0,
    -1,
    7,
    2**70,
    1.5,
    "",
    "x",
    "\ud83d",
    "tool_use",
    "text",
    "a" * 300,
    [],
    [None],
    [[]],
    {},
    {"a": {}},
]
ODD += [[{"index": 0}], {"type": "text", "text": None}, {"name": None, "arguments": 5}]


def places(value, found):
    """Every (container, key) in a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        found.append((value, key))
        places(inner, found)
    return found


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(changes=st.lists(st.tuples(st.integers(min_value=0), st.sampled_from(ODD)), min_size=1, max_size=4))
def test_a_reply_with_odd_values_anywhere_is_valid_or_an_error(kind, stream, changes):
    wire = WIRES[kind]
    items = list(wire.events(SAY, "mock-1", 1, {"stream_options": {"include_usage": True}}))
    whole = json.loads(
        json.dumps([item for item in items if item != "[DONE]"] if stream else wire.whole(SAY, "mock-1", 1))
    )
    for at, odd in changes:
        container, key = (known := places(whole, []))[at % len(known)]
        container[key] = json.loads(json.dumps(odd))
    read(kind, b"".join(map(wire.frame, whole)) if stream else json.dumps(whole).encode(), stream=stream)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(max_size=400))
def test_any_bytes_are_a_valid_reply_or_an_error(kind, stream, data):
    read(kind, data, stream=stream)


@pytest.mark.guarantee("G-WHOLE-REPLY")
def test_a_stream_that_is_cut_at_any_byte_is_whole_or_an_error(kind):
    data = bytes_of(kind, stream=True)
    whole = read(kind, data, stream=True)
    assert isinstance(whole, Reply) and len(whole.calls) == 2
    replies = []
    for end in range(len(data)):
        found = read(kind, data[:end], stream=True)
        if isinstance(found, Reply):
            replies.append(found)
    # Only figures come after the model has said that it is done.
    assert replies
    assert {(reply.text, reply.calls) for reply in map(plain, replies)} == {(whole.text, plain(whole).calls)}


def plain(reply: Reply) -> Reply:
    """The reply with calls that can be put into a set."""
    calls = tuple((call.id, call.name, json.dumps(call.arguments), call.fault) for call in reply.calls)
    return Reply(reply.text, calls)


def test_a_whole_reply_that_is_cut_at_any_byte_is_an_error(kind):
    data = bytes_of(kind, stream=False)
    assert all(isinstance(read(kind, data[:end], stream=False), BrainError) for end in range(len(data)))
