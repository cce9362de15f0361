"""Lets the oldest segments of the log go, by age and by size. Touches the state folder only.

The order is the promise. First, in one durable append: every entry of them that is still needed (a run whose end is
not known, an approval that holds, a snapshot that is kept, a stop that stands …) is carried on, and a `checkpoint`
names each segment with the hash of its last line, so that the chain stays anchored. Only then do the files go, oldest
first. Killed in between, the log is whole at every moment, and whoever comes next finishes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from guard.errors import StateDamaged
from guard.ledger import index
from guard.ledger.carried import CHECKPOINT, carried, record_of
from guard.ledger.formats import Malformed, decoded_entry, sha256_of
from guard.ledger.segments import LOG_FOLDER, lines_of, open_segment, segment_name, segment_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from guard.ledger.formats import Entry
    from guard.ledger.log import Log, Writer
    from guard.ledger.segments import Line
    from guard.ledger.state import StateFolder
    from guard.ports import Clock, Liveness

MOST_SEGMENTS = 1000
"""Named by one checkpoint (100 bytes each); what is older than that goes the next time."""

DAY_S = 86_400
_TAIL_BYTES = 64 * 1024


class Limits(NamedTuple):
    """How long the log stays; 0 is for ever."""

    keep_days: int = 0
    keep_bytes: int = 0

    @property
    def are_set(self) -> bool:
        """Whether anything may go at all."""
        return bool(self.keep_days or self.keep_bytes)


FOREVER = Limits()


class Needed(NamedTuple):
    """What of the old entries must stay readable."""

    ids: frozenset[str]
    """Entries about these."""
    seqs: frozenset[int]
    """And these by number."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """One segment that goes."""

    segment: int
    first_seq: int
    last_seq: int
    last_sha256: str
    entries: int
    size_bytes: int
    last_at: str


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """What would go now."""

    segments: tuple[Dropped, ...]
    carried: tuple[Entry, ...]
    """Entries of them that are written again."""
    unfinished: tuple[int, ...] = ()
    """Segments that an earlier checkpoint let go and that are still there."""

    @property
    def entries(self) -> int:
        return sum(one.entries for one in self.segments)

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.segments)


class Retention:
    """Retention of one log. Cheap to make."""

    def __init__(
        self,
        folder: StateFolder,
        *,
        log: Log,
        clock: Clock,
        liveness: Liveness,
        needed: Callable[[], Needed],
        small_log_bytes: int = index.SMALL_LOG_BYTES,
    ) -> None:
        """Args: needed: asked only when something is to go."""
        self._folder = folder
        self._log = log
        self._clock = clock
        self._boot = liveness.boot_id()
        self._needed = needed
        self._small_log_bytes = small_log_bytes

    def plan(self, limits: Limits) -> RetentionPlan:
        """What would go under these limits. Changes nothing.

        Raises:
            StateDamaged: one of these segments is not what was written: it is evidence, and stays.
            StateError: the log cannot be read.
        """
        unfinished = self._unfinished()
        numbers = self._beyond(limits, unfinished)
        if not numbers:
            return RetentionPlan((), (), unfinished)
        needed = self._needed()
        dropped, kept = [], []
        with self._folder.folder(LOG_FOLDER) as log_fd:
            before: tuple[int, str] | None = None
            for number in numbers:
                one, again = self._looked_through(log_fd, number, before, needed)
                dropped.append(one)
                kept += again
                before = (one.last_seq, one.last_sha256)
        return RetentionPlan(tuple(dropped), tuple(kept), unfinished)

    def apply(self, plan: RetentionPlan) -> None:
        """Carries the plan out, durably and in order; what somebody else let go meanwhile is no fault.

        Raises:
            StateError: it could not be recorded; nothing went. Or a file could not be removed: the next one finishes.
        """
        numbers = [one.segment for one in plan.segments]
        with self._log.writer() as writer, self._folder.folder(LOG_FOLDER) as log_fd:
            unfinished = self._unfinished()
            there = [number for number in segment_numbers(log_fd) if number not in unfinished]
            # Another process may have been here since the plan was made: then these are not its oldest any more.
            if numbers and there[: len(numbers)] == numbers and len(there) > len(numbers):
                checkpoint = self._checkpoint(plan)
                writer.append([*map(carried, plan.carried), checkpoint], durable=True, use_reserve=True)
                self._drop(writer, [*unfinished, *numbers])
            elif unfinished:
                self._drop(writer, unfinished)

    def is_due(self, limits: Limits) -> bool:
        """Whether anything may have to go: by the files' sizes and times alone, without reading them."""
        if not limits.are_set:
            return False
        try:
            with self._folder.folder(LOG_FOLDER) as log_fd:
                infos = [os.stat(segment_name(number), dir_fd=log_fd) for number in segment_numbers(log_fd)]
        except OSError:
            return False
        if len(infos) < 2:
            return False
        now_s = _epoch_s(self._clock.utc())
        is_old = bool(limits.keep_days) and now_s - infos[0].st_mtime > limits.keep_days * DAY_S
        return is_old or bool(limits.keep_bytes and sum(info.st_size for info in infos) > limits.keep_bytes)

    # ── which ────────────────────────────────────────────────────────────────────────────────────────────────

    def _beyond(self, limits: Limits, unfinished: Sequence[int]) -> list[int]:
        """The oldest segments that are over a limit, in order; never the one that is written."""
        with self._folder.folder(LOG_FOLDER) as log_fd:
            numbers = [number for number in segment_numbers(log_fd) if number not in unfinished]
            sizes = {number: os.stat(segment_name(number), dir_fd=log_fd).st_size for number in numbers}
            total = sum(sizes.values())
            oldest_s = self._now_s(log_fd, numbers) - limits.keep_days * DAY_S
            gone = []
            for number in numbers[:-1][:MOST_SEGMENTS]:
                is_old = bool(limits.keep_days) and _epoch_s(_last_at(self._folder, log_fd, number)) < oldest_s
                if not is_old and not (limits.keep_bytes and total > limits.keep_bytes):
                    break
                gone.append(number)
                total -= sizes[number]
        return gone

    def _now_s(self, log_fd: int, numbers: Sequence[int]) -> float:
        """The time by the wall clock, but no later than this boot can have lasted since its entries were written.

        A clock that is set forward would make everything old at once, and what goes is gone for good.
        """
        now_s = _epoch_s(self._clock.utc())
        for number in numbers:
            first = _first_entry(self._folder, log_fd, number)
            if first is not None and first.get("boot") == self._boot:
                now_s = min(now_s, _epoch_s(str(first["at"])) + self._clock.boot_s())
        return now_s

    def _unfinished(self) -> tuple[int, ...]:
        """Segments that the last checkpoint let go and a crash left behind."""
        last = index.recent(self._folder, (CHECKPOINT,), most=1, small_log_bytes=self._small_log_bytes)
        first = last[0].get("first_segment") if last else None
        if type(first) is not int:
            return ()
        with self._folder.folder(LOG_FOLDER) as log_fd:
            return tuple(number for number in segment_numbers(log_fd) if number < first)

    # ── what of it ───────────────────────────────────────────────────────────────────────────────────────────

    def _looked_through(
        self, log_fd: int, number: int, before: tuple[int, str] | None, needed: Needed
    ) -> tuple[Dropped, list[Entry]]:
        """One segment, checked line by line, and the entries of it that are needed on."""
        again: list[Entry] = []
        first_seq = entries = size = 0
        last_at = ""
        for line, entry in self._lines(log_fd, number):
            if before is not None and (entry["seq"] - 1, entry["prev"]) != before:
                raise self._damaged(number, f"entry {entry['seq']} does not follow the one before it")
            before = (entry["seq"], sha256_of(line.raw))
            first_seq, last_at = first_seq or entry["seq"], entry["at"]
            entries, size = entries + 1, line.end
            record = record_of(entry)
            if record["seq"] in needed.seqs or not needed.ids.isdisjoint(index.ids_of(record)):
                again.append(record)
        if before is None or not entries:
            raise self._damaged(number, "there is no entry in it")
        return Dropped(number, first_seq, *before, entries, size, last_at), again

    def _lines(self, log_fd: int, number: int) -> Iterator[tuple[Line, Entry]]:
        fd = open_segment(self._folder, log_fd, number)
        try:
            end = 0
            for line in lines_of(fd, number):
                try:
                    yield line, decoded_entry(line.raw)
                except Malformed as error:
                    raise self._damaged(number, f"byte {line.start}: {error}") from None
                end = line.end
            if end != os.fstat(fd).st_size:
                raise self._damaged(number, "its end is no whole line")
        finally:
            os.close(fd)

    def _checkpoint(self, plan: RetentionPlan) -> Entry:
        last = index.recent(self._folder, (CHECKPOINT,), most=1, small_log_bytes=self._small_log_bytes)
        before = last[0].get("removed_entries") if last else 0
        return {
            "kind": CHECKPOINT,
            "first_segment": plan.segments[-1].segment + 1,
            "through_seq": plan.segments[-1].last_seq,
            "through_sha256": plan.segments[-1].last_sha256,
            "through_at": plan.segments[-1].last_at,
            "segments": [[one.segment, one.first_seq, one.last_seq, one.last_sha256] for one in plan.segments],
            "removed_bytes": plan.size_bytes,
            "removed_entries": (before if type(before) is int else 0) + plan.entries,
            "carried": len(plan.carried),
        }

    def _drop(self, writer: Writer, numbers: Sequence[int]) -> None:
        from guard.ledger.state import state_error_of

        try:
            writer.drop_segments(numbers)
        except OSError as error:
            raise state_error_of(error, f"an old segment of the log in {self._folder.path}") from error

    def _damaged(self, number: int, what: str) -> StateDamaged:
        return StateDamaged(
            f"segment {number} of the log is not what was written: {what}",
            not_done="nothing was removed",
            hint="look with: opsx audit verify",
        )


def _epoch_s(at: str) -> float:
    """Seconds since 1970; what is no time is as young as can be, so that it keeps its segment."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return float("inf")


def _first_entry(folder: StateFolder, log_fd: int, number: int) -> Entry | None:
    fd = open_segment(folder, log_fd, number)
    try:
        line = next(lines_of(fd, number), None)
        return decoded_entry(line.raw) if line is not None else None
    except Malformed:
        return None
    finally:
        os.close(fd)


def _last_at(folder: StateFolder, log_fd: int, number: int) -> str:
    """When the last entry of a segment was written; "" when that cannot be told."""
    fd = open_segment(folder, log_fd, number)
    try:
        size = os.fstat(fd).st_size
        start = max(0, size - _TAIL_BYTES)
        whole = list(lines_of(fd, number, start))[-1:]
        return str(decoded_entry(whole[0].raw)["at"]) if whole else ""
    except Malformed:
        return ""
    finally:
        os.close(fd)
