"""Bytes from the thread that reads a connection to the one that waits for them, bounded, and stopped by a `Cancel`."""

from __future__ import annotations

import os
import selectors
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from guard.ports import Cancel

HELD_BYTES = 256 * 1024
"""The reading thread waits while so much lies ready: a slow reader costs the server its patience, not us memory."""


class Gone(Exception):
    """Nobody waits for the bytes any more."""


class Handover:
    """One writer, one reader. Not to be used again after `close`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ready: list[bytes] = []
        self._held = 0
        self._ended = False
        self._closed = False
        self._signalled = False
        self._reads, self._writes = os.pipe()

    @property
    def closed(self) -> bool:
        return self._closed

    def put(self, data: bytes) -> None:
        """Hands bytes over; waits while too much lies ready.

        Raises:
            Gone: the reader has closed.
        """
        with self._changed:
            while self._held > HELD_BYTES and not self._closed:
                self._changed.wait()
            if self._closed:
                raise Gone
            self._ready.append(data)
            self._held += len(data)
            self._signal()

    def end(self) -> None:
        """Says that nothing more comes."""
        with self._changed:
            self._ended = True
            self._signal()

    def wait(self, cancel: Cancel, most_s: float) -> bool:
        """Waits until there is something to take, or the end, or `cancel`, or the time is over: False only then.

        A token without a descriptor is one that nobody sets.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._reads, selectors.EVENT_READ)
            if cancel.fileno() >= 0:
                selector.register(cancel.fileno(), selectors.EVENT_READ)
            return bool(selector.select(most_s))

    def take(self) -> tuple[bytes, bool]:
        """What lies ready, and whether it was the last."""
        with self._changed:
            data = b"".join(self._ready)
            self._ready.clear()
            self._held = 0
            # Both are closed together, under this lock: a descriptor that was given back is never touched.
            if self._signalled and not self._ended and not self._closed:
                os.read(self._reads, 1)
                self._signalled = False
            self._changed.notify_all()
            return data, self._ended

    def close(self) -> None:
        """Nobody waits any more; safe to call twice and while the writer still writes."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._ready.clear()
            self._changed.notify_all()
            os.close(self._reads)
            os.close(self._writes)

    def _signal(self) -> None:
        if not self._signalled and not self._closed:
            self._signalled = True
            os.write(self._writes, b"x")


def until_end(handover: Handover, cancel: Cancel, most_s: float) -> Iterator[bytes]:
    """Every piece until the writer's end or `cancel`.

    Raises:
        TimeoutError: nothing at all happened for `most_s`.
    """
    while not cancel.is_set():
        data, ended = handover.take()
        if data:
            yield data
        elif ended:
            return
        elif not handover.wait(cancel, most_s):
            raise TimeoutError
