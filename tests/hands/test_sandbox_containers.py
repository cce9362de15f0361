"""`opsx sandbox doctor` in surroundings that really forbid something, as root and as a user without rights."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import pytest

from tests.hands.test_attempts import python_for, uids

CONTAINED = pathlib.Path(__file__).with_name("contained.py")
ROOT = CONTAINED.parents[2]
RUN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from cli import opsx; sys.exit(opsx.main(sys.argv[1:]))"
ALL, NO_NET = {"local", "net", "bus", "observe", "netadm", "block"}, {"local", "bus", "observe", "netadm", "block"}


def opsx(uid, forbidden, home, *arguments):
    python = python_for(uid)
    command = [python, str(CONTAINED), str(uid), forbidden, python, "-c", RUN, str(ROOT), *arguments]
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "OPSAGENT_HOME": str(home / "state"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, timeout=120)


def doctor(uid, forbidden, tmp_path_factory, *options):
    done = opsx(uid, forbidden, tmp_path_factory.mktemp("home", numbered=True), "sandbox", "doctor", *options)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "somebody"
    folder.mkdir()
    (folder / ".aws").mkdir()
    (folder / ".aws/credentials").write_text("the key\n")
    (folder / "notes").write_text("found\n")
    return folder


@pytest.mark.guarantee("G-R0-SPACE")
@pytest.mark.parametrize(
    ("forbidden", "code", "enforced"),
    [("nothing", 0, "strict"), ("landlock", 0, "userns"), ("landlock,namespaces", 3, None)],
)
def test_a_read_of_a_tree_runs_without_its_keys_or_waits(forbidden, code, enforced, home):
    done = opsx(os.geteuid(), forbidden, home, "exec", "--json", f"grep -rs . {home} | sort")
    told = json.loads(done.stdout)
    assert done.returncode == code, done.stderr
    assert "the key" not in done.stdout
    if enforced is None:
        assert told["because"]["code"] == "cannot-enforce"
        return
    assert told["enforced"] == enforced
    assert f"{home}/notes:found" in told["stdout"]
    assert str(home / ".aws") in told["masked"]


@pytest.mark.parametrize("uid", uids())
@pytest.mark.parametrize(
    ("forbidden", "enforced", "profiles"),
    [
        ("nothing", "strict", ALL),
        ("namespaces", "strict", ALL),
        ("notify", "strict", {"local", "net", "bus", "block"}),
        ("landlock", "userns", NO_NET),
        ("landlock,namespaces", "seccomp", NO_NET),
        ("landlock,notify", "none", set()),
        ("seccomp", "none", set()),
    ],
)
def test_what_is_forbidden_is_missing_and_what_is_left_holds(uid, forbidden, enforced, profiles, tmp_path_factory):
    code, text = doctor(uid, forbidden, tmp_path_factory, "--json")
    told = json.loads(text)
    assert told["enforced"] == enforced
    assert {row["name"] for row in told["profiles"] if row["holds"]} == profiles
    assert all(set(row) >= {"name", "expected", "passed"} for row in told["canaries"])
    assert [row for row in told["canaries"] if not row["passed"]] == []
    assert code == (0 if profiles else 1)
    by_profile = [row["profile"] for row in told["canaries"]]
    assert all(by_profile.count(name) >= 15 for name in profiles)
    assert ("local in a namespace" in by_profile) == (enforced == "userns")
    pieces = [row["piece"].partition(":")[0] for row in told["missing"]]
    assert ("Landlock" in pieces) == ("landlock" in forbidden)
    assert ("a namespace for reads" in pieces) == (enforced == "seccomp")
    assert ("seccomp user notification" in pieces) == ("notify" in forbidden)


@pytest.mark.parametrize("uid", uids())
def test_where_the_kernel_makes_no_user_namespaces_root_takes_mounts_alone(uid, tmp_path_factory):
    code, text = doctor(uid, "landlock,userns", tmp_path_factory, "--json")
    told = json.loads(text)
    assert code == 0
    assert [row for row in told["canaries"] if not row["passed"]] == []
    assert (told["enforced"], told["kernel"]["namespaces"]) == (("seccomp", "") if uid else ("userns", "mount"))
    pieces = [row["piece"] for row in told["missing"]]
    assert ("a namespace for reads: the kernel is told to make none" in pieces) == bool(uid)


def test_in_words_too(tmp_path_factory):
    code, text = doctor(os.geteuid(), "landlock,namespaces", tmp_path_factory)
    assert code == 0
    assert text.startswith("reads are held by seccomp alone, with a supervisor that answers for each write")
    assert "missing: a namespace for reads: something above us refuses it" in text
    code, text = doctor(os.geteuid(), "seccomp", tmp_path_factory)
    assert code == 1
    assert text.startswith("reads are held by nothing: reads beyond the plainest need approval")
    assert "missing: seccomp filters" in text
