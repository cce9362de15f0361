"""Packages go back to their versions, marks and holds, with the real dpkg and apt and an archive made on the spot."""

from __future__ import annotations

import shutil

import pytest

from guard.hands.services import FAMILIES, Said
from tests.services.archive import ARCHIVE, OVERLAYS
from tests.services.machine import is_root, story, went_back

CHANGE = "apt-mark unhold opsextra >/dev/null; apt-get install -y -qq opsprobe=2.0 opsextra- >/dev/null 2>&1"
STATE = {"versions": {"a:amd64": "1.0"}, "unfinished": {}, "manual": ["a"], "held": [], "changed": [], "without": []}


def test_packages_go_back_to_versions_marks_and_holds(tmp_path):
    if not is_root() or shutil.which("apt-get") is None:
        # Without the right to install there is nothing to take back: the way is still the right one.
        now = {**STATE, "versions": {"a:amd64": "2.0", "b:all": "1"}}
        (one,) = FAMILIES["packages"].way_back("", STATE, now).commands
        assert one.command.endswith("-- 'a:amd64=1.0' b:all-")
        return
    told = story(tmp_path, CHANGE, place=OVERLAYS, before=ARCHIVE)
    went_back(told)
    (planned,) = told["after"]
    assert told["after"][planned]["versions"]["opsprobe:all"] == "2.0"
    assert "opsprobe-lib" not in told["now"][planned]["manual"]
    assert told["now"][planned]["held"] == ["opsextra"]


def test_removed_package_comes_back(tmp_path):
    if not is_root() or shutil.which("apt-get") is None:
        back = FAMILIES["packages"].way_back("", STATE, {**STATE, "versions": {}, "manual": []})
        assert [one.command.split(" ")[0] for one in back.commands] == ["apt-get", "apt-mark"]
        return
    went_back(story(tmp_path, "apt-get remove -y -qq opsprobe >/dev/null 2>&1", place=OVERLAYS, before=ARCHIVE))


CONFIG = "/etc/opsprobe/main.conf"
"""One of its two; the other has a blank in its name."""
OWN = f"printf 'mine\\n' > {CONFIG}; chmod 640 {CONFIG}; chgrp daemon {CONFIG}"
CONFIGURED = {
    # Its configuration goes with a purge, and a package of that version would bring its own.
    "purged": ("apt-get purge -y -qq opsprobe >/dev/null 2>&1", OWN),
    "purged-by-dpkg": ("dpkg -P opsprobe >/dev/null 2>&1", OWN),
    "unchanged-and-replaced": ("apt-get install -y -qq opsprobe=2.0 >/dev/null 2>&1", ":"),
    "changed-and-replaced": (
        "apt-get install -y -qq -o Dpkg::Options::=--force-confnew opsprobe=2.0 >/dev/null 2>&1",
        OWN,
    ),
    "beside-what-is-no-file-of-the-package": (
        "apt-get purge -y -qq opsprobe >/dev/null 2>&1; rm -rf /etc/opsprobe",
        f"{OWN}; mkdir /etc/opsprobe/sites; echo own > /etc/opsprobe/sites/own.conf",
    ),
    "removed-by-hand": ("apt-get purge -y -qq opsprobe >/dev/null 2>&1", f"rm {CONFIG}"),
}


@pytest.mark.parametrize("name", CONFIGURED)
def test_configuration_files_of_a_package_come_back_as_somebody_had_them(name, tmp_path):
    change, own = CONFIGURED[name]
    if not is_root() or shutil.which("apt-get") is None:
        read = FAMILIES["packages"].files_read("a")
        assert read.command.startswith("dpkg-query -W -f=")
        return
    look = f"stat -c '%a %U %G' {CONFIG}; cat {CONFIG}; ls -R /etc/opsprobe | grep -v dpkg-dist"
    told = story(tmp_path, change, place=OVERLAYS, before=f"{ARCHIVE}\n{own}", look=look)
    assert told["looked"][1] != told["looked"][0]
    assert told["looked"][2] == told["looked"][0], told["results"]
    assert told["now"] == told["before"]
    assert told["status"] == "succeeded", told["results"]


def test_changes_of_other_files_of_a_package_are_said_to_be_lost(tmp_path):
    before = {**STATE, "changed": ["/usr/share/a/x"]}
    back = FAMILIES["packages"].way_back("a", before, {**STATE, "versions": {}})
    assert back.lost == ("what somebody had changed in /usr/share/a/x",)
    if is_root() and shutil.which("apt-get"):
        own = "echo mine >> /usr/share/opsprobe/version"
        told = story(
            tmp_path,
            "apt-get remove -y -qq opsprobe >/dev/null 2>&1",
            place=OVERLAYS,
            before=f"{ARCHIVE}\n{own}",
            look="true",
        )
        assert told["results"]["packages opsprobe"][0] == "partial"
        assert "/usr/share/opsprobe/version" in told["results"]["packages opsprobe"][1]


def test_files_of_packages_are_told_from_what_dpkg_prints():
    said = Said(
        0,
        "\n /etc/a/b 0123456789abcdef0123456789abcdef\n /etc/a/two words 0123456789abcdef0123456789abcdef obsolete\n"
        " /etc/a/new newconffile\n\n",
    )
    assert FAMILIES["packages"].files(said) == ("/etc/a/b", "/etc/a/two words", "/etc/a/new")
    verified = Said(
        1, "??5?????? c /etc/a/b\n??5??????   /usr/share/a/x\nmissing     /usr/share/a/y\nmissing   c /etc/a/z\n"
    )
    said = {"versions": Said(0, ""), "manual": Said(0, ""), "held": Said(0, ""), "verified": verified}
    state = FAMILIES["packages"].parse("a", said)
    assert (state["changed"], state["without"]) == (["/usr/share/a/x", "/usr/share/a/y"], ["/etc/a/z"])
    owners = Said(0, "a: /etc/a\na, b:amd64: /etc/init.d\nb: /etc/b\n")
    assert FAMILIES["packages"].folders("a c", owners) == ("/etc/a",)


def test_package_that_is_half_configured_is_no_installed_one():
    said = {"versions": Said(0, "a:amd64\t1.0\thalf-configured\n"), "manual": Said(0, ""), "held": Said(0, "")}
    state = FAMILIES["packages"].parse("", said)
    assert (state["versions"], state["unfinished"]) == ({}, {"a:amd64": "half-configured"})
