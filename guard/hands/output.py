"""Bounded capture of one output stream: its head and its tail, in constant memory, however much is written."""

from __future__ import annotations

from guard.types import Captured

KEPT_CHARACTERS = 30_000
HEAD_CHARACTERS = 18_000
TAIL_CHARACTERS = 12_000
"""The beginning has the headers, the end has the verdict: three fifths and two fifths."""
_WHOLE_BYTES = KEPT_CHARACTERS * 4
_TAIL_BYTES = TAIL_CHARACTERS * 4 + 4


def cut_marker(cut_bytes: int, saved_to: str = "") -> str:
    """The line that stands where something was cut."""
    where = f"; full output: {saved_to}" if saved_to else ""
    return f"[... {cut_bytes:,} bytes cut here{where} ...]"


class Capture:
    """Takes chunks as they come; `captured` can be asked at any time."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._whole = bytearray()
        self._tail = bytearray()
        self._carry = b""
        self._undecodable = 0

    def feed(self, chunk: bytes | memoryview) -> None:
        """Takes the next bytes; keeps no reference to them."""
        data = bytes(chunk)
        self.size_bytes += len(data)
        self._count_undecodable(data)
        room = _WHOLE_BYTES - len(self._whole)
        if room > 0:
            self._whole += data[:room]
        if len(data) >= _TAIL_BYTES:
            self._tail = bytearray(data[-_TAIL_BYTES:])
            return
        self._tail += data
        if len(self._tail) > 4 * _TAIL_BYTES:
            del self._tail[:-_TAIL_BYTES]

    def _count_undecodable(self, data: bytes) -> None:
        if not self._carry and data.isascii():
            return
        text = self._carry + data
        cut = len(text) - _incomplete_end(text)
        self._carry = text[cut:]
        self._undecodable += _bad_bytes(text[:cut])

    def captured(self, saved_to: str = "") -> Captured:
        """What is kept, decoded."""
        bad = self._undecodable + len(self._carry)
        if self.size_bytes <= _WHOLE_BYTES:
            text = self._whole.decode("utf-8", "replace")
            if len(text) <= KEPT_CHARACTERS:
                return Captured(text, self.size_bytes, False, bad)
        head = self._whole[: self._head_end()]
        tail = self._tail[self._tail_start() :]
        marker = cut_marker(self.size_bytes - len(head) - len(tail), saved_to)
        text = head.decode("utf-8", "replace")
        joint = "" if text.endswith("\n") else "\n"
        text = f"{text}{joint}{marker}\n{tail.decode('utf-8', 'replace')}"
        return Captured(text, self.size_bytes, True, bad)

    def _head_end(self) -> int:
        """How many bytes the first HEAD_CHARACTERS take."""
        text = self._whole[: HEAD_CHARACTERS * 4].decode("utf-8", "surrogateescape")[:HEAD_CHARACTERS]
        return len(text.encode("utf-8", "surrogateescape"))

    def _tail_start(self) -> int:
        """Where the last TAIL_CHARACTERS begin, not in the middle of one."""
        text = bytes(self._tail).decode("utf-8", "surrogateescape")[-TAIL_CHARACTERS:]
        start = len(self._tail) - len(text.encode("utf-8", "surrogateescape"))
        return start


def _bad_bytes(text: bytes) -> int:
    # Bad bytes become lone surrogates, which "ignore" then leaves out: both steps run in C, even for pure noise.
    return len(text) - len(text.decode("utf-8", "surrogateescape").encode("utf-8", "ignore"))


def _incomplete_end(text: bytes) -> int:
    """How many bytes at the end begin a character that is not complete yet: 0 to 3."""
    for back in range(1, min(3, len(text)) + 1):
        byte = text[-back]
        if byte >= 0xC2:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4 if byte < 0xF5 else 1
            return back if needed > back else 0
        if byte < 0x80:
            return 0
    return 0
