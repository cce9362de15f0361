"""What cannot be saved stops the command: exit code 5, the path, and the flag that would go on without it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from guard.errors import SnapshotImpossible
from guard.hands import contents as contents_module
from guard.hands.capture import capture, survey
from guard.saved import Limits
from guard.types import PlanItem
from tests.snapshot.trees import never, save, snapshots_in

PROBE = str(Path(__file__).with_name("small_disk_probe.py"))


def refused(*paths, **more) -> str:
    """Why these cannot be saved, with the hint behind it."""
    with pytest.raises(SnapshotImpossible) as caught:
        capture([PlanItem("file", str(path)) for path in paths], is_secret=never, **more).read(None)
    error = caught.value
    assert (error.exit_code, error.code, error.not_done) == (5, "snapshot.impossible", "nothing was run")
    return f"{error.message}; {error.hint}"


def test_a_fifo_named_in_the_plan(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert f"--no-snapshot-of {tmp_path}/pipe" in refused(tmp_path / "pipe")


def test_a_socket_anywhere_in_the_plan(tmp_path):
    (tmp_path / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "run" / "s"))
        assert "is a socket" in refused(tmp_path / "run")


def test_a_device_that_keeps_what_is_written(tmp_path):
    assert "is a device" in refused("/dev/tty0" if os.path.exists("/dev/tty0") else "/dev/ptmx")


def test_a_device_that_keeps_nothing_is_no_obstacle():
    taken = capture([PlanItem("file", "/dev/null")], is_secret=never)
    assert [(node.path, node.saved) for node in taken.nodes] == [("/dev/null", False)]


def test_the_running_kernel():
    assert "running kernel" in refused("/proc/sys/vm/swappiness")
    assert "running kernel" in refused("/sys/kernel")


def test_a_relative_path_and_the_root_folder():
    assert "not an absolute path" in refused("etc/passwd")
    assert "root folder" in refused("/")


def test_too_many_paths_too_much_data_too_long_a_file_too_deep(tmp_path):
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "file").write_bytes(b"x" * 10_000)
    assert "one path too many" in refused(tmp_path / "a", limits=Limits(entries=2))
    assert "makes it too big" in refused(tmp_path / "a", limits=Limits(data_bytes=9_999))
    assert "is too big" in refused(tmp_path / "a", limits=Limits(file_bytes=9_999))
    assert "nested more than 1" in refused(tmp_path / "a", limits=Limits(depth=1))


def test_a_file_with_a_name_outside(tmp_path):
    (tmp_path / "in").write_text("text")
    os.link(tmp_path / "in", tmp_path / "out")
    assert "another name (hard links) outside" in refused(tmp_path / "in")
    capture([PlanItem("file", str(tmp_path / "in")), PlanItem("file", str(tmp_path / "out"))], is_secret=never)


def test_a_folder_that_everybody_can_write(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "file").write_text("text")
    (tmp_path / "open").chmod(0o777)
    assert "can be written by everybody" in refused(tmp_path / "open" / "file")
    (tmp_path / "open").chmod(0o1777)
    capture([PlanItem("file", str(tmp_path / "open" / "file"))], is_secret=never).read(None)


def test_the_flag_that_is_named_goes_on_whatever_stands_in_the_way(tmp_path):
    import shlex

    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "file").write_text("text")
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "run" / "deep").mkdir(parents=True)
    os.mkfifo(tmp_path / "it's a pipe")
    (tmp_path / "one").write_text("text")
    os.link(tmp_path / "one", tmp_path / "two")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "run" / "deep" / "s"))
        for path in (tmp_path / "open" / "file", tmp_path / "run", tmp_path / "it's a pipe", tmp_path / "one"):
            hint = refused(path).rpartition("--no-snapshot-of ")[2]
            (named,) = shlex.split(hint)
            capture([PlanItem("file", str(path))], is_secret=never, leave_out=[named]).read(None)


def test_a_file_that_cannot_be_read(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("text")
    (tmp_path / "folder" / "file").chmod(0)
    if os.geteuid() == 0:
        # Root reads everything but what it reaches as somebody else.
        os.chown(tmp_path / "folder", 65534, 65534)
        os.chown(tmp_path / "folder" / "file", 65534, 65534)
        (tmp_path / "folder" / "file").chmod(0)
    assert "cannot be read: Permission denied" in refused(tmp_path / "folder" / "file")


def test_a_file_that_keeps_changing_while_it_is_read(tmp_path, monkeypatch):
    file = tmp_path / "log"
    file.write_text("line\n")
    copy, reads = contents_module._copy, []

    def copy_while_written(fd, info, sink):
        digest = copy(fd, info, sink)
        reads.append(1)
        with open(file, "a") as more:
            more.write("line\n")
        return digest

    monkeypatch.setattr(contents_module, "_copy", copy_while_written)
    assert "3 times in a row" in refused(file)
    assert len(reads) == 3


def test_one_disturbed_read_is_repeated_and_holds_one_moment(tmp_path, monkeypatch):
    file = tmp_path / "log"
    file.write_text("old\n")
    copy, reads = contents_module._copy, []

    def copy_written_once(fd, info, sink):
        digest = copy(fd, info, sink)
        if not reads:
            file.write_text("newer\n")
        reads.append(1)
        return digest

    monkeypatch.setattr(contents_module, "_copy", copy_written_once)
    snapshots = snapshots_in(tmp_path / "state")
    manifest = snapshots.load(save(snapshots, file))
    with snapshots.contents(manifest) as pack:
        assert pack.read(manifest.nodes[0].sha256, 100) == b"newer\n"
    assert (len(reads), manifest.pack_bytes) == (2, 6)


def test_a_file_that_is_swapped_between_looking_and_reading(tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "other").write_text("other")
    looked = capture([PlanItem("file", str(tmp_path / "file"))], is_secret=never)
    os.rename(tmp_path / "other", tmp_path / "file")
    with pytest.raises(SnapshotImpossible, match="became another file"):
        looked.read(None)


@pytest.mark.guarantee("G-SNAPSHOT-WHOLE")
def test_a_failed_snapshot_leaves_nothing_behind(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(name)
    snapshots = snapshots_in(tmp_path / "state")
    looked = capture([PlanItem("file", str(tmp_path / name)) for name in "ab"], is_secret=never)
    (tmp_path / "b").unlink()
    with pytest.raises(SnapshotImpossible):
        snapshots.save(looked, execution="e-1")
    assert snapshots.ids() == ()
    assert not (tmp_path / "state" / "log").exists()


@pytest.mark.parametrize("what", ["too-full", "fills-up"])
def test_no_space_on_a_real_small_disk(tmp_path, what):
    (tmp_path / "disk").mkdir()
    (tmp_path / "file").write_bytes(os.urandom(300_000))
    namespace = (
        ["unshare", "--mount"]
        if os.geteuid() == 0
        else ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount"]
    )
    done = subprocess.run(
        [*namespace, sys.executable, "-I", PROBE, what, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["code"] == "snapshot.impossible"
    assert f"--no-snapshot-of {tmp_path}/file" in found["hint"]
    assert found["left"] == []


def test_looking_again_takes_what_it_finds(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    nodes = survey([str(tmp_path / "pipe"), str(tmp_path / "open" / "file"), str(tmp_path / "none" / "file")])
    assert [(node.path[len(str(tmp_path)) :], node.kind) for node in nodes] == [
        ("/none/file", "absent"),
        ("/open/file", "blocked"),
        ("/pipe", "fifo"),
    ]


def test_things_no_hand_can_save_are_said(tmp_path):
    looked = capture([PlanItem("service", "nginx.service")], is_secret=never)
    assert looked.unsaved == ("the state of service nginx.service is not saved",)
