"""Reads a text that is piped in beside `-p TEXT`: its last 4 MiB, in bounded time and memory.

A pipe that stays silent (cron, a supervisor that keeps one open) is waited for a moment and then left alone; one that
never ends (`tail -f`) is left after a while, and what has come so far is used. Sockets and terminals are not read.
"""

from __future__ import annotations

import os
import select
import stat
import time
from typing import TYPE_CHECKING

from runbooks.model import Words
from runbooks.piped import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_S = 3.0
"""So long the first byte may take: `journalctl -u NAME` has to search before it writes."""
WHOLE_S = 10.0
"""So long the rest may take; half of what all checks together may take."""
_PIECE = 256 * 1024


class Read:
    """What came."""

    __slots__ = ("text", "cut", "silent")

    def __init__(self, text: str, cut: Words | None = None, *, silent: bool = False) -> None:
        self.text = text
        self.cut = cut
        """How the text is not whole, as a clause; None when it is."""
        self.silent = silent
        """There is a pipe, and nothing came in time."""


def read(
    fd: int = 0,
    *,
    stopped: Callable[[], bool] = lambda: False,
    monotonic: Callable[[], float] = time.monotonic,
) -> Read:
    """The text on `fd`, or an empty one when nothing is piped in. Undecodable bytes are replaced; NUL is dropped.

    Effects: reads `fd` to its end, or until FIRST_S without a byte, WHOLE_S in all, or `stopped`.
    """
    try:
        kind = os.fstat(fd)
    except OSError:
        return Read("")
    if stat.S_ISREG(kind.st_mode):
        left = kind.st_size - os.lseek(fd, 0, os.SEEK_CUR)
        if left > MOST_BYTES:
            os.lseek(fd, -MOST_BYTES, os.SEEK_END)
        data, ended = _drain(fd, stopped, monotonic)
        return _as_read(data, max(left, len(data)), ended)
    if not stat.S_ISFIFO(kind.st_mode):
        return Read("")
    total = [0]
    data, ended = _drain(fd, stopped, monotonic, total)
    if not data and not ended:
        return Read("", silent=True)
    return _as_read(data, total[0], ended)


def _drain(
    fd: int, stopped: Callable[[], bool], monotonic: Callable[[], float], total: list[int] | None = None
) -> tuple[bytes, bool]:
    """The last MOST_BYTES until the end, and whether the end was seen."""
    kept = bytearray()
    began = monotonic()
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while not stopped():
        limit_s = WHOLE_S if kept else FIRST_S
        left_s = limit_s - (monotonic() - began)
        if left_s <= 0:
            return bytes(kept), False
        if not poll.poll(min(left_s, 0.2) * 1000):
            continue
        piece = os.read(fd, _PIECE)
        if not piece:
            return bytes(kept), True
        kept += piece
        if total is not None:
            total[0] += len(piece)
        if len(kept) > 2 * MOST_BYTES:
            del kept[:-MOST_BYTES]
    return bytes(kept), False


def _as_read(data: bytes, total: int, ended: bool) -> Read:
    parts_en, parts_zh = [], []
    if total > MOST_BYTES:
        data = data[-MOST_BYTES:]
        data = data[data.find(b"\n") + 1 :]  # the first line is only a part of one
        mib = MOST_BYTES >> 20
        parts_en.append(f"its last {mib} MiB of {total / (1 << 20):,.1f}")
        parts_zh.append(f"仅末尾 {mib} MiB，共 {total / (1 << 20):,.1f} MiB")
    if not ended:
        parts_en.append(f"it did not end within {WHOLE_S:g} s")
        parts_zh.append(f"{WHOLE_S:g} 秒内没有结束")
    text = data.decode("utf-8", "replace").replace("\0", "")
    return Read(text, Words(", ".join(parts_en), "，".join(parts_zh)) if parts_en else None)
