"""Changes of files that a pattern names, or in a folder that a wrapper goes to: run by bash, taken back, and forth."""

from __future__ import annotations

import pytest

import execution
from guard.types import Status
from tests.snapshot.test_metadata_walk import done, rolled_back
from tests.snapshot.trees import state_of


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.log", "b b.log", "c.conf", "sub/a.log", "sub/d"):
        (folder / name).write_text(f"{name}\n" * 3)
    (folder / "link.log").symlink_to("c.conf")
    return folder


@pytest.mark.guarantee("G-ROLLBACK-UNDO")
@pytest.mark.parametrize(
    "command",
    [
        "rm ./*.log",
        "sed -i s/log/LOG/ ./[ab]*.log",
        "env -C sub rm d",
        "env --chdir=sub bash -c 'echo x > new; rm a.log'",
        "gzip a.log",
        "sed -i.orig 1d c.conf",
    ],
)
def test_it_goes_back_and_forth(work, command):
    guard = execution.open_guard()
    before = state_of(work)
    ran = done(guard, work, command)
    assert (ran.outcome.status, ran.assessment.reversible) == (Status.SUCCEEDED, "yes"), ran.outcome
    changed = state_of(work)
    assert changed != before
    back = rolled_back(guard, ran.outcome.execution)
    assert (back.status, state_of(work)) == (Status.SUCCEEDED, before)
    again = rolled_back(guard, back.execution)
    assert (again.status, state_of(work)) == (Status.SUCCEEDED, changed)
