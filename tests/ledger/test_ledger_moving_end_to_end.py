"""The whole program as root without OPSAGENT_HOME, where root's home and /var/lib are the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

import pytest

from guard.errors import StateError
from guard.ledger.location import SYSTEM_PLACE, own_places

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPSX = (
    "import sys; sys.path.insert(0, sys.argv[1]); from cli import actor; actor.HOST_NAMES = frozenset();"
    "actor.HOST_MARKS = (); from cli.opsx import main; sys.exit(main(sys.argv[2:]))"
)
# $1: a folder that is root's home in here, on another file system than the /var/lib that is made.
INNER = """set -e
sed "s#^root:.*#root:x:0:0:root:$1:/bin/sh#" /etc/passwd > "$1/passwd"; chmod 644 "$1/passwd"
mount --bind "$1/passwd" /etc/passwd
mount -t tmpfs -o mode=0755 none /var/lib
cd /tmp
program=("${@:2}")
say() {
    name=$1; shift; code=0
    "${program[@]}" "$@" > "$HOME/$name.out" 2> "$HOME/$name.err" < /dev/null || code=$?
    echo $code > "$HOME/$name.code"
}
older=$1/.local/state/opsagent
OPSAGENT_HOME=$older say first exec --json -- 'df -h /'
say moved exec --json -- 'cat /etc/hostname'
say list executions --json
say verify audit verify
say masked exec --json -- 'grep -rs . /var/lib'
say key check --json -- 'cat /var/lib/opsagent/key'
say remove check --json -- 'rm -rf /var/lib/opsagent'
say above check --json -- 'rm -rf /var/lib'
cp "$older" "$HOME/note"
mount -o remount,ro /var/lib
say read exec --json -- 'id -u'
say change exec --json -- 'touch /tmp/never'
umount /var/lib; mount -t tmpfs -o mode=0755,ro none /var/lib
say new_read exec --json -- 'id -u'
say new_change exec --json -- 'touch /tmp/never'
"""


class Told:
    """What each call said."""

    def __init__(self, folder):
        self.folder = folder

    def code(self, name):
        return int(self._text(f"{name}.code"))

    def json(self, name):
        return json.loads(self._text(f"{name}.out"))

    def err(self, name):
        return self._text(f"{name}.err")

    def _text(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()


@pytest.fixture(scope="module")
def told():
    """Everything that the program said, as root; None where this user cannot be root."""
    if os.geteuid():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="ops-home-", dir="/tmp") as home:
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            ["unshare", "--mount", "bash", "-c", INNER, "bash", home, sys.executable, "-X", "utf8", "-c", OPSX, ROOT],
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        yield Told(home)


def is_ordinary(told, monkeypatch):
    """An ordinary user's records have no other place than his own; that is what is looked at then."""
    if told is not None:
        return False
    monkeypatch.delenv("OPSAGENT_HOME")
    try:
        assert SYSTEM_PLACE not in own_places()
    except StateError as error:
        assert "home folder" in error.message, "an account without a home has no place at all"
    return True


@pytest.mark.guarantee("G-ONE-TRUTH")
def test_roots_records_move_once_are_whole_and_it_is_said(told, monkeypatch):
    if is_ordinary(told, monkeypatch):
        return
    assert told.json("first")["recorded"] is True
    assert (told.code("moved"), told.json("moved")["recorded"]) == (0, True)
    older = f"{told.folder}/.local/state/opsagent"
    assert told.err("moved") == f"opsagent: root's records are in {SYSTEM_PLACE} from now on; they were in {older}\n"
    assert told.err("list") == ""
    runs = {run["id"] for run in told.json("list")["executions"]}
    assert runs == {told.json("first")["execution"], told.json("moved")["execution"]}
    assert told.code("verify") == 0
    with open(os.path.join(told.folder, "note"), encoding="utf-8") as note:
        assert SYSTEM_PLACE in note.read()


def test_the_systems_place_is_masked_from_reads_and_guarded_from_agents(told, monkeypatch):
    if is_ordinary(told, monkeypatch):
        return
    masked = told.json("masked")
    if masked["enforced"] != "none":
        assert SYSTEM_PLACE in masked["masked"] and masked["stdout"] == ""
    for name in ("key", "remove", "above"):
        found = told.json(name)
        assert (told.code(name), found["decision"], found["forceable"]) == (4, "refuse", False)


def test_a_var_that_cannot_be_written_leaves_reads_unrecorded_and_stops_changes(told, monkeypatch):
    if is_ordinary(told, monkeypatch):
        return
    for name in ("read", "new_read"):
        found = told.json(name)
        assert (told.code(name), found["stdout"], found["recorded"]) == (0, "0\n", False)
        assert "is read-only" in found["not_recorded_because"]
    for name in ("change", "new_change"):
        found = told.json(name)
        assert (told.code(name), found["request"], found["recorded"]) == (7, None, False)
        assert "is read-only" in found["not_recorded_because"]
    assert not os.path.exists("/tmp/never")
