"""Output for somebody who looks on while it comes: all of it at the pace of people, of a flood its beginning and end.

Redacting costs a fifth of a second a megabyte, and the command waits for whoever takes its output. So what comes faster
is held back as it came, bounded, and only what is shown of it is redacted. What is left out is said in its place.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from guard.ports import Clock
    from guard.redact import Redactor

BURST_BYTES = 1 << 20
"""So much is shown at once, however fast it comes."""
BYTES_PER_S = 1 << 19
"""The pace that is kept up with: a tenth of a core's redaction."""
KEPT_BYTES = 1 << 19
"""What is held back of a flood, its newest part; more than any reader of a run's output pages through."""
CONTEXT_BYTES = 1 << 16
"""Read before what is shown after a gap, so that a secret of several lines is not met without its beginning: more than
the longest, a 16,384 bit RSA key in PEM form with 12.7 kB."""


@dataclass(frozen=True, slots=True)
class Onlooker:
    """Marks whoever takes output as one who only looks on and can do without the middle of a flood."""

    give: Callable[[str, bytes], None]
    """Gets `stdout`/`stderr` and redacted bytes."""

    def __call__(self, stream: str, data: bytes) -> None:
        self.give(stream, data)


class Followed:
    """One stream on its way to an onlooker; used as a redacting byte stream is (`guard.redact.ByteStream`)."""

    def __init__(self, redactor: Redactor, clock: Clock) -> None:
        self._stream = redactor.byte_stream()
        self._clock = clock
        self._budget = float(BURST_BYTES)
        self._asked_s = clock.boot_s()
        self._late: collections.deque[bytes] = collections.deque()
        self._late_bytes = 0
        self._dropped_bytes = 0

    def feed(self, data: bytes) -> bytes:
        """Takes the next bytes and returns what can be shown by now."""
        now_s = self._clock.boot_s()
        self._budget = min(BURST_BYTES, self._budget + (now_s - self._asked_s) * BYTES_PER_S)
        self._asked_s = now_s
        self._late.append(data)
        self._late_bytes += len(data)
        if self._late_bytes <= self._budget:
            return self._caught_up()
        while self._late_bytes - len(self._late[0]) >= KEPT_BYTES + CONTEXT_BYTES:
            gone = len(self._late.popleft())
            self._late_bytes -= gone
            self._dropped_bytes += gone
        return b""

    def flush(self) -> bytes:
        """Ends the stream and returns the rest."""
        return self._caught_up() + self._stream.flush()

    def _caught_up(self) -> bytes:
        data, shown = b"".join(self._late), b""
        self._late.clear()
        self._late_bytes = 0
        self._budget -= len(data)
        if self._dropped_bytes:
            start = data.find(b"\n", CONTEXT_BYTES) + 1 or min(CONTEXT_BYTES, len(data))
            shown = self._stream.flush() + f"\n[… {self._dropped_bytes + start:,} bytes left out …]\n".encode()
            # Read for what it tells of the lines after it, such as a key that is still open; not shown.
            self._stream.feed(data[:start])
            data, self._dropped_bytes = data[start:], 0
        return shown + self._stream.feed(data)
