"""The log: whole entries or none, one chain, nothing lost beside others or in a crash."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from guard.errors import StateBusy, StateDamaged, StateError, StateUnsafe, StateUnwritable
from guard.ledger import log as log_module
from guard.ledger.carried import entries_of
from guard.ledger.formats import GENESIS, MAX_LINE_BYTES, sha256_of
from guard.ledger.log import Log
from guard.ledger.segments import HEAD_SLOT_BYTES, lines_from, read_head
from guard.ledger.stop import LOST, stop_of
from guard.ledger.verify import verify
from tests.ledger.world import FakeLiveness, FixedClock, segment, state_folder

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture
def folder(tmp_path):
    return state_folder(tmp_path)


def log_of(folder, **more):
    return Log(folder, clock=FixedClock(), liveness=FakeLiveness(), **more)


def notes(*texts):
    return [{"kind": "notice", "text": text} for text in texts]


def entries(folder):
    return list(entries_of(lines_from(folder)))


def texts(folder):
    return [entry.get("text") or entry.get("reason") or entry["kind"] for entry in entries(folder)]


def bytes_of(folder, number=1):
    with open(segment(folder.path, number), "rb") as file:
        return file.read()


def head_of(folder):
    with folder.folder("log") as log_fd:
        return read_head(folder, log_fd)


def test_each_line_names_the_hash_of_the_line_before(folder):
    log_of(folder).append(notes("one", "two"), durable=True)
    log_of(folder).append(notes("three"), durable=False)
    lines = bytes_of(folder).splitlines(keepends=True)
    assert [json.loads(line)["prev"] for line in lines] == [GENESIS, sha256_of(lines[0]), sha256_of(lines[1])]
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3]


def test_empty_log_has_no_entries_and_verifies(folder):
    assert entries(folder) == []
    assert verify(folder).ok


def test_rotation_keeps_the_chain_and_old_segments_unchanged(folder):
    log = log_of(folder, segment_bytes=500)
    for number in range(12):
        log.append(notes(str(number)), durable=number % 2 == 0)
    assert sorted(name for name in os.listdir(folder.path + "/log") if name.endswith("jsonl"))[:2] == [
        "000001.jsonl",
        "000002.jsonl",
    ]
    report = verify(folder)
    assert (report.ok, report.entries, report.segments) == (True, 12, 6)
    assert texts(folder) == [str(number) for number in range(12)]


def test_head_moves_only_with_what_is_durable(folder):
    log = log_of(folder)
    log.append(notes("first"), durable=False)
    assert head_of(folder).place.seq == 1
    log.append(notes("waits"), durable=False)
    assert head_of(folder).place.seq == 1
    log.append(notes("durable"), durable=True)
    assert head_of(folder).place.seq == 3
    assert verify(folder).ok


@pytest.mark.parametrize("segment_bytes", [300, 1000, 1 << 24])
def test_head_never_names_what_a_power_cut_could_take_back(folder, monkeypatch, segment_bytes):
    """Whatever was waited for: when the head is written, every byte up to it has been synced, in every segment."""
    synced: dict[int, int] = {}
    real_sync, real_head = os.fsync, log_module.write_head
    checked = []

    def sync(fd):
        real_sync(fd)
        synced[os.fstat(fd).st_ino] = os.fstat(fd).st_size

    def head(folder, log_fd, place, head):
        if not place.seq:
            assert not os.listdir(log_fd), "the head is there before the first entry"
            return real_head(folder, log_fd, place, head)
        for number in range(1, place.segment + 1):
            info = os.stat(segment(folder.path, number))
            assert synced.get(info.st_ino, 0) >= (place.end if number == place.segment else info.st_size)
        assert os.fstat(log_fd).st_ino in synced  # the names of the segments too
        checked.append(place.seq)
        return real_head(folder, log_fd, place, head)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(log_module, "_sync_data", sync)
    monkeypatch.setattr(log_module, "write_head", head)
    log = log_of(folder, segment_bytes=segment_bytes)
    for number, durable in enumerate([False, False, True, False, False, False, True, True, False, True]):
        log.append(notes(str(number)), durable=durable)
    assert checked == [1, 3, 7, 8, 10]


def test_head_survives_a_torn_write_of_one_slot(folder):
    """What a crash can leave: the slot that was being written is torn, and what it was to name is in the log."""
    log = log_of(folder)
    for number in range(4):
        log.append(notes(str(number)), durable=True)
        with open(folder.path + "/log/head", "r+b") as file:
            file.seek(head_of(folder).slot * HEAD_SLOT_BYTES + 100)
            file.write(b"garbage")
        assert 0 <= head_of(folder).place.seq < entries(folder)[-1]["seq"]
        assert [problem.code for problem in verify(folder).problems] == ["head-unreadable"]
        assert stop_of(folder.path) == ""
    log.append(notes("4"), durable=True)
    assert verify(folder).ok and stop_of(folder.path) == ""
    assert [text for text in texts(folder) if len(text) == 1] == ["0", "1", "2", "3", "4"]
    assert [entry.get("code") for entry in entries(folder)].count("head-torn") == 4


def _without(head):
    head.unlink()


def _emptied(head):
    head.write_bytes(b"")


def _garbage(head):
    head.write_bytes(b"x" * 2 * HEAD_SLOT_BYTES)


def _newer_slot_ruined_and_its_entry_cut(head):
    data = head.read_bytes()
    newer = max((0, HEAD_SLOT_BYTES), key=lambda at: int(data[at:].split(b'"seq":')[1].split(b",")[0]))
    head.write_bytes(data[:newer] + b"x" * 100 + data[newer + 100 :])
    lines = (head.parent / "000001.jsonl").read_bytes().splitlines(keepends=True)
    (head.parent / "000001.jsonl").write_bytes(b"".join(lines[:-1]))


@pytest.mark.guarantee("G-FREEZE")
@pytest.mark.parametrize("ruin", [_without, _emptied, _garbage, _newer_slot_ruined_and_its_entry_cut])
def test_lost_head_stops_changes_and_is_told_until_a_person_has_looked(folder, ruin):
    log = log_of(folder)
    log.append(notes("one"), durable=True)
    log.append(notes("two"), durable=True)
    ruin(Path(folder.path, "log", "head"))
    before = len(entries(folder))
    assert not verify(folder).ok
    assert stop_of(folder.path) == LOST
    log.append(notes("three"), durable=True)
    assert [entry.get("code") for entry in entries(folder)][before:] == ["head-rebuilt", "head-lost", None]
    assert stop_of(folder.path) == LOST
    report = verify(folder)
    assert [(problem.code, problem.seq) for problem in report.problems] == [("head-lost", before + 2)]
    log.append([{"kind": "thawed"}], durable=True)
    assert verify(folder).ok and stop_of(folder.path) == ""


def _newer_slot_ruined(head):
    data = head.read_bytes()
    head.write_bytes(data[:HEAD_SLOT_BYTES] + b"x" * 100 + data[HEAD_SLOT_BYTES + 100 :])


@pytest.mark.parametrize("ruin", [_without, _emptied, _garbage, _newer_slot_ruined])
def test_empty_log_with_a_head_that_cannot_be_read_was_cut(folder, ruin):
    log = log_of(folder)
    log.append(notes("one"), durable=True)
    ruin(Path(folder.path, "log", "head"))
    os.truncate(segment(folder.path), 0)
    assert "cannot be read" in stop_of(folder.path)
    with pytest.raises(StateDamaged, match="its head cannot be read"):
        log.append(notes("two"), durable=True)
    assert not verify(folder).ok


@pytest.mark.parametrize("step", ["nothing", "an empty head", "a head", "the first entry"])
def test_crash_at_the_first_entry_is_no_lost_head(folder, monkeypatch, step):
    log = log_of(folder)
    if step == "an empty head":
        with folder.folder("log", create=True) as log_fd:
            os.close(folder.open_file("head", os.O_CREAT | os.O_WRONLY, dir_fd=log_fd))
    elif step != "nothing":
        at = {"a head": "open_segment", "the first entry": "write_head"}[step]
        real = getattr(log_module, at)
        calls = []

        def once(*args):
            calls.append(args)
            if at == "write_head" and len(calls) == 1:
                return real(*args)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(log_module, at, once)
            with pytest.raises(KeyboardInterrupt):
                log.append(notes("one"), durable=True)
    assert verify(folder).ok and stop_of(folder.path) == ""
    log.append(notes("two"), durable=True)
    assert verify(folder).ok and stop_of(folder.path) == ""
    assert not [entry for entry in entries(folder) if "code" in entry]


def test_long_way_behind_the_head_is_made_durable_by_the_next_append(folder, monkeypatch):
    monkeypatch.setattr(log_module, "WAITING_BYTES", 1000)
    log = log_of(folder)
    for number in range(8):
        log.append(notes(str(number)), durable=False)
    assert head_of(folder).place.seq == 6
    assert verify(folder).ok


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_torn_last_line_is_set_aside_and_recorded(folder, cut):
    log_of(folder).append(notes("one"), durable=True)
    log_of(folder).append(notes("two" * 100), durable=False)
    data = bytes_of(folder)
    os.truncate(segment(folder.path), len(data) - cut)
    report = verify(folder)
    assert report.ok and report.torn_bytes > 0
    log_of(folder).append(notes("three"), durable=True)
    assert texts(folder) == ["one", "torn", "three"]
    torn = entries(folder)[1]
    start = data.index(b"\n") + 1
    assert (torn["segment"], torn["offset"], torn["size_bytes"]) == (1, start, len(data) - cut - start)
    with open(os.path.join(folder.path, torn["file"]), "rb") as file:
        kept = file.read()
    assert kept == data[start:-cut]
    assert sha256_of(kept) == torn["sha256"]
    assert verify(folder).ok


def test_blocks_that_never_reached_the_disk_are_set_aside(folder):
    log_of(folder).append(notes("one"), durable=True)
    whole = bytes_of(folder)
    log_of(folder).append(notes("two", "three"), durable=False)
    data = bytearray(bytes_of(folder))
    data[len(whole) : len(whole) + 40] = bytes(40)
    with open(segment(folder.path), "wb") as file:
        file.write(data)
    log_of(folder).append(notes("four"), durable=True)
    assert texts(folder) == ["one", "torn", "four"]
    assert entries(folder)[1]["size_bytes"] == len(data) - len(whole)
    assert verify(folder).ok


def test_segment_created_right_before_a_crash_is_used(folder):
    log = log_of(folder)
    log.append(notes("one"), durable=True)
    with open(segment(folder.path, 2), "wb"):
        os.chmod(segment(folder.path, 2), 0o600)
    log.append(notes("two"), durable=True)
    os.unlink(folder.path + "/log/head")
    with open(segment(folder.path, 3), "wb"):
        os.chmod(segment(folder.path, 3), 0o600)
    log.append(notes("three"), durable=True)
    assert texts(folder) == ["one", "two", "the head was missing or unreadable", LOST, "three"]
    assert [problem.code for problem in verify(folder).problems] == ["head-lost"]


def _flip(path):
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        data[data.index(b"two")] ^= 1
        file.seek(0)
        file.write(data)


def _cut(path):
    os.truncate(path, os.path.getsize(path) - 5)


def _remove(path):
    os.unlink(path)


@pytest.mark.parametrize("harm", [_flip, _cut, _remove])
def test_damage_below_the_head_stops_the_writer_and_hides_nothing(folder, harm):
    log_of(folder).append(notes("one", "two"), durable=True)
    harm(segment(folder.path))
    for _ in range(2):
        with pytest.raises(StateDamaged) as caught:
            log_of(folder).append(notes("three"), durable=True)
    assert "audit verify" in caught.value.hint
    assert not verify(folder).ok


def test_damage_between_head_and_end_stops_the_writer(folder):
    log_of(folder).append(notes("one"), durable=True)
    log_of(folder).append(notes("two"), durable=False)
    log_of(folder).append(notes("three"), durable=False)
    _flip(segment(folder.path))
    with pytest.raises(StateDamaged, match="not chained"):
        log_of(folder).append(notes("four"), durable=True)


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "notice", "value": float("nan")},
        {"kind": "notice", "value": float("inf")},
        {"text": "no kind"},
        {"kind": "notice", "seq": 7},
        {"kind": "notice", "prev": "0" * 64},
        {"kind": "notice", "text": "x" * MAX_LINE_BYTES},
        {"kind": "notice", "value": json.loads("[" * 100 + "]" * 100)},
    ],
)
def test_entry_that_cannot_be_written_leaves_the_log_as_it_was(folder, entry):
    log = log_of(folder)
    log.append(notes("one"), durable=True)
    before = bytes_of(folder)
    with pytest.raises(ValueError):
        log.append([*notes("two"), entry], durable=True)
    assert bytes_of(folder) == before
    log.append(notes("three"), durable=True)
    assert texts(folder) == ["one", "three"]


@pytest.mark.parametrize("text", ["a\nb\r", "\u2028\u2029", "\x00\x1b[31m", "中文", "\udcff", '"\\'])
def test_any_text_comes_back_as_it_was_from_one_ascii_line(folder, text):
    log_of(folder).append(notes(text), durable=True)
    assert texts(folder) == [text]
    assert bytes_of(folder).isascii() and bytes_of(folder).count(b"\n") == 1


def test_held_lock_is_waited_for_only_so_long(folder):
    log = log_of(folder)
    log.append(notes("one"), durable=True)
    with open(folder.path + "/lock", "r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(StateBusy):
            log.append(notes("two"), durable=True, wait_s=0.05)
        release = threading.Timer(0.05, lambda: fcntl.flock(other, fcntl.LOCK_UN))
        release.start()
        log.append(notes("three"), durable=True, wait_s=30)
        release.join()
    assert texts(folder) == ["one", "three"]


def test_lock_that_was_removed_while_held_does_not_let_two_in(folder):
    log = log_of(folder)
    log.append(notes("one"), durable=True)
    with open(folder.path + "/lock", "r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        os.unlink(folder.path + "/lock")
        with log.writer() as writer, pytest.raises(StateBusy), log.writer(0.02):
            writer.append(notes("never"), durable=True)
    assert texts(folder) == ["one"]


def test_symlinked_segment_is_refused(folder, tmp_path):
    log_of(folder).append(notes("one"), durable=True)
    os.rename(segment(folder.path), tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", segment(folder.path))
    with pytest.raises(StateUnsafe):
        log_of(folder).append(notes("two"), durable=True)
    with pytest.raises(StateUnsafe):
        verify(folder)
    with pytest.raises(StateUnsafe):
        entries(folder)


@pytest.fixture
def file_size_limit():
    """The kernel stops every file at so many bytes, in the middle of a write: EFBIG, without a mount."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("torn", [b"", b'{"half'])
