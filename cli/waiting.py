"""Says on a terminal, from time to time, what is taking so long."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from cli.report import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUIET_S = 2.0
"""Nothing is said before so much time has passed (a person wonders after two seconds)."""
EVERY_S = 5.0


class Waiting:
    """One line after QUIET_S, then one every EVERY_S, from a thread of its own. For a `with` block."""

    def __init__(self, shown: bool, *, stream: Any = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._shown, self._stream, self._now = shown, stream or sys.stderr, monotonic
        self._began_s = monotonic()
        self._running: dict[str, str] = {}
        self._lock = threading.Lock()
        self._hidden = False
        self._ended = threading.Event()

    def __enter__(self) -> None:
        if self._shown:
            threading.Thread(target=self._run, name="waiting", daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def now(self, id: str, what: str) -> None:
        """A tool is at work."""
        with self._lock:
            self._running[id] = what

    def over(self, id: str) -> None:
        with self._lock:
            self._running.pop(id, None)

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Nothing is said while a person is asked, and the time that they take is not counted."""
        with self._lock:
            self._hidden = True
        before_s = self._now()
        try:
            yield
        finally:
            with self._lock:
                self._hidden = False
                self._began_s += self._now() - before_s

    def words(self) -> str:
        """What would be said now."""
        with self._lock:
            what = next(iter(self._running.values()), "")
            passed_s = self._now() - self._began_s
            more = f" and {len(self._running) - 1} more" if len(self._running) > 1 else ""
        return f"working for {passed_s:.0f} s ({safe(what) + more if what else 'waiting for the model'})"

    def _run(self) -> None:
        wait_s = QUIET_S
        while not self._ended.wait(wait_s):
            wait_s = EVERY_S
            if not self._hidden:
                self._stream.write(f"opsagent: {self.words()}\n")
                self._stream.flush()
