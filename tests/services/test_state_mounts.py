"""A way back of mounts runs nothing that whoever mounted something picked."""

from __future__ import annotations

import json

import pytest

from guard.hands.services import FAMILIES, Said
from tests.services.machine import is_root, story, went_back

MOUNTS = FAMILIES["mounts"]
NEW = "mkdir /mnt/new && mount -t tmpfs none /mnt/new"


def test_folder_that_was_made_for_a_mount_goes_with_a_second_rollback(tmp_path):
    if not is_root():
        assert MOUNTS.way_back("", state(), state(("/mnt/new", "none", "tmpfs", "rw"))).commands
        return
    told = story(tmp_path, NEW, look="ls -d /mnt/new", twice=True)
    assert "\n" in told["looked"][1]
    assert told["results"]["mounts"] == ["done", ""]
    assert told["results"]["/mnt/new"][0] != "done"
    assert told["status"] == "failed"
    assert told["twice"] == ["succeeded", told["before"], told["looked"][0]]
    assert told["left"] == 0


def state(*rows):
    named = [dict(zip(("target", "source", "fstype", "options"), row, strict=True)) for row in rows]
    return MOUNTS.parse("", {"mounts": Said(0, json.dumps({"filesystems": named}))})


@pytest.mark.parametrize("kind", ["fuse", "fuse.sshfs", "fuse./tmp/own", "fuseblk", "fuse3"])
def test_a_file_system_that_a_process_served_is_said_to_be_lost_and_its_program_is_not_run(kind):
    disk = ("/srv", "/dev/sdb1", "ext4", "rw")
    served = ("/home/bob/m", "/tmp/own#x", kind, "rw,user_id=1000")
    back = MOUNTS.way_back("", state(disk, served), state())
    assert [one.command for one in back.commands] == ["mount -t ext4 -o rw -- /dev/sdb1 /srv"]
    assert back.lost == ("what a process served on /home/bob/m: start it again",)


BOUND = "mount -t tmpfs none /mnt; mkdir /mnt/a /mnt/b; mount -t tmpfs one /mnt/a; echo hi > /mnt/a/x; "
WAYS = {
    "flags-of-a-bind-go-back-without-its-file-system": (
        "mount -o remount,bind,rw /mnt/b",
        "mount --bind /mnt/a /mnt/b; mount -o remount,bind,ro,noexec,noatime /mnt/b",
    ),
    "flags-that-were-set-go": ("mount -o remount,bind,ro,nosuid,nodev,noexec,noatime /mnt/a", ""),
    "options-of-the-file-system": ("mount -o remount,size=3m,ro /mnt/a", "mount -o remount,size=2m /mnt/a"),
    "a-bind-of-a-whole-mount-is-one-again": ("umount /mnt/b", "mount --bind /mnt/a /mnt/b"),
    "a-bind-with-flags-is-one-again": (
        "umount /mnt/b",
        "mount --bind /mnt/a /mnt/b; mount -o remount,bind,ro,nosuid /mnt/b",
    ),
    "a-bind-that-came": ("mount --bind /mnt/a /mnt/b", ""),
    "propagation-that-was-private": ("mount --make-shared /mnt/a", ""),
    "propagation-that-was-shared": ("mount --make-private /mnt/a", "mount --make-shared /mnt/a"),
    "a-bind-that-was-unbindable": ("umount /mnt/b", "mount --bind /mnt/a /mnt/b; mount --make-unbindable /mnt/b"),
}


@pytest.mark.guarantee("G-STATE-BACK")
@pytest.mark.parametrize("name", WAYS)
def test_flags_of_one_mount_go_back_and_no_other_mount_changes(name, tmp_path):
    change, before = WAYS[name]
    if not is_root():
        assert "remount" not in MOUNTS.reads("")[0].command
        return
    look = "cat /mnt/a/x /mnt/b/x; touch /mnt/a/y && echo writable; findmnt -no VFS-OPTIONS,PROPAGATION /mnt /mnt/a"
    told = story(tmp_path, change, before=before, place=BOUND, look=look)
    went_back(told)
    assert told["looked"][2] == told["looked"][0]


def test_a_bind_of_what_was_in_memory_is_not_taken_for_a_file_system_of_its_own():
    rows = [("/a", "one", "tmpfs", "rw"), ("/b", "one", "tmpfs", "rw")]
    both, apart = (
        MOUNTS.parse("", {"mounts": Said(0, json.dumps({"filesystems": [
            dict(zip(("target", "source", "fstype", "options", "maj:min"), (*row, number), strict=True))
            for row, number in zip(rows, numbers, strict=True)
        ]}))})
        for numbers in (("0:7", "0:7"), ("0:7", "0:8"))
    )  # fmt: skip
    assert both != apart


def test_a_mount_that_followed_another_place_is_said_to_do_so_no_more():
    def with_propagation(kind):
        return {"mounts": {"/a": [["one", "tmpfs", "rw", "rw", "rw", kind, ""]]}}

    back = MOUNTS.way_back("", with_propagation("private,slave"), with_propagation("private"))
    assert back.lost == ("/a took over what was mounted in another place",)


def test_a_state_kept_without_flags_of_its_own_sets_none():
    old = {"mounts": {"/a": [["one", "tmpfs", "ro"]]}}
    now = {"mounts": {"/a": [["one", "tmpfs", "rw", "rw", "rw", "private", ""]]}}
    back = MOUNTS.way_back("", old, now)
    assert back.commands == ()
    assert back.lost == ("the options of /a, kept without which of them are the mount's own",)