def test_write_that_stops_half_way_leaves_the_log_as_it_was(folder, file_size_limit, torn):
    log = log_of(folder)
    log.append(notes("one" * 300), durable=True)
    with open(segment(folder.path), "ab") as file:
        file.write(torn)
    before = bytes_of(folder)
    file_size_limit(len(before) + 1000)
    with pytest.raises(StateUnwritable):
        log.append(notes("two" * 1000), durable=True)
    assert bytes_of(folder) == before
    file_size_limit(resource.RLIM_INFINITY)
    log.append(notes("three"), durable=True)
    assert texts(folder) == ["one" * 300, *(["torn"] if torn else []), "three"]
    assert verify(folder).ok


def test_failed_first_write_of_a_new_segment_leaves_no_segment(folder, file_size_limit):
    log = log_of(folder, segment_bytes=100)
    log.append(notes("one"), durable=True)
    file_size_limit(600)
    with pytest.raises(StateUnwritable):
        log.append(notes("two" * 1000), durable=True)
    assert not os.path.exists(segment(folder.path, 2))
    file_size_limit(resource.RLIM_INFINITY)
    log.append(notes("three"), durable=True)
    assert texts(folder) == ["one", "three"]


def test_sync_that_fails_takes_the_entries_back(folder, monkeypatch):
    log = log_of(folder)
    log.append(notes("one"), durable=True)

    def failing(fd):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(log_module, "_sync_data", failing)
        with pytest.raises(StateUnwritable, match="Input/output error"):
            log.append(notes("two"), durable=True)
    log.append(notes("three"), durable=True)
    assert texts(folder) == ["one", "three"]


