"""Server-sent events out of bytes: as much of the standard as model APIs use, in bounded memory.

Source: WHATWG HTML, 9.2.6. Lines end with LF, CRLF or CR and with nothing else (U+2028 is data); comments, ids and
retry times are passed over. An event that the end of the stream cuts off is not an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EVENT_BYTES = 8 * 1024 * 1024
"""The longest event: a whole reply in one delta is smaller, and a line that never ends does not fill the memory."""
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event."""

    name: str
    """"" where the server gave none."""
    data: bytes
    """Its data lines, joined by LF."""


class EventTooLong(ValueError):
    """One event is longer than EVENT_BYTES."""


def server_events(pieces: Iterable[bytes]) -> Iterator[ServerEvent]:
    """The events of a stream that comes in any pieces.

    Raises:
        EventTooLong: it is not read any further.
    """
    name, size = "", 0
    data: list[bytes] = []
    for line in _lines(pieces):
        if not line:
            if data:
                yield ServerEvent(name, b"\n".join(data))
            name, data, size = "", [], 0
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            size += len(value) + 1
            if size > EVENT_BYTES:
                raise EventTooLong
            data.append(value)
        elif field == b"event":
            name = value[:64].decode("utf-8", "replace")


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines without their ends. The last one, if nothing ends it, is not given: it may be half of one."""
    held: list[bytes] = []
    held_bytes = 0
    first, after_cr = True, False
    for piece in pieces:
        if after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
        if not piece:
            continue
        after_cr = piece.endswith(b"\r")
        # bytes.splitlines knows CR and LF only.
        lines = piece.splitlines(keepends=True)
        for line in lines:
            ended = line.endswith((b"\n", b"\r"))
            if held or not ended:
                held.append(line)
                held_bytes += len(line)
                if held_bytes > EVENT_BYTES + 64:
                    raise EventTooLong
                if not ended:
                    continue
                line = b"".join(held)
                held, held_bytes = [], 0
            line = line.rstrip(b"\r\n")
            if first:
                line, first = line.removeprefix(BOM), False
            yield line
