"""Entries that outlive their segment: before the oldest part of the log goes, what is needed is written again. Pure.

A `carried` line holds the whole old entry. Readers take it for that entry, with its own number, time and boot; both may
be there at once (a crash before the old segment went), so what is read is told apart by its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guard.ledger.formats import Malformed, decoded_entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from guard.ledger.formats import Entry
    from guard.ledger.segments import Line

CHECKPOINT = "checkpoint"
CARRIED = "carried"


def carried(entry: Entry) -> Entry:
    """The entry that carries another one on."""
    return {"kind": CARRIED, "entry": entry}


def record_of(entry: Entry) -> Entry:
    """The entry that a line stands for: the carried one, else itself."""
    inner: Any = entry.get("entry") if entry.get("kind") == CARRIED else None
    if (
        isinstance(inner, dict)
        and type(inner.get("seq")) is int
        and all(isinstance(inner.get(name), str) for name in ("at", "kind", "prev"))
    ):
        return inner
    return entry


def entries_of(lines: Iterable[Line]) -> Iterator[Entry]:
    """Lines as they stand. One that is not a record comes as `{"kind": "unreadable", …}`: said, never skipped."""
    for line in lines:
        try:
            yield decoded_entry(line.raw)
        except Malformed as error:
            yield {
                "kind": "unreadable",
                "segment": line.segment,
                "offset": line.start,
                "size_bytes": line.end - line.start,
                "why": str(error),
            }


def records_of(lines: Iterable[Line]) -> Iterator[Entry]:
    """The lines of a whole log, oldest first, as what they stand for, each entry once."""
    first = last = 0
    again: set[int] = set()
    for entry in entries_of(lines):
        record = record_of(entry)
        if record is not entry:
            # Its old line is there as well when its number is among those that were read.
            if record["seq"] in again or first <= record["seq"] <= last:
                continue
            again.add(record["seq"])
        elif type(entry.get("seq")) is int:
            first, last = first or entry["seq"], entry["seq"]
        yield record


def distinct(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Some entries of a log as what they stand for, each once; remembers all of them."""
    seen: set[int] = set()
    for entry in entries:
        record = record_of(entry)
        if record is not entry and record["seq"] in seen:
            continue
        if type(record.get("seq")) is int:
            seen.add(record["seq"])
        yield record
