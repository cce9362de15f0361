"""How records become bytes and come back, strictly. Pure. The fields are described in docs/formats.md.

Every file says its format by number. A reader takes older numbers through `upgrade_1_2`, `upgrade_2_3` …
(none exist yet), keeps entries of newer numbers as they are, and never guesses.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NoReturn

from guard.ledger.location import FORMAT

__all__ = [
    "FORMAT",
    "GENESIS",
    "MAX_DEPTH",
    "MAX_LINE_BYTES",
    "Entry",
    "Malformed",
    "decoded",
    "decoded_entry",
    "encoded",
    "is_sha256",
    "sha256_of",
]

GENESIS = "0" * 64
"""`prev` of the very first entry: there is no line before it."""

MAX_LINE_BYTES = 2 * 1024 * 1024
"""The longest line of any file here. A command of 65,536 bytes, escaped six-fold, is below 400,000."""

MAX_DEPTH = 32
"""Objects and lists within each other. Ours go three deep; what Python's own reader allows differs by version."""

Entry = dict[str, Any]
"""One record as it stands at the edge: JSON object, string keys."""


class Malformed(ValueError):
    """These bytes are not a record that we wrote."""


def encoded(record: Entry) -> bytes:
    """One line, ASCII only, LF at the end. Raises ValueError for what `decoded` refuses: NaN, too long, too deep."""
    text = json.dumps(record, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    if len(text) >= MAX_LINE_BYTES:
        raise ValueError(f"a record of {len(text)} bytes is longer than {MAX_LINE_BYTES}")
    if text.count("{") + text.count("[") > MAX_DEPTH and not _is_flat(record):
        raise ValueError(f"a record is more than {MAX_DEPTH} levels deep")
    return text.encode("ascii") + b"\n"


def decoded(line: bytes) -> Entry:
    """The object that a line holds.

    Raises:
        Malformed: not UTF-8, not one JSON object, a repeated key, NaN or Infinity, too deep, too long, NUL bytes.
    """
    if len(line) > MAX_LINE_BYTES:
        raise Malformed("longer than a record may be")
    try:
        value = _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Malformed(str(error)) from None
    if not isinstance(value, dict):
        raise Malformed("not an object")
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH and not _is_flat(value):
        raise Malformed(f"more than {MAX_DEPTH} levels deep")
    return value


def decoded_entry(line: bytes) -> Entry:
    """A log entry: an object whose `seq`, `prev`, `at` and `kind` are what they must be. Raises Malformed."""
    entry = decoded(line)
    seq, prev = entry.get("seq"), entry.get("prev")
    if type(seq) is not int or not 1 <= seq < 2**53:
        raise Malformed("no sequence number")
    if not isinstance(prev, str) or not is_sha256(prev):
        raise Malformed("no hash of the line before")
    if not isinstance(entry.get("at"), str) or not isinstance(entry.get("kind"), str):
        raise Malformed("no time or no kind")
    return entry


def sha256_of(data: bytes) -> str:
    """SHA-256 as 64 hex digits. A log line is hashed with its LF."""
    return hashlib.sha256(data).hexdigest()


def is_sha256(text: str) -> bool:
    """True for 64 lower-case hex digits."""
    return len(text) == 64 and not text.strip("0123456789abcdef")


def _is_flat(value: object) -> bool:
    """Whether a value is at most MAX_DEPTH deep; without recursion, since the depth is what is in question."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        if not inner:
            return True
        level = inner
    return False


def _object_of(pairs: list[tuple[str, Any]]) -> Entry:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is repeated")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object_of, parse_constant=_refuse_constant)
