"""Changes of owner, mode and attributes through the whole walk: judged, shown, approved, run by bash, taken back."""

from __future__ import annotations

import os
import stat

import pytest

import execution
from acting import approving, snapshots
from capabilities.rollback_shapes import foreseen_words
from guard.bound import NO_OPTIONS, Consent, SnapshotOptions
from guard.ledger.answers import ToApprove
from guard.saved import Limits
from guard.types import Request, Status

CONSENT = Consent("tty", "0" * 64)


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub").chmod(0o755)
    for name in ("a.conf", "b.conf", "sub/run.sh"):
        (folder / name).write_text("x\n")
        (folder / name).chmod(0o640)
    (folder / "sub" / "outside").symlink_to(tmp_path / "other")
    (tmp_path / "other").write_text("y\n")
    (tmp_path / "other").chmod(0o600)
    return folder


@pytest.fixture
def guard():
    return execution.open_guard()


def done(guard, work, command, options=NO_OPTIONS):
    """The command as a person approves and runs it."""
    request = Request(command, cwd=str(work), actor="person")
    assessment = execution.assess(request, guard)
    binding = approving.bind(request, assessment, guard, options)
    guard.ledger.answers.approve([ToApprove(request, assessment, binding)], CONSENT)
    return execution.run(request, guard, save=options)


def rolled_back(guard, of):
    plan = execution.plan_rollback(of, guard)
    request = Request(execution.rollback_request(plan), cwd="/", actor="person")
    return execution.apply_rollback(plan, request, guard, consent="tty")


def modes(work):
    """The modes of everything, and of what the link leads to."""
    found = {}
    for place, folders, files in os.walk(work):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            found[os.path.relpath(path, work)] = oct(stat.S_IMODE(os.stat(path).st_mode))
    return found


COMMANDS = {
    "chmod 600 a.conf": {"a.conf": "0o600"},
    "chmod 604 ./*.conf": {"a.conf": "0o604", "b.conf": "0o604"},
    "chmod --reference=sub a.conf": {"a.conf": "0o755"},
    "chmod -R o+r .": {"a.conf": "0o644", "b.conf": "0o644", "sub/run.sh": "0o644"},
    "find . -name '*.sh' -exec chmod u+x {} +": {"sub/run.sh": "0o740"},
    "find sub -exec chmod 700 {} +": {"sub": "0o700", "sub/run.sh": "0o700", "sub/outside": "0o700"},
    "echo a.conf b.conf | xargs chmod 644": {"a.conf": "0o644", "b.conf": "0o644"},
}


@pytest.mark.guarantee("G-ROLLBACK-UNDO")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_change_of_modes_goes_back_and_forth(guard, work, command):
    before = modes(work)
    ran = done(guard, work, command)
    assert (ran.outcome.status, ran.assessment.reversible) == (Status.SUCCEEDED, "yes")
    changed = modes(work)
    assert changed == {**before, **COMMANDS[command]}
    assert guard.ledger.snapshots.load(ran.outcome.snapshot).pack_bytes == 0

    back = rolled_back(guard, ran.outcome.execution)
    assert (back.status, modes(work)) == (Status.SUCCEEDED, before)
    again = rolled_back(guard, back.execution)
    assert (again.status, modes(work)) == (Status.SUCCEEDED, changed)


def test_the_screen_says_what_is_saved_and_that_it_comes_back(guard, work):
    request = Request("chmod -R o+r sub; touch a.conf", cwd=str(work), actor="person")
    assessment = execution.assess(request, guard)
    found = snapshots.foreseen(approving.plan_of(request, assessment), guard)
    saved, missed = foreseen_words(found)
    assert assessment.reversible == "yes" and missed == ()
    assert saved == (
        f"owner, mode and attributes of folder {work}/sub and 2 paths in it",
        f"owner, mode, attributes and times of file {work}/a.conf",
    )
    assert found.paths == 4


def test_a_tree_that_is_too_large_is_not_changed_until_a_person_leaves_it_out(guard, work, monkeypatch):
    monkeypatch.setattr(Limits.__init__, "__defaults__", (2, 1 << 30, 1 << 30, 100))
    before = modes(work)
    ran = done(guard, work, "chmod -R o+r .")
    assert (ran.outcome.status, ran.outcome.execution) == (Status.SNAPSHOT_FAILED, None)
    assert modes(work) == before
    assert any(f"{work} has too many paths" in note for note in ran.outcome.notes)
    assert any(f"--no-snapshot-of {work}" in note for note in ran.outcome.notes)

    ran = done(guard, work, "chmod -R o+r .", SnapshotOptions(leave_out=(str(work),)))
    assert ran.outcome.status == Status.SUCCEEDED and modes(work) != before
