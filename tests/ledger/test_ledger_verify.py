"""What verify finds: each way to harm a log, and the first entry that it names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from guard.ledger.log import Log
from guard.ledger.segments import HEAD_SLOT_BYTES, lines_from
from guard.ledger.verify import verify
from tests.ledger.world import FakeLiveness, FixedClock, segment, state_folder

COUNT = 12
PER_SEGMENT = 4


@pytest.fixture
def folder(tmp_path):
    """Twelve entries in three segments, all durable."""
    folder = state_folder(tmp_path)
    log = Log(folder, clock=FixedClock(), liveness=FakeLiveness(), segment_bytes=900)
    for number in range(1, COUNT + 1):
        log.append([{"kind": "notice", "text": f"n{number:03d}"}], durable=True)
    assert [line.segment for line in lines_from(folder)] == [1] * 4 + [2] * 4 + [3] * 4
    assert verify(folder).ok
    return folder


def lines_in(folder, number):
    with open(segment(folder.path, number), "rb") as file:
        return file.read().splitlines(keepends=True)


def put(folder, number, lines):
    with open(segment(folder.path, number), "wb") as file:
        file.write(b"".join(lines))


def found(folder):
    report = verify(folder)
    assert not report.ok
    assert report.problems_total >= len(report.problems) > 0
    return report.first_bad_seq, {problem.code for problem in report.problems}


@pytest.mark.parametrize("seq", range(1, COUNT + 1))
@pytest.mark.guarantee("G-CHAIN")
def test_flipped_byte_in_a_value_is_found_at_its_entry(folder, seq):
    number, at = divmod(seq - 1, PER_SEGMENT)
    lines = lines_in(folder, number + 1)
    lines[at] = lines[at].replace(b'"n', b'"m')
    put(folder, number + 1, lines)
    assert found(folder) == (seq, {"changed"})


@pytest.mark.parametrize("seq", [1, 4, 5, 11, 12])
def test_any_flipped_bit_of_a_line_is_found(folder, seq):
    number, at = divmod(seq - 1, PER_SEGMENT)
    lines = lines_in(folder, number + 1)
    for offset in range(0, len(lines[at]), 7):
        harmed = bytearray(lines[at])
        harmed[offset] ^= 1 << offset % 8
        put(folder, number + 1, [*lines[:at], bytes(harmed), *lines[at + 1 :]])
        report = verify(folder)
        assert not report.ok, offset
        # A changed `prev` could as well be a changed entry before it: then the earlier one is named.
        within_prev = b'"prev"' in lines[at][:offset] and b'"kind"' not in lines[at][:offset]
        assert report.first_bad_seq in ((seq - 1, seq) if within_prev else (seq,)), (offset, report.problems)


@pytest.mark.parametrize("seq", range(1, COUNT))
@pytest.mark.guarantee("G-CHAIN")
def test_removed_line_is_found_at_its_number(folder, seq):
    number, at = divmod(seq - 1, PER_SEGMENT)
    lines = lines_in(folder, number + 1)
    put(folder, number + 1, lines[:at] + lines[at + 1 :])
    first, codes = found(folder)
    assert first == seq
    assert "missing" in codes


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.guarantee("G-CHAIN")
def test_swapped_lines_are_found(folder, at):
    lines = lines_in(folder, 2)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    put(folder, 2, lines)
    first, codes = found(folder)
    assert first == PER_SEGMENT + at + 1
    assert "out-of-order" in codes


def test_doubled_line_is_found(folder):
    lines = lines_in(folder, 2)
    put(folder, 2, [lines[0], *lines])
    assert found(folder) == (6, {"out-of-order"})


def test_inserted_line_is_found(folder):
    lines = lines_in(folder, 2)
    put(folder, 2, [*lines[:2], lines[2].replace(b'"n', b'"m'), *lines[2:]])
    assert found(folder)[0] == 8  # which of the two entries 7 is the inserted one, no chain can tell


@pytest.mark.parametrize("lost", [1, 2, 4])
@pytest.mark.guarantee("G-CHAIN")
def test_tail_cut_at_a_line_is_found_by_the_head(folder, lost):
    put(folder, 3, lines_in(folder, 3)[:-lost])
    assert found(folder) == (COUNT - lost + 1, {"cut"})


@pytest.mark.guarantee("G-CHAIN")
def test_tail_cut_within_a_line_is_found_by_the_head(folder):
    os.truncate(segment(folder.path, 3), os.path.getsize(segment(folder.path, 3)) - 20)
    assert found(folder) == (COUNT, {"cut"})


@pytest.mark.parametrize(("number", "first"), [(1, 1), (2, 5), (3, 9)])
def test_missing_segment_is_found(folder, number, first):
    os.unlink(segment(folder.path, number))
    assert found(folder)[0] == first
    assert ("segment-missing" in found(folder)[1]) == (number != 3)


def test_removed_log_with_its_head_in_place_is_found(folder):
    for number in (1, 2, 3):
        os.unlink(segment(folder.path, number))
    assert found(folder) == (1, {"cut"})


def test_line_end_lost_between_segments_is_found(folder):
    os.truncate(segment(folder.path, 2), os.path.getsize(segment(folder.path, 2)) - 1)
    first, codes = found(folder)
    assert first == 8
    assert {"unreadable", "missing"} <= codes


def test_changed_or_missing_head_is_found(folder):
    with open(folder.path + "/log/head", "r+b") as file:
        before = file.read()
        file.seek(0)
        file.write(before.replace(b'"seq":12', b'"seq":11'))
    assert verify(folder).head_seq == 11  # the other slot: a slot that was changed does not count
    assert found(folder) == (COUNT, {"head-unreadable"})
    with open(folder.path + "/log/head", "r+b") as file:
        file.write(b"x" * 2 * HEAD_SLOT_BYTES)
    assert found(folder) == (COUNT, {"head-unreadable"})
    os.unlink(folder.path + "/log/head")
    assert found(folder) == (COUNT, {"head-missing"})


def test_old_head_put_back_is_no_damage(folder):
    """A head behind the log is normal: it is what a crash between the log's sync and the head's write leaves."""
    with open(folder.path + "/log/head", "rb") as file:
        old = file.read()
    log = Log(folder, clock=FixedClock(), liveness=FakeLiveness())
    log.append([{"kind": "notice", "text": "more"}], durable=True)
    with open(folder.path + "/log/head", "wb") as file:
        file.write(old)
    assert verify(folder).ok
    log.append([{"kind": "notice", "text": "more"}], durable=True)
    assert (verify(folder).ok, verify(folder).entries) == (True, COUNT + 2)


def test_head_of_another_log_is_found(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    strange = state_folder(other)
    log = Log(strange, clock=FixedClock(utc_ms=5), liveness=FakeLiveness(), segment_bytes=900)
    for number in range(3):
        log.append([{"kind": "notice", "text": str(number)}], durable=True)
    os.replace(strange.path + "/log/head", folder.path + "/log/head")
    first, codes = found(folder)
    assert first <= 3
    assert codes <= {"head-wrong", "changed"}


def test_rewritten_chain_is_not_claimed_to_be_found_but_its_head_is(folder):
    """Everything from one entry on written anew by somebody with our uid: only the untouched head tells."""
    lines = lines_in(folder, 3)
    put(folder, 3, lines[:2])
    log = Log(folder, clock=FixedClock(utc_ms=7), liveness=FakeLiveness())
    os.rename(folder.path + "/log/head", folder.path + "/log/kept")
    log.append([{"kind": "notice", "text": "forged"}], durable=True)
    os.replace(folder.path + "/log/kept", folder.path + "/log/head")
    first, codes = found(folder)
    assert first >= 11
    assert codes <= {"changed", "head-wrong", "head-lost"} and codes != {"head-lost"}


def test_many_problems_are_counted_and_the_first_hundred_listed(folder):
    lines = lines_in(folder, 1)
    put(folder, 1, [b"garbage\n"] * 150 + lines)
    report = verify(folder)
    assert len(report.problems) == 100
    assert report.problems_total > 150
    assert report.first_bad_seq == 1


def test_endless_line_is_read_in_bounded_pieces(folder):
    with open(segment(folder.path, 3), "ab") as file:
        file.truncate(os.path.getsize(segment(folder.path, 3)) + (64 << 20))
        file.seek(0, os.SEEK_END)
        file.write(b"\n")
    report = verify(folder)
    assert report.entries == COUNT
    assert {problem.code for problem in report.problems} == {"unreadable"}


def test_verify_changes_nothing(folder):
    def contents():
        return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in Path(folder.path, "log").iterdir()}

    os.truncate(segment(folder.path, 3), 30)
    before = contents()
    verify(folder)
    assert contents() == before
