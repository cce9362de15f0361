"""Packages go back to their versions, marks and holds, with the real dpkg and apt and an archive made on the spot."""

from __future__ import annotations

import shutil

from guard.hands.services import FAMILIES, Said
from tests.services.archive import ARCHIVE, OVERLAYS
from tests.services.machine import is_root, story, went_back

CHANGE = "apt-mark unhold opsextra >/dev/null; apt-get install -y -qq opsprobe=2.0 opsextra- >/dev/null 2>&1"
STATE = {"versions": {"a:amd64": "1.0"}, "unfinished": {}, "manual": ["a"], "held": []}


def test_packages_go_back_to_versions_marks_and_holds(tmp_path):
    if not is_root() or shutil.which("apt-get") is None:
        # Without the right to install there is nothing to take back: the way is still the right one.
        now = {**STATE, "versions": {"a:amd64": "2.0", "b:all": "1"}}
        (one,) = FAMILIES["packages"].way_back("", STATE, now).commands
        assert one.command.endswith("-- 'a:amd64=1.0' b:all-")
        return
    told = story(tmp_path, CHANGE, place=OVERLAYS, before=ARCHIVE)
    went_back(told)
    assert told["after"]["packages"]["versions"]["opsprobe:all"] == "2.0"
    assert "opsprobe-lib" not in told["now"]["packages"]["manual"]
    assert told["now"]["packages"]["held"] == ["opsextra"]


def test_removed_package_comes_back(tmp_path):
    if not is_root() or shutil.which("apt-get") is None:
        back = FAMILIES["packages"].way_back("", STATE, {**STATE, "versions": {}, "manual": []})
        assert [one.command.split(" ")[0] for one in back.commands] == ["apt-get", "apt-mark"]
        return
    went_back(story(tmp_path, "apt-get remove -y -qq opsprobe >/dev/null 2>&1", place=OVERLAYS, before=ARCHIVE))


def test_package_that_is_half_configured_is_no_installed_one():
    said = {"versions": Said(0, "a:amd64\t1.0\thalf-configured\n"), "manual": Said(0, ""), "held": Said(0, "")}
    state = FAMILIES["packages"].parse("", said)
    assert (state["versions"], state["unfinished"]) == ({}, {"a:amd64": "half-configured"})
