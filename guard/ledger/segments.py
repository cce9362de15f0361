"""The log's files: segments `000001.jsonl` …, and the head that says how far it was durable. Reads and writes them.

A segment is a sequence of lines. The head is a file of two slots, written in turn, each with a check of its
own: a write that tears one leaves the other, and neither needs a new block on a full disk (a temporary file
and a rename would).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from guard.ledger.formats import FORMAT, GENESIS, MAX_LINE_BYTES, Malformed, decoded, encoded, is_sha256, sha256_of
from guard.ledger.state import read_up_to, state_error_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from guard.ledger.state import StateFolder

LOG_FOLDER = "log"
HEAD_NAME = "head"
HEAD_SLOT_BYTES = 256
"""Both slots lie in one sector of 512, the unit that disks write whole."""


_CHUNK_BYTES = 1 << 18


class Place(NamedTuple):
    """Where a line is, and what it is."""

    seq: int
    sha256: str
    """Of the line with its LF."""
    segment: int
    """1, 2, 3 …"""
    start: int
    """Offset of its first byte in the segment."""
    end: int
    """Offset after its LF."""


BEFORE_FIRST = Place(0, GENESIS, 0, 0, 0)
"""What the head names before there is an entry: it is there first, so that a log without one has lost it."""


class Line(NamedTuple):
    """A complete line as it stands on disk, not yet read as a record."""

    segment: int
    start: int
    end: int
    raw: bytes
    """With its LF."""


class Head(NamedTuple):
    """What the head file says."""

    place: Place | None
    """The newest valid slot; None when there is none. Number 0 before the first entry."""
    slot: int
    """Which slot that is, 0 or 1; -1 when there is none."""
    exists: bool
    """The file is there."""
    damaged: bool
    """A slot holds something that was not written there as a whole."""


def segment_name(number: int) -> str:
    """`000001.jsonl`"""
    return f"{number:06d}.jsonl"


def segment_numbers(log_fd: int) -> list[int]:
    """The segments that are there, in order. Names that are not ours are not looked at."""
    names = (name for name in os.listdir(log_fd) if name.endswith(".jsonl") and name[:-6].isdigit())
    return sorted(int(name[:-6]) for name in names if segment_name(int(name[:-6])) == name)


def open_segment(folder: StateFolder, log_fd: int, number: int, flags: int = os.O_RDONLY) -> int:
    """A descriptor of the segment. Raises FileNotFoundError or StateError."""
    return folder.open_file(segment_name(number), flags, dir_fd=log_fd)


def lines_of(fd: int, number: int, start: int = 0) -> Iterator[Line]:
    """The complete lines from an offset that begins one. A last part without LF is not yielded.

    A line that is longer than a record may be is yielded in full up to 2 × that limit and then in pieces, so
    that memory stays bounded on a file that is not ours.
    """
    offset, rest = start, b""
    while chunk := os.pread(fd, _CHUNK_BYTES, offset + len(rest)):
        buffer, position = rest + chunk, 0
        while (newline := buffer.find(b"\n", position)) >= 0:
            raw = buffer[position : newline + 1]
            yield Line(number, offset + position, offset + newline + 1, raw)
            position = newline + 1
        rest = buffer[position:]
        offset += position
        if len(rest) > 2 * MAX_LINE_BYTES:
            yield Line(number, offset, offset + len(rest), rest)
            offset, rest = offset + len(rest), b""


def lines_from(folder: StateFolder, segment: int = 0, start: int = 0) -> Iterator[Line]:
    """All complete lines of the log from a place on, oldest first, as they are now. Takes no lock.

    Safe beside a writer: lines only ever appear whole (a part without LF is left out) and at the end.
    Raises StateError when a file is unsafe or unreadable; a log that is not there has no lines.
    """
    try:
        with folder.folder(LOG_FOLDER) as log_fd:
            for number in segment_numbers(log_fd):
                if number < segment:
                    continue
                try:
                    fd = open_segment(folder, log_fd, number)
                except FileNotFoundError:
                    continue  # it went meanwhile, and what is needed of it stands further on
                try:
                    yield from lines_of(fd, number, start if number == segment else 0)
                finally:
                    os.close(fd)
    except FileNotFoundError:
        return
    except OSError as error:
        raise state_error_of(error, f"the log in {folder.path}") from error


def read_head(folder: StateFolder, log_fd: int) -> Head:
    """What the head file says; never raises for its content."""
    try:
        fd = folder.open_file(HEAD_NAME, os.O_RDONLY, dir_fd=log_fd)
    except FileNotFoundError:
        return Head(None, -1, False, False)
    try:
        data = read_up_to(fd, 2 * HEAD_SLOT_BYTES)
    finally:
        os.close(fd)
    slots = [data[:HEAD_SLOT_BYTES], data[HEAD_SLOT_BYTES:]]
    valid = [(place, number) for number, slot in enumerate(slots) if (place := _place_of(slot)) is not None]
    damaged = any(slot.strip(b"\0") and _place_of(slot) is None for slot in slots)
    if not valid:
        return Head(None, -1, True, damaged)
    place, number = max(valid, key=lambda pair: pair[0].seq)
    return Head(place, number, True, damaged)


def write_head(folder: StateFolder, log_fd: int, place: Place, head: Head) -> Head:
    """Moves the head on, into the slot that is not in use. Call only after the log is durable up to `place`.

    Raises OSError or StateError; the old head stands then.
    """
    slot = 1 - head.slot if head.slot >= 0 else 0
    fd = folder.open_file(HEAD_NAME, os.O_WRONLY | os.O_CREAT, dir_fd=log_fd)
    try:
        other = bytes(HEAD_SLOT_BYTES) if head.place is None else b""  # what cannot be read goes with the same write
        os.pwrite(fd, _slot_of(place) + other, slot * HEAD_SLOT_BYTES)
        if head.place is None:
            # Once durable, so that "no head" is a finding and never the trace of a power cut.
            os.fsync(fd)
            os.fsync(log_fd)
    finally:
        os.close(fd)
    return Head(place, slot, True, False)


def _slot_of(place: Place) -> bytes:
    fields = {"format": FORMAT, **place._asdict()}
    fields["check"] = sha256_of(encoded(fields))[:16]
    return encoded(fields).rstrip(b"\n").ljust(HEAD_SLOT_BYTES - 1) + b"\n"


def _place_of(slot: bytes) -> Place | None:
    try:
        fields = decoded(slot)
    except Malformed:
        return None
    check = fields.pop("check", None)
    if check != sha256_of(encoded(fields))[:16] or fields.pop("format") != FORMAT:
        return None
    try:
        place = Place(**fields)
    except TypeError:
        return None
    numbers = (place.seq, place.segment, place.start, place.end)
    if any(type(number) is not int or number < 0 for number in numbers) or not is_sha256(str(place.sha256)):
        return None
    return place
