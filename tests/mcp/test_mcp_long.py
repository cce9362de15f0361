"""Long and big: progress, handles, paging, cancelling, the host's death, many at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from guard.hands.sandbox import measure
from tests.mcp.talk import LEGACY, PATIENCE_S, Peer, command, environment
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("enforced")


@pytest.fixture
def enforced():
    """Without a sandbox these reads wait for approval, and there is nothing long to follow."""
    if "local" not in measure().profiles:
        pytest.fail("this kernel enforces nothing; the fall back is tested in test_mcp_unenforced.py")


def running(mark: str) -> list[int]:
    """Processes whose command line has this mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def test_a_long_call_tells_how_far_it_is_when_asked_to(tmp_path):
    with Peer(tmp_path / "h", progress_every_s=0.2) as peer:
        id = peer.request(
            "tools/call",
            {"name": "bash", "arguments": {"command": "echo x; sleep 1.5"}, "_meta": {"progressToken": "p"}},
        )
        assert peer.answer(id)["result"]["structuredContent"]["stdout"] == "x\n"
        news = [note["params"] for note in peer.notes if note["method"] == "notifications/progress"]
        assert len(news) >= 3
        assert {one["progressToken"] for one in news} == {"p"}
        values = [one["progress"] for one in news]
        assert values == sorted(set(values))
        assert all(one["message"].startswith("bash has run for") and len(one["message"]) <= 200 for one in news)


def test_without_a_token_nothing_comes_before_the_answer(tmp_path):
    with Peer(tmp_path / "h", progress_every_s=0.1) as peer:
        peer.call("bash", command="sleep 0.6")
        assert peer.notes == []


@pytest.mark.guarantee("G-MCP-BOUNDED")
def test_a_very_long_call_gives_a_handle_and_its_output_and_end_can_be_polled(tmp_path):
    with Peer(tmp_path / "h", handle_after_s=0.5) as peer:
        result = peer.call("bash", command="echo first; sleep 2; echo second >&2")
        handle = result["structuredContent"]
        assert (handle["status"], result["isError"]) == ("running", False)
        assert handle["execution"] in (None, handle["id"])  # on a slow machine it has not begun yet
        assert handle["next"].startswith(f'ops_status{{"id": "{handle["id"]}"')
        first = until(lambda: (got := peer.structured("ops_status", id=handle["id"]))["output"] and got)
        assert first["output"].startswith("first\n")
        last = until(
            lambda: (got := peer.structured("ops_status", id=handle["id"], offset=6))["status"] != "running" and got
        )
        assert (last["status"], last["exit_code"], last["output"]) == ("succeeded", 0, "second\n")
        assert last["next_offset"] == last["size"] == 13
        runs = peer.structured("ops_executions")["executions"]
        assert [run["status"] for run in runs] == ["succeeded"]
        assert handle["execution"] in (None, runs[0]["id"])


@pytest.mark.guarantee("G-MCP-BOUNDED")
def test_an_answer_stays_under_40_kib_and_the_whole_can_be_paged(tmp_path):
    with Peer(tmp_path / "h") as peer:
        answer = peer.ask("tools/call", {"name": "bash", "arguments": {"command": "seq 1 60000"}})
        assert answer["line_bytes"] <= 40 * 1024
        got = answer["result"]["structuredContent"]
        assert got["stdout"].startswith("1\n2\n") and got["stdout"].endswith("59999\n60000\n")
        assert got["truncated"] is True
        text, offset = "", 0
        while True:
            page = peer.ask(
                "tools/call", {"name": "ops_status", "arguments": {"id": got["execution"], "offset": offset}}
            )
            assert page["line_bytes"] <= 40 * 1024
            page = page["result"]["structuredContent"]
            if page["offset"] != offset:
                break
            text += page["output"]
            offset = page["next_offset"]
            if not page["more"]:
                break
        whole = "".join(f"{number}\n" for number in range(1, 60001))
        assert whole.startswith(text) and len(text) >= 65_000
        # All of it is in the saved output, which only this client's read reaches.
        lines, at = [], 1
        while at is not None and len(lines) < 3000:
            page = peer.structured("read", path=got["output_file"], offset=at, limit=2000)
            lines += page["content"].splitlines()
            at = page["next_offset"]
        assert lines == [str(number) for number in range(1, len(lines) + 1)]
        tail = peer.structured("read", path=got["output_file"], offset=-2)
        assert (tail["content"], tail["next_offset"]) == ("59999\n60000\n", None)


