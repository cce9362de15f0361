"""How a session file is written: a header, then one record a line, each line marked. Pure.

The mark of a line is keyed with the state folder's key and covers the line before it too, so that a reader knows at the
price of one digest whether a line is what this installation wrote, where it wrote it. Such a line was checked and
redacted when it was written and need not be redacted again; any other is somebody's text (docs/sessions.md).
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guard.errors import StateDamaged, StateError
from guard.ledger.formats import Malformed, decoded, encoded
from guard.ledger.location import FORMAT
from guard.redact import RULES_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.sessions.records import Record

MARK_CHARS = 32
"""128 bits of an HMAC-SHA-256: enough against chance and against whoever does not hold the key."""

_PURPOSE = b"opsagent session line\n"
_BEFORE_MARK = b',"mark":"'
_TAIL_BYTES = len(_BEFORE_MARK) + MARK_CHARS + len(b'"}\n')
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z", re.ASCII)
_ID = re.compile(r"c-[a-z0-9-]{1,62}")


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a session file."""

    id: str
    """`c-…`"""
    at: str
    """RFC 3339, UTC, milliseconds, `Z`: when it began."""
    cwd: str = ""
    """Redacted."""
    brain: str = ""
    model: str = ""
    """Who it began with; every reply names its own."""
    title: str = ""
    forked_from: str = ""
    """The conversation that this one was copied from."""
    rules: int = RULES_VERSION
    """Version of the redaction that its lines went through."""


class Chain:
    """The marks of one file, in order: `line` makes the next line, `follows` tells whether a line is the next."""

    __slots__ = ("_key", "last")

    def __init__(self, key: bytes, last: bytes = b"") -> None:
        self._key = key
        self.last = last
        """Mark of the line before; empty before the first."""

    def line(self, record: Record) -> bytes:
        """The record as the next line, LF included. Raises ValueError for what JSON or a line cannot hold."""
        body = encoded(record)[:-2]
        mark = self._mark(body)
        self.last = mark
        return body + _BEFORE_MARK + mark + b'"}\n'

    def follows(self, line: bytes) -> bool:
        """Whether the line, LF included, is what `line` made after the one before; then it is the last from now on."""
        body, mark = line[:-_TAIL_BYTES], line[-MARK_CHARS - 3 : -3]
        if line[-_TAIL_BYTES:] != _BEFORE_MARK + mark + b'"}\n' or not hmac.compare_digest(mark, self._mark(body)):
            return False
        self.last = mark
        return True

    def _mark(self, body: bytes) -> bytes:
        return hmac.digest(self._key, _PURPOSE + self.last + body, "sha256").hex()[:MARK_CHARS].encode("ascii")


def is_session_id(text: str) -> bool:
    """Whether this can be the id of a conversation, and so the name of its file."""
    return _ID.fullmatch(text) is not None


def time_of(text: str) -> str:
    """The text if it is a time as docs/formats.md has them, else ""."""
    return text if _TIME.fullmatch(text) else ""


def header_record(header: Header) -> Record:
    """The header as an object; what says nothing is left out."""
    record: Record = {"format": FORMAT, "id": header.id, "at": header.at, "cwd": header.cwd, "redaction": header.rules}
    named = (("brain", header.brain), ("model", header.model), ("title", header.title))
    record |= {name: value for name, value in (*named, ("forked_from", header.forked_from)) if value}
    return record


def header_of(line: bytes, shown: str) -> Header:
    """The header in the first line; unknown fields are left out.

    Args:
        shown: the file's name, which has to be the id's.
    Raises:
        StateDamaged: it is no header, or that of another conversation.
        StateError: a newer version wrote it.
    """
    try:
        record = decoded(line)
    except Malformed as error:
        raise damaged(shown, 1, str(error)) from None
    number = record.get("format")
    if type(number) is not int or number < 1:
        raise damaged(shown, 1, "it has no format number")
    if number > FORMAT:
        raise StateError(
            f"{shown} has format {number}; this version reads up to {FORMAT}",
            not_done="the conversation was not opened",
            hint="use the newer opsagent that wrote it",
        )
    for older in range(number, FORMAT):
        record = UPGRADES[older](record)
    texts = {name: record.get(name, "") for name in ("id", "at", "cwd", "brain", "model", "title", "forked_from")}
    wrong = next((name for name, value in texts.items() if not isinstance(value, str)), "")
    if wrong or not is_session_id(texts["id"]):
        raise damaged(shown, 1, f"its {wrong or 'id'} is none")
    if shown != f"{texts['id']}.jsonl":
        raise damaged(shown, 1, "it is that of another conversation")
    rules = record.get("redaction", 0)
    return Header(**texts, rules=rules if type(rules) is int else 0)


UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Format N → what makes a header of format N + 1 from it. Format 1 is the first."""


def damaged(shown: str, line: int, why: str) -> StateDamaged:
    """The error for a file of which line `line` (from 1) is not what was written."""
    return StateDamaged(
        f"line {line} of {shown} is damaged: {why}",
        not_done="the conversation was not opened, and the file was left as it is",
        hint=f"opsagent sessions fork {shown.removesuffix('.jsonl')} goes on from what stands before that line"
        if line > 1
        else "restore the file, or move it aside",
    )
