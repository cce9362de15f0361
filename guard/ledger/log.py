"""The log: the only truth about what was asked, approved and run. Appends to it; touches the state folder only.

Promises: one writer at a time (flock); an append is on disk whole or not at all; every line names the SHA-256
of the line before, across segments; what a crash left half-written is set aside and recorded, never dropped;
the head beside the log never runs ahead of what was durable, so a log shorter than its head was cut.
What it cannot do: stop a process with the same uid that rewrites the whole chain.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, NamedTuple

from guard.errors import StateDamaged, StateError
from guard.ledger.formats import FORMAT, GENESIS, Entry, Malformed, decoded_entry, encoded, sha256_of
from guard.ledger.segments import (
    BEFORE_FIRST,
    LOG_FOLDER,
    Head,
    Line,
    Place,
    lines_of,
    open_segment,
    read_head,
    segment_name,
    segment_numbers,
    write_head,
)
from guard.ledger.state import is_full, read_up_to, state_error_of, write_all
from guard.ledger.stop import LOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from guard.ledger.state import StateFolder
    from guard.ports import Clock, HeadSink, Liveness

SEGMENT_BYTES = 16 * 1024 * 1024
"""A segment that has reached this size takes no further entries: small enough to read back in under a second."""

WAITING_BYTES = 256 * 1024
"""More than this behind the head is waited for by the next append, so that no writer has a long way to walk."""

RESERVE_BYTES = 4 * 1024 * 1024
"""Space kept for the records of commands that free space: about 4,000 entries."""

RESERVE_STEP_BYTES = 256 * 1024
"""How much of it is given up at a time."""

RESERVE_NEEDS_FREE_BYTES = 64 * 1024 * 1024
"""The reserve is not (re)made on a file system with less free space than this: it would be the thing that fills it."""

LOCK_WAIT_S = 5.0
"""How long a writer waits for another by default. Measured: 8 writers that sync wait 0.3 s at most."""

COMMON_FIELDS = ("shell", "client", "call_id", "session", "actor", "uid")
"""Fields that every entry has, null when there is nothing to say."""

HEAD_LOST = "head-lost"
"""The code of a stop that the log made itself because entries may be gone from it."""

_OWN_FIELDS = frozenset(("format", "seq", "at", "boot", "prev"))

_sync_data = getattr(os, "fdatasync", os.fsync)
# macOS has no fdatasync. fdatasync(2) writes a changed file size too, which is all that an append needs.


class Appended(NamedTuple):
    """What an append did."""

    places: tuple[Place, ...]
    used_reserve: bool
    """The disk is full and the entries took space from the reserve."""
    unsent: str = ""
    """Why the head could not be sent on; "" when it was, or is not to be."""


class Tail(NamedTuple):
    """Where the next entry goes."""

    last: Place | None
    """The last entry; None in an empty log."""
    segment: int
    """0 when there is no segment yet."""
    size: int
    """Bytes of that segment that are in order."""
    torn: int
    """Bytes after them that a crash left."""


class Log:
    """The log of one state folder. Cheap to make; opens files only while it works."""

    def __init__(
        self,
        folder: StateFolder,
        *,
        clock: Clock,
        liveness: Liveness,
        segment_bytes: int = SEGMENT_BYTES,
        heads: HeadSink | None = None,
    ) -> None:
        """Args: heads: is sent the head after each durable append of more than reads."""
        self._heads = heads
        self._folder = folder
        self._clock = clock
        self._boot = liveness.boot_id()
        self._segment_bytes = segment_bytes

    def append(
        self, entries: Sequence[Entry], *, durable: bool, wait_s: float = LOCK_WAIT_S, use_reserve: bool = False
    ) -> Appended:
        """Appends entries in order, all or none. See `Writer.append`, and `writer` for what the lock may raise."""
        with self.writer(wait_s) as writer:
            return writer.append(entries, durable=durable, use_reserve=use_reserve)

    @contextlib.contextmanager
    def writer(self, wait_s: float = LOCK_WAIT_S) -> Iterator[Writer]:
        """The log's lock, held for the length of a `with` block: nobody else appends meanwhile.

        Raises:
            StateBusy: another process held it for `wait_s` seconds.
            StateError: the state folder cannot be used.
        """
        with self._folder.locked(wait_s), self._folder.folder(LOG_FOLDER, create=True) as log_fd:
            yield Writer(self._folder, log_fd, self._clock, self._boot, self._segment_bytes, self._heads)

    def head(self) -> Place | None:
        """As `head_of`."""
        return head_of(self._folder)

    def fault_at(self, place: Place) -> str:
        """As the function of that name."""
        return fault_at(self._folder, place)


class Writer:
    """The one way to add entries. Exists only while the log's lock is held."""

    def __init__(
        self,
        folder: StateFolder,
        log_fd: int,
        clock: Clock,
        boot: str,
        segment_bytes: int,
        heads: HeadSink | None = None,
    ) -> None:
        self._heads = heads
        self._folder = folder
        self._log_fd = log_fd
        self._clock = clock
        self._boot = boot
        self._segment_bytes = segment_bytes
        self._head = read_head(folder, log_fd)
        self._tail: Tail | None = None

    def append(self, entries: Sequence[Entry], *, durable: bool, use_reserve: bool = False) -> Appended:
        """Writes the entries, all or none.

        Args:
            entries: each has `kind`; `format`, `seq`, `at`, `boot` and `prev` are added here.
            durable: wait until they and all earlier ones are on the disk, then move the head on.
            use_reserve: when the disk is full, take space from the reserve.
        Raises:
            StateUnwritable: full, read-only or failing; the log is as it was.
            StateDamaged: the log is shorter than its head, or its end is not what was written.
            ValueError: an entry holds what JSON cannot, is too long, or sets a field of the log's own.
        """
        used_reserve = False
        while True:
            try:
                places = self._append(entries, durable)
            except (OSError, StateError) as error:
                if use_reserve and is_full(error) and self.release_reserve():
                    used_reserve = True
                    continue
                if isinstance(error, StateError):
                    raise
                raise state_error_of(error, f"the log in {self._folder.path}") from error
            if durable and not used_reserve:
                self._keep_reserve()
            unsent = ""
            if durable and use_reserve and self._heads is not None and places:
                unsent = self._heads.send(self._folder.path, places[-1].seq, places[-1].sha256)
            return Appended(places, used_reserve, unsent)

    def drop_segments(self, numbers: Sequence[int]) -> None:
        """Removes segments, in this order, durably. Nothing happens to one that is gone already.

        Raises OSError; those before it are gone then.
        """
        for number in numbers:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(segment_name(number), dir_fd=self._log_fd)
        os.fsync(self._log_fd)

    def tail(self) -> Tail:
        """The end of the log as it is on disk; checked from the head on.

        Raises:
            StateDamaged: see `append`. OSError: it cannot be read.
        """
        if self._tail is None:
            self._tail = _tail_of(self._folder, self._log_fd, self._head)
        return self._tail

    def _append(self, entries: Sequence[Entry], durable: bool) -> tuple[Place, ...]:
        tail = self.tail()
        # The first entry of a log is always waited for: it makes the head, whose absence is a finding ever after.
        about_head = self._about_head(tail)
        durable = durable or tail.last is None or bool(about_head) or self._bytes_behind_head(tail) > WAITING_BYTES
        first: list[Entry] = []
        torn = b""
        if tail.torn:
            torn, entry = self._set_aside(tail)
            first.append(entry)
        first += about_head
        if tail.last is None and self._head.place is None:
            self._head = write_head(self._folder, self._log_fd, BEFORE_FIRST, self._head)
        is_new = tail.segment == 0 or tail.size >= self._segment_bytes
        segment, size = (tail.segment + 1, 0) if is_new else (tail.segment, tail.size)
        data, places = self._lines(tail.last, [*first, *entries], segment, size)
        if is_new and tail.segment:
            self._close_segment(tail)
        flags = os.O_WRONLY | (os.O_CREAT | os.O_EXCL if is_new else 0)
        fd = open_segment(self._folder, self._log_fd, segment, flags)
        try:
            try:
                os.lseek(fd, size, os.SEEK_SET)
                write_all(fd, data)
                os.ftruncate(fd, size + len(data))
                if durable:
                    _sync_data(fd)
                if is_new:
                    os.fsync(self._log_fd)  # later appends only sync the file, and its name must not be lost
            except BaseException:
                self._tail = None
                if is_new:
                    os.unlink(segment_name(segment), dir_fd=self._log_fd)
                else:
                    os.ftruncate(fd, size)
                    os.lseek(fd, size, os.SEEK_SET)
                    write_all(fd, torn)  # as it was, so that the next writer can record it
                raise
        finally:
            os.close(fd)
        self._tail = Tail(places[-1], segment, size + len(data), 0) if places else tail
        if durable and places:
            # A head that stays behind is normal, so what is on disk already must not look lost for its sake.
            with contextlib.suppress(OSError, StateError):
                self._head = write_head(self._folder, self._log_fd, places[-1], self._head)
        return places[len(first) :]

    def _about_head(self, tail: Tail) -> list[Entry]:
        """What is to be recorded when the head is not what was written; a head that is lost stops everything above R0.

        A crash can tear the slot that is being written. By then what it names is on the disk, so the log is longer than
        the other slot says.
        """
        place = self._head.place
        if tail.last is None or (place is not None and not self._head.damaged):
            return []
        if place is not None and place.seq != tail.last.seq:
            return [{"kind": "notice", "code": "head-torn", "text": "a part of the head could not be read"}]
        text = "the head was missing or unreadable"
        newest = self._heads.newest(self._folder.path) if self._heads is not None else 0
        if newest > tail.last.seq:
            text += f"; the log ended at entry {tail.last.seq}, and the machine's log knows of entry {newest}"
        elif newest:
            text += f"; the machine's log knows of no entry after {newest}"
        notice: Entry = {"kind": "notice", "code": "head-rebuilt", "text": text}
        return [notice, {"kind": "frozen", "code": HEAD_LOST, "reason": LOST}]

    def _bytes_behind_head(self, tail: Tail) -> int:
        place = self._head.place
        return tail.size - (place.end if place is not None and place.segment == tail.segment else 0)

    def _lines(
        self, last: Place | None, entries: Sequence[Entry], segment: int, size: int
    ) -> tuple[bytes, tuple[Place, ...]]:
        seq, prev = (last.seq, last.sha256) if last else (0, GENESIS)
        lines, places = [], []
        for entry in entries:
            taken = _OWN_FIELDS & entry.keys()
            if taken or "kind" not in entry:
                raise ValueError(f"an entry needs a kind and must not set {', '.join(sorted(_OWN_FIELDS))}")
            seq += 1
            line = encoded(
                {
                    "format": FORMAT,
                    "seq": seq,
                    "at": self._clock.utc(),
                    "boot": self._boot,
                    "prev": prev,
                    "kind": entry["kind"],
                    **dict.fromkeys(COMMON_FIELDS),
                    "uid": os.geteuid(),
                    **entry,
                }
            )
            prev = sha256_of(line)
            places.append(Place(seq, prev, segment, size, size + len(line)))
            size += len(line)
            lines.append(line)
        return b"".join(lines), tuple(places)

    def _close_segment(self, tail: Tail) -> None:
        """Makes the old segment durable before a new one begins: a later sync reaches the new file only."""
        fd = open_segment(self._folder, self._log_fd, tail.segment, os.O_WRONLY)
        try:
            os.ftruncate(fd, tail.size)
            os.fsync(fd)
        finally:
            os.close(fd)

    def _set_aside(self, tail: Tail) -> tuple[bytes, Entry]:
        """Copies a torn end into `torn/`, durably, and returns it with the entry that says so."""
        fd = open_segment(self._folder, self._log_fd, tail.segment)
        try:
            os.lseek(fd, tail.size, os.SEEK_SET)
            torn = read_up_to(fd, tail.torn)
        finally:
            os.close(fd)
        digest = sha256_of(torn)
        name = f"{tail.segment:06d}-{tail.size}-{digest[:8]}"
        with self._folder.folder("torn", create=True) as torn_fd:
            self._folder.write_new(name, torn, dir_fd=torn_fd)
        return torn, {
            "kind": "torn",
            "segment": tail.segment,
            "offset": tail.size,
            "size_bytes": len(torn),
            "sha256": digest,
            "file": f"torn/{name}",
        }

    def _keep_reserve(self) -> None:
        """Makes the reserve when it is missing and there is plenty of space. Failing is no error: it is extra."""
        with contextlib.suppress(OSError, StateError):
            with contextlib.suppress(FileNotFoundError):
                if os.stat("reserve", dir_fd=self._log_fd, follow_symlinks=False).st_size >= RESERVE_BYTES:
                    return
            space = os.fstatvfs(self._log_fd)
            if space.f_bavail * space.f_frsize < RESERVE_NEEDS_FREE_BYTES:
                return
            fd = self._folder.open_file("reserve", os.O_RDWR | os.O_CREAT, dir_fd=self._log_fd)
            try:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(fd, 0, RESERVE_BYTES)
                else:
                    write_all(fd, bytes(RESERVE_BYTES))
            finally:
                os.close(fd)

    def release_reserve(self) -> bool:
        """Gives a step of the reserve back to the file system; False when nothing is left of it."""
        try:
            fd = self._folder.open_file("reserve", os.O_RDWR, dir_fd=self._log_fd)
        except (OSError, StateError):
            return False
        try:
            size = os.fstat(fd).st_size
            if size:
                os.ftruncate(fd, max(0, size - RESERVE_STEP_BYTES))
            return size > 0
        finally:
            os.close(fd)


