"""A state folder that lost a part: what is left can be read, nothing is begun anew, the way on is named."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from guard.bound import Refusal
from guard.errors import Frozen, NoWayBack, StateDamaged
from guard.ledger.state import OWN_NAMES, StateFolder
from tests.ledger.world import (
    CountingIds,
    approved,
    asked,
    bound,
    change_of,
    done,
    ledger_in,
    read_of,
    segment,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEGMENT_BYTES = 700


def filled(path):
    """Records over several segments, a waiting request and a live approval."""
    ledger = ledger_in(path, segment_bytes=SEGMENT_BYTES)
    approved(ledger)
    for number in range(4):
        ledger.end(
            ledger.begin(asked(f"touch {number}"), change_of(f"touch {number}"), profile="none", enforced="none"),
            done(),
        )
    ledger.keep_request(asked("reboot"), change_of("reboot"))
    assert ledger.verify().ok and ledger.verify().segments > 4
    return ledger


def again(path):
    return ledger_in(path, segment_bytes=SEGMENT_BYTES, ids=CountingIds(1000))


def listing(path):
    return {str(name.relative_to(path)): name.read_bytes() for name in sorted(path.rglob("*")) if name.is_file()}


def read_in(ledger):
    """Whether a read is recorded, and why not."""
    begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
    ended = ledger.end(begun.execution, done())
    return ended.ok, ended.because


def change_in(ledger):
    return ledger.begin(asked("touch x"), change_of("touch x"), profile="none", enforced="none")


def lose(path, what):
    """Takes a part away. Returns how many entries are left to be read."""
    last = max(int(name[:6]) for name in os.listdir(path / "log") if name.endswith(".jsonl"))
    if what in ("format", "key"):
        (path / what).unlink()
    elif what == "a segment in the middle":
        os.unlink(segment(path, 3))
    elif what == "the last segment":
        os.unlink(segment(path, last))
    else:
        for number in range(1, last + 1):
            os.unlink(segment(path, number))


@pytest.mark.guarantee("G-NOT-ANEW")
@pytest.mark.parametrize("what", ["format", "key", "a segment in the middle", "the last segment", "all segments"])
def test_what_lost_a_part_is_read_and_never_begun_anew(tmp_path, what):
    path = tmp_path / "state"
    filled(path)
    lose(path, what)
    before = listing(path)
    ledger = again(path)

    recorded, because = read_in(ledger)
    assert not recorded and because
    with pytest.raises(StateDamaged) as caught:
        change_in(ledger)
    assert caught.value.exit_code == 7 and caught.value.hint
    with pytest.raises(StateDamaged):
        ledger.keep_request(asked("poweroff"), change_of("poweroff"))
    left = [entry["seq"] for entry in ledger.entries()]
    assert bool(left) == (what != "all segments")
    assert ledger.verify().ok == (what in ("format", "key"))
    assert ledger.executions().executions or what == "all segments"
    after = listing(path)
    assert {name: after.get(name) for name in before} == before
    assert set(after) - set(before) <= {"lock", "index.db"}


@pytest.mark.parametrize("what", ["format", "key"])
@pytest.mark.parametrize("name", ["state", "Application Support"])
def test_the_way_on_that_the_hint_names_is_one(tmp_path, what, name):
    path = tmp_path / name
    filled(path)
    key = (path / "key").read_bytes()
    lose(path, what)
    with pytest.raises(StateDamaged) as caught:
        change_in(again(path))
    assert f"{path / what} is gone" in caught.value.message
    (command,) = re.findall(r"(?:echo 1|head -c 32 /dev/urandom) > (?:'[^']+'|\S+)", caught.value.hint)
    subprocess.run(["/bin/sh", "-c", command], check=True)
    ledger = again(path)
    assert change_in(ledger)
    assert read_in(ledger) == (True, "")
    assert ledger.verify().ok
    assert ((path / "key").read_bytes() == key) == (what == "format")


def test_approvals_do_not_hold_under_another_key(tmp_path):
    path = tmp_path / "state"
    ledger = filled(path)
    assert not isinstance(ledger.stamps.find(bound()), Refusal)
    (path / "key").unlink()
    with pytest.raises(StateDamaged, match="key is gone"):
        again(path).stamps.find(bound())
    (path / "key").write_bytes(bytes(32))
    assert isinstance(again(path).stamps.find(bound()), Refusal)


def test_a_folder_that_loses_its_format_while_a_process_uses_it_is_not_written(tmp_path):
    path = tmp_path / "state"
    ledger = filled(path)
    (path / "format").unlink()
    with pytest.raises(StateDamaged, match="format is gone"):
        change_in(ledger)
    assert not (path / "format").exists()


@pytest.mark.parametrize(
    "name", ["requests", "sessions", "snapshots", "outputs", "usage", "torn", "deadman", "host-settings"]
)
def test_whatever_was_recorded_makes_a_lost_format_damage(tmp_path, name):
    path = tmp_path / "state"
    StateFolder.open(str(path))
    (path / name).mkdir(mode=0o700)
    (path / "format").unlink()
    StateFolder.open(str(path))
    assert (path / "format").exists(), "an empty folder is no record"
    (path / name / "one").write_text("kept")
    (path / "format").unlink()
    folder = StateFolder.open(str(path))
    assert not (path / "format").exists()
    assert folder.notes and f"{name} holds records" in folder.notes[0]
    with pytest.raises(StateDamaged), folder.locked(1):
        pass


def test_a_folder_with_settings_alone_is_new(tmp_path):
    path = tmp_path / "state"
    (path / "config").mkdir(parents=True, mode=0o700)
    path.chmod(0o700)
    (path / "config" / "config.toml").write_text("")
    (path / "frozen").write_text("a storm")
    ledger = again(path)
    assert ledger.frozen_note() == "a storm"
    assert read_in(ledger) == (True, "")


def test_a_log_without_commands_needs_no_old_key(tmp_path):
    """A snapshot that was asked for is recorded before anything that the key is needed for."""
    path = tmp_path / "state"
    ledger = again(path)
    ledger._log.append([{"kind": "snapshot", "snapshot": "s-1"}], durable=True)
    assert not (path / "key").exists()
    assert change_in(ledger)


def test_a_missing_head_is_made_again_and_said(tmp_path):
    path = tmp_path / "state"
    filled(path)
    (path / "log" / "head").unlink()
    ledger = again(path)
    assert [problem.code for problem in ledger.verify().problems] == ["head-missing"]
    with pytest.raises(Frozen, match="head of the log is lost"):
        change_in(ledger)
    assert read_in(ledger) == (True, "")
    assert [entry["code"] for entry in ledger.entries() if entry["kind"] == "notice"] == ["head-rebuilt"]
    with pytest.raises(Frozen, match="head of the log is lost"):
        change_in(ledger)
    assert [problem.code for problem in ledger.verify().problems] == ["head-lost"]
    assert ledger.answers.thaw()
    assert change_in(ledger)
    assert ledger.verify().ok


def test_a_log_that_was_moved_aside_begins_anew_and_nothing_of_it_holds(tmp_path):
    path = tmp_path / "state"
    filled(path)
    os.rename(path / "log", tmp_path / "log.aside")
    ledger = again(path)
    assert isinstance(ledger.stamps.find(bound()), Refusal)
    assert change_in(ledger)
    assert ledger.verify().ok and ledger.audit(10)[0]["seq"] == 1


def test_snapshots_that_are_gone_are_no_way_back_and_stop_nothing_else(tmp_path):
    path = tmp_path / "state"
    filled(path)
    shutil.rmtree(path / "snapshots", ignore_errors=True)
    ledger = again(path)
    with pytest.raises(NoWayBack):
        ledger.snapshots.load("s-1")
    assert ledger.snapshots.ids() == ()
    assert change_in(ledger)


def test_requests_that_are_gone_are_asked_again(tmp_path):
    path = tmp_path / "state"
    filled(path)
    shutil.rmtree(path / "requests")
    ledger = again(path)
    assert ledger.pending() == []
    assert ledger.keep_request(asked("reboot"), change_of("reboot")).startswith("a-")


def test_segments_that_a_checkpoint_let_go_are_no_gap(tmp_path):
    """Removals reach the disk in any order: after a power cut an older segment than those that are gone may be left."""
    path = tmp_path / "state"
    ledger = filled(path)
    last = max(int(name[:6]) for name in os.listdir(path / "log") if name.endswith(".jsonl"))

    def checkpoint(first_segment):
        ledger.record("checkpoint", first_segment=first_segment, through_seq=1, through_sha256="0" * 64, segments=[])

    checkpoint(last)
    for number in range(2, last):
        os.unlink(segment(path, number))
    assert change_in(again(path))
    checkpoint(last - 1)
    with pytest.raises(StateDamaged, match=f"segment {last - 1} of the log is missing"):
        change_in(again(path))


def test_every_documented_name_of_the_folder_is_known_as_ours():
    """A folder with one of them and without `format` is ours and damaged, not somebody else's."""
    page = (ROOT / "docs" / "formats.md").read_text("utf-8")
    table = page.partition("| name | what | mode |")[2].partition("\n\n")[0]
    names = {name for row in table.splitlines()[2:] for name in re.findall(r"`([a-z.-]+)`", row.split("|")[1])}
    assert {"log", "requests", "trusted-rules"} < names
    assert names - OWN_NAMES == {"index", "-wal", "-shm"}, "the index's files have these endings"
