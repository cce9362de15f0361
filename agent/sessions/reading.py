"""The bytes of a session file → a conversation, strictly. Pure.

A line that carries the right mark is taken as it was written. In a file whose header has no mark of this installation
(copied from another machine, edited, or the key was lost) every record is checked and redacted anew, and the reader is
told. In a file of our own a line without its mark is damage: no conversation is opened around a hole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.sessions.cleaning import clean, clean_line
from agent.sessions.lines import Chain, Header, damaged, header_of, is_session_id, time_of
from agent.sessions.records import BadRecord, message_of
from guard.ledger.formats import Malformed, decoded
from guard.redact import RULES_VERSION

if TYPE_CHECKING:
    from agent.messages import Message
    from guard.redact import Redactor

_LISTED_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Read:
    """What a session file holds."""

    header: Header
    messages: tuple[Message, ...]
    """Each as it was recorded; calls without results are still without."""
    times: tuple[str, ...]
    """When each was written; "" where a foreign file says no time."""
    notes: tuple[str, ...]
    """Sentences for people: what was cut, left out or read anew."""
    whole_bytes: int
    """How far the file consists of whole lines that were read."""
    last_mark: bytes
    """For the next line; meaningless when `foreign`."""
    foreign: bool
    """It was not written by this installation, so nothing can be appended to it as it is."""


def read(data: bytes, *, shown: str, key: bytes, redactor: Redactor, until_damage: bool = False) -> Read:
    """Reads a whole file.

    Args:
        shown: the file's name, for errors.
        key: the state folder's.
        until_damage: stop before a damaged line and say so, instead of raising.
    Raises:
        StateDamaged: the header is none, or a line in the middle is not what was written; names the line.
        StateError: a newer version wrote it.
    """
    end = data.find(b"\n") + 1
    if not end:
        raise damaged(shown, 1, "it is cut" if data else "the file is empty")
    header = header_of(data[:end], shown)
    chain = Chain(key)
    foreign = not chain.follows(data[:end])
    again = foreign or header.rules != RULES_VERSION or redactor.mentions(data.decode("utf-8", "replace"))
    notes: list[str] = []
    if foreign:
        notes.append(
            "this conversation was not written by this installation: every record was checked and redacted anew"
        )
    if again:
        header = _clean_header(header, redactor)
    messages: list[Message] = []
    times: list[str] = []
    unknown_fields = unknown_records = 0
    number, begin = 1, end
    while end := data.find(b"\n", begin) + 1:
        number += 1
        line = data[begin:end]
        try:
            if foreign:
                record = decoded(line)
            elif chain.follows(line):
                record = json.loads(line)  # as strict as it was when it was written
            else:
                raise BadRecord("it is not what was written here")
            message, extra = message_of(record)
        except (Malformed, BadRecord) as error:
            if not until_damage:
                raise damaged(shown, number, str(error)) from None
            notes.append(f"line {number} is damaged ({error}): it and everything after it is left out")
            return Read(header, tuple(messages), tuple(times), tuple(notes), begin, chain.last, foreign)
        unknown_fields += extra
        begin = end
        if message is None:
            unknown_records += 1
            continue
        messages.append(clean(message, redactor) if again else message)
        times.append(time_of(record["at"]) if again else record["at"])
    if unknown_records:
        notes.append(f"records of kinds that this version does not know are left out ({unknown_records})")
    if unknown_fields:
        notes.append(f"fields that this version does not know are left out ({unknown_fields})")
    if begin < len(data):
        notes.append(f"the last line was cut ({len(data) - begin} bytes) and is left out, as after a crash")
    return Read(header, tuple(messages), tuple(times), tuple(notes), begin, chain.last, foreign)


def read_head(data: bytes, *, shown: str, key: bytes, redactor: Redactor) -> tuple[Header, str]:
    """Header and first words of a person, from the first bytes of a file, for a listing. "" where they are not in it.

    Raises:
        StateError: as `read`.
    """
    end = data.find(b"\n") + 1
    if not end:
        raise damaged(shown, 1, "it is cut" if data else "the file is empty")
    header = header_of(data[:end], shown)
    chain = Chain(key)
    ours = chain.follows(data[:end])
    begin = end
    while end := data.find(b"\n", begin) + 1:
        line = data[begin:end]
        begin = end
        ours = ours and chain.follows(line)
        try:
            record = decoded(line)
        except Malformed:
            break
        text = record.get("text")
        if record.get("kind") == "user" and isinstance(text, str):
            first = next((part.strip() for part in text.splitlines() if part.strip()), "")[:200]
            return _checked_head(header, first, redactor, ours=ours)
    return _checked_head(header, "", redactor, ours=ours)


def _checked_head(header: Header, first: str, redactor: Redactor, *, ours: bool) -> tuple[Header, str]:
    if ours and header.rules == RULES_VERSION:
        return header, first
    return _clean_header(header, redactor), clean_line(first, redactor)


def _clean_header(header: Header, redactor: Redactor) -> Header:
    return Header(
        header.id,
        time_of(header.at),
        clean_line(header.cwd, redactor),
        clean_line(header.brain, redactor),
        clean_line(header.model, redactor),
        clean_line(header.title, redactor),
        header.forked_from if is_session_id(header.forked_from) else "",
        header.rules,
    )
