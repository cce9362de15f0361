"""Full and read-only file systems, real ones: reads answer and say that they are not recorded, changes do not run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ledger.world import interpreter_for_others

PROBE = str(Path(__file__).with_name("sick_disk_probe.py"))


def probe(what: str, where: Path, *, user: bool) -> dict:
    """Runs the probe in a mount namespace, as root or as an ordinary user inside a namespace of its own."""
    where.mkdir()
    arguments = ["-I", PROBE, what, str(where)]
    if os.geteuid() != 0:
        command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, *arguments]
    elif user:
        shutil.chown(where, 65534, 65534)
        for folder in (where, *where.parents):
            if str(folder).startswith("/tmp/"):
                folder.chmod(folder.stat().st_mode | 0o711)
        as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        namespace = ["unshare", "--user", "--map-root-user", "--mount"]
        command = [*as_nobody, *namespace, interpreter_for_others(), *arguments]
    else:
        command = ["unshare", "--mount", sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


USERS = pytest.mark.parametrize("user", [False, True], ids=["as-root", "as-ordinary-user"])


@USERS
@pytest.mark.guarantee("G-SICK-STATE")
def test_full_disk_answers_reads_unrecorded_and_runs_no_change(tmp_path, user):
    found = probe("full", tmp_path / "disk", user=user)
    assert found["before"] == {"begin": "", "ok": True, "because": ""}
    for read in found["reads"]:
        assert not read["ok"]
        assert "no space left" in read["because"]
    assert (found["change"], found["request"]) == ("state.unwritable", "state.unwritable")
    assert (found["full"]["verified"], found["full"]["torn"]) == (True, 0)
    assert found["full"]["requests"] == []
    assert found["after"] == [{"begin": "", "ok": True, "because": ""}, "ok", found["freed"]["pending"][0]]
    assert (found["freed"]["verified"], found["freed"]["torn"]) == (True, 0)
    # What could not be written meanwhile was kept, and is there now beside the five new entries.
    assert found["freed"]["entries"] > found["full"]["entries"] + 5
    assert set(found["freed"]["statuses"]) == {"succeeded"}


@USERS
@pytest.mark.guarantee("G-SICK-STATE")
def test_disk_that_was_full_before_the_first_run_answers_reads(tmp_path, user):
    found = probe("full-from-start", tmp_path / "disk", user=user)
    assert not found["read"]["ok"]
    assert "no space left" in found["read"]["because"]
    assert (found["change"], found["request"]) == ("state.unwritable", "state.unwritable")


@USERS
@pytest.mark.guarantee("G-SICK-STATE")
def test_read_only_folder_answers_reads_and_still_shows_what_it_holds(tmp_path, user):
    found = probe("read-only", tmp_path / "disk", user=user)
    assert found["kind"] == "Ledger"
    assert not found["read"]["ok"]
    assert "read-only" in found["read"]["because"] and "read-only" in found["read"]["begin"]
    assert (found["change"], found["again"]) == ("state.unwritable", "state.unwritable")
    assert found["summary"]["statuses"] == ["succeeded"]
    assert found["summary"]["verified"]
    assert found["summary"]["pending"] == [found["request"]]


def test_reserve_carries_the_records_of_changes_until_it_is_used_up(tmp_path):
    found = probe("reserve", tmp_path / "disk", user=False)
    assert (found["first"], found["size"]) == ("ok", 256 * 1024)
    assert not found["read"]["ok"]  # a read does not take from it
    assert found["request"].startswith("a-") and found["pending"] == [found["request"]]
    assert found["changes"] >= 3
    assert (found["outcome"], found["left"]) == ("state.unwritable", 0) or found["outcome"] == "end lost"
    assert found["verified"]
    assert found["refilled"] == 256 * 1024
    assert found["end"]
