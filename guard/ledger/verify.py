"""Reads the whole log and says what in it is not what was written. Changes nothing.

It finds accidents and partial edits. It cannot find a chain that somebody with the same uid rewrote from
some entry to the end together with the head.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guard.errors import StateBusy, StateDamaged, StateUnwritable
from guard.ledger.carried import CHECKPOINT, record_of
from guard.ledger.formats import GENESIS, Entry, Malformed, decoded_entry, sha256_of
from guard.ledger.log import HEAD_LOST
from guard.ledger.segments import LOG_FOLDER, Line, lines_of, open_segment, read_head, segment_numbers
from guard.ledger.state import state_error_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from guard.ledger.segments import Head
    from guard.ledger.state import StateFolder

LOCK_WAIT_S = 5.0

PROBLEM_LIMIT = 100
"""Further problems are counted, not listed."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One place where the log is not what was written."""

    code: str
    """log-missing · changed · unreadable · missing · out-of-order · segment-missing · cut · head-unreadable ·
    head-missing · head-wrong · head-lost"""
    seq: int
    """The first entry that it concerns; 0 when no number can be told."""
    segment: int
    """0 for the head."""
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What `verify` found."""

    entries: int
    segments: int
    last_seq: int
    head_seq: int
    """0 when the head says nothing."""
    torn_bytes: int
    """Bytes of an incomplete last line: normal after a crash or beside a writer; the next append records it."""
    problems: tuple[Problem, ...]
    """In log order, the first 100."""
    problems_total: int
    first_seq: int = 0
    """The first entry that is there; 1 unless older ones went behind a checkpoint, 0 in an empty log."""
    compared: int = 0
    """Entries that were held against heads kept elsewhere."""

    @property
    def ok(self) -> bool:
        """Nothing was found."""
        return self.problems_total == 0

    @property
    def first_bad_seq(self) -> int | None:
        """The first entry that cannot be trusted; None when all can."""
        return min((problem.seq for problem in self.problems), default=None)


def verify(folder: StateFolder, sent: Mapping[int, str] | None = None) -> VerifyReport:
    """Checks every line, the chain across segments, and the head.

    Args:
        sent: heads that were kept elsewhere: number of an entry → hash of its line.

    Takes no lock unless it finds something: then it looks again with writers kept out, where that is possible.

    Raises:
        StateError: the folder or a file in it cannot be read or is unsafe.
    """
    report = _verified(folder, sent or {})
    if not report.ok:
        with contextlib.suppress(StateBusy, StateUnwritable, StateDamaged), folder.locked(LOCK_WAIT_S):
            report = _verified(folder, sent or {})
    return report


def _verified(folder: StateFolder, sent: Mapping[int, str]) -> VerifyReport:
    try:
        with folder.folder(LOG_FOLDER) as log_fd:
            # The head first: it only ever names what is in the log already, however fast others append meanwhile.
            head = read_head(folder, log_fd)
            return _Walk(head, sent).over(folder, log_fd)
    except FileNotFoundError:
        return _without_log(folder, sent)
    except OSError as error:
        raise state_error_of(error, f"the log in {folder.path}") from error


def _without_log(folder: StateFolder, sent: Mapping[int, str]) -> VerifyReport:
    """No log at all: the beginning in a new folder, damage in one that was used (a first record makes the key)."""
    with folder.root() as root:
        used = "key" in os.listdir(root)
    if not used and not sent:
        return VerifyReport(0, 0, 0, 0, 0, (), 0)
    gone = Problem("log-missing", 1, 0, 0, "there is no log here, though this state folder was used")
    return VerifyReport(0, 0, 0, 0, 0, (gone,), 1)


def anchors_of(checkpoint: Entry) -> set[tuple[int, str]]:
    """Last numbers and hashes of the segments that a checkpoint let go; what is not of that form counts for nothing."""
    rows = checkpoint.get("segments")
    return {
        (row[2], row[3])
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, list) and len(row) == 4 and type(row[2]) is int and isinstance(row[3], str)
    }


class _Walk:
    """One pass over the log; what came before decides what must come next."""

    def __init__(self, head: Head, sent: Mapping[int, str]) -> None:
        self._head = head
        self._sent = sent
        self._compared = 0
        self._head_seen = head.place is None or head.place.seq == 0
        self._lost: tuple[int, Line] | None = None
        """Number and line of the stop that a lost head made, until a person ended it."""
        self._problems: list[Problem] = []
        self._total = 0
        self._entries = 0
        self._last_seq = 0
        self._next_seq = 1
        self._prev = GENESIS
        self._prev_at = (0, 0)
        self._torn = 0
        self._first: tuple[int, str] | None = None
        """Number and `prev` of the first entry."""
        self._anchors: set[tuple[int, str]] = set()
        """Number and hash of last entries of segments that checkpoints let go."""

    def over(self, folder: StateFolder, log_fd: int) -> VerifyReport:
        numbers = segment_numbers(log_fd)
        expected = numbers[0] if numbers else 1
        for number in numbers:
            if number != expected:
                names = f"segment {expected}" if number == expected + 1 else f"segments {expected} to {number - 1}"
                self._found("segment-missing", self._next_seq, expected, 0, f"{names} not there")
            expected = number + 1
            fd = open_segment(folder, log_fd, number)
            try:
                end = 0
                for line in lines_of(fd, number):
                    self._line(line)
                    end = line.end
                self._torn = os.fstat(fd).st_size - end
            finally:
                os.close(fd)
            if self._torn > 0 and number != numbers[-1]:
                self._found("unreadable", self._next_seq, number, end, f"{self._torn} bytes without a line end")
        self._judge_start(numbers[0] if numbers else 1)
        self._judge_head(bool(numbers))
        if self._lost is not None:
            seq, line = self._lost
            text = "the head was lost before this, and what it named may be gone; when you have looked: opsx thaw"
            self._found("head-lost", seq, line.segment, line.start, text)
        if (newest := max(self._sent, default=0)) > self._last_seq:
            text = f"entry {newest} was kept elsewhere; the log ends at {self._last_seq}"
            self._found("cut", self._last_seq + 1, numbers[-1] if numbers else 0, 0, text)
        place = self._head.place
        return VerifyReport(
            entries=self._entries,
            segments=len(numbers),
            last_seq=self._last_seq,
            head_seq=place.seq if place else 0,
            torn_bytes=max(0, self._torn),
            problems=tuple(self._problems),
            problems_total=self._total,
            first_seq=self._first[0] if self._first else 0,
            compared=self._compared,
        )

    def _line(self, line: Line) -> None:
        digest = sha256_of(line.raw)
        place = self._head.place
        if place and (line.segment, line.start) == (place.segment, place.start):
            self._head_seen = True
            if digest != place.sha256:
                self._found("changed", place.seq, line.segment, line.start, "not the entry that the head names")
        try:
            entry = decoded_entry(line.raw)
        except Malformed as error:
            self._found("unreadable", self._next_seq, line.segment, line.start, str(error))
            self._step(self._next_seq, digest, line)
            return
        self._entries += 1
        seq = entry["seq"]
        if self._first is None and self._next_seq == 1:
            self._first = (seq, entry["prev"])
            if seq > 1:
                self._next_seq, self._prev = seq, entry["prev"]  # `_judge_start` says whether it may begin here
        if (known := self._sent.get(seq)) is not None:
            self._compared += 1
            if known != digest:
                self._found("changed", seq, line.segment, line.start, "not the entry whose hash was kept elsewhere")
        record = record_of(entry)
        if record["kind"] == "frozen" and record.get("code") == HEAD_LOST:
            self._lost = seq, line
        elif record["kind"] == "thawed":
            self._lost = None
        if entry["kind"] == CHECKPOINT:
            self._anchors |= anchors_of(entry)
        if seq > self._next_seq:
            text = f"entries {self._next_seq} to {seq - 1} are not there"
            self._found("missing", self._next_seq, line.segment, line.start, text)
        elif seq < self._next_seq:
            text = f"entry {seq} stands where {self._next_seq} belongs"
            self._found("out-of-order", self._next_seq, line.segment, line.start, text)
        elif entry["prev"] != self._prev:
            changed = max(1, seq - 1)
            segment, start = self._prev_at if seq > 1 else (line.segment, line.start)
            self._found("changed", changed, segment, start, f"not the entry that entry {seq} was chained to")
        self._step(seq, digest, line)

    def _step(self, seq: int, digest: str, line: Line) -> None:
        self._last_seq = max(self._last_seq, seq)
        self._next_seq, self._prev, self._prev_at = seq + 1, digest, (line.segment, line.start)

    def _judge_start(self, first_segment: int) -> None:
        """A log that does not begin at its beginning needs a checkpoint which says so; found last, told first."""
        seq, prev = self._first or (1, GENESIS)
        if (seq, prev) == (1, GENESIS) and first_segment == 1:
            return
        if seq > 1 and (seq - 1, prev) in self._anchors:
            return
        later, self._problems = self._problems, []
        if first_segment > 1:
            names = "segment 1" if first_segment == 2 else f"segments 1 to {first_segment - 1}"
            self._found("segment-missing", 1, 1, 0, f"{names} not there")
        if seq > 1:
            self._found("missing", 1, first_segment, 0, f"entries 1 to {seq - 1} are not there")
        self._problems = (self._problems + later)[:PROBLEM_LIMIT]

    def _judge_head(self, has_segment: bool) -> None:
        place = self._head.place
        if place is not None and place.seq > self._last_seq:
            text = f"the head names entry {place.seq}; the log ends at {self._last_seq}"
            self._found("cut", self._last_seq + 1, place.segment, place.start, text)
        elif place is not None and not self._head_seen:
            text = f"the place that the head names for entry {place.seq} is not the start of a line"
            self._found("head-wrong", place.seq, place.segment, place.start, text)
        # The head is there before the first segment; what a crash left of its making is empty.
        if self._head.damaged or (place is None and self._head.exists and has_segment):
            self._found("head-unreadable", self._last_seq, 0, 0, "the head is not what was written")
        elif place is None and has_segment:
            self._found("head-missing", self._last_seq, 0, 0, "the log has no head")

    def _found(self, code: str, seq: int, segment: int, offset: int, text: str) -> None:
        self._total += 1
        if len(self._problems) < PROBLEM_LIMIT:
            self._problems.append(Problem(code, seq, segment, offset, text))
