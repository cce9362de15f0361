"""What somebody changed since is never overwritten unasked, and is shown line by line."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from guard.errors import UsageError
from guard.ledger.differences import difference
from guard.redact import Redactor
from guard.saved import Action, State
from tests.snapshot.trees import end, plan_of, roll_back, save, snapshots_in


@pytest.fixture
def changed(tmp_path):
    """Two files and a folder that a change went over; `saved` is the snapshot before it."""
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "one").write_text("alpha\nbeta\n")
    (folder / "two").write_text("gamma\n")
    snapshots = snapshots_in(tmp_path / "state")
    saved = save(snapshots, folder)
    (folder / "one").write_text("alpha\nBETA\n")
    (folder / "two").write_text("GAMMA\n")
    (folder / "made").mkdir()
    (folder / "made" / "by-it").write_text("new")
    end(snapshots, saved)
    return SimpleNamespace(folder=folder, snapshots=snapshots, saved=saved)


def states(plan):
    return {os.path.basename(step.path): step.state for step in plan.steps}


@pytest.mark.guarantee("G-ROLLBACK-EXACT")
def test_an_edit_by_somebody_else_is_a_conflict_that_shows_its_lines(changed):
    (changed.folder / "one").write_text("alpha\nBETA\nby hand\n")
    plan = plan_of(changed.snapshots, changed.saved)
    assert [step.path for step in plan.conflicts] == [str(changed.folder / "one")]
    assert plan.conflicts[0].action == Action.NONE
    shown = difference(plan.conflicts[0], b"alpha\nbeta\n", b"alpha\nBETA\nby hand\n", Redactor().text)
    assert shown == "--- now\n+++ before\n@@ -1,3 +1,2 @@\n alpha\n-BETA\n-by hand\n+beta"


def test_the_rest_can_go_back_without_the_conflict(changed):
    (changed.folder / "one").write_text("by hand\n")
    _, results = roll_back(changed.snapshots, changed.saved, leave_conflicts=True)
    assert {result.result for result in results.values()} == {"done"}
    assert (changed.folder / "one").read_text() == "by hand\n"
    assert (changed.folder / "two").read_text() == "gamma\n"


def test_a_person_can_overrule_one_conflict(changed):
    (changed.folder / "one").write_text("by hand\n")
    plan, _ = roll_back(changed.snapshots, changed.saved, overruled=[str(changed.folder / "one")])
    assert plan.conflicts == ()
    assert (changed.folder / "one").read_text() == "alpha\nbeta\n"


def test_only_a_conflict_can_be_overruled(changed):
    with pytest.raises(UsageError, match="is not in conflict"):
        plan_of(changed.snapshots, changed.saved, overruled=[str(changed.folder / "two")])


def test_what_is_gone_is_a_conflict_and_what_is_back_is_left_alone(changed):
    (changed.folder / "one").unlink()
    (changed.folder / "two").write_text("gamma\n")
    os.utime(changed.folder / "two", ns=(0, 0))
    found = states(plan_of(changed.snapshots, changed.saved))
    assert (found["one"], found["two"], found["by-it"]) == (State.GONE, State.BACK, State.UNCHANGED)


def test_things_that_appeared_since_stay_and_so_does_the_folder_they_are_in(changed):
    (changed.folder / "made" / "by-somebody").write_text("mine")
    plan, results = roll_back(changed.snapshots, changed.saved)
    assert states(plan)["by-somebody"] == State.EXTRA
    assert {result.result for result in results.values()} == {"done"}
    assert os.listdir(changed.folder / "made") == ["by-somebody"]


def test_a_file_made_by_the_change_and_edited_since_is_not_deleted(changed):
    (changed.folder / "made" / "by-it").write_text("edited since")
    plan, _ = roll_back(changed.snapshots, changed.saved, leave_conflicts=True)
    assert states(plan)["by-it"] == State.CHANGED
    assert (changed.folder / "made" / "by-it").read_text() == "edited since"


def test_a_path_that_changes_between_plan_and_step_is_not_touched(changed):
    from guard.hands.restore import apply

    plan = plan_of(changed.snapshots, changed.saved)
    (changed.folder / "one").write_text("at the last moment\n")
    with changed.snapshots.contents(changed.snapshots.load(changed.saved)) as pack:
        results = {result.path: result for result in apply(plan, pack, tag="e-2")}
    assert results[str(changed.folder / "one")].result == "conflict"
    assert results[str(changed.folder / "two")].result == "done"
    assert (changed.folder / "one").read_text() == "at the last moment\n"


def test_a_folder_that_became_a_link_is_not_followed(changed, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "one").write_text("somebody's\n")
    os.rename(changed.folder, tmp_path / "moved")
    changed.folder.symlink_to(elsewhere)
    plan, results = roll_back(changed.snapshots, changed.saved, leave_conflicts=True)
    assert (elsewhere / "one").read_text() == "somebody's\n"
    assert sorted(os.listdir(elsewhere)) == ["one"]
    assert results == {}
    assert plan.conflicts


def test_without_a_recorded_end_all_differences_are_shown_as_such(tmp_path):
    (tmp_path / "file").write_text("before")
    snapshots = snapshots_in(tmp_path / "state")
    saved = save(snapshots, tmp_path / "file", tmp_path / "new")
    (tmp_path / "file").write_text("after")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "in").write_text("it")
    plan, _ = roll_back(snapshots, saved)
    assert {step.state for step in plan.steps} == {State.DIFFERS}
    assert "cannot be told" in plan.notes[0]
    assert (tmp_path / "file").read_text() == "before"
    assert not (tmp_path / "new").exists()


def test_the_digest_holds_fast_what_is_done_and_not_when(changed):
    digest = plan_of(changed.snapshots, changed.saved).digest
    os.utime(changed.folder / "two", ns=(5, 5))
    assert plan_of(changed.snapshots, changed.saved).digest == digest
    (changed.folder / "two").chmod(0o600)
    assert plan_of(changed.snapshots, changed.saved).digest != digest
    assert plan_of(changed.snapshots, changed.saved, leave_conflicts=True).digest != digest


def test_differences_are_redacted_and_binary_ones_told_by_hash(changed):
    plan = plan_of(changed.snapshots, changed.saved)
    step = next(step for step in plan.steps if step.path.endswith("one"))
    secret = b"password=hunter2-hunter2-hunter2\n"
    assert "hunter2" not in difference(step, secret, b"password=other-other-other-1\n", Redactor().text)
    shown = difference(step, b"\0\1", b"text", Redactor().text)
    assert shown.startswith("content: 11 bytes, sha256 ")
    assert difference(step, None, b"text", Redactor().text) == shown
