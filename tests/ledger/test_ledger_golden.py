"""Old state folders stay readable, and the present one is written as docs/formats.md says."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from guard.ledger.formats import decoded
from guard.ledger.state import StateFolder
from tests.ledger.golden_story import told
from tests.ledger.world import START_MS, FakeLiveness, FixedClock, ledger_in

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"


def copied(name, tmp_path):
    """A copy with the modes that a checkout does not keep."""
    path = tmp_path / name
    shutil.copytree(GOLDEN / name, path)
    for folder, _, files in os.walk(path):
        os.chmod(folder, 0o700)
        for file in files:
            os.chmod(os.path.join(folder, file), 0o600)
    return str(path)


def reader_of(path, **more):
    liveness = FakeLiveness()
    liveness.dead = True
    return ledger_in(path, clock=FixedClock(START_MS + 5000, 1005.0), liveness=liveness, **more)


@pytest.mark.parametrize("small_log_bytes", [1 << 30, -1], ids=["folded", "indexed"])
def test_folder_of_format_1_reads_as_it_did(tmp_path, small_log_bytes):
    ledger = reader_of(copied("state-format-1", tmp_path), small_log_bytes=small_log_bytes)
    report = ledger.verify()
    found = {
        "executions": [asdict(execution) for execution in ledger.executions().executions],
        "pending": [asdict(kept) for kept in ledger.pending()],
        "verify": asdict(report),
        "kinds": [entry["kind"] for entry in ledger.audit(100)],
    }
    assert report.ok
    expected = json.loads((GOLDEN / "state-format-1.expected.json").read_text())
    assert json.loads(json.dumps(found)) == expected


def test_folder_of_format_1_can_be_written_on(tmp_path):
    ledger = reader_of(copied("state-format-1", tmp_path))
    before = len(ledger.audit(100))
    assert ledger.note("notice", text="later").ok
    assert len(ledger.audit(100)) == before + 1
    assert ledger.verify().ok


def shapes(entries):
    """For each kind, its fields and the types of their values."""
    found = {}
    for entry in entries:
        for name, value in entry.items():
            found.setdefault(entry["kind"], {}).setdefault(name, set()).add(type(value).__name__)
    return found


def test_present_entries_have_the_shape_of_the_golden_ones(tmp_path):
    golden = shapes(reader_of(copied("state-format-1", tmp_path)).entries())
    assert shapes(told(str(tmp_path / "fresh")).entries()) == golden


def names_in(document):
    return set(re.findall(r"`([a-z_0-9]+)`", document))


def test_every_field_on_disk_is_described(tmp_path):
    path = copied("state-format-1", tmp_path)
    names = {"check"}
    for entry in reader_of(path).entries():
        names |= entry.keys() | {entry["kind"]}
    for request in Path(path, "requests").iterdir():
        names |= decoded(request.read_bytes()).keys()
    names |= decoded(Path(path, "log", "head").read_bytes()[:256]).keys()
    assert names - names_in((ROOT / "docs" / "formats.md").read_text()) == set()


def test_files_of_the_folder_are_described(tmp_path):
    path = str(tmp_path / "fresh")
    told(path).executions()
    told_names = {re.sub(r"[0-9].*|\..*", "", name) for name in os.listdir(path)}
    assert told_names <= names_in((ROOT / "docs" / "formats.md").read_text())
    assert StateFolder.open(path).notes == []


def test_clock_of_the_story_is_the_golden_one():
    assert FixedClock().utc() == "2026-12-01T04:40:00.000Z"
