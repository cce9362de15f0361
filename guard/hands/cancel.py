"""A token that stops waiting from another thread or from a signal handler."""

from __future__ import annotations

import os


class CancelToken:
    """Set once; everything that waits on `fileno()` in a selector wakes up. Safe in a signal handler."""

    def __init__(self) -> None:
        self._set = False
        self._reads, self._writes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if hasattr(os, "pipe2") else os.pipe()

    def set(self) -> None:
        """Stops whatever waits, now and later. Setting it twice changes nothing."""
        if not self._set:
            self._set = True
            os.write(self._writes, b"x")

    def is_set(self) -> bool:
        return self._set

    def fileno(self) -> int:
        """Becomes readable when the token is set, and stays so: the byte is never read."""
        return self._reads

    def close(self) -> None:
        """Gives the descriptors back; the token must not be used after that."""
        os.close(self._reads)
        os.close(self._writes)
