"""The canaries: each does something outside, each ends as it must in every profile, and a hole is found and said."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from cli import opsx, opsx_sandbox
from cli.options import parse
from guard.hands import sandbox
from guard.hands.sandbox import PROFILES, Sandbox, canaries, canary_probe, missing
from guard.hands.sandbox import profiles as table
from guard.hands.sandbox.kernel import probe

CANNOT_BE_TRIED_OUTSIDE = {
    # Nothing gives rights away outside either way, or only to root; these say what a process is, not what it did.
    "gain_rights_by_a_program",
    "make_an_unknown_call",
    "enter_by_the_x32_door",
}
ROOT_ALONE = {
    "mount_something", "set_the_host_name", "set_the_clock", "ask_the_firewall", "change_the_firewall",
    "keep_rights_to_change",
}  # fmt: skip


def at(abi):
    return Sandbox(dataclasses.replace(probe(), landlock_abi=abi))


@pytest.mark.parametrize("abi", [probe().landlock_abi, 4, 1, 0])
def test_every_canary_ends_as_it_must_on_every_landlock_and_without(abi):
    tried = at(abi)
    held = [name for name in PROFILES if name in tried.measure().profiles]
    assert len(held) == (6 if abi >= 4 else 5)
    found = list(canaries.try_canaries(tried, held))
    assert [canary for canary in found if not canary.passed] == []
    for name in held:
        assert len([canary for canary in found if canary.profile == name]) >= 15 + len(canaries.EVERYWHERE)
    tried.close()


def test_outside_the_sandbox_the_same_attempts_work(tmp_path):
    with canaries._scene() as scene:
        command = [sys.executable, "-I", "-S", canary_probe.__file__, json.dumps(dataclasses.asdict(scene))]
        if os.geteuid() == 0:
            command = ["unshare", "--mount", "--net", "bash", "-c", 'ip link set lo up; exec "$@"', "bash", *command]
        done = subprocess.run(
            command, env={"PATH": os.defpath, "TMPDIR": str(tmp_path)}, capture_output=True, text=True
        )
    seen = json.loads(done.stdout)["canaries"]
    assert list(seen) == canary_probe.names()
    proves_nothing = CANNOT_BE_TRIED_OUTSIDE | (ROOT_ALONE if os.geteuid() else set())
    # In its own network nothing listens, which is past everything that could have stopped it.
    stopped = {name for name, what in seen.items() if what == "stopped"}
    assert stopped <= proves_nothing


def test_a_hole_is_found_and_said(monkeypatch, capsys):
    less = tuple(name for name in table.REFUSED if name not in ("utimensat", "utimes", "utime", "futimesat"))
    monkeypatch.setattr(table, "REFUSED", less)
    monkeypatch.setattr(sandbox, "_sandbox", Sandbox(probe()))
    parsed = parse("opsx", opsx.BY_NAME["sandbox"], ["doctor"])
    assert opsx_sandbox.main(parsed) == 1
    text = capsys.readouterr().out
    assert "FAILED  local: cannot change times: allowed" in text
    assert "FAILED  local: cannot leave a change behind" in text
    parsed = parse("opsx", opsx.BY_NAME["sandbox"], ["doctor", "--json"])
    assert opsx_sandbox.main(parsed) == 1
    failed = [row["name"] for row in json.loads(capsys.readouterr().out)["canaries"] if not row["passed"]]
    assert "observe: cannot change times" in failed


def test_a_program_inside_that_says_nothing_passes_nothing(monkeypatch):
    monkeypatch.setattr(canary_probe, "__file__", "/nonexistent")
    tried = Sandbox(probe())
    found = list(canaries.try_canaries(tried, ["local"]))
    assert [canary.name for canary in found if canary.passed] == ["leave_a_change_behind"]
    tried.close()


def test_where_nothing_holds_it_says_so_and_fails(monkeypatch, capsys):
    monkeypatch.setattr(sandbox, "_sandbox", Sandbox(dataclasses.replace(probe(), seccomp=False)))
    assert opsx_sandbox.main(parse("opsx", opsx.BY_NAME["sandbox"], ["doctor", "--json"])) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["enforced"], told["canaries"]) == (1, "none", [])
    assert {row["because"] for row in told["profiles"]} == {"no seccomp filters"}
    assert told["missing"][0]["piece"] == "seccomp filters"
    assert all(set(row) == {"piece", "meaning", "mend"} for row in told["missing"])


@pytest.mark.parametrize(
    ("less", "piece"),
    [
        ({"landlock_abi": 0}, "Landlock"),
        ({"landlock_abi": 3}, "Landlock ABI 4 (Linux 6.7)"),
        ({"landlock_abi": 5}, "Landlock ABI 6 (Linux 6.12)"),
        ({"notify": False}, "seccomp user notification"),
        ({"machine": "riscv64", "seccomp": False}, "a table of system calls for riscv64"),
    ],
)
def test_each_lack_is_named_with_its_meaning_and_a_way_to_mend_it(less, piece):
    tried = Sandbox(dataclasses.replace(probe(), **less))
    found = {one.piece: one for one in missing.missing_pieces(tried)}
    assert piece in found
    assert all(found[piece])
    tried.close()