def head_of(folder: StateFolder) -> Place | None:
    """The last entry that is known to be on disk; None when that is not known. Never raises."""
    try:
        with folder.folder(LOG_FOLDER) as log_fd:
            place = read_head(folder, log_fd).place
            return place if place is not None and place.seq else None
    except (StateError, OSError):
        return None


def fault_at(folder: StateFolder, place: Place) -> str:
    """Why the log no longer holds what it held at a place; "" when it does, or let it go since. Never raises."""
    try:
        with folder.folder(LOG_FOLDER) as log_fd:
            if place.segment >= min(segment_numbers(log_fd), default=0):
                _check_anchor(folder, log_fd, place)
    except (StateError, OSError) as error:
        return error.message if isinstance(error, StateError) else f"it cannot be read: {error.strerror}"
    return ""


def _tail_of(folder: StateFolder, log_fd: int, head: Head) -> Tail:
    """Walks from the head (else from the start of the last segment) to the end, checking each line."""
    numbers = segment_numbers(log_fd)
    _require_all(folder, numbers)
    last = head.place if head.place is not None and head.place.seq else None
    if last is None:
        if not numbers:
            _require_no_more(folder, head, numbers)
            return Tail(None, 0, 0, 0)
        numbers, offset = numbers[-2:], 0
        # The last two: the last one may have been created right before a crash and be empty.
    else:
        _check_anchor(folder, log_fd, last)
        numbers, offset = [number for number in numbers if number >= last.segment], last.end
    tail = Tail(last, last.segment if last else numbers[0], offset, 0)
    for position, number in enumerate(numbers):
        if position:
            tail = Tail(tail.last, number, 0, 0)
        fd = open_segment(folder, log_fd, number)
        try:
            size = os.fstat(fd).st_size
            tail = _walked(folder, fd, tail, size)
        finally:
            os.close(fd)
        if tail.torn and number != numbers[-1]:
            raise _damaged(folder, f"segment {number} has unreadable bytes at {tail.size}, and more follows")
    if tail.last is None:
        _require_no_more(folder, head, numbers)
    return tail


