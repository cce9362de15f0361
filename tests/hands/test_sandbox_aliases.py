"""A key that is closed is closed under every name that a mount gives it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from guard.hands.sandbox.aliases import Mount, aliases, mounts

ROOT = Path(__file__).resolve().parents[2]
TABLE = [
    Mount("8:1", "/", "/"),
    Mount("0:5", "/", "/proc"),
    Mount("8:1", "/root/.ssh", "/mnt/b"),
    Mount("8:1", "/etc", "/srv/a b/etc"),
    Mount("8:1", "/etc/shadow", "/mnt/s"),
    Mount("8:1", "/", "/mnt/all"),
    Mount("8:2", "/@home", "/home"),
    Mount("8:2", "/@home/a", "/mnt/a"),
    Mount("8:2", "/", "/mnt/top"),
    Mount("8:1", "/root/.aws/sub", "/mnt/sub"),
    Mount("8:1", "/etcetera", "/mnt/other"),
]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/root/.ssh/id", {"/mnt/b/id", "/mnt/all/root/.ssh/id"}),
        ("/etc/shadow", {"/srv/a b/etc/shadow", "/mnt/s", "/mnt/all/etc/shadow"}),
        ("/home/a/.netrc", {"/mnt/a/.netrc", "/mnt/top/@home/a/.netrc"}),
        ("/root/.aws", {"/mnt/sub", "/mnt/all/root/.aws"}),
        ("/proc/kmsg", set()),
        ("/mnt/b/id", {"/root/.ssh/id", "/mnt/all/root/.ssh/id"}),
    ],
)
def test_every_name_is_found(path, names):
    assert set(aliases([path], TABLE)) == names


def test_the_last_mount_on_a_point_counts():
    table = [Mount("8:1", "/", "/"), Mount("0:9", "/", "/root"), Mount("0:9", "/x", "/mnt/x")]
    assert aliases(["/root/x/y"], table) == ["/mnt/x/y"]


def test_escapes_of_the_table_are_read(tmp_path):
    file = tmp_path / "mountinfo"
    file.write_text("36 35 98:0 /a\\040b /mnt\\134\\011c rw - ext4 /dev/x rw\n\n36 35\n")
    assert mounts(str(file)) == [Mount("98:0", "/a b", "/mnt\\\tc")]
    assert mounts(str(tmp_path / "none")) == []


INSIDE = """
import json, os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from guard.hands.environment import build_environment
from guard.hands.targets.local import LocalTarget
target, place = LocalTarget(), sys.argv[2]
def run(command, profile="local"):
    env = build_environment().env
    return target.run(command, cwd="/", profile=profile, env=env, timeout_s=60, hidden=[place + "/state"]).stdout.text
said = {"before": run("cat %s/plain/file %s/state/key" % (place, place))}
for name, source in (("bound", "state"), ("key", "state/key"), ("above", ".")):
    path = f"{place}/{name}"
    os.mkdir(path) if source != "state/key" else open(path, "w").close()
    subprocess.run(["mount", "--bind", f"{place}/{source}", path], check=True)
names = {"folder": "bound/key", "file": "key", "above": "above/state/key", "beside": "above/plain/file"}
for name, path in names.items():
    said[name] = run(f"cat {place}/{path}")
said["tree"] = run(f"grep -r . {place}/above {place}/bound {place}/key")
print(json.dumps(said))
"""


@pytest.mark.guarantee("G-R0-SECRETS")
def test_no_mount_shows_what_is_closed_even_when_it_comes_later(tmp_path):
    if os.geteuid():
        return  # a user's mounts are in namespaces of his own, where he runs as himself
    for folder in ("state", "plain"):
        (tmp_path / folder).mkdir()
    (tmp_path / "state" / "key").write_text("the key")
    (tmp_path / "plain" / "file").write_text("plain")
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", INSIDE, str(ROOT), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["before"] == said["beside"] == "plain"
    assert (said["folder"], said["file"], said["above"]) == ("", "", "")
    assert "the key" not in said["tree"] and "plain" in said["tree"]
