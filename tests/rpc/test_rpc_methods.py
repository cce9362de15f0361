"""The methods of `opsagent rpc` with a real server: conversations, records, rollback, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess

import jsonschema
import pytest

from agent.rpc.schemas import ASKS, METHODS
from agent.rpc.server import SERVED
from dialogue.events import from_json
from tests.mcp.talk import ROOT, environment
from tests.rpc.stories import change, log_of, served, use, written
from tests.rpc.talk import Client, request

YES = {"answer": "approve"}


def test_every_documented_method_is_served_and_every_served_one_documented():
    assert sorted((*SERVED, "ping", "cancel")) == sorted(METHODS)


def test_a_conversation_keeps_what_was_said_and_tells_its_events_in_order(tmp_path):
    replies = [use("bash", command="echo hello"), "one", {"expect": "again", "text": "two"}]
    with served(tmp_path / "h", *replies) as client:
        first, second = client.result("prompt", text="go"), client.result("prompt", text="again")
        assert (first["answer"], second["answer"]) == ("one", "two")
        assert first["session"] == second["session"] == client.result("status")["default"]
        told = [from_json(note["params"]) for note in client.notes]
        assert [one.seq for one in told] == list(range(1, len(told) + 1))
        assert {one.turn for one in told} == {0, 1, 2}
        types = [one.event.type for one in told]
        assert types[:2] == ["session_started", "turn_started"]
        assert types.count("turn_completed") == 2
        (completed,) = client.events("tool_completed")
        assert (completed["status"], completed["output"]) == ("succeeded", "hello")
        for one in (*METHODS.values(), *ASKS.values()):
            jsonschema.Draft202012Validator.check_schema(one.parameters)


def test_a_conversation_does_one_turn_at_a_time_and_others_go_on_beside_it(tmp_path):
    with served(tmp_path / "h", {"wait": "never", "text": "x"}) as client:
        client.send(request("p", "prompt", text="go"))
        client.until(lambda message: message.get("params", {}).get("type") == "turn_started")
        refused = client.error("prompt", text="and me?")
        assert (refused["code"], refused["data"]["code"]) == (-32000, "session.busy")
        client.alive()
        (open_one,) = client.result("status")["sessions"]
        assert open_one["running"]
        assert client.result("cancel", session="c-other") == {"format": 1, "cancelled": 0}
        assert client.result("cancel", session=open_one["id"]) == {"format": 1, "cancelled": 1}
        assert client.answer("p")["result"]["exit_code"] == 130
        assert client.result("cancel") == {"format": 1, "cancelled": 0}


def test_a_cancelled_request_ends_its_turn_and_the_next_one_works(tmp_path):
    with served(tmp_path / "h", {"wait": "never", "text": "x"}, "here") as client:
        client.send(request("p", "prompt", text="go"))
        client.until(lambda message: message.get("params", {}).get("type") == "turn_started")
        client.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "p"}})
        assert client.answer("p")["result"]["exit_code"] == 130
        assert client.result("prompt", text="and now?")["answer"] == "here"


def test_a_cancelled_ask_approves_nothing(tmp_path):
    home = tmp_path / "h"
    with served(home, *change(f"touch {home}/made"), "x") as client:
        client.result("initialize", answers=["approve"])
        client.send(request("p", "prompt", text="go"))
        asked = client.until(lambda message: message.get("method") == "approve")
        client.result("cancel")
        assert client.answer("p")["result"]["exit_code"] == 130
        client.reply(asked["id"], result=YES)
        client.alive()
        assert not (home / "made").exists()
        withdrawn = [note["params"] for note in client.notes if note["method"] == "$/cancel_request"]
        assert withdrawn == [{"requestId": asked["id"]}]


def test_what_is_attached_is_data_and_not_said_by_the_person(tmp_path):
    reply = {"expect": "what broke", "text": "this"}
    with served(tmp_path / "h", reply) as client:
        done = client.result("prompt", text="what broke?", attachments=["ERROR: a disk is full"])
        assert done["answer"] == "this"


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("prompt", {}, "prompt needs text"),
        ("prompt", {"text": ""}, "prompt: text"),
        ("prompt", {"text": 3}, "prompt: text"),
        ("prompt", {"text": "x", "sesion": "c-1"}, "prompt does not know 'sesion'"),
        ("prompt", {"text": "x", "session": "../x"}, "prompt: session"),
        ("prompt", {"text": "x", "attachments": "y"}, "prompt: attachments"),
        ("executions", {"limit": 0}, "executions: limit"),
        ("cancel", {"session": 3}, "cancel: session"),
        ("rollback/plan", {}, "rollback/plan needs id"),
        ("session/resume", {"session": "c-none"}, "there is no conversation c-none"),
        ("ask_user", {}, "Method not found"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused_with_its_reason(shared, method, params, said):
    error = shared.error(method, **params)
    assert error["code"] == (-32601 if method == "ask_user" else -32602)
    assert error["message"].startswith(said)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with served(tmp_path_factory.mktemp("shared") / "h", "x") as client:
        yield client


def test_a_conversation_that_is_not_open_is_named(shared):
    assert shared.error("prompt", text="x", session="c-other")["code"] == -32002
    assert shared.error("session/close", session="c-other")["code"] == -32002


def test_who_the_client_is_cannot_change_once_a_conversation_is_open(tmp_path):
    with served(tmp_path / "h", "x") as client:
        client.result("prompt", text="go")
        assert client.error("initialize", answers=["approve"])["code"] == -32602


def test_a_reset_begins_anew_and_leaves_the_old_one_on_disk(tmp_path):
    with served(tmp_path / "h", "first") as client:
        was = client.result("prompt", text="go")["session"]
        reset = client.result("reset")
        assert reset["was"] == was != reset["session"]
        assert client.result("status")["default"] == reset["session"]
        assert [one["id"] for one in client.result("session/list")["sessions"]] == [was]
        assert client.error("prompt", text="x", session=was)["code"] == -32002


def test_a_reset_interrupts_the_turn_that_is_running(tmp_path):
    with served(tmp_path / "h", {"wait": "never", "text": "x"}) as client:
        client.send(request("p", "prompt", text="go"))
        client.until(lambda message: message.get("params", {}).get("type") == "turn_started")
        client.send(request("r", "reset"))
        answers = {}
        while len(answers) < 2:
            message = client.next()
            if "method" not in message:
                answers[message["id"]] = message["result"]
        assert answers["p"]["exit_code"] == 130
        assert answers["r"]["was"] == answers["p"]["session"]


def test_a_conversation_goes_on_in_another_process_and_a_copy_of_it_in_its_own_way(tmp_path):
    home = tmp_path / "h"
    with served(home, use("bash", command="echo hello"), "remember 42") as client:
        session = client.result("prompt", text="go")["session"]
        client.ended()
    with served(home, "yes, 42", "and here") as client:
        resumed = client.result("session/resume", session=session)
        assert (resumed["session"], resumed["messages"]) == (session, 4)
        assert client.events("session_started")[0]["resumed"] is True
        copy = client.result("session/fork", session=session)
        assert copy["forked_from"] == session != copy["session"]
        assert client.result("prompt", text="still?", session=session)["session"] == session
        assert client.result("prompt", text="still?", session=copy["session"])["session"] == copy["session"]
        client.result("session/close", session=session)
        (left,) = client.result("status")["sessions"]
        assert left["id"] == copy["session"]


def test_two_clients_cannot_write_one_conversation_and_see_the_same_records(tmp_path):
    home = tmp_path / "h"
    with served(home, use("ops_exec", command=f"touch {home}/made"), "waits") as one:
        one.result("initialize", answers=[])
        done = one.result("prompt", text="go")
        with served(home, "x") as other:
            refused = other.error("session/resume", session=done["session"])
            assert refused["data"]["code"] == "state.busy"
            (waiting,) = other.result("pending")["requests"]
            assert [waiting["id"]] == done["requests"]


def test_executions_are_told_as_they_were_recorded(tmp_path):
    home = tmp_path / "h"
    with served(home, use("bash", command="echo hello"), "x") as client:
        done = client.result("prompt", text="go")
        (run,) = client.result("executions", limit=5)["executions"]
        assert [run["id"]] == done["executions"]
        assert (run["status"], run["shell"], run["session"]) == ("succeeded", "rpc", done["session"])
        assert client.result("executions", status="failed")["executions"] == []


@pytest.mark.guarantee("G-RPC-YES")
def test_a_change_is_taken_back_only_with_a_yes_to_the_plan(tmp_path):
    home = tmp_path / "h"
    home.mkdir()
    (home / "file").write_text("before\n")
    said = [YES, {"answer": "deny"}, YES]
    replies = change(f"cp /etc/hostname {home}/file")
    with served(home, *replies, "done", answers=lambda message: said.pop(0)) as client:
        client.result("initialize", answers=["approve"])
        (run,) = client.result("prompt", text="go")["executions"]
        assert (home / "file").read_text() != "before\n"
        plan = client.result("rollback/plan", id=run)
        assert plan["status"] == "planned"
        assert [step["path"] for step in plan["steps"]] == [f"{home}/file"]
        assert client.result("rollback/apply", id=run)["status"] == "denied"
        assert (home / "file").read_text() != "before\n"
        done = client.result("rollback/apply", id=run)
        assert done["status"] == "succeeded", done
        assert (home / "file").read_text() == "before\n"
        kinds = [asked["params"]["ask"]["kind"] for asked in client.asked]
        assert kinds == ["command", "rollback", "rollback"]


def test_a_rollback_that_nobody_waits_for_any_more_changes_nothing(tmp_path):
    home = tmp_path / "h"
    said = [YES]
    with served(home, *change(f"touch {home}/made"), "done", answers=lambda m: said.pop() if said else None) as client:
        client.result("initialize", answers=["approve"])
        (run,) = client.result("prompt", text="go")["executions"]
        client.send(request("r", "rollback/apply", id=run))
        client.until(lambda message: message.get("method") == "approve")
        client.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "r"}})
        assert client.answer("r")["result"]["status"] in ("needs_stamp", "unanswered")
        assert (home / "made").exists()


def test_status_tells_where_it_is_and_what_is_frozen(tmp_path):
    home = tmp_path / "h"
    with served(home, "x") as client:
        status = client.result("status")
        assert (status["cwd"], status["mode"], status["frozen"], status["sessions"]) == (str(home), "guarded", None, [])
        log_of(home).answers.freeze("a release", actor="person")
        assert "a release" in client.result("status")["frozen"]


# ── as it is really started ──────────────────────────────────────────────────────────────────────────────────────


def start(home, *arguments, **more):
    home.mkdir(exist_ok=True)
    return Client(home, [str(ROOT / "opsagent"), "rpc", *arguments], env=more)


def test_the_verb_answers_a_ping_before_it_knows_anything_of_the_machine(tmp_path):
    with start(tmp_path / "h") as client:
        assert client.result("ping") == {"format": 1}
        assert not (tmp_path / "h" / "state").exists()
        assert client.ended() == []
        assert (client.code, client.err) == (0, b"")


def test_without_a_model_the_runbooks_answer(tmp_path):
    with start(tmp_path / "h", "--brain", "offline") as client:
        done = client.result("prompt", text="check the memory of this machine")
        assert (done["brain"], done["exit_code"]) == ("offline", 0)
        assert done["findings"] == [one["finding"] for one in client.events("finding")]
        assert client.result("reset")["was"] == done["session"]


@pytest.mark.guarantee("G-RPC-YES")
def test_below_an_agent_nobody_is_asked(tmp_path):
    home = tmp_path / "h"
    home.mkdir()
    script = written(home, *change(f"touch {home}/made")[:1], "waits")
    with start(home, "--brain", script, OPSAGENT_EXECUTION="e-1") as client:
        assert client.result("initialize", answers=["approve"])["can_ask"] is False
        assert client.result("prompt", text="go")["exit_code"] == 3
        assert client.asked == []
        client.ended()
        assert b"nothing is approved here" in client.err


def test_read_only_refuses_what_an_approval_could_allow(tmp_path):
    home = tmp_path / "h"
    home.mkdir()
    script = written(home, use("ops_exec", command=f"touch {home}/made"), "refused")
    with start(home, "--read-only", "--brain", script) as client:
        assert client.result("status")["mode"] == "read-only"
        assert client.result("prompt", text="go")["exit_code"] == 4
        (completed,) = client.events("tool_completed")
        assert (completed["status"], completed["request"]) == ("refused", None)


@pytest.mark.parametrize(("arguments", "said"), [(["x"], "takes no"), (["--cwd", "/nowhere"], "/nowhere")])
def test_arguments_that_make_no_sense_are_usage(tmp_path, arguments, said):
    done = subprocess.run(
        [str(ROOT / "opsagent"), "rpc", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environment(tmp_path),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize("shell", ["rpc", "acp"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_is_an_end_and_no_fault(tmp_path, shell, closed):
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" {shell} {closed}', str(ROOT / "opsagent")],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env=environment(tmp_path),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_what_is_open_on_record(tmp_path, number):
    with served(tmp_path / "h", {"wait": "never", "text": "x"}) as client:
        client.send(request("p", "prompt", text="go"))
        client.until(lambda message: message.get("params", {}).get("type") == "turn_started")
        os.kill(client.process.pid, number)
        assert client.answer("p")["result"]["exit_code"] == 130
        assert client.next() is None
