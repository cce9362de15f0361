"""A client that goes away: killed while it is asked, while something runs, or while it reads nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.mcp.talk import ROOT, environment
from tests.rpc.stories import change, kinds_in, log_of, served, use, written
from tests.rpc.talk import line, request
from tests.waiting import until

pytestmark = pytest.mark.guarantee("G-RPC-ENDS")

GO = request("p", "prompt", text="go")


def gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def started(client, what: str = "tool_started") -> dict:
    return client.until(lambda message: message.get("params", {}).get("type") == what)["params"]


def test_a_client_that_goes_while_it_is_asked_has_approved_nothing(tmp_path):
    home = tmp_path / "h"
    with served(home, *change(f"touch {home}/made"), "x") as client:
        client.result("initialize", answers=["approve"])
        client.send(GO)
        client.until(lambda message: message.get("method") == "approve")
        rest = client.ended()
        assert client.code == 0
        (last,) = [message for message in rest if message.get("id") == "p"]
        assert last["result"]["exit_code"] == 130
    assert not (home / "made").exists()
    assert "approved" not in kinds_in(home)
    (waiting,) = log_of(home).pending()
    assert waiting.command == f"touch {home}/made"


def test_an_approval_that_comes_with_the_end_of_the_input_counts_and_nothing_is_left_open(tmp_path):
    """Whether it still runs is a race; that both are on record, and agree, is not."""
    home = tmp_path / "h"
    with served(home, *change(f"touch {home}/made"), "x") as client:
        client.result("initialize", answers=["approve"])
        client.send(GO)
        asked = client.until(lambda message: message.get("method") == "approve")
        client.send(line({"jsonrpc": "2.0", "id": asked["id"], "result": {"answer": "approve"}}))
        client.ended()
        assert client.code == 0
    runs = log_of(home).executions().executions
    assert (home / "made").exists() == any(run.status == "succeeded" for run in runs)
    assert all(run.status in ("succeeded", "cancelled") for run in runs)


def test_a_read_ends_with_its_client_and_is_on_record(tmp_path):
    home = tmp_path / "h"
    with served(home, use("bash", command="sleep 300"), "x") as client:
        client.send(GO)
        execution = started(client)["execution"]
        until(lambda: log_of(home).show(execution).execution.pid > 0)
        pid = log_of(home).show(execution).execution.pid
        client.ended()
        assert client.code == 0
    run = log_of(home).show(execution).execution
    assert run.status == "cancelled"
    assert gone(pid)


def test_a_change_is_stopped_on_record_when_its_client_goes(tmp_path):
    home = tmp_path / "h"
    command = f"touch {home}/made && sleep 300"
    with served(home, *change(command), "x", answers=lambda message: {"answer": "approve"}) as client:
        client.result("initialize", answers=["approve"])
        client.send(GO)
        started(client)  # ops_approve
        execution = started(client)["execution"]
        until(lambda: (home / "made").exists())
        client.ended()
        assert client.code == 0
    run = log_of(home).show(execution).execution
    assert run.status in ("cancelled", "failed")
    assert "ended" in kinds_in(home)


CLIENT = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
sys.stderr.write(f"{server.pid}\\n")
sys.stderr.flush()
for _ in range(2):
    server.stdin.write(sys.stdin.buffer.readline())
    server.stdin.flush()
for line in server.stdout:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""


def killed(tmp_path, *replies, says):
    """Kills a client, not the server, once the server has said something; returns when the server is gone."""
    home = tmp_path / "h"
    home.mkdir()
    argv = [sys.executable, str(ROOT / "tests/rpc/served.py"), "rpc", written(home, *replies)]
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home,
        env=environment(home),
    ) as client:
        server = int(client.stderr.readline())
        client.stdin.write(line(request("i", "initialize", answers=["approve"])) + line(GO))
        client.stdin.flush()
        while says not in (said := client.stdout.readline()):
            assert said
        os.kill(client.pid, signal.SIGKILL)
    until(lambda: gone(server))
    return home


def test_a_client_that_is_killed_while_an_approval_is_open_has_approved_nothing(tmp_path):
    home = killed(tmp_path, *change("touch made"), "x", says=b'"method":"approve"')
    assert not (home / "made").exists()
    assert "approved" not in kinds_in(home)
    assert len(log_of(home).pending()) == 1


def test_a_client_that_is_killed_while_a_read_runs_leaves_nothing_of_it(tmp_path):
    home = killed(tmp_path, use("bash", command="sleep 300"), "x", says=b'"tool_started"')
    (run,) = log_of(home).executions().executions
    assert run.status == "cancelled"
    assert gone(run.pid)


def test_a_client_that_reads_nothing_and_goes_leaves_everything_on_record(tmp_path):
    """Its events fill the pipe; the turn waits for room and ends all the same."""
    home = tmp_path / "h"
    home.mkdir()
    looks = {"calls": [{"tool": "bash", "arguments": {"command": "seq 1 4000"}} for _ in range(8)]}
    argv = [sys.executable, str(ROOT / "tests/rpc/served.py"), "rpc", written(home, *[looks] * 8, "done")]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=home, env=environment(home)
    ) as server:
        server.stdin.write(line(GO))
        server.stdin.flush()
        until(lambda: len(log_of(home).executions().executions) >= 3)
        server.stdin.close()
        assert server.wait(60) == 0
        server.stdout.close()
    assert all(run.status in ("succeeded", "cancelled") for run in log_of(home).executions().executions)


ORPHAN = """
import sys
sys.path.insert(0, sys.argv[1])
import agent.jsonrpc as jsonrpc
jsonrpc.PARENT_CHECK_S = jsonrpc.ORPHAN_IDLE_S = 0.05
connection = jsonrpc.Connection({}, {})
connection.notify("ready", {})
sys.stderr.write(connection.serve())
connection.close(1)
"""
STARTER = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdout=subprocess.PIPE)
child.stdout.readline()
sys.stderr.write(f"{child.pid}\\n")
sys.stderr.flush()
os._exit(0)
"""


def test_a_server_whose_parent_is_gone_while_somebody_holds_the_pipe_ends_by_itself(tmp_path):
    """Its waits are shortened; what it looks at is real."""
    reads, writes = os.pipe()
    argv = [sys.executable, "-c", STARTER, ORPHAN, str(ROOT)]
    try:
        with subprocess.Popen(argv, stdin=reads, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
            server = int(parent.stderr.readline())
            assert parent.stderr.read() == b"the client is gone"
        until(lambda: gone(server))
    finally:
        os.close(reads)
        os.close(writes)
