"""A dead man whose records are in the way when the time is up: it takes the change back all the same, and once."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import subprocess
import sys
from dataclasses import replace

import pytest

import execution
from acting import deadman, unrecorded
from guard.ledger import claims
from guard.types import Status
from tests.deadman.armed import CONNECTION, changed
from tests.services.machine import IN_PLACE, ROOT, is_root
from tests.waiting import until


@pytest.fixture
def guard():
    return replace(execution.open_guard(), connection=CONNECTION)


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "f"
    file.write_text("before")
    return file


def results(guard):
    return [entry.get("result") for entry in guard.ledger.entries() if entry["kind"] == deadman.FIRED]


def overdue(armed, guard, s=1.5):
    until(lambda: deadman.left_s(armed, guard) < -s, "the deadline")


@pytest.mark.parametrize("how", ["moved", "open to all"])
def test_records_that_cannot_be_used_at_the_deadline_are_waited_for(how, guard, file):
    armed = changed(guard, file, 2)
    folder = pathlib.Path(guard.ledger.folder.path)
    if how == "moved":
        folder.rename(folder.with_name("elsewhere"))
    else:
        folder.chmod(0o777)
    overdue(armed, guard)
    if how == "moved":
        assert not folder.exists()
        folder.with_name("elsewhere").rename(folder)
    else:
        folder.chmod(0o700)
    until(lambda: not deadman.is_alive(armed))
    assert file.read_text() == "before"
    assert deadman.ended_as(armed.execution, guard) == claims.FIRED
    assert results(guard)[-1] == Status.SUCCEEDED


def test_records_that_somebody_holds_keep_nothing_from_being_taken_back_and_are_told_afterwards(guard, file):
    armed = changed(guard, file, 2)
    with open(os.path.join(guard.ledger.folder.path, "lock"), "r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        until(lambda: file.read_text() == "before", "the way back")
    until(lambda: not deadman.is_alive(armed))
    last = next(entry for entry in reversed(list(guard.ledger.entries())) if entry["kind"] == deadman.FIRED)
    assert (last["result"], last["unrecorded"]) == (Status.SUCCEEDED, True)
    assert "held the log's lock" in last["text"]


def test_what_was_taken_back_without_a_record_is_not_taken_back_again(guard, file):
    armed = changed(guard, file, 60)
    snapshot = next(str(one["snapshot"]) for one in guard.ledger.entries() if one["kind"] == deadman.ARMED)
    claims.claim(guard.ledger.answers.folder, armed.execution, claims.FIRED)
    unrecorded.take_back(execution.plan_rollback(snapshot, guard), armed.execution, snapshot, "the disk is full", guard)
    assert file.read_text() == "before"
    file.write_text("changed")
    deadman.at_deadline(armed.execution, snapshot)
    assert file.read_text() == "changed"
    until(lambda: not deadman.is_alive(armed))


def test_a_full_disk_keeps_nothing_from_being_taken_back(tmp_path, file):
    if not is_root():
        an_empty_file_is_a_claim()
        return
    place = f'mkdir {tmp_path}/disk; mount -t tmpfs -o size=2m none {tmp_path}/disk; exec "$@"'
    done = subprocess.run(
        [*IN_PLACE, "bash", "-ec", place, "bash", sys.executable, "-m", "tests.deadman.full", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "OPSAGENT_HOME": f"{tmp_path}/disk/state", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["ended"], told["file"]) == (claims.FIRED, "before")
    assert told["fired"][-1]["result"] == Status.SUCCEEDED


def an_empty_file_is_a_claim():
    folder = execution.open_guard().ledger.answers.folder
    assert claims.claim(folder, "e-22222222222", claims.FIRED)
    with folder.folder(claims.FOLDER) as fd:
        assert os.stat("e-22222222222", dir_fd=fd).st_size == 0
    assert claims.outcome_of(folder, "e-22222222222") == claims.FIRED
