"""A change that a dead man watches over, through real servers and programs: what each shell says of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from acting import deadman
from guard.ledger import claims
from tests.approvals.terminal import Terminal, opsx
from tests.mcp.talk import PATIENCE_S, ROOT, Peer, environment
from tests.oneshot.process import call
from tests.rpc.stories import change, log_of, served, written
from tests.waiting import until

CONNECTION = "192.0.2.1 50000 192.0.2.2 22"
CHANGE = "echo key >> .ssh/authorized_keys"
"""What decides who comes in, and is nobody's: below the test's own folder."""


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "h"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "authorized_keys").write_text("before\n")
    return home


def confirm(home):
    """Settles it as a person would, whose connection no test can make."""
    (run,) = [str(one["execution"]) for one in log_of(home).entries() if one["kind"] == deadman.ARMED]
    assert claims.claim(log_of(home).answers.folder, run, claims.CONFIRMED)
    return run


def of_execution(client, run):
    return [one for one in client.events("notice") if one["execution"] == run]


@pytest.mark.guarantee("G-DEAD-MAN")
def test_a_client_of_ours_is_told_the_deadline_the_stages_and_the_end_also_between_turns(home):
    yes = {"answer": "yes"}
    with served(
        home, *change(CHANGE), "done", answers=lambda message: yes, env={"SSH_CONNECTION": CONNECTION}
    ) as client:
        assert client.result("prompt", text="go")["answer"] == "done"
        assert (home / ".ssh" / "authorized_keys").read_text() == "before\nkey\n"
        armed = next(one for one in log_of(home).entries() if one["kind"] == deadman.ARMED)
        run = str(armed["execution"])
        if not of_execution(client, run):
            client.until(lambda message: message.get("params", {}).get("execution") == run)
        told = of_execution(client, run)[0]
        assert told["deadline_at"] == armed["deadline_at"]
        assert f"opsx confirm {run}" in told["text"]
        assert confirm(home) == run
        client.until(lambda message: "is confirmed and stays" in message.get("params", {}).get("text", ""))
        assert of_execution(client, run)[-1]["deadline_at"] is None
        assert "taken back by itself after 120 s" in client.asked[0]["params"]["question"]
        (ran,) = [one for one in client.events("tool_completed") if one["execution"] == run]
        assert f"opsx confirm {run}" in ran["output"]
    assert (home / ".ssh" / "authorized_keys").read_text() == "before\nkey\n"


APPROVES = """
import os, sys
sys.path.insert(0, sys.argv[1])
import execution
from acting import approving
from guard.bound import Consent
from guard.ledger.answers import ToApprove
from guard.types import Request
guard = execution.open_guard()
request = Request(sys.argv[2], cwd=os.getcwd())
judged = execution.assess(request, guard)
item = ToApprove(request, judged, approving.bind(request, judged, guard), "", True)
guard.ledger.answers.approve([item], Consent("tty", "0" * 64))
"""


def approved(home):
    """The environment of somebody who came in by ssh, and whose change a person approved before."""
    env = environment(home, SSH_CONNECTION=CONNECTION)
    argv = [sys.executable, "-c", APPROVES, str(ROOT), CHANGE]
    subprocess.run(argv, cwd=home, env=env, check=True, timeout=PATIENCE_S)
    return env


def run_approved(home):
    return call("opsx", "exec", "--", CHANGE, env=approved(home), cwd=home)


def test_exec_without_a_terminal_says_it_before_the_change_and_after_it(home):
    code, out, err = run_approved(home)
    run = confirm(home)
    assert (code, out) == (0, "")
    lines = [line for line in err.split("\n") if f"opsx confirm {run}" in line]
    assert [line.startswith(("opsx: begins;", "opsx: taken back in")) for line in lines] == [True, True], err
    env = environment(home)
    code, out, _ = call("opsx", "show", run, "--json", env=env)
    assert (code, json.loads(out)["dead_man"]["state"]) == (0, "confirmed")


def test_what_waits_is_listed_and_shown_until_it_is_settled(home):
    run_approved(home)
    env = environment(home)
    code, out, _ = call("opsx", "confirm", "--json", env=env)
    (row,) = json.loads(out)["waiting"]
    run = row["execution"]
    assert (code, row["state"], row["confirm"]) == (0, "waiting", f"opsx confirm {run}")
    for verb in (("confirm",), ("executions",), ("show", run)):
        _, out, err = call("opsx", *verb, env=env)
        assert f"opsx confirm {run}" in out + err, verb
    confirm(home)
    code, out, err = call("opsx", "confirm", env=env)
    assert (code, out, err) == (0, "", "nothing waits for a confirmation\n")
    assert f"opsx confirm {run}" not in call("opsx", "executions", env=env)[2]


CHANGES_A_FILE = """
import os, sys
sys.path.insert(0, sys.argv[1])
import execution
from dataclasses import replace
from acting import edit
from guard.bound import Consent
from guard.ledger.answers import ToApprove
from guard.types import Request
guard = replace(execution.open_guard(), dead_man_s=1)
request, path = Request("", cwd=os.getcwd()), ".ssh/authorized_keys"
content = lambda old: old + b"key\\n"
made = edit.made(edit.look(request, path, guard), content, guard)
item = ToApprove(made.request, made.assessment, edit.binding_of(made, guard), "")
guard.ledger.answers.approve([item], Consent("tty", "0" * 64))
done = execution.change_file(request, path, content, guard).ran.outcome
print(done.status, done.notes[-1])
"""


def test_a_file_change_that_is_not_confirmed_is_taken_back(home):
    env = environment(home, SSH_CONNECTION=CONNECTION)
    argv = [sys.executable, "-c", CHANGES_A_FILE, str(ROOT)]
    done = subprocess.run(argv, cwd=home, env=env, check=True, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.stdout.startswith("succeeded taken back in 1 s")
    keys = home / ".ssh" / "authorized_keys"
    until(lambda: keys.read_text() == "before\n")
    until(lambda: any(one.get("result") == "succeeded" for one in log_of(home).entries()))
    kinds = [one["kind"] for one in log_of(home).entries()]
    assert [kind for kind in kinds if kind.startswith("deadman")] == [
        deadman.ARMED,
        deadman.ENDED,
        deadman.FIRED,
        deadman.FIRED,
    ]


def test_one_shot_says_it_and_does_not_wait_for_it(home):
    env = approved(home)
    script = written(home, {"calls": [{"tool": "ops_exec", "arguments": {"command": CHANGE}}]}, "done")
    code, out, err = call("opsagent", "--brain", script, "-p", "go", env=env, cwd=home)
    run = confirm(home)
    assert (code, out) == (0, "done\n"), err
    assert f"opsagent: {run} is taken back in" in err


def test_a_host_is_told_in_the_result_and_where_it_looks(home):
    env = approved(home)
    with Peer(home, env={"SSH_CONNECTION": CONNECTION}) as host:
        ran = host.structured("ops_exec", command=CHANGE)
        run = ran["execution"]
        assert (ran["status"], env["HOME"]) == ("succeeded", str(home))
        assert any(f"opsx confirm {run}" in note for note in ran["notes"])
        assert host.structured("ops_status", id=run)["dead_man"]["state"] == "waiting"
        (listed,) = host.structured("ops_list")["dead_men"]
        assert listed["execution"] == confirm(home) == run
        assert host.structured("ops_status", id=run)["dead_man"]["state"] == "confirmed"
        assert "dead_men" not in host.structured("ops_list")


def test_a_rollback_on_a_terminal_says_it_before_the_yes_and_after_it(home):
    run_approved(home)
    run = confirm(home)
    env = {**environment(home, SSH_CONNECTION=CONNECTION), "TERM": "dumb"}
    terminal = Terminal(opsx("rollback", run), env=env, cwd=str(home), rows=60, columns=300)
    try:
        terminal.wait_for("anything else changes nothing")
        assert "taken back by itself after 120 s unless opsx confirm comes over a new connection" in terminal.shown
        terminal.answer("yes\r")
        terminal.wait_for("taken back in  1")
        armed = [str(one["execution"]) for one in log_of(home).entries() if one["kind"] == deadman.ARMED]
        assert (home / ".ssh" / "authorized_keys").read_text() == "before\n"
        assert f"opsx confirm {armed[-1]}" in terminal.shown
        claims.claim(log_of(home).answers.folder, armed[-1], claims.CONFIRMED)
        assert terminal.end() == 0
        assert f"{armed[-1]} is confirmed and stays" in terminal.shown
    finally:
        terminal.close()