def test_reserve_is_kept_where_there_is_space(folder, monkeypatch):
    monkeypatch.setattr(log_module, "RESERVE_NEEDS_FREE_BYTES", 0)
    log_of(folder).append(notes("one"), durable=True)
    reserve = os.stat(folder.path + "/log/reserve")
    assert reserve.st_size == log_module.RESERVE_BYTES
    assert reserve.st_blocks * 512 >= log_module.RESERVE_BYTES
    assert verify(folder).ok


def test_reserve_is_not_made_on_a_nearly_full_disk(folder, monkeypatch):
    monkeypatch.setattr(log_module, "RESERVE_NEEDS_FREE_BYTES", 1 << 62)
    log_of(folder).append(notes("one"), durable=True)
    assert not os.path.exists(folder.path + "/log/reserve")


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from guard.ledger.log import Log
from guard.ledger.state import StateFolder
from tests.ledger.world import FakeLiveness, FixedClock

log = Log(StateFolder.open(sys.argv[2]), clock=FixedClock(), liveness=FakeLiveness(), segment_bytes=4000)
for number in range(int(sys.argv[4])):
    log.append([{"kind": "notice", "text": f"{sys.argv[3]}:{number}"}], durable=number % 3 == 0, wait_s=60)
    print(number, flush=True)
