"""A process that dies with SIGKILL between two steps: what the next reader says, by the table in docs/formats.md."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from guard.hands.liveness import ProcLiveness
from guard.types import Status
from tests.ledger.world import ledger_in

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from guard.clock import RandomIds, SystemClock
from guard.hands.liveness import ProcLiveness
from guard.types import Level
from tests.ledger.world import asked, change_of, done, ledger_in, read_of

path, level, stage = sys.argv[2:]


def at(name):
    if name == stage:
        os.kill(os.getpid(), signal.SIGKILL)
    if name + "-and-wait" == stage:
        print(name, flush=True)
        sys.stdin.read()


ledger = ledger_in(path, clock=SystemClock(), ids=RandomIds(), liveness=ProcLiveness())
at("opened")
if level == "read":
    execution = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict").execution
else:
    execution = ledger.begin(asked(), change_of(), profile="none", enforced="none")
at("begun")
ledger.end(execution, done())
at("ended")
"""


def child(path, level, stage):
    return subprocess.Popen(
        [sys.executable, "-I", "-c", CHILD, ROOT, path, level, stage],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def statuses(path, **filters):
    ledger = ledger_in(path, liveness=ProcLiveness())
    assert ledger.verify().ok
    return [found.status for found in ledger.executions(**filters).executions]


@pytest.mark.guarantee("G-BEGIN")
@pytest.mark.parametrize("level", ["read", "change"])
@pytest.mark.parametrize(
    ("stage", "expected"), [("opened", []), ("begun", [Status.UNKNOWN]), ("ended", [Status.SUCCEEDED])]
)
def test_killed_process_reads_as_the_table_says(tmp_path, level, stage, expected):
    path = str(tmp_path / "state")
    process = child(path, level, stage)
    errors = process.communicate(timeout=60)[1]
    assert (process.returncode, errors) == (-signal.SIGKILL, b"")
    assert statuses(path) == expected
    # A lost read stands in nobody's way: the next one is recorded as if nothing had happened.
    process = child(path, "read", "none")
    assert (process.communicate(timeout=60)[1], process.returncode) == (b"", 0)
    assert statuses(path) == [Status.SUCCEEDED, *expected]


@pytest.mark.guarantee("G-BEGIN")
def test_run_of_a_living_process_is_running_until_it_is_killed(tmp_path):
    path = str(tmp_path / "state")
    process = child(path, "read", "begun-and-wait")
    try:
        assert process.stdout.readline() == b"begun\n"
        assert statuses(path) == statuses(path, status=Status.RUNNING) == [Status.RUNNING]
        assert statuses(path, status=Status.UNKNOWN) == []
    finally:
        process.kill()
        process.communicate(timeout=60)
    assert statuses(path) == statuses(path, status=Status.UNKNOWN) == [Status.UNKNOWN]
