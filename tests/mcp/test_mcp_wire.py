"""Lines that are no messages: an error object or silence, and always the next message's answer."""

from __future__ import annotations

import json
import random

import pytest

from tests.mcp.mutations import mutated
from tests.mcp.talk import LEGACY, Peer

pytestmark = pytest.mark.guarantee("G-MCP-WIRE")

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    with Peer(tmp_path_factory.mktemp("wire") / "home") as one:
        yield one


BROKEN = {
    "garbage": (b"garbage", -32700, None),
    "truncated": (b'{"jsonrpc":"2.0","id":1', -32700, None),
    "two objects": (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}', -32700, None),
    "a NUL": (b'{"jsonrpc":"2.0","id":1,"method":"ping"}\0', -32700, None),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}', -32700, None),
    "a lone surrogate": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32600, None),
    "a lone surrogate in capitals": (b'{"jsonrpc":"2.0","id":1,"method":"\\uDFFF"}', -32600, None),
    "a batch": (json.dumps([PING, PING]).encode(), -32600, None),
    "an empty batch": (b"[]", -32600, None),
    "a number": (b"42", -32600, None),
    "a string": (b'"x"', -32600, None),
    "null": (b"null", -32600, None),
    "no version": (b'{"id":7,"method":"ping"}', -32600, 7),
    "another version": (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, 7),
    "a null id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    "a broken id": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    "a true id": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    "a list id": (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, None),
    "an infinite id": (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', -32600, None),
    "NaN": (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32600, None),
    "Infinity in arguments": (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"timeout_s":Infinity}}}',
        -32600,
        None,
    ),
    "a number without end": (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', -32700, None),
    "a name twice": (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}', -32600, None),
    "a command twice": (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":'
        b'{"command":"echo shown","command":"echo run"}}}',
        -32600,
        None,
    ),
    "deep": (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        -32700,
        None,
    ),
    "no method": (b'{"jsonrpc":"2.0","id":"x"}', -32600, "x"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_line_that_is_no_message_gets_an_error_and_the_next_one_its_answer(peer, name):
    line, code, id = BROKEN[name]
    peer.send(line + b"\n")
    answer = peer.next()
    assert (answer["error"]["code"], answer["id"]) == (code, id)
    peer.alive()


SILENT = {
    "an empty line": b"",
    "blanks": b"  \t ",
    "an unknown notification": b'{"jsonrpc":"2.0","method":"notifications/nothing"}',
    "a malformed notification": b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":3}',
    "an answer to nothing": b'{"jsonrpc":"2.0","id":99,"result":{}}',
    "a malformed answer": b'{"jsonrpc":"2.0","id":99,"error":"no"}',
    "a cancellation of nothing": b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}',
}


@pytest.mark.parametrize("name", SILENT)
def test_a_line_that_asks_nothing_gets_no_answer(peer, name):
    peer.send(SILENT[name] + b"\n")
    peer.alive()


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"method": "nothing/here"}, -32601),
        ({"method": "resources/list"}, -32601),
        ({"method": "tools/call", "params": {"name": 3}}, -32602),
        ({"method": "tools/call", "params": {"name": "bash", "arguments": []}}, -32602),
        ({"method": "tools/call"}, -32602),
    ],
)
def test_a_request_that_cannot_be_served_gets_the_error_of_its_kind(peer, request_, code):
    peer.send({"jsonrpc": "2.0", "id": "r", **request_})
    assert peer.answer("r")["error"]["code"] == code
    peer.alive()


@pytest.mark.parametrize("id", [0, -1, 10**30, "", "x" * 1000, "\u2028", "界"])
def test_an_id_comes_back_exactly(peer, id):
    peer.send({"jsonrpc": "2.0", "id": id, "method": "ping"})
    assert peer.answer(id)["result"] == {}


def test_carriage_returns_and_line_separators_inside_text_split_nothing(peer):
    peer.send(json.dumps({**PING, "id": "a\u2028b\u0085c"}, ensure_ascii=False).encode() + b"\r\n")
    assert peer.answer("a\u2028b\u0085c")["result"] == {}


def test_a_line_over_the_limit_is_thrown_away_and_said(peer):
    piece = b"x" * (1 << 20)
    for _ in range(17):
        peer.send(piece)
    assert peer.next()["error"]["code"] == -32600
    for _ in range(3):
        peer.send(piece)
    peer.send(b"\n")
    peer.alive()


def test_random_lines_leave_the_server_answering(peer):
    """Every line gives at most one line, which is strict JSON, and the server lives."""
    chance = random.Random(20261201)
    sent = 300
    for _ in range(sent):
        peer.send(mutated(chance) + b"\n")
    peer.send({"jsonrpc": "2.0", "id": "the end", "method": "ping"})
    answers = 0
    while peer.next()["id"] != "the end":
        answers += 1
    assert 0 < answers <= sent
    peer.alive()


def test_a_mark_at_the_very_beginning_is_no_part_of_the_first_line(tmp_path):
    with Peer(tmp_path / "h", open=False) as peer:
        peer.send(
            b"\xef\xbb\xbf"
            + json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": LEGACY}).encode()
            + b"\n"
        )
        assert peer.answer(1)["result"]["protocolVersion"] == "2025-11-25"


def test_a_last_line_without_its_newline_is_still_answered_and_the_end_is_clean(tmp_path):
    with Peer(tmp_path / "h") as peer:
        peer.send(json.dumps({"jsonrpc": "2.0", "id": "last", "method": "ping"}).encode())
        assert peer.close() == 0
        found = []
        while (line := peer.lines.get(timeout=60)) is not None:
            found.append(json.loads(line))
        assert [message["id"] for message in found] == ["last"]


def test_a_host_that_says_nothing_gets_a_clean_end(tmp_path):
    with Peer(tmp_path / "h", open=False) as peer:
        assert peer.close() == 0
        assert peer.err == b""


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_version_with_a_handshake_is_spoken(tmp_path, version):
    with Peer(tmp_path / "h", open=False) as peer:
        opened = peer.ask("initialize", {**LEGACY, "protocolVersion": version})
        assert opened["result"]["protocolVersion"] == version
        peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert peer.structured("ops_list") == {"format": 1, "requests": [], "stamps": [], "snapshots": []}


def test_a_client_without_a_handshake_discovers_and_calls(tmp_path):
    with Peer(tmp_path / "h", modern=True) as peer:
        found = peer.ask("server/discover")["result"]
        assert (found["supportedVersions"], found["resultType"]) == (["2026-07-28"], "complete")
        assert len(found["instructions"].encode()) < 2048
        listed = peer.ask("tools/list")["result"]
        assert listed["cacheScope"] == "private"
        assert peer.call("ops_list")["resultType"] == "complete"