def _require_no_more(folder: StateFolder, head: Head, numbers: Sequence[int]) -> None:
    """A log without an entry never had one: its head says so, or neither it nor a segment is there yet."""
    if head.damaged or (numbers and head.place is None):
        raise _damaged(folder, "the log is empty, and its head cannot be read")


def _require_all(folder: StateFolder, numbers: Sequence[int]) -> None:
    """No segment between others is gone, unless a checkpoint let it go: a crash may have left older ones behind it."""
    gone = sorted(set(range(numbers[0], numbers[-1])) - set(numbers)) if numbers else []
    if not gone:
        return
    from guard.ledger import index

    (checkpoint,) = index.last_of(folder, [("checkpoint",)])
    if checkpoint is None or gone[-1] >= checkpoint["first_segment"]:
        raise _damaged(folder, f"segment {gone[-1]} of the log is missing")


def _walked(folder: StateFolder, fd: int, tail: Tail, size: int) -> Tail:
    for line in lines_of(fd, tail.segment, tail.size):
        try:
            entry = decoded_entry(line.raw)
        except Malformed as error:
            if line.end == size or b"\0" in line.raw:
                # The last line, or blocks that never reached the disk (read as zeros): a crash. It is after the
                # head, so nobody was told that it is durable.
                break
            where = f"at byte {line.start} of segment {line.segment}"
            raise _damaged(folder, f"the entry {where} is not what was written: {error}") from None
        tail = tail._replace(last=_next_place(folder, tail.last, line, entry), size=line.end)
    return tail._replace(torn=size - tail.size)


