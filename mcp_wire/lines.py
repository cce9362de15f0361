"""Lines in and out: each one strict JSON, read in one way only, over descriptors that nothing else can reach."""

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
LINE_BYTES = 16 * 1024 * 1024
"""A longer line is read to its end, thrown away and answered with an error."""


class Fault(Exception):
    """A line that is not a message. `answer` is the error to send, or None when there is nobody to tell."""

    def __init__(self, code: int, message: str, id: object = None, *, silent: bool = False) -> None:
        super().__init__(message)
        self.answer = None if silent else {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def object_of(line: bytes) -> dict[str, Any]:
    """The JSON object on one line. Raises Fault for everything that could be read in two ways, or in none."""
    try:
        text = line.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
        text.encode() if "\\u" not in text else json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Fault(INVALID_REQUEST, "Invalid Request: a lone surrogate is no text") from None
    except _Twice:
        raise Fault(INVALID_REQUEST, "Invalid Request: a name stands twice in one object") from None
    except (ValueError, RecursionError):
        raise Fault(PARSE_ERROR, "Parse error") from None
    if isinstance(value, list):
        raise Fault(INVALID_REQUEST, "Invalid Request: batches are not supported")
    if not isinstance(value, dict):
        raise Fault(INVALID_REQUEST, "Invalid Request: not an object")
    return value


class _Twice(Exception):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        # A host that shows its user one of the two values could have us run the other.
        raise _Twice
    return made


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def message_of(line: bytes, adapter: Any) -> Any:
    """The JSON-RPC message on one line, as the SDK's model. Raises Fault."""
    value = object_of(line)
    id = value.get("id")
    id = id if isinstance(id, str) or type(id) is int else None
    if id is None and "id" in value and "method" in value:
        # The SDK would take it for a notification and answer nothing.
        raise Fault(INVALID_REQUEST, "Invalid Request: an id is a text or a whole number")
    try:
        return adapter.validate_python(value, by_name=False)
    except (ValueError, RecursionError):
        # What carries no method is an answer to us, and what carries no id is a notification: neither is answered.
        silent = ("method" not in value and ("result" in value or "error" in value)) or (
            isinstance(value.get("method"), str) and "id" not in value
        )
        raise Fault(INVALID_REQUEST, "Invalid Request", id, silent=silent) from None


class Wire:
    """Descriptors 0 and 1, for this protocol alone: everything else in the process reads nothing and prints to stderr.

    A thread reads and a thread writes; a host that does not read makes its own calls wait, and nothing else.
    """

    def __init__(self) -> None:
        self._in = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
        self._out = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:
            os.dup2(nothing, 1)
        os.close(nothing)
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._broken = False
        self.heard_s = time.monotonic()
        """When the last bytes came, by the monotonic clock."""
        self._writer = threading.Thread(target=self._write, name="wire-out", daemon=True)
        self._writer.start()

    @property
    def is_full(self) -> bool:
        """The host does not read: whoever has a line waits before it queues one more."""
        return self._lines.qsize() >= QUEUED_LINES

    def put(self, line: str) -> None:
        """Queues one line; never waits."""
        self._lines.put(line.encode("utf-8", "replace") + b"\n")

    def close(self) -> None:
        """Writes what is queued, as far as the host still reads."""
        self._lines.put(None)
        self._writer.join(2.0)

    def read(self, deliver: Callable[[bytes], None], fault: Callable[[Fault], None]) -> None:
        """Delivers line after line until the end of the input."""
        rest, first, skipping = bytearray(), True, False
        while True:
            try:
                data = os.read(self._in, 1 << 16)
            except OSError:
                data = b""
            self.heard_s = time.monotonic()
            if not data:
                break
            *lines, last = data.split(b"\n")
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
                rest += last
                if len(rest) > LINE_BYTES:
                    skipping = True
                    rest.clear()
                    fault(Fault(INVALID_REQUEST, f"Invalid Request: a line has more than {LINE_BYTES:,} bytes"))
        if rest.strip():
            deliver(bytes(rest))

    def _write(self) -> None:
        while (data := self._lines.get()) is not None:
            view = memoryview(data)
            while view and not self._broken:
                try:
                    view = view[os.write(self._out, view) :]
                except OSError:
                    # The host is gone. Its input ends as well, and that ends the conversation.
                    self._broken = True
