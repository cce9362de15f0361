"""Everything in `attempts.py` works without the sandbox and does not work inside it, as root and as a user."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

import pytest

from tests.hands.attempts import ATTEMPTS
from tests.hands.layers import AMONG_EQUALS, BY_CHANCE, LEFT_WITHOUT_LANDLOCK, NO_LAYER, OPEN_IN_OBSERVE, stopping

PROBE = pathlib.Path(__file__).with_name("attempt_probe.py")
NAMESPACES = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount-proc"]
# The scratch becomes a file system of its own, so that remounting and device nodes stay in it.
INNER = """set -e
ip link set lo up
mount -t tmpfs -o mode=0755 none "$1"
cp -a "$2/." "$1/"
chown -R "$3:$3" "$1"
cp /usr/bin/id "$1/suidid"; chown 0:0 "$1/suidid"; chmod 4755 "$1/suidid"
cd "$1"
uid=$3 python=$4 probe=$5 scratch=$1; shift 5
if [ "$uid" = 0 ]; then exec "$python" "$probe" "$scratch" "$@"; fi
exec setpriv --reuid "$uid" --regid "$uid" --clear-groups "$python" "$probe" "$scratch" "$@"
"""


def prepared(folder: pathlib.Path) -> None:
    with tarfile.open(folder / "a.tar", "w") as tar:
        tar.add("/etc/hostname", arcname="from-tar")
    repo = folder / "repo"
    repo.mkdir()
    git = ["git", "-c", "user.name=a", "-c", "user.email=b", "-C", str(repo)]
    (repo / "a").write_text("1")
    for arguments in (["init", "-q"], ["add", "a"], ["commit", "-qm", "i"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    (repo / "a").write_text("2")


def python_for(uid: int) -> str:
    """An interpreter that this user can reach (a virtual environment may lie in a closed home)."""
    for path in (sys.executable, "/usr/bin/python3"):
        real = pathlib.Path(path).resolve()
        if uid == os.geteuid() or all(folder.stat().st_mode & 0o005 == 0o005 for folder in (real, *real.parents)):
            return path
    raise AssertionError("no interpreter that another user can run")


def report_in(folder: pathlib.Path, uid: int, *layers: str) -> dict:
    source, mounted = folder / "source", folder / "mounted"
    source.mkdir()
    mounted.mkdir()
    prepared(source)
    if os.geteuid() == 0:
        arguments = [str(mounted), str(source), str(uid), python_for(uid), str(PROBE), *layers]
        command = [*NAMESPACES, "bash", "-c", INNER, "bash", *arguments]
    else:
        shutil.copytree(source, mounted, dirs_exist_ok=True)
        command = [sys.executable, str(PROBE), str(mounted), *layers]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1]) | {"root": str(mounted)}


def uids() -> list[int]:
    return [0, 65534] if os.geteuid() == 0 else [os.geteuid()]


@pytest.fixture(scope="module", params=uids(), ids=str)
def report(request):
    """What every attempt did, tried once per user. Not below tmp_path, whose parents are closed to other users."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="attempts-", dir="/tmp"))
    folder.chmod(0o755)
    yield report_in(folder, request.param)
    shutil.rmtree(folder)


@pytest.mark.guarantee("G-R0-KERNEL")
def test_every_attempt_works_outside_and_none_inside(report):
    uid = report["uid"]
    assert report["enforced"] == "strict"
    tried = report["attempts"]
    assert tried.keys() == {attempt.name for attempt in ATTEMPTS}

    for_users = {attempt.name for attempt in ATTEMPTS if attempt.user}
    got_through = {
        name: each["inside"]
        for name, each in tried.items()
        if each["inside"][0] and not (name in for_users and uid == 0)
    }
    assert got_through == {}

    # An attempt that does nothing outside either proves nothing.
    expected = {
        attempt.name
        for attempt in ATTEMPTS
        if not attempt.unproven and not (attempt.root and uid) and not (attempt.user and not uid)
    }
    if os.geteuid() and "setuid program" in expected:
        expected.discard("setuid program")  # an ordinary user cannot prepare one
    without_effect = {name: tried[name]["outside"][1][-90:] for name in expected if not tried[name]["outside"][0]}
    assert not without_effect, json.dumps(without_effect, indent=1)


