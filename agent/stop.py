"""Why a turn is to end early, and the token that all of its waits look at."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from guard.hands.cancel import CancelToken

if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTED = 130
TIMED_OUT = 124


class Stop:
    """One turn's end before its end. `set` may be called from any thread and from a signal handler, any time.

    The first reason counts. After `close` nothing changes any more, so a late signal cannot reach another turn.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        """Args: wake: called after it was set; must be safe in a signal handler."""
        self.token = CancelToken()
        self.exit_code = 0
        """Why: INTERRUPTED or TIMED_OUT; 0 while it was not set."""
        self._wake = wake
        self._lock = threading.RLock()  # re-entrant: a signal handler may run inside `set` or `close`
        self._closed = False
        self._timer: threading.Timer | None = None

    def is_set(self) -> bool:
        return self.exit_code != 0

    def set(self, exit_code: int = INTERRUPTED) -> None:
        """Ends the turn soon."""
        with self._lock:
            if self._closed or self.exit_code:
                return
            self.exit_code = exit_code
            self.token.set()
        self._wake()

    def after(self, seconds: float) -> None:
        """Sets it as TIMED_OUT when so much time has passed."""
        self._timer = threading.Timer(seconds, self.set, (TIMED_OUT,))
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        """Gives the descriptors back; safe to call twice."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            if not self._closed:
                self._closed = True
                self.token.close()
