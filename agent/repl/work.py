"""What runs beside the screen: one turn or run at a time, and commands one after another. Threads; tells by `post`."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Work:
    """The threads of one screen. Its methods are called in the screen's thread."""

    def __init__(
        self,
        post: Callable[[Callable[[], None]], None],
        *,
        fault: Callable[[Exception], None],
        over: Callable[[str], None],
        after: Callable[[], None],
    ) -> None:
        """
        Args:
            post: runs a function in the screen's thread.
            fault: gets what broke, in the screen's thread; a fault of ours must not end the conversation.
            over: gets the name of what `begin` began, in the screen's thread.
            after: done in the working thread before that.
        """
        self.name = ""
        """Of what `begin` began; "" when nothing is at work."""
        self._post, self._fault, self._over, self._after = post, fault, over, after
        self._began_s = 0.0
        self._main: threading.Thread | None = None
        self._beside: threading.Thread | None = None
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._left = 0

    def begin(self, name: str, run: Callable[[], None]) -> None:
        """Begins the one thing that is at work. Raises ValueError when there is one already."""
        if self.name:
            raise ValueError(f"{self.name} is at work")
        self.name, self._began_s = name, time.monotonic()

        def work() -> None:
            self._guarded(run)
            self._guarded(self._after)
            self._post(self._done)

        self._main = threading.Thread(target=work, name="work", daemon=True)
        self._main.start()

    def beside(self, run: Callable[[], None]) -> None:
        """Does something small beside it, after what was given before."""
        self._left += 1
        self._waiting.put(run)
        if self._beside is None:
            self._beside = threading.Thread(target=self._small, name="beside", daemon=True)
            self._beside.start()

    def elapsed_s(self) -> float:
        """How long what is at work has been."""
        return time.monotonic() - self._began_s

    def is_busy(self) -> bool:
        """Whether anything, great or small, is not done yet."""
        return bool(self.name) or self._left > 0

    def join(self, timeout_s: float) -> None:
        """Waits for the end of all of it; callable from any thread."""
        self._waiting.put(None)
        for thread in (self._main, self._beside):
            if thread is not None:
                thread.join(timeout_s)

    def _done(self) -> None:
        was, self.name = self.name, ""
        self._over(was)

    def _small(self) -> None:
        while (run := self._waiting.get()) is not None:
            self._guarded(run)
            self._post(self._one_less)

    def _one_less(self) -> None:
        self._left -= 1

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except Exception as error:
            self._post(lambda error=error: self._fault(error))  # type: ignore[misc]
