"""Finds and ends what a run left behind: processes that left its group, by whatever way."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator

from guard.hands.liveness import process_stat

MARK = "OPSAGENT_RUN"
"""In each command's environment: the execution's own random name."""
HELPERS: set[int] = set()
"""Processes of ours that start others and are under a filter themselves: never taken for what a run left."""
_stuck: dict[int, str] = {}
"""Process → when it started (ticks since boot): what would not die, stuck in the kernel. It was named once, by the run
whose it is, and is waited for no more."""


def any_children() -> bool:
    """Whether this process has any child at all, running or dead. One system call; reaps nothing."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    except OSError:
        return True
    return True


def _processes() -> Iterator[tuple[int, list[str]]]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdigit():
            fields = process_stat(int(name))
            if fields is not None:
                yield int(name), fields


def _has_mark(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return mark in file.read(1 << 20)
    except OSError:
        return False


def filter_count(pid: int | str) -> int:
    """How many seccomp filters a process is under; -1 where the kernel does not tell."""
    try:
        with open(f"/proc/{pid}/status", "rb", buffering=0) as file:
            for line in file.read(8192).split(b"\n"):
                if line.startswith(b"Seccomp_filters:"):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return -1


def survivors(mark: str, session: int, *, alone: bool) -> tuple[list[int], list[int]]:
    """(running, dead but unreaped) processes of a run whose leader has ended.

    Args:
        mark: the value of OPSAGENT_RUN in its environment.
        session: its leader's pid.
        alone: no other run is active, so orphans under a filter of ours that show no mark (`env -i`, dead) are its.
    """
    wanted = f"{MARK}={mark}".encode()
    me, own_filters = os.getpid(), filter_count("self")
    table = dict(_processes())
    found: set[int] = set()
    for pid, fields in table.items():
        if pid == me or pid in HELPERS or (int(fields[1]) != me and int(fields[3]) != session):
            continue
        if _stuck.get(pid) == fields[19] and fields[0] not in "ZX":
            continue
        if int(fields[3]) == session or _has_mark(pid, wanted) or (alone and filter_count(pid) > own_filters >= 0):
            found.add(pid)
    grown = True
    while grown:
        more = {pid for pid, fields in table.items() if int(fields[1]) in found} - found
        found |= more
        grown = bool(more)
    running = [pid for pid in found if table[pid][0] not in "ZX"]
    return running, [pid for pid in found if table[pid][0] in "ZX" and int(table[pid][1]) == me]


def reap_sessions(sessions: Collection[int]) -> None:
    """Reaps our dead children that belong to one of these sessions and are not its leader."""
    if not sessions:
        return
    me = os.getpid()
    for pid, fields in _processes():
        if fields[0] == "Z" and int(fields[1]) == me and int(fields[3]) in sessions and pid != int(fields[3]):
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)


def sweep(
    mark: str, session: int, *, alone: bool, limit_s: float = 2.0, pause: Callable[[float], None] = time.sleep
) -> list[int]:
    """Kills them all, again and again until none is left. Returns those that would not die (stuck in the kernel)."""
    end = time.monotonic() + limit_s
    while True:
        running, dead = survivors(mark, session, alone=alone)
        for pid in dead:
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
        if not running:
            return []
        for pid in running:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > end:
            _stuck.update((pid, fields[19]) for pid in running if (fields := process_stat(pid)) is not None)
            return sorted(running)
        pause(0.005)