def _next_place(folder: StateFolder, last: Place | None, line: Line, entry: Entry) -> Place:
    """The place of an entry that must follow `last`. A whole entry that does not is no trace of a crash."""
    if last is not None and entry["seq"] != last.seq + 1:
        raise _damaged(folder, f"entry {entry['seq']} follows entry {last.seq}")
    if last is not None and entry["prev"] != last.sha256:
        raise _damaged(folder, f"entry {entry['seq']} is not chained to the entry before it")
    return Place(entry["seq"], sha256_of(line.raw), line.segment, line.start, line.end)


def _check_anchor(folder: StateFolder, log_fd: int, place: Place) -> None:
    """The entry that the head names must be there, byte for byte."""
    try:
        fd = open_segment(folder, log_fd, place.segment)
    except FileNotFoundError:
        raise _damaged(folder, f"segment {place.segment} is missing, and the head is in it") from None
    try:
        if os.fstat(fd).st_size < place.end:
            raise _damaged(folder, f"the log is shorter than its head says: entry {place.seq} is cut off")
        if sha256_of(os.pread(fd, place.end - place.start, place.start)) != place.sha256:
            raise _damaged(folder, f"entry {place.seq} is not the one that the head names")
    finally:
        os.close(fd)


def _damaged(folder: StateFolder, what: str) -> StateDamaged:
    return StateDamaged(
        what,
        not_done="nothing was recorded",
        hint=f"look with: opsx audit verify; to begin a new log, move {folder.path}/{LOG_FOLDER} aside",
    )
