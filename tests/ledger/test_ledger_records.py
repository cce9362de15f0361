"""The fold: entries in, executions out, whatever order and kind they come in."""

from __future__ import annotations

import pytest

from guard.ledger.records import OPEN, Fold
from guard.types import Status
from tests.ledger.world import BOOT, FakeLiveness


def started(execution="e-1", seq=1, **more):
    frame = {"kind": "started", "execution": execution, "seq": seq, "at": "2026-12-01T04:40:00.000Z", "boot": BOOT}
    return {**frame, "pid": 7, "pid_start": "start-7", **more}


def ended(execution="e-1", status="succeeded", **more):
    return {"kind": "ended", "execution": execution, "status": status, "at": "2026-12-01T04:41:00.000Z", **more}


def folded(*entries):
    return Fold().add_all(entries).executions


def test_end_without_begin_and_begin_twice_change_nothing():
    assert folded(ended()) == {}
    one = folded(started(command="first"), started(command="second", seq=2))["e-1"]
    assert (one.command, one.seq, one.status) == ("first", 1, OPEN)


def test_status_of_a_newer_version_leaves_the_execution_open():
    assert folded(started(), ended(status="evaporated"))["e-1"].status == OPEN
    assert folded(started(), ended(status="evaporated"), ended(status="failed"))["e-1"].status == "failed"


def test_run_that_was_handed_on_lives_with_its_new_owner():
    class OnlyNine(FakeLiveness):
        def alive(self, boot, pid, start):
            return pid == 9 and super().alive(boot, pid, start)

    handed = {"kind": "running", "execution": "e-1", "pid": 9, "pid_start": "start-9", "boot": BOOT}
    assert folded(started())["e-1"].read_with(OnlyNine()).status == Status.UNKNOWN
    assert folded(started(), handed)["e-1"].read_with(OnlyNine()).status == Status.RUNNING
    without_owner = {"kind": "running", "execution": "e-1", "status": "running"}
    assert folded(started(), without_owner)["e-1"].pid == 7


def test_end_found_out_later_settles_an_execution_and_a_persons_word_is_kept():
    found = folded(started(), {**ended(status="failed", exit_code=3), "kind": "reconciled"})["e-1"]
    assert (found.status, found.exit_code) == ("failed", 3)
    told = folded(started(), {"kind": "resolved", "execution": "e-1", "outcome": "not_done"})["e-1"]
    assert (told.status, told.resolution) == (OPEN, "not_done")


@pytest.mark.parametrize("wrong", [None, 3, True, "x", [], {}, [[1, 2]], [["a"]], 1.5])
def test_fields_of_a_wrong_type_are_left_out_and_raise_nothing(wrong):
    names = ("at", "boot", "pid", "pid_start", "uid", "command", "effects", "began_at", "level", "seq")
    entry = {**started(), **dict.fromkeys(names, wrong)}
    end = {**ended(), **dict.fromkeys(("exit_code", "interference", "duration_ms", "notes", "truncated"), wrong)}
    fold = Fold().add_all([entry, end, {"kind": wrong, "execution": "e-1"}, {"kind": "started", "execution": wrong}])
    one = fold.executions["e-1"]
    assert one.status == "succeeded"
    assert all(isinstance(effect, tuple) for effect in one.effects)
    assert one.exit_code is None or type(one.exit_code) is int
    assert isinstance(one.command, str) and isinstance(one.pid, int) and isinstance(one.seq, int)


def test_unreadable_lines_are_counted():
    fold = Fold().add_all([started(), {"kind": "unreadable"}, ended(), {"kind": "unreadable"}])
    assert fold.unreadable == 2
    assert fold.executions["e-1"].status == "succeeded"
