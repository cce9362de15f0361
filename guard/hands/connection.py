"""Which ssh connection this process came in by, and when that was opened. Reads /proc."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from guard.hands.liveness import process_start, process_stat

SERVERS = frozenset(("sshd", "sshd-session", "sshd-auth"))
"""Names of the process that serves one connection; OpenSSH 9.8 made it a program of its own."""
_MOST_ANCESTORS = 64
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection that a process came in by."""

    server: int
    """Pid of the sshd that serves it."""
    opened_at_s: float
    """Seconds since 1970, by the wall clock as it is now, in steps of 10 ms."""


def connection_of(pid: int) -> Connection | None:
    """The connection of the nearest sshd above a process; None for a console, a service or a detached terminal.

    A second session over a connection that is shared belongs to the same sshd, so it is as old as the first one.
    """
    for _ in range(_MOST_ANCESTORS):
        fields = process_stat(pid)
        if fields is None or pid <= 1:
            return None
        if _name_of(pid) in SERVERS:
            return Connection(pid, _opened_at(pid))
        pid = int(fields[1])
    return None


def _name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _opened_at(pid: int) -> float:
    ago = time.clock_gettime(_BOOT_CLOCK) - process_start(pid) / os.sysconf("SC_CLK_TCK")
    return time.time() - ago