def test_what_was_refused_is_listed_with_its_path(report):
    tried, work = report["attempts"], report["root"] + "/work"
    for name, seen in {
        "redirect": f"openat {work}/f.txt",
        "rm": f"unlinkat {work}/f.txt",
        "mkdir": f"mkdir {work}/nd",
        "chmod": f"fchmodat {work}/f.txt",
        "mv": f"renameat2 {work}/g.txt",
        "write through a cwd": "openat ",
        "daemon socket": f"connect {report['root']}/daemon.sock",
        "abstract socket": "connect @opsagent-attempt",
        "tcp connection": "socket AF_INET",
        "user namespace": "unshare ",
    }.items():
        assert any(each.startswith(seen) for each in tried[name]["inside"][2]), (name, tried[name]["inside"])


LAYERS = {"C": "capabilities", "L": "landlock", "S": "seccomp", "N": "namespace", "M": "mounts"}
WITHOUT_LANDLOCK = ("userns", "mounts and filter")
EXACT = ("observe", "netadm", "block")


@pytest.fixture(scope="module")
def by_layer():
    """Every attempt against each layer alone, and inside each profile for one program, tried once."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="attempts-", dir="/tmp"))
    folder.chmod(0o755)
    yield report_in(folder, os.geteuid(), *LAYERS.values(), *EXACT, *WITHOUT_LANDLOCK)
    shutil.rmtree(folder)


def test_each_layer_alone_stops_what_the_table_says(by_layer):
    found = {
        attempt.name: "".join(
            {False: letter, True: "", None: "?"}[by_layer[layer][attempt.name]] for letter, layer in LAYERS.items()
        )
        for attempt in ATTEMPTS
        if attempt.name in by_layer["seccomp"]
    }
    if os.geteuid() == 0:
        found[BY_CHANCE] = found[BY_CHANCE].removeprefix("C")
        assert found == {attempt.name: stopping(attempt.name) for attempt in ATTEMPTS}
        return
    # An ordinary user can do less to begin with: no layer may let through what it stops for root.
    for attempt in ATTEMPTS:
        wanted = set(AMONG_EQUALS.get(attempt.name, stopping(attempt.name))) - {*"CM"}
        assert wanted <= set(found.get(attempt.name, wanted)), attempt.name


def through_without_landlock(tried):
    return {name for name, effect in tried.items() if effect} - set(NO_LAYER)


@pytest.mark.guarantee("G-R0-SPACE")
@pytest.mark.parametrize("held_by", WITHOUT_LANDLOCK)
def test_without_landlock_a_namespace_and_the_filter_let_nothing_through_unsaid(by_layer, held_by):
    if held_by != "userns" and os.geteuid() != 0:
        assert set(by_layer[held_by].values()) == {None}  # only root has mount namespaces without a user namespace
        return
    assert through_without_landlock(by_layer[held_by]) == set(LEFT_WITHOUT_LANDLOCK)


@pytest.mark.guarantee("G-R0-SPACE")
def test_so_it_is_for_a_user_without_rights():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="attempts-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        report = report_in(folder, uids()[-1], "userns")
    finally:
        shutil.rmtree(folder)
    assert through_without_landlock(report["userns"]) == set(LEFT_WITHOUT_LANDLOCK)


@pytest.mark.guarantee("G-R0-ONE-RIGHT")
@pytest.mark.parametrize("profile", EXACT)
def test_a_further_right_lets_no_change_through(by_layer, profile):
    through = {name for name, effect in by_layer[profile].items() if effect}
    through.discard("setuid program")  # for uid 0 there is nothing to gain
    assert through <= (set(OPEN_IN_OBSERVE) if profile == "observe" else set())


def test_no_two_attempts_share_a_name():
    names = [attempt.name for attempt in ATTEMPTS]
    assert sorted(set(names)) == sorted(names)
