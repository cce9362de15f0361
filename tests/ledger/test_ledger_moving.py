"""Root's records go from below root's home to the system's place: whole, once, and not while somebody uses them."""

from __future__ import annotations

import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from guard.errors import StateInTwoPlaces, StateUnwritable
from guard.hands.holders import holders
from guard.ledger import claims, location, moving
from guard.ledger.state import StateFolder
from guard.ledger.store import own_folder
from tests.ledger.world import FakeLiveness, FixedClock, asked, change_of, done, ledger_in

PROBE = pathlib.Path(__file__).with_name("moving_probe.py")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose root is this test: its home, and its /var/lib."""
    home, lib = tmp_path / "root", tmp_path / "var" / "lib"
    home.mkdir(mode=0o700)
    lib.mkdir(parents=True)
    entry = pwd.struct_passwd(("root", "x", 0, 0, "", str(home), "/bin/sh"))
    monkeypatch.setattr("pwd.getpwuid", lambda uid: entry)
    monkeypatch.setattr(location, "is_root", lambda: True)
    monkeypatch.setattr(location, "SYSTEM_PLACE", str(lib / "opsagent"))
    monkeypatch.delenv("OPSAGENT_HOME")
    return SimpleNamespace(system=lib / "opsagent", older=home / ".local/state/opsagent", lib=lib)


def with_records(path, *, ended=True):
    """Its ledger, with one change on record."""
    ledger = ledger_in(path)
    execution = ledger.begin(asked(), change_of(), profile="none", enforced="none")
    if ended:
        ledger.end(execution, done())
    return ledger


def move(liveness=None, users=lambda folder: ""):
    return moving.move(clock=FixedClock(), liveness=liveness or FakeLiveness(), holders=users)


def last_entry(ledger):
    return ledger.audit(1)[0]


def test_a_new_machine_has_roots_state_at_the_systems_place(machine):
    assert location.state_path(platform="linux") == str(machine.system)
    assert location.state_path(platform="darwin") == "/Library/Application Support/opsagent"
    assert not location.move_is_due()
    assert own_folder().path == str(machine.system)
    assert not machine.older.exists()


def test_an_ordinary_user_keeps_his_place(machine, monkeypatch):
    with_records(machine.older)
    monkeypatch.setattr(location, "is_root", lambda: False)
    assert location.state_path() == str(machine.older)
    assert location.own_places() == (str(machine.older),)
    assert not location.move_is_due()
    assert move() == ()
    assert own_folder().path == str(machine.older)


def test_a_named_folder_is_never_moved(machine, monkeypatch):
    with_records(machine.older)
    monkeypatch.setenv("OPSAGENT_HOME", str(machine.older))
    assert location.state_path() == str(machine.older)
    assert move() == ()
    assert own_folder().path == str(machine.older)
    assert not machine.system.exists()


def test_root_without_a_home_needs_none(machine, monkeypatch):
    def missing(uid):
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", missing)
    assert location.own_places() == (str(machine.system),)
    assert own_folder().path == str(machine.system)


def test_until_they_are_moved_the_older_place_is_the_one_truth(machine):
    with_records(machine.older)
    assert location.state_path() == str(machine.older)
    assert own_folder().path == str(machine.older)
    assert not machine.system.exists()
    (machine.older / "frozen").write_text("a storm")
    assert location.frozen_note(location.state_path()) == "a storm"


def test_they_move_whole_and_the_log_and_a_note_tell(machine):
    before = with_records(machine.older).audit(10)
    said = move()
    assert said == (f"root's records are in {machine.system} from now on; they were in {machine.older}",)
    ledger = ledger_in(machine.system)
    assert ledger.audit(10)[: len(before)] == before
    told = last_entry(ledger)
    assert (told["kind"], told["code"]) == ("notice", "state-moved")
    assert str(machine.older) in told["text"] and str(machine.system) in told["text"]
    assert ledger.verify().ok
    assert str(machine.system) in machine.older.read_text()
    assert location.state_path() == str(machine.system)
    assert not location.move_is_due()
    assert move() == ()


def test_a_saved_output_is_named_where_it_is_since(machine):
    ledger = with_records(machine.older)
    outside = "/srv/opsagent/outputs/e-2.stdout.txt"
    for place in (f"{machine.older}/outputs/e-3.stdout.txt", outside):
        run = ledger.begin(asked(place), change_of(place), profile="none", enforced="none")
        ledger.end(run, done(output_file=place))
    move()
    moved = ledger_in(machine.system)
    found = [run.output_file for run in moved.executions().executions]
    assert found == [outside, f"{machine.system}/outputs/e-3.stdout.txt", ""]
    assert moved.show("e-2").execution.output_file == f"{machine.system}/outputs/e-3.stdout.txt"


def test_an_older_version_meets_the_note_and_begins_no_second_records(machine):
    with_records(machine.older)
    move()
    with pytest.raises(Exception, match="is not a folder"):
        StateFolder.open(str(machine.older))


def test_an_empty_folder_at_the_systems_place_is_no_obstacle(machine):
    with_records(machine.older)
    machine.system.mkdir(mode=0o700)
    assert len(move()) == 1
    assert ledger_in(machine.system).verify().ok


def test_strange_things_at_the_systems_place_keep_the_records_where_they_are(machine):
    with_records(machine.older)
    machine.system.mkdir(mode=0o700)
    (machine.system / "accounts.db").write_text("somebody's")
    (said,) = move()
    assert "is there, and is no state folder" in said
    assert location.state_path() == str(machine.older)
    assert ledger_in(machine.older).verify().ok
    assert (machine.system / "accounts.db").read_text() == "somebody's"


def test_a_place_that_cannot_be_written_keeps_them_where_they_are_and_notes_nothing(machine, monkeypatch):
    ledger = with_records(machine.older)
    before = ledger.audit(10)
    monkeypatch.setattr(moving.os, "access", lambda path, mode: path != str(machine.lib))
    (said,) = move()
    assert said.endswith(f"{machine.lib} cannot be written")
    assert ledger.audit(10) == before
    assert own_folder().path == str(machine.older)


def test_what_runs_keeps_its_records_until_it_has_ended(machine):
    with_records(machine.older, ended=False)
    (said,) = move()
    assert said.endswith("later: e-1 is running")
    assert location.state_path() == str(machine.older)
    gone = FakeLiveness()
    gone.dead = True
    assert "from now on" in move(gone)[0]


def test_a_dead_man_that_waits_keeps_them_too(machine):
    ledger = with_records(machine.older)
    ledger.record("deadman_armed", execution="e-1", snapshot="s-1", pid=7, pid_start="start-7")
    (said,) = move()
    assert said.endswith("the dead man of e-1 waits")
    claims.claim(ledger.folder, "e-1", claims.CONFIRMED)
    assert "from now on" in move()[0]


def test_a_process_with_a_file_open_there_keeps_them_too(machine):
    with_records(machine.older)
    holding = subprocess.Popen(["sleep", "600"], cwd=machine.older)
    try:
        if os.path.isdir("/proc/self/fd"):
            (said,) = move(users=holders)
            assert f"process {holding.pid} has {machine.older} open" in said
        assert location.state_path() == str(machine.older)
    finally:
        holding.kill()
        holding.wait()
    assert "from now on" in move(users=holders)[0]


def test_a_folder_object_that_lives_through_the_move_follows_the_records(machine):
    with_records(machine.older)
    folder = own_folder()
    key = folder.key()
    move()
    with folder.root():
        assert folder.path == str(machine.system)
    assert StateFolder.open(folder.path).key() == key


@pytest.mark.guarantee("G-ONE-TRUTH")
def test_records_in_two_places_are_refused_and_nothing_is_merged(machine):
    with_records(machine.system)
    with_records(machine.older)
    (machine.older / "log/000001.jsonl").write_bytes(b"other\n" * 100)
    with pytest.raises(StateInTwoPlaces) as caught:
        own_folder()
    assert caught.value.exit_code == 7
    assert f"mv {machine.older} {machine.older}.kept" in caught.value.hint
    os.rename(machine.older, f"{machine.older}.kept")
    assert own_folder().path == str(machine.system)


def test_a_copy_of_the_same_records_from_a_backup_is_no_second_place(machine):
    with_records(machine.older)
    shutil.copytree(machine.older, machine.older.with_name("backup"))
    move()
    with_records(machine.system)
    machine.older.unlink()
    os.rename(machine.older.with_name("backup"), machine.older)
    assert own_folder().path == str(machine.system)
    with_records(machine.older)
    with pytest.raises(StateInTwoPlaces):
        own_folder()


def test_an_empty_older_folder_is_no_second_place(machine):
    with_records(machine.system)
    StateFolder.open(str(machine.older)).key()
    assert own_folder().path == str(machine.system)


@pytest.mark.guarantee("G-ONE-TRUTH")
@pytest.mark.parametrize("how", ["rename", "copy"])
def test_killed_before_any_step_there_is_one_truth_and_the_next_move_ends_it(tmp_path, how):
    done = subprocess.run(
        [sys.executable, "-X", "utf8", str(PROBE), str(tmp_path), how], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["faults"] == []
    assert told["steps"] > (20 if how == "rename" else 60)


def one_side(old, new, **more):
    """rename(2) between two file systems."""
    if ("/root/" in str(old)) != ("/root/" in str(new)):
        raise OSError(18, "Invalid cross-device link")
    REAL_RENAME(old, new, **more)


REAL_RENAME = os.rename


def test_a_copy_that_fails_puts_everything_back(machine, monkeypatch):
    before = with_records(machine.older).audit(10)
    monkeypatch.setattr(moving.os, "rename", one_side)

    def full(source, target):
        raise StateUnwritable(f"no space left for {target}")

    with monkeypatch.context() as broken:
        broken.setattr(moving, "_copy_file", full)
        (said,) = move()
    assert "no space left" in said
    assert location.state_path() == str(machine.older)
    assert ledger_in(machine.older).audit(10)[: len(before)] == before
    assert os.listdir(machine.lib) == []
    assert sorted(os.listdir(machine.older.parent)) == ["opsagent"]
    assert "from now on" in move()[0]
    assert ledger_in(machine.system).audit(10)[: len(before)] == before


def test_a_copy_that_reads_back_otherwise_does_not_count(machine, monkeypatch):
    with_records(machine.older)
    monkeypatch.setattr(moving.os, "rename", one_side)
    monkeypatch.setattr(moving, "write_all", lambda fd, data: os.write(fd, data[:-1]))
    (said,) = move()
    assert "is not what was written" in said
    assert location.state_path() == str(machine.older)
    assert ledger_in(machine.older).verify().ok


def test_a_copy_needs_its_room_before_anything_is_touched(machine, monkeypatch):
    ledger = with_records(machine.older)
    before = ledger.audit(10)
    real, real_space = os.stat, os.statvfs

    def elsewhere(path, **more):
        found = real(path, **more)
        return os.stat_result((*found[:2], found.st_dev + 1, *found[3:])) if path == str(machine.lib) else found

    monkeypatch.setattr(moving.os, "stat", elsewhere)
    full = SimpleNamespace(f_bavail=1, f_frsize=4096)
    monkeypatch.setattr(moving.os, "statvfs", lambda path: full if path == str(machine.lib) else real_space(path))
    (said,) = move()
    assert "has no room for" in said
    assert location.state_path() == str(machine.older)
    assert ledger.audit(10) == before
