"""Lines of a protocol, in and out: each one strict JSON, read in one way only, over descriptors nothing else can reach.

Under every server on standard input and output. Loaded before anything else there, so that nothing can print into it.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PARSE_ERROR, INVALID_REQUEST = -32700, -32600

QUEUED_LINES = 64
QUEUED_BYTES = 16 * 1024 * 1024
LINE_BYTES = 16 * 1024 * 1024
"""A longer line is read to its end, thrown away and answered with an error."""
FULL_CHECK_S = 0.02


class Fault(Exception):
    """A line that is not a message. `answer` is the error to send, or None when there is nobody to tell."""

    def __init__(self, code: int, message: str, id: object = None, *, silent: bool = False) -> None:
        super().__init__(message)
        self.answer = None if silent else {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def value_of(line: bytes) -> Any:
    """The JSON value on one line. Raises Fault for everything that could be read in two ways, or in none."""
    try:
        text = line.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
        text.encode() if "\\u" not in text else json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Fault(INVALID_REQUEST, "Invalid Request: a lone surrogate is no text") from None
    except _Twice:
        raise Fault(INVALID_REQUEST, "Invalid Request: a name stands twice in one object") from None
    except _NotFinite:
        raise Fault(INVALID_REQUEST, "Invalid Request: a number is not finite") from None
    except (ValueError, RecursionError):
        raise Fault(PARSE_ERROR, "Parse error") from None
    return value


def object_of(line: bytes) -> dict[str, Any]:
    """The JSON object on one line, where nothing else is a message. Raises Fault."""
    value = value_of(line)
    if isinstance(value, list):
        raise Fault(INVALID_REQUEST, "Invalid Request: batches are not supported")
    if not isinstance(value, dict):
        raise Fault(INVALID_REQUEST, "Invalid Request: not an object")
    return value


class _Twice(Exception):
    pass


class _NotFinite(Exception):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        # A host that shows its user one of the two values could have us run the other.
        raise _Twice
    return made


def _no_constant(name: str) -> Any:
    raise _NotFinite


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _NotFinite
    return number


def _moved(fd: int) -> int:
    """A descriptor of our own for what `fd` is; for one that was closed by the caller, nothing to read and to write."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    except OSError:
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        moved = fcntl.fcntl(nothing, fcntl.F_DUPFD_CLOEXEC, 3)
        os.close(nothing)
        return moved


class Wire:
    """Descriptors 0 and 1, for this protocol alone: everything else in the process reads nothing and prints to stderr.

    A thread reads and a thread writes; a peer that does not read makes its own calls wait, and nothing else.
    """

    def __init__(self, broken: Callable[[], None] = lambda: None) -> None:
        """Args: broken: called once, from the writing thread, when nobody can read any more."""
        self._in, self._out = _moved(0), _moved(1)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:
            os.dup2(nothing, 1)
        if nothing > 2:  # it may have got the number of one that the caller had closed
            os.close(nothing)
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._queued_bytes = 0
        self._on_broken, self._broken = broken, False
        self.heard_s = time.monotonic()
        """When the last bytes came, by the monotonic clock."""
        self._writer = threading.Thread(target=self._write, name="wire-out", daemon=True)
        self._writer.start()

    @property
    def is_full(self) -> bool:
        """The peer does not read: whoever has a line waits before it queues one more."""
        return self._lines.qsize() >= QUEUED_LINES or self._queued_bytes >= QUEUED_BYTES

    def put(self, line: str) -> None:
        """Queues one line; never waits."""
        data = line.encode("utf-8", "replace") + b"\n"
        with self._lock:
            self._queued_bytes += len(data)
        self._lines.put(data)

    def put_when_read(self, line: str) -> None:
        """Queues one line once the peer has read enough of those before it, or is gone."""
        while self.is_full:
            time.sleep(FULL_CHECK_S)
        self.put(line)

    def close(self) -> None:
        """Writes what is queued, as far as the peer still reads."""
        self._lines.put(None)
        self._writer.join(2.0)

    def hang_up(self) -> None:
        """Nothing is written from here on; whoever waits to write goes on."""
        self._broken = True

    def read(
        self,
        deliver: Callable[[bytes], None],
        fault: Callable[[Fault], None],
        last: Callable[[bytes], None] | None = None,
    ) -> None:
        """Delivers line after line until the end of the input; `last` gets one that has no end, else `deliver`."""
        rest, first, skipping = bytearray(), True, False
        while True:
            try:
                data = os.read(self._in, 1 << 16)
            except OSError:
                data = b""
            self.heard_s = time.monotonic()
            if not data:
                break
            *lines, tail = data.split(b"\n")
            for line in lines:
                whole = bytes(rest) + line
                rest.clear()
                if skipping:
                    skipping = False
                    continue
                if first:
                    whole, first = whole.removeprefix(b"\xef\xbb\xbf"), False
                if whole.strip():
                    deliver(whole)
            if not skipping:
                rest += tail
                if len(rest) > LINE_BYTES:
                    skipping = True
                    rest.clear()
                    fault(Fault(INVALID_REQUEST, f"Invalid Request: a line has more than {LINE_BYTES:,} bytes"))
        if rest.strip():
            (last or deliver)(bytes(rest))

    def _write(self) -> None:
        while (data := self._lines.get()) is not None:
            view = memoryview(data)
            while view and not self._broken:
                try:
                    view = view[os.write(self._out, view) :]
                except OSError:
                    self._broken = True
                    self._on_broken()
            with self._lock:
                self._queued_bytes -= len(data)
