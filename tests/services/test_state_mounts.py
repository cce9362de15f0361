"""A way back of mounts runs nothing that whoever mounted something picked."""

from __future__ import annotations

import json

import pytest

from guard.hands.services import FAMILIES, Said
from tests.services.machine import is_root, story

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
