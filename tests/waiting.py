"""Waits for what another process or thread brings about, so that no test sleeps for a time it hopes is long enough."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Found = TypeVar("Found")
PATIENCE_S = 60.0
"""Only a fault waits so long, even on a busy machine."""
_LOOK_S = 0.02


def until(found: Callable[[], Found], what: str = "what was waited for", *, patience_s: float = PATIENCE_S) -> Found:
    """The first value of `found` that is true. Fails with `what` in its words when none comes in time."""
    end = time.monotonic() + patience_s
    while not (value := found()):
        if time.monotonic() > end:
            raise AssertionError(f"{what} never came")
        time.sleep(_LOOK_S)
    return value


def has_ended(pid: int) -> bool:
    """Whether a process runs no more: gone, or dead and not yet collected by whoever inherited it."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return True
