"""Every line that is no message gets the error of its kind, or silence, and the next one its answer."""

from __future__ import annotations

import json

import pytest

from tests.rpc.talk import ECHO, Client, line, request

pytestmark = pytest.mark.guarantee("G-RPC-WIRE")

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A server without batches, as ACP is."""
    with Client(tmp_path_factory.mktemp("plain") / "home", ECHO) as one:
        yield one


@pytest.fixture(scope="module")
def batching(tmp_path_factory):
    with Client(tmp_path_factory.mktemp("batches") / "home", [*ECHO, "batches"]) as one:
        yield one


BROKEN = {
    "garbage": (b"garbage", -32700, None),
    "truncated": (b'{"jsonrpc":"2.0","id":1', -32700, None),
    "two objects": (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}', -32700, None),
    "a NUL": (b'{"jsonrpc":"2.0","id":1,"method":"ping"}\0', -32700, None),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}', -32700, None),
    "a lone surrogate in the id": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32600, None),
    "a lone surrogate in a text": (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":"\\uDFFF"}}', -32600, None),
    "an empty batch": (b"[]", -32600, None),
    "a number": (b"42", -32600, None),
    "a string": (b'"x"', -32600, None),
    "null": (b"null", -32600, None),
    "no version": (b'{"id":7,"method":"ping"}', -32600, 7),
    "another version": (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, 7),
    "a null id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    "a broken id": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    "a whole id with a point": (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', -32600, None),
    "an infinite id": (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', -32600, None),
    "NaN as id": (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32600, None),
    "-Infinity as id": (b'{"jsonrpc":"2.0","id":-Infinity,"method":"ping"}', -32600, None),
    "an infinite parameter": (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":-1e999}}', -32600, None),
    "an object as id": (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', -32600, None),
    "an array as id": (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, None),
    "true as id": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    "a number without end": (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', -32700, None),
    "a name twice": (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32600, None),
    "a parameter twice": (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1,"a":2}}', -32600, None),
    "deep": (
        b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}",
        -32700,
        None,
    ),
    "very deep": (b"[" * 200_000, -32700, None),
    "no method": (b'{"jsonrpc":"2.0","id":"x"}', -32600, "x"),
    "a method that is no text": (b'{"jsonrpc":"2.0","id":"x","method":7}', -32600, "x"),
    "a method and a result": (b'{"jsonrpc":"2.0","id":"x","method":"ping","result":{}}', -32600, "x"),
    "an unknown method": (b'{"jsonrpc":"2.0","id":"x","method":"nope"}', -32601, "x"),
    "a method of Python": (b'{"jsonrpc":"2.0","id":"x","method":"__class__"}', -32601, "x"),
    "params that are a number": (b'{"jsonrpc":"2.0","id":"x","method":"echo","params":7}', -32602, "x"),
    "params that are null": (b'{"jsonrpc":"2.0","id":"x","method":"echo","params":null}', -32602, "x"),
    "params that are an array": (b'{"jsonrpc":"2.0","id":"x","method":"echo","params":[1]}', -32602, "x"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("server", ["plain", "batching"])
def test_a_line_that_is_no_request_gets_one_error_and_the_next_one_its_answer(request, server, name):
    client = request.getfixturevalue(server)
    sent, code, id = BROKEN[name]
    client.send(sent + b"\n")
    answer = client.next()
    assert (answer["error"]["code"], answer["id"]) == (code, id)
    assert "result" not in answer
    client.alive()


SILENT = {
    "an empty line": b"",
    "blanks": b" \t ",
    "an unknown notification": b'{"jsonrpc":"2.0","method":"nothing"}',
    "a notification with params that are none": b'{"jsonrpc":"2.0","method":"tell","params":3}',
    "a cancellation of nothing": b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":12345}}',
    "a cancellation of an object": b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":{}}}',
    "an answer to nothing": b'{"jsonrpc":"2.0","id":"srv-99","result":{}}',
    "an answer with a number": b'{"jsonrpc":"2.0","id":99,"result":{}}',
    "an answer without an id": b'{"jsonrpc":"2.0","result":{}}',
    "an error for nobody": b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
}


@pytest.mark.parametrize("name", SILENT)
def test_a_line_that_asks_nothing_gets_no_answer(plain, name):
    plain.send(SILENT[name] + b"\n")
    plain.alive()


@pytest.mark.parametrize("id", [0, -1, 10**30, "", "x" * 1000, "\u2028", "界", "\u0085"])
def test_an_id_comes_back_exactly(plain, id):
    plain.send(request(id, "ping"))
    assert plain.answer(id)["result"] == {}


def test_carriage_returns_and_separators_inside_a_text_split_nothing(plain):
    plain.send(
        json.dumps(request("a", "echo", text="\u2028\u2029\u0085\r\n\x0b"), ensure_ascii=False).encode() + b"\r\n"
    )
    assert plain.answer("a")["result"]["params"]["text"] == "\u2028\u2029\u0085\r\n\x0b"


def test_two_megabytes_on_a_line_are_read(plain):
    text = "é" * 1_000_000
    plain.send(request("big", "echo", text=text))
    assert plain.answer("big")["result"]["params"]["text"] == text


def test_a_line_over_the_limit_is_thrown_away_and_said_once(plain):
    piece = b"x" * (1 << 20)
    for _ in range(17):
        plain.send(piece)
    assert plain.next()["error"]["code"] == -32600
    for _ in range(3):
        plain.send(piece)
    plain.send(b"\n")
    plain.alive()


def test_a_line_that_comes_byte_by_byte_is_one_line(plain):
    for byte in line(request("slow", "ping")):
        plain.send(bytes([byte]))
    assert plain.answer("slow")["result"] == {}


def test_what_a_method_raises_is_an_error_without_its_words(plain):
    answer = plain.ask("fail")
    assert answer["error"] == {"code": -32603, "message": "Internal error: LookupError"}


def test_a_result_that_is_no_json_is_an_error_of_ours(plain):
    assert plain.ask("no_json")["error"]["code"] == -32603
    plain.alive()


def test_an_array_of_messages_is_no_message_where_batches_are_not_spoken(plain):
    plain.send(line([PING, PING]))
    answer = plain.next()
    assert (answer["error"]["code"], answer["id"]) == (-32600, None)
    plain.alive()


def batch_of(client, *messages):
    client.send(line(list(messages)))
    raw = client.lines.get(timeout=60)
    answers = json.loads(raw)
    assert isinstance(answers, list)
    return answers


def test_a_batch_is_answered_with_one_array_without_its_notifications(batching):
    answers = batch_of(
        batching, request("a", "echo", n=1), {"jsonrpc": "2.0", "method": "tell"}, 42, request(2, "nope")
    )
    by_id = {one["id"]: one for one in answers}
    assert len(answers) == 3
    assert by_id["a"]["result"] == {"params": {"n": 1}}
    assert by_id[None]["error"]["code"] == -32600
    assert by_id[2]["error"]["code"] == -32601
    batching.alive()


def test_a_batch_of_notifications_and_answers_gets_nothing(batching):
    batching.send(line([{"jsonrpc": "2.0", "method": "tell"}, {"jsonrpc": "2.0", "id": "srv-77", "result": 1}]))
    batching.alive()


def test_an_id_twice_in_one_batch_is_answered_once(batching):
    answers = batch_of(batching, request("w", "wait"), request("w", "ping"), {**PING, "id": "c"}, cancel("w"))
    codes = sorted((str(one["id"]), one.get("error", {}).get("code", 0)) for one in answers)
    assert codes == [("c", 0), ("w", -32800), ("w", -32600)]


def test_a_result_that_is_no_json_spoils_no_other_answer_of_its_batch(batching):
    answers = batch_of(batching, request("a", "echo"), request("b", "no_json"), request("c", "fail"))
    by_id = {one["id"]: one for one in answers}
    assert "result" in by_id["a"]
    assert by_id["b"]["error"]["code"] == by_id["c"]["error"]["code"] == -32603


def test_a_batch_that_is_too_long_is_refused_whole(batching):
    batching.send(line([PING] * 65))
    assert batching.next()["error"]["code"] == -32600
    batching.alive()


def cancel(id: object) -> dict:
    return {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}}


def test_a_mark_at_the_very_beginning_is_no_part_of_the_first_line(tmp_path):
    with Client(tmp_path / "h", ECHO) as client:
        client.send(b"\xef\xbb\xbf" + line(PING))
        assert client.answer(1)["result"] == {}
        client.send(b"\xef\xbb\xbf" + line(PING))
        assert client.next()["error"]["code"] == -32700


def test_a_last_line_without_its_newline_is_answered_when_it_is_whole(tmp_path):
    with Client(tmp_path / "h", ECHO) as client:
        client.send(line(request("last", "echo")).rstrip())
        assert [one["id"] for one in client.ended()] == ["last"]
        assert client.code == 0


def test_half_of_a_last_line_gets_no_answer(tmp_path):
    with Client(tmp_path / "h", ECHO) as client:
        client.send(b'{"jsonrpc":"2.0","id":1,"meth')
        assert client.ended() == []
        assert client.code == 0


def test_nothing_is_said_before_the_first_line(tmp_path):
    with Client(tmp_path / "h", ECHO) as client:
        assert client.ended() == []
        assert client.code == 0
        assert client.err == b"ended: the end of the input; all answered: True\n"
