"""A read whose owner is killed ends with it, whatever it started; an owner that ends by itself leaves no shell."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from guard.hands.lifeline import Lifeline
from tests.waiting import until

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWNER = """
import sys; sys.path.insert(0, sys.argv[1])
from guard.hands.environment import build_environment
from guard.hands.targets.local import LocalTarget
target = LocalTarget()
def told(stream, data): print(data.decode(), end="", flush=True)
target.run(sys.argv[2], cwd="/", profile=sys.argv[3], env=build_environment().env, timeout_s=100, on_output=told)
"""


def fields(pid):
    """State, parent, group, session … of /proc/PID/stat."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def of_session_of_its_own(pid):
    return fields(pid)[3] != str(os.getsid(0))


def lives(pid):
    try:
        return fields(pid)[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("command", "profile"),
    [
        ("echo $$; sleep 821.5", "local"),
        ("echo $$; setsid sleep 821.5 & setsid bash -c 'echo $$; trap \"\" TERM; sleep 821.5'; wait", "local"),
        ("echo $$; tail -f /dev/null", "local"),
        ("ss -V | sh -c 'echo $$; exec sleep 821.5'", "observe"),
    ],
)
def test_a_read_ends_with_its_owner(command, profile):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(ROOT), command, profile], stdout=subprocess.PIPE, text=True
    )
    wanted = command.count("$$")
    pids = [int(owner.stdout.readline()) for _ in range(wanted)]
    assert all(lives(pid) for pid in pids)
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    until(lambda: not any(lives(pid) for pid in pids))


def test_an_owner_that_ends_leaves_no_shell_behind():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from guard.hands.lifeline import Lifeline; l = Lifeline();"
        "l.start(); l.begin('m'); l.begin('m', 1 << 22); l.end('m'); print(l._end)"
    )
    before = shells()
    done = subprocess.run([sys.executable, "-c", code, str(ROOT)], capture_output=True, text=True)
    assert int(done.stdout) >= 0
    until(lambda: shells() <= before)


def test_the_shell_is_no_child_of_its_owner_and_holds_nothing_of_it():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from guard.hands.lifeline import Lifeline; l = Lifeline();"
        "l.start(); print('begun', flush=True); sys.stdin.read()"
    )
    before = shells()
    owner = subprocess.Popen(
        [sys.executable, "-c", code, str(ROOT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout.readline() == "begun\n"
    [shell] = [pid for pid in shells() - before if of_session_of_its_own(pid)]
    assert {os.readlink(f"/proc/{shell}/fd/{number}") for number in ("1", "2")} == {"/dev/null"}
    assert fields(shell)[1] != str(owner.pid)
    owner.communicate("")
    until(lambda: not lives(shell))


def test_a_shell_that_was_killed_costs_nothing_but_its_service():
    before = shells()
    made = Lifeline()
    made.start()
    for shell in shells() - before:
        os.kill(shell, signal.SIGKILL)
        until(lambda shell=shell: not lives(shell))
    made.begin("m")
    made.end("m")
    os.close(made._end)


def shells():
    """Pids of the inner shells of this user's processes."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = pathlib.Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if line.startswith(b"OPSAGENT_RUN\0-c\0") and lives(int(name)):
                found.add(int(name))
    return found
