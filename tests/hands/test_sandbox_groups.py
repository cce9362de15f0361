"""Limits on all processes of a run together: in the control groups of this machine, and in trees made for it."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shlex
import subprocess
import sys
import time

import pytest

from guard.hands.environment import build_environment
from guard.hands.liveness import process_start
from guard.hands.sandbox import Sandbox, cgroup, missing
from guard.hands.sandbox.cgroup import RunGroups, find_groups, version_1, version_2
from guard.hands.sandbox.kernel import probe
from guard.hands.targets.local import LocalTarget
from tests.waiting import until

BOTH = frozenset({"memory", "pids"})
HERE = find_groups()


def tree(tmp_path, *, handed="memory pids", own="0::/user.slice/session.scope\n", root="/"):
    """(mount table, own groups, mount point) of a unified hierarchy whose slice hands controllers down."""
    point = tmp_path / "cgroup"
    (point / "user.slice/session.scope").mkdir(parents=True)
    for folder, controllers in (("", ""), ("user.slice", handed), ("user.slice/session.scope", "")):
        (point / folder / "cgroup.subtree_control").write_text(controllers + "\n")
        (point / folder / "cgroup.procs").write_text("")
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"20 1 0:5 / /proc rw - proc proc rw\n30 1 0:26 {root} {point} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    )
    groups = tmp_path / "own"
    groups.write_text(own)
    return str(mounts), str(groups), point


class TestWhere:
    def test_a_group_lies_below_the_nearest_ancestor_that_hands_the_controllers_down(self, tmp_path, monkeypatch):
        mounts, own, point = tree(tmp_path)
        monkeypatch.setattr(cgroup, "_holds", lambda place: True)
        found = find_groups(mounts, own)
        assert [place.parent for place in found.places] == [str(point / "user.slice")]
        assert found.controls == BOTH

    def test_our_own_group_is_never_rearranged(self, tmp_path, monkeypatch):
        mounts, own, point = tree(tmp_path, handed="")
        monkeypatch.setattr(cgroup, "_holds", lambda place: True)
        before = {path: path.read_text() for path in point.rglob("*") if path.is_file()}
        assert find_groups(mounts, own).places == []
        assert {path: path.read_text() for path in point.rglob("*") if path.is_file()} == before

    def test_what_one_place_lacks_another_may_have(self, tmp_path, monkeypatch):
        mounts, own, point = tree(tmp_path, handed="cpu pids")
        memory = tmp_path / "memory"
        (memory / "box").mkdir(parents=True)
        with open(mounts, "a") as file:
            file.write(f"31 1 0:27 /docker/abc {memory} rw - cgroup cgroup rw,memory\n")
        with open(own, "a") as file:
            file.write("5:memory:/docker/abc/box\n4:name=systemd:/\n")
        monkeypatch.setattr(cgroup, "_holds", lambda place: True)
        places = {tuple(sorted(place.controls)): place.parent for place in find_groups(mounts, own).places}
        assert places == {("pids",): str(point / "user.slice"), ("memory",): str(memory / "box")}

    @pytest.mark.parametrize("own", ["0::/../elsewhere\n", "0::/not/there\n", "", "nonsense\n"])
    def test_a_group_that_cannot_be_seen_is_none(self, tmp_path, own):
        mounts, groups, _ = tree(tmp_path, own=own)
        assert find_groups(mounts, groups).places == []

    def test_a_folder_that_takes_no_groups_is_none(self, tmp_path):
        mounts, own, point = tree(tmp_path)
        assert find_groups(mounts, own).places == []  # a folder made there has no limits to set
        assert [path.name for path in (point / "user.slice").iterdir() if path.is_dir()] == ["session.scope"]

    def test_without_a_hierarchy_there_is_none_and_runs_go_on(self, tmp_path):
        assert find_groups(str(tmp_path / "absent"), str(tmp_path / "absent")).controls == frozenset()
        group = RunGroups([]).new()
        group.take(os.getpid())
        assert group.end() == []


def test_limits_of_both_versions_say_what_a_run_may_have():
    assert dict(version_2("/x", BOTH).limits).keys() == {"memory.max", "pids.max"}
    assert version_2("/x", frozenset({"pids"})).controls == {"pids"}
    assert version_1("/x", "memory").controls == {"memory"}
    assert version_1("/x", "pids").limits == (("pids.max", "1024"),)


def smaller(place, memory_bytes, threads):
    """The same place with other limits."""
    values = {"memory": str(memory_bytes), "pids": str(threads)}
    limits = tuple((name, values[name.partition(".")[0]]) for name, _ in place.limits)
    wished = tuple((name, "0" if "swap" in name else str(memory_bytes)) for name, _ in place.wished)
    return dataclasses.replace(place, limits=limits, wished=wished)


def groups_of_ours(places):
    """What is there now, for other sandboxes of this process too."""
    ours = f"opsagent-{os.getpid()}-"
    return {f"{place.parent}/{name}" for place in places for name in os.listdir(place.parent) if name.startswith(ours)}


@pytest.mark.skipif(HERE.controls != BOTH, reason="no control groups here that may be written")
class TestRealGroups:
    """Whichever version the machine has, with limits that a test can meet."""

    @pytest.fixture(params=[True, False], ids=["reported", "silent"])
    def target(self, request):
        made = LocalTarget(dataclasses.replace(probe(), notify=request.param))
        places = [smaller(place, 96 << 20, 40) for place in HERE.places]
        before = groups_of_ours(places)
        made._sandbox.groups = RunGroups(places)
        yield made
        made.close()
        HERE.close()
        assert groups_of_ours(places) <= before

    def run(self, target, command, timeout_s=60.0):
        env = build_environment().env
        return target.run(command, cwd="/", profile="local", env=env, timeout_s=timeout_s)

    def test_memory_is_limited_for_all_processes_together(self, target):
        hog = f"{sys.executable} -I -S -c 'kept = bytearray(60 << 20); import time; time.sleep(3)' & "
        alone = self.run(target, hog + "wait $!; echo $?")
        assert (alone.stdout.text, alone.notes) == ("0\n", ())
        result = self.run(target, hog * 3 + "for job in $(jobs -p); do wait $job; echo $?; done")
        assert "137" in result.stdout.text.split()
        assert any("for want of memory" in note for note in result.notes)

    def test_processes_are_limited_for_uid_0_too(self, target):
        count = "import os, time\nn = 0\ntry:\n while n < 200:\n  if not os.fork(): time.sleep(60)\n  n += 1\n"
        count += "except BlockingIOError: print(n)"
        result = self.run(target, f"exec {sys.executable} -I -S -c {shlex.quote(count)}")
        assert result.stdout.text == "39\n"
        assert any("more than" in note and "processes" in note for note in result.notes)

    def test_a_fork_bomb_ends_with_its_run(self, target):
        result = self.run(target, ":(){ :|:& };:; sleep 60", timeout_s=1.0)
        assert result.timed_out
        assert not any("left behind" in note for note in result.notes)

    def test_a_run_within_its_limits_says_nothing_of_them(self, target):
        result = self.run(target, "seq 100 | sort -rn | head -n 1")
        assert (result.stdout.text, result.notes) == ("100\n", ())

    def test_a_group_that_cannot_be_made_does_not_keep_a_read_from_running(self, target):
        target._sandbox.groups = RunGroups([])
        target._sandbox.groups.places += [dataclasses.replace(place, parent="/nowhere") for place in HERE.places]
        assert self.run(target, "echo fine").stdout.text == "fine\n"

    def test_what_a_killed_process_left_is_removed_and_what_lives_is_not(self, monkeypatch):
        parent = pathlib.Path(HERE.places[0].parent)
        ended = subprocess.Popen(["true"])
        ended.wait()
        dead = parent / f"opsagent-{ended.pid}-1-aaaaaa"
        start = process_start(os.getpid())
        alive = parent / f"opsagent-{os.getpid()}-{start}-aaaaaa"
        for folder in (dead, alive):
            folder.mkdir()
        now = time.time() + 3600
        monkeypatch.setattr(cgroup.time, "time", lambda: now)
        RunGroups([HERE.places[0]])
        assert (dead.exists(), alive.exists()) == (False, True)
        alive.rmdir()

    def test_what_is_left_in_a_group_ends_with_it(self):
        group = HERE.new()
        child = subprocess.Popen(["sleep", "819"])
        group.take(child.pid)
        assert group.end() == []
        assert child.wait(30) == -9


def unified():
    """Where version 2 is mounted and takes groups of ours, whichever controllers it has; None where it does not."""
    for controllers, _, point in cgroup._hierarchies("/proc/self/mountinfo"):
        if controllers is None and os.access(f"{point}/cgroup.procs", os.W_OK):
            return point
    return None


@pytest.mark.skipif(unified() is None, reason="no unified hierarchy here that may be written")
class TestVersionTwo:
    """Its groups for real, where the machine gives it no controllers to limit with."""

    def test_processes_go_in_with_what_they_start_and_all_of_them_end_with_the_group(self):
        groups = RunGroups([cgroup.Place(unified(), ())])
        group = groups.new()
        [(folder, _)] = group.folders
        child = subprocess.Popen(["bash", "-c", "read -r; sleep 820 & sleep 820"], stdin=subprocess.PIPE)
        group.take(child.pid)
        child.stdin.close()
        until(lambda: len(pathlib.Path(folder, "cgroup.procs").read_text().split()) == 3, "what it starts")
        group.end()
        assert child.wait(30) == -9
        assert not os.path.exists(folder)

    def test_a_process_that_has_ended_is_no_fault(self):
        groups = RunGroups([cgroup.Place(unified(), ())])
        group = groups.new()
        ended = subprocess.Popen(["true"])
        ended.wait()
        group.take(ended.pid)
        assert group.end() == []
        # All was well in it: the next run gets the same, and nothing is left when there are no more.
        assert groups.new().folders == group.folders
        group.end()
        groups.close()
        assert not os.path.exists(group.folders[0][0])

    def test_a_group_whose_limits_cannot_be_set_is_not_left_behind(self):
        before = sorted(os.listdir(unified()))
        groups = RunGroups([version_2(unified(), BOTH)])  # nobody hands them down here
        if os.path.exists(f"{unified()}/memory.max"):
            return
        with pytest.raises(OSError, match=r"memory\.max"):
            groups.new()
        assert [name for name in os.listdir(unified()) if name not in before] == []

    def test_what_cannot_be_removed_yet_is_removed_before_the_next_run(self, monkeypatch):
        groups = RunGroups([cgroup.Place(unified(), ())])
        group = groups.new()
        [(folder, _)] = group.folders
        child = subprocess.Popen(["sleep", "821"])
        group.take(child.pid)
        monkeypatch.setattr(cgroup, "_kill_all", lambda folder: None)  # as if it were stuck in the kernel
        monkeypatch.setattr(cgroup, "END_LIMIT_S", 0.0)
        group.end()
        assert os.path.exists(folder)
        child.kill()
        child.wait()
        groups.new().end()
        assert not os.path.exists(folder)
        groups.close()


def test_each_missing_limit_is_named_with_what_it_means():
    made = Sandbox(probe())
    made.groups = RunGroups([])
    pieces = {one.piece: one.meaning for one in missing.missing_pieces(made)}
    assert "not for all of them together" in pieces["a memory control group that can be written"]
    assert "a pids control group that can be written" in pieces
    made.groups = RunGroups([version_2("/nowhere", BOTH)])
    assert not any("control group" in one.piece for one in missing.missing_pieces(made))
    made.close()
