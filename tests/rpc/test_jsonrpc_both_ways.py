"""Requests in both directions: many at once, cancelled, unanswered, answered wrongly, and a peer that goes away."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.rpc.talk import ECHO, Client, line, request

pytestmark = pytest.mark.guarantee("G-RPC-WIRE")


@pytest.fixture
def client(tmp_path):
    with Client(tmp_path / "home", ECHO) as one:
        yield one


def cancel(client: Client, id: object) -> None:
    client.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}})


def test_a_call_that_waits_holds_up_nobody(client):
    client.send(request("w", "wait"))
    client.alive()
    assert client.result("echo", a=1) == {"params": {"a": 1}}
    cancel(client, "w")
    assert client.answer("w")["error"]["code"] == -32800


def test_an_id_that_is_in_use_is_refused_and_the_first_one_still_answered(client):
    client.send(request("w", "wait"))
    client.send(request("w", "ping"))
    assert client.answer("w")["error"]["code"] == -32600
    cancel(client, "w")
    assert client.answer("w")["error"]["code"] == -32800
    client.send(request("w", "ping"))
    assert client.answer("w")["result"] == {}


def test_a_text_and_a_number_are_different_ids(client):
    client.send(request("1", "wait"))
    client.send(request(1, "wait"))
    cancel(client, 1)
    assert client.answer(1)["error"]["code"] == -32800
    cancel(client, "1")
    assert client.answer("1")["error"]["code"] == -32800


def test_more_calls_than_fit_are_refused_while_ping_and_cancellations_are_not(client):
    for number in range(64):
        client.send(request(f"w-{number}", "wait"))
    assert client.error("echo")["code"] == -32000
    client.send(request("p", "ping"))
    assert client.answer("p")["result"] == {}
    cancel(client, "w-63")
    assert client.answer("w-63")["error"]["code"] == -32800
    assert client.result("echo") == {"params": {}}


def test_what_the_client_answers_comes_back(client):
    client.answers = lambda message: {"heard": message["params"]}
    assert client.result("ask", params={"a": 1}) == {"result": {"heard": {"a": 1}}, "why": ""}
    assert client.asked[0]["id"] == "srv-1"


def test_answers_may_come_in_any_order(client):
    client.send(request("a", "ask", params={"of": "a"}))
    first = client.until(lambda message: message.get("method") == "question")
    client.send(request("b", "ask", params={"of": "b"}))
    second = client.until(lambda message: message.get("method") == "question")
    client.reply(second["id"], result=second["params"])
    assert client.answer("b")["result"]["result"] == {"of": "b"}
    client.reply(first["id"], result=first["params"])
    assert client.answer("a")["result"]["result"] == {"of": "a"}


def test_nobody_answers_in_time_and_the_late_answer_is_dropped(client):
    client.send(request("a", "ask", timeout_s=0.05))
    answer = client.answer("a")
    assert answer["result"] == {"result": None, "why": "nobody answered in time"}
    withdrawn = [note["params"] for note in client.notes if note["method"] == "$/cancel_request"]
    assert withdrawn == [{"requestId": "srv-1"}]
    client.reply("srv-1", result={"too": "late"})
    client.alive()
    client.ended()
    assert b"an answer to nothing that is open was dropped: 'srv-1'" in client.err


MALFORMED = {
    "neither result nor error": {"id": "srv-1"},
    "both": {"id": "srv-1", "result": {}, "error": {"code": 1, "message": "x"}},
    "another version": {"jsonrpc": "1.0", "id": "srv-1", "result": {}},
    "an error": {"id": "srv-1", "error": {"code": 1, "message": "x"}},
    "an error that is a text": {"id": "srv-1", "error": "no"},
    "an error that is null": {"id": "srv-1", "error": None},
}


@pytest.mark.parametrize("name", MALFORMED)
def test_an_answer_that_is_none_counts_as_none(client, name):
    client.send(request("a", "ask", timeout_s=0.2 if name == "neither result nor error" else 30.0))
    client.until(lambda message: message.get("method") == "question")
    client.send({"jsonrpc": "2.0", **MALFORMED[name]})
    while (message := client.next()).get("id") != "a":
        pass
    assert message["result"]["result"] is None
    assert message["result"]["why"]


def test_an_unknown_method_is_told_from_other_errors(client):
    client.send(request("a", "ask"))
    client.until(lambda message: message.get("method") == "question")
    client.reply("srv-1", error={"code": -32601, "message": "Method not found"})
    assert client.answer("a")["result"]["why"] == "the client cannot be asked that"


def test_the_end_of_the_input_settles_everything_and_each_call_is_still_answered(client):
    client.send(request("w", "wait"))
    client.send(request("a", "ask"))
    client.until(lambda message: message.get("method") == "question")
    rest = {message["id"]: message for message in client.ended() if "id" in message}
    assert rest["w"]["error"]["code"] == -32800
    assert rest["a"]["result"] == {"result": None, "why": "the client is gone"}
    assert client.code == 0
    assert client.err.endswith(b"all answered: True\n")


@pytest.fixture
def unread():
    """A server whose output nobody reads any more."""
    reads, writes = os.pipe()
    process = subprocess.Popen(ECHO, stdin=subprocess.PIPE, stdout=writes, stderr=subprocess.PIPE)
    os.close(writes)
    os.close(reads)
    with process:
        yield process
        process.kill()


def test_an_output_that_nobody_reads_any_more_ends_it_quietly(unread):
    unread.stdin.write(line(request("w", "wait")) + line(request("p", "ping")))
    unread.stdin.flush()
    assert unread.wait(60) == 0
    assert unread.stderr.read() == b"ended: nobody reads the output; all answered: True\n"


def test_a_client_that_is_slow_to_read_stops_the_reading_of_its_calls_and_loses_nothing(client):
    client.send(request("f", "flood", count=2000, size=1000))
    for number in range(50):
        client.send(request(f"e-{number}", "echo", number=number))
    seen, answers = [], set()
    while len(answers) < 51:
        message = client.next()
        if message.get("method") == "flood":
            seen.append(message["params"]["number"])
        else:
            answers.add(message["id"])
    assert seen == list(range(2000))


def test_what_is_printed_by_accident_goes_to_standard_error(client):
    assert client.result("say") == {}
    client.alive()
    assert client.ended() == []
    assert b"a stray print" in client.err
    assert b"a stray child" in client.err


def test_a_crowd_of_answers_to_nothing_says_little(client):
    for number in range(1000):
        client.reply(f"srv-{number}", result={})
    client.alive()
    client.ended()
    assert client.err.count(b"\n") == 21
    assert b"no more of this kind is said" in client.err


def test_notifications_are_taken_in_order(client):
    for number in range(100):
        client.send({"jsonrpc": "2.0", "method": "tell", "params": {"number": number}})
    assert client.result("told")["told"] == [{"number": number} for number in range(100)]


def test_a_last_line_that_is_an_answer_still_counts(client):
    client.send(request("a", "ask"))
    asked = client.until(lambda message: message.get("method") == "question")
    client.send(line({"jsonrpc": "2.0", "id": asked["id"], "result": 7}).rstrip())
    rest = client.ended()
    assert rest[0]["result"] == {"result": 7, "why": ""}


def test_a_stopped_client_is_waited_for(client):
    os.kill(client.process.pid, signal.SIGSTOP)
    client.send(request("p", "ping"))
    os.kill(client.process.pid, signal.SIGCONT)
    assert client.answer("p")["result"] == {}
