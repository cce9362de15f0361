"""Frames cut, merged, reordered and spoiled: each line gives at most one strict line, and `ping` still answers."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rpc.talk import ECHO, Client, line, request

pytestmark = pytest.mark.guarantee("G-RPC-WIRE")

FRAMES = [
    line(request(1, "ping")),
    line(request("ü", "echo", text="\u2028 x", deep=[[[{}]]])),
    line(request(-3, "fail")),
    line(request("n", "nope")),
    line({"jsonrpc": "2.0", "method": "tell", "params": {"a": 1.5}}),
    line({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}),
    line({"jsonrpc": "2.0", "id": "srv-1", "result": {"answer": "approve"}}),
    line({"jsonrpc": "2.0", "id": "srv-2", "error": {"code": 1, "message": "x"}}),
    line([request(5, "ping"), request(6, "echo"), 7]),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2, None]),
        "id": VALUES,
        "method": st.sampled_from(["ping", "echo", "nope", "tell", "$/cancel_request", "", 3, None]),
        "params": VALUES,
        "result": VALUES,
        "error": VALUES,
    },
)
numbers = itertools.count()


def as_line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


class Tally:
    """One server, and how many lines went to it and came from it in all: some calls are answered after `ping`."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.sent = self.answers = 0

    def check(self, data: bytes) -> None:
        """Sends the lines and a `ping`; reads until that is answered."""
        id = f"the end {next(numbers)}"
        self.sent += len([one for one in data.split(b"\n") if one.strip()])
        self.client.send(data + b"\n" + as_line(request(id, "ping")))
        while True:
            message = json.loads(self.client.lines.get(timeout=60), parse_constant=lambda name: pytest.fail(name))
            if isinstance(message, dict) and message["id"] == id:
                break
            self.answers += 1
        assert self.answers <= self.sent


@pytest.fixture(scope="module", params=[[], ["batches"]], ids=["plain", "batches"])
def server(request, tmp_path_factory):
    with Client(tmp_path_factory.mktemp("fuzz") / "home", [*ECHO, *request.param]) as one:
        yield Tally(one)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(FRAMES), min_size=1, max_size=6), st.data())
def test_frames_that_are_cut_merged_and_reordered(server, frames, data):
    stream = bytearray(b"".join(frames))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, max(0, len(stream) - 1)))
        match data.draw(st.sampled_from(["cut", "spoil", "put", "newline", "join"])):
            case "cut":
                del stream[at : at + data.draw(st.integers(1, 20))]
            case "spoil" if stream:
                stream[at] = data.draw(st.integers(0, 255))
            case "put":
                stream[at:at] = data.draw(st.binary(min_size=1, max_size=8))
            case "newline":
                stream[at:at] = b"\n"
            case _:
                stream = bytearray(stream.replace(b"\n", b"", 1))
    server.check(bytes(stream))


@settings(max_examples=150, deadline=None)
@given(st.lists(MEMBERS | VALUES, min_size=1, max_size=4))
def test_messages_of_any_shape(server, messages):
    server.check(b"".join(as_line(one) for one in messages))