"""


def writer_process(folder, name, count):
    return subprocess.Popen(
        [sys.executable, "-I", "-c", WRITER, ROOT, folder.path, name, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_eight_writers_lose_nothing_and_keep_one_chain(folder):
    writers = [writer_process(folder, str(number), 12) for number in range(8)]
    assert [(writer.communicate(timeout=120)[1], writer.returncode) for writer in writers] == [("", 0)] * 8
    report = verify(folder)
    assert (report.ok, report.entries) == (True, 96)
    expected = sorted(f"{name}:{number}" for name in range(8) for number in range(12))
    assert sorted(texts(folder)) == expected


def test_killed_writers_lose_nothing_that_they_reported(folder):
    reported = []
    for attempt in range(6):
        writer = writer_process(folder, str(attempt), 100_000)
        for _ in range(3 + 7 * attempt):
            line = writer.stdout.readline()
            reported.append(f"{attempt}:{line.strip()}")
        writer.kill()
        writer.communicate(timeout=60)
    log_of(folder).append(notes("after"), durable=True)
    assert verify(folder).ok
    found = texts(folder)
    assert set(reported) <= set(found)
    assert len(found) == len(set(found)) or "torn" in found


def test_reader_beside_a_writer_sees_whole_entries_in_order(folder):
    writer = writer_process(folder, "w", 60)
    seen = 0
    while writer.poll() is None:
        found = [entry["seq"] for entry in entries(folder)]
        assert found == list(range(1, len(found) + 1))
        assert len(found) >= seen
        seen = len(found)
        assert verify(folder).ok
    assert writer.communicate()[1] == ""
    assert len(entries(folder)) == 60


def test_state_error_is_what_every_refusal_is(folder):
    assert issubclass(StateBusy, StateError) and issubclass(StateDamaged, StateError)
    assert {StateBusy.exit_code, StateDamaged.exit_code, StateUnwritable.exit_code, StateUnsafe.exit_code} == {7}
