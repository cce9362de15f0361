"""Killed between any two steps, a rollback leaves each path whole and goes on when it is asked again."""

from __future__ import annotations

import os
import subprocess

import pytest

from guard.hands.restore import apply
from guard.ledger.plans import rollback_plan
from tests.snapshot.trees import end, now_of, save, snapshots_in, state_of


def in_child(work) -> int:
    """Runs `work` in a child that may be killed; returns its exit code."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(70)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def furnished(folder):
    folder.mkdir()
    subprocess.run(
        [
            "bash",
            "-ec",
            "printf one > a; ln a b; mkdir -m 750 d; printf two > d/c; ln -s a l; mkfifo f; setfattr -n user.x -v y d;"
            " printf three > m; chmod 4755 m; mkdir -m 555 r; touch -d 2020-01-01 a d/c r d",
        ],
        cwd=folder,
        check=True,
    )


def change(folder):
    subprocess.run(
        [
            "bash",
            "-ec",
            "sed -i s/o/0/ a; rm -r d l f; printf x > l; mkdir n; printf y > n/y; chmod 600 m; chmod 700 r",
        ],
        cwd=folder,
        check=True,
    )


def parts(plan, pack) -> int:
    """How many places there are to be killed at: counted in a child that is then thrown away."""
    count = 0

    def counted(name):
        nonlocal count
        count += 1

    apply(plan, pack, tag="e-9", checkpoint=counted)
    return count


def run_until(snapshots, saved, last: int, *, tag: str, resumed: bool) -> int:
    """A rollback in a child that is killed at its `last` place; its exit code."""

    def work():
        count = 0

        def checkpoint(name):
            nonlocal count
            count += 1
            if count == last:
                os._exit(9)

        manifest = snapshots.load(saved)
        plan = rollback_plan("e-1", manifest, snapshots.after(saved), now_of(snapshots, saved), resumed=resumed)
        assert plan.conflicts == (), plan.conflicts
        with snapshots.contents(manifest) as pack:
            results = apply(plan, pack, tag=tag, stale_tags=("e-2", "e-3"), checkpoint=checkpoint)
        assert all(result.result == "done" for result in results), results

    return in_child(work)


@pytest.mark.guarantee("G-ROLLBACK-RESUME")
def test_killed_anywhere_it_goes_on_and_ends_the_same(tmp_path):
    points = 0
    for last in range(1, 200):
        place = tmp_path / f"run-{last}"
        place.mkdir()
        furnished(place / "tree")
        before = state_of(place / "tree")
        snapshots = snapshots_in(place / "state")
        saved = save(snapshots, place / "tree")
        change(place / "tree")
        end(snapshots, saved)
        code = run_until(snapshots, saved, last, tag="e-2", resumed=False)
        if code == 0:
            points = last - 1
            break
        assert code == 9
        assert_every_path_is_whole(place / "tree")
        assert run_until(snapshots, saved, last=2, tag="e-3", resumed=True) in (0, 9)
        assert run_until(snapshots, saved, last=0, tag="e-4", resumed=True) == 0
        assert state_of(place / "tree") == before
    assert points > 20


def assert_every_path_is_whole(folder):
    """Contents are the old ones or the new ones; nothing in between stands under a path's own name."""
    for name, contents in {"a": ("one", "0ne"), "b": ("one",), "m": ("three",), "d/c": ("two",)}.items():
        path = folder / name
        if path.exists():
            assert path.read_text() in contents, name


@pytest.mark.guarantee("G-SNAPSHOT-WHOLE")
@pytest.mark.parametrize("last", range(1, 8))
def test_a_snapshot_that_is_killed_midway_is_none(tmp_path, last, monkeypatch):
    from guard.hands import contents as contents_module

    for number in range(4):
        (tmp_path / f"file-{number}").write_text(str(number))
    snapshots = snapshots_in(tmp_path / "state")
    copy, fsync = contents_module._copy, os.fsync
    count = 0

    def work():
        def step(real):
            def stepped(*arguments):
                nonlocal count
                count += 1
                if count == last:
                    os._exit(9)
                return real(*arguments)

            return stepped

        monkeypatch.setattr(contents_module, "_copy", step(copy))
        monkeypatch.setattr(os, "fsync", step(fsync))
        save(snapshots, *(tmp_path / f"file-{number}" for number in range(4)))

    assert in_child(work) == 9
    whole = snapshots.listed()
    if last <= 6:
        # Four reads, the pack's sync, the manifest's sync: before its name is there, there is no snapshot.
        assert whole == ()
    for one in whole:
        assert snapshots.verify(one.id) == ()