@pytest.mark.guarantee("G-MCP-BOUNDED")
@pytest.mark.parametrize(
    "command",
    [
        r"""head -c 60000 /dev/zero | tr '\0' '"'""",
        r"""head -c 60000 /dev/zero | tr '\0' '\\'""",
        r"""head -c 60000 /dev/zero""",
        r"""yes 界界界界界界界 | head -n 6000""",
        r"""head -c 60000 /dev/urandom""",
        r"""yes '' | head -n 60000""",
    ],
)
def test_no_kind_of_output_makes_an_answer_too_long(tmp_path, command):
    with Peer(tmp_path / "h") as peer:
        answer = peer.ask("tools/call", {"name": "bash", "arguments": {"command": command}})
        assert answer["line_bytes"] <= 40 * 1024
        assert answer["result"]["structuredContent"]["status"] == "succeeded"
        page = peer.ask(
            "tools/call",
            {"name": "ops_status", "arguments": {"id": answer["result"]["structuredContent"]["execution"]}},
        )
        assert page["line_bytes"] <= 40 * 1024
        assert page["result"]["structuredContent"]["next_offset"] > 0


@pytest.mark.guarantee("G-MCP-ENDS")
def test_a_cancelled_call_gets_no_answer_its_command_ends_and_the_record_says_so(tmp_path):
    with Peer(tmp_path / "h") as peer:
        mark = f"61{os.getpid()}"
        id = peer.request("tools/call", {"name": "bash", "arguments": {"command": f"sleep {mark}"}})
        until(lambda: running(f"sleep\0{mark}"))
        peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        until(lambda: not running(f"sleep\0{mark}"))
        # Nothing but the answer to this comes.
        until(lambda: [run["status"] for run in peer.structured("ops_executions")["executions"]] == ["cancelled"])


def test_what_is_cancelled_while_it_waits_for_a_thread_never_runs(tmp_path):
    with Peer(tmp_path / "h") as peer:
        mark = f"62{os.getpid()}"
        busy = [
            peer.request("tools/call", {"name": "bash", "arguments": {"command": f"sleep {mark}"}}) for _ in range(32)
        ]
        until(lambda: len(running(f"sleep\0{mark}")) >= 32)
        waiting = peer.request("tools/call", {"name": "bash", "arguments": {"command": "echo never"}})
        for id in (waiting, *busy):
            peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        until(lambda: not running(f"sleep\0{mark}"))
        until(lambda: not peer.structured("ops_executions", status="running")["executions"])
        listed = peer.structured("ops_executions", limit=100)
        assert len(listed["executions"]) + listed.get("left_out", {}).get("executions", 0) == 32
        assert {run["status"] for run in listed["executions"]} == {"cancelled"}
        assert not any("never" in run["command"] for run in listed["executions"])


@pytest.mark.guarantee("G-MCP-ENDS")
@pytest.mark.parametrize("end", ["hang up", "TERM"])
def test_when_the_conversation_ends_what_runs_is_stopped_and_recorded(tmp_path, end):
    home, mark = tmp_path / "h", f"6{3 if end == 'TERM' else 4}{os.getpid()}"
    with Peer(home) as peer:
        peer.request("tools/call", {"name": "bash", "arguments": {"command": f"sleep {mark}"}})
        until(lambda: running(f"sleep\0{mark}"))
        if end == "TERM":
            peer.process.send_signal(signal.SIGTERM)
            assert peer.process.wait(PATIENCE_S) == 0
        else:
            assert peer.close() == 0
        assert not running(f"sleep\0{mark}")
    with Peer(home) as peer:
        assert [run["status"] for run in peer.structured("ops_executions")["executions"]] == ["cancelled"]


def test_a_host_that_does_not_read_makes_only_itself_wait(tmp_path):
    """More answers than pipes and queues hold, unread for a while: none is lost, and memory does not grow with them."""
    home = tmp_path / "h"
    home.mkdir()
    count = 1500
    process = subprocess.Popen(
        command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=home, env=environment(home)
    )
    with process:

        def ask_all():
            for id in range(count):
                process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/list"}).encode() + b"\n")
            process.stdin.flush()

        process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": LEGACY}).encode() + b"\n"
        )
        process.stdin.flush()
        process.stdout.readline()
        asking = threading.Thread(target=ask_all)
        asking.start()
        asking.join(3.0)
        ids = [json.loads(process.stdout.readline())["id"] for _ in range(count)]
        assert sorted(ids) == list(range(count))
        asking.join()
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
        process.stdout.close()


def test_many_calls_at_once_each_get_their_own_answer(tmp_path):
    with Peer(tmp_path / "h") as peer:
        ids = {
            peer.request("tools/call", {"name": "bash", "arguments": {"command": f"echo {number}"}}): number
            for number in range(200)
        }
        while ids:
            message = peer.next()
            got = message["result"]["structuredContent"]
            assert (got["status"], got["stdout"]) == ("succeeded", f"{ids.pop(message['id'])}\n")
        peer.alive()


def test_what_fits_beside_a_busy_server_is_answered_while_long_calls_run(tmp_path):
    with Peer(tmp_path / "h") as peer:
        slow = [peer.request("tools/call", {"name": "bash", "arguments": {"command": "sleep 4"}}) for _ in range(3)]
        quick = peer.request("tools/call", {"name": "ops_check", "arguments": {"command": "ls"}})
        # Its answer comes first: `answer` fails for any other.
        assert peer.answer(quick)["result"]["structuredContent"]["level"] == "R0"
        for id in slow:
            peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        assert json.dumps(peer.structured("ops_list"))
