"""Commands never reach the protocol, the host's secrets never reach a command, and clients never reach each other."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from guard.hands.sandbox import measure
from tests.mcp.talk import Peer, command, environment
from tests.mcp.test_mcp_long import running, until

FRAME = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": [], "isError": False}})


@pytest.fixture(autouse=True)
def enforced():
    if "local" not in measure().profiles:
        pytest.fail("this kernel enforces nothing; the fall back is tested in test_mcp_unenforced.py")


@pytest.mark.guarantee("G-MCP-WIRE")
@pytest.mark.parametrize(
    "text",
    [
        f"echo '{FRAME}'",
        f"echo '{FRAME}' >&2",
        f"echo '{FRAME}' > /dev/stdout",
        f"echo '{FRAME}' > /proc/$PPID/fd/1",
        f"for n in 3 4 5 6 7 8 9 10 11 12; do echo '{FRAME}' >&$n; done 2>/dev/null; true",
        f"echo '{FRAME}' > /dev/tty; true",
        "cat",
        'read line; echo "got $line"',
        "exec 0<&1; cat; true",
        r"printf '\033]0;title\007\033[2J'",
        "kill -9 $PPID; true",
        "kill -STOP $PPID; true",
    ],
)
def test_a_child_that_plays_with_descriptors_and_its_parent_leaves_the_protocol_intact(tmp_path, text):
    with Peer(tmp_path / "h") as peer:
        answer = peer.ask("tools/call", {"name": "bash", "arguments": {"command": text}})
        assert answer["id"] == peer.number
        assert answer["result"]["structuredContent"]["format"] == 1
        peer.alive()
        assert peer.close() == 0
        assert peer.lines.get(timeout=60) is None


def test_a_daemon_is_gone_with_its_command_and_holds_up_nothing(tmp_path):
    with Peer(tmp_path / "h") as peer:
        mark = f"71{os.getpid()}"
        got = peer.structured("bash", command=f"(setsid sleep {mark} >/dev/null 2>&1 &) ; setsid sleep {mark} & echo x")
        assert got["stdout"] == "x\n"
        until(lambda: not running(f"sleep\0{mark}"))


@pytest.mark.guarantee("G-MCP-BOUNDED")
def test_a_flood_of_output_is_taken_in_bounded_memory(tmp_path):
    with Peer(tmp_path / "h") as peer:
        peer.structured("bash", command="echo warm")
        before = resident_kib(peer.process.pid)
        answer = peer.ask(
            "tools/call",
            {"name": "bash", "arguments": {"command": "yes 0123456789abcdef | head -c 60000000", "timeout_s": 600}},
        )
        got = answer["result"]["structuredContent"]
        id = got["execution"]
        last = until(
            lambda: (found := peer.structured("ops_status", id=id, offset=10**9))["status"] != "running" and found,
            patience_s=900,
        )
        assert last["status"] in ("succeeded", "timed_out")
        assert last["size"] > 0
        assert peak_kib(peer.process.pid) - before < 30 * 1024
        peer.alive()


def resident_kib(pid: int) -> int:
    return _field(pid, "VmRSS:")


def peak_kib(pid: int) -> int:
    return _field(pid, "VmHWM:")


def _field(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise AssertionError(name)


@pytest.mark.guarantee("G-MCP-APART")
def test_the_hosts_environment_reaches_no_command(tmp_path):
    secret = "sk-ant-api03-" + "q7Zk" * 8
    env = {"ANTHROPIC_API_KEY": secret, "CLAUDECODE": "1", "HOST_TOKEN": "t0psecretvalue99", "LD_PRELOAD": ""}
    with Peer(tmp_path / "h", env=env) as peer:
        got = peer.structured("bash", command="env")
        assert "HOME=" in got["stdout"]
        for unwanted in ("ANTHROPIC", "CLAUDECODE", "HOST_TOKEN", "OPSAGENT_HOME", secret):
            assert unwanted not in got["stdout"]
        # Nor does a value that the server knows come back from a file.
        (tmp_path / "h" / "leak.txt").write_text(f"note {secret} end\n")
        assert secret not in json.dumps(peer.structured("read", path="leak.txt"))
        assert secret not in json.dumps(peer.structured("bash", command=f"echo {secret}")["stdout"])


@pytest.mark.guarantee("G-MCP-APART")
def test_a_client_sees_that_another_ran_something_but_not_what_it_printed(tmp_path):
    home = tmp_path / "h"
    with Peer(home) as one, Peer(home) as other:
        (home / "text").write_text("".join(f"{number}\n" for number in range(1, 60001)) + "the-very-end\n")
        got = one.structured("bash", command="cat text")
        assert one.structured("ops_status", id=got["execution"])["output"].startswith("1\n")
        seen = other.structured("ops_status", id=got["execution"])
        assert (seen["status"], seen["stdout_bytes"] > 0) == ("succeeded", True)
        assert "the-very-end" not in json.dumps(seen)
        assert "output" not in seen
        assert one.structured("read", path=got["output_file"], offset=-1)["content"] == "the-very-end\n"
        refused = other.structured("read", path=got["output_file"], offset=-1)
        assert "the-very-end" not in json.dumps(refused)
        assert "the-very-end" not in json.dumps(other.structured("bash", command=f"tail -n 1 {got['output_file']}"))


@pytest.mark.guarantee("G-MCP-APART")
def test_where_the_configuration_says_so_clients_read_each_others_saved_outputs_and_nothing_more(tmp_path):
    home = tmp_path / "h"
    with Peer(home) as one, Peer(home, options=("share",)) as other:
        (home / "text").write_text("".join(f"{number}\n" for number in range(1, 60001)) + "the-very-end\n")
        got = one.structured("bash", command="cat text")
        seen = other.structured("ops_status", id=got["execution"])
        assert "output" not in seen and seen["next"] == f'read{{"path": "{got["output_file"]}"}}'
        assert other.structured("read", path=got["output_file"], offset=-1)["content"] == "the-very-end\n"
        state = home / "state"
        (state / "outputs" / "e-link.stdout.txt").symlink_to(state / "key")
        for path in (state / "key", state / "outputs" / "e-link.stdout.txt", state / "outputs" / ".." / "key"):
            refused = other.structured("read", path=str(path))
            assert "content" not in refused
        assert "the-very-end" not in json.dumps(other.structured("bash", command=f"tail -n 1 {got['output_file']}"))


@pytest.mark.guarantee("G-MCP-APART")
def test_the_state_folder_cannot_be_read_or_changed_through_a_tool(tmp_path):
    home = tmp_path / "h"
    with Peer(home) as peer:
        peer.structured("bash", command="echo x")
        before = sorted(str(path) for path in (home / "state").rglob("*"))
        assert peer.structured("read", path="state/log")["error"]["code"] == "usage.path"
        for text in ("cat state/log/*", "cat state/key", "head -c 100 state/log/000001.jsonl"):
            got = peer.structured("bash", command=text)
            assert got["status"] != "succeeded" or got["stdout"] == ""
        for text in ("touch state/x", "rm state/log/*", "echo > state/config/config.toml"):
            assert peer.structured("ops_exec", command=text)["status"] == "refused"
        after = sorted(str(path) for path in (home / "state").rglob("*"))
        assert [path for path in before if path not in after] == []


def test_a_print_in_the_server_itself_does_not_reach_the_wire(tmp_path):
    """Descriptor 1 is the protocol's alone: whatever else writes there ends up on stderr."""
    home = tmp_path / "h"
    home.mkdir()
    script = home / "noisy.py"
    script.write_text(
        "import sys, os, threading, time\n"
        "wire = os.fstat(1)\n"
        "def noise():\n"
        "    while os.path.samestat(os.fstat(1), wire): time.sleep(0.01)\n"
        "    print('NOISE', flush=True); os.write(1, b'NOISE\\n')\n"
        "threading.Thread(target=noise, daemon=True).start()\n"
        f"sys.argv = {command()[1:]!r}\n"
        "import runpy\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    import sys

    done = subprocess.run(
        [sys.executable, str(script)],
        input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        capture_output=True,
        cwd=home,
        env=environment(home),
        timeout=60,
    )
    assert b"NOISE" not in done.stdout and b"NOISE" in done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
