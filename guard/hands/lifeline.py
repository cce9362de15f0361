"""Ends sandboxed runs whose owner was killed: a small shell waits on a pipe, and its end means that we are gone.

Nobody keeps a read's time limit once this process is dead (SIGKILL, out of memory), and a parent-death signal would
have to be set between fork and exec, for which each run would pay. So one shell per process holds the list of runs.
"""

from __future__ import annotations

import contextlib
import os
import threading

from guard.hands.sweep import MARK

SHELL = "/bin/sh"
SCRIPT = """exec 3<&0 </dev/null
{
    trap '' HUP INT TERM
    runs=
    while read -r what mark group <&3; do
        left=
        for run in $runs; do
            [ "${run%%:*}" = "$mark" ] || left="$left $run"
        done
        runs=$left
        [ "$what" = begin ] && runs="$runs $mark:$group"
    done
    exec 3<&-
    for run in $runs; do
        [ "${run#*:}" = 0 ] || kill -s KILL -- "-${run#*:}"
        turns=0
        while [ "$turns" -lt 20 ]; do
            turns=$((turns + 1))
            found=$(grep -lsz "^$0=${run%%:*}\\$" /proc/[0-9]*/environ)
            # A process that is just becoming another program shows no environment: look again.
            [ -n "$found" ] || { [ "$turns" -gt 2 ] && break; sleep 0.1; }
            for path in $found; do
                path=${path#/proc/}
                kill -s KILL "${path%/environ}"
            done
        done
    done
} &
"""
"""$0 is the variable that marks a run's processes. The inner shell is no child of ours: the outer one ends at once,
before this process adopts orphans."""


class Lifeline:
    """The shell of one process. Threads may share it; without /bin/sh or /proc it does nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._end = -1

    def start(self) -> None:
        """Starts the shell once per process. Costs about 1.5 ms. Call it before orphans are adopted."""
        with self._lock:
            if self._owner == os.getpid():
                return
            self._owner, self._end = os.getpid(), -1
            with contextlib.suppress(OSError, AttributeError, NotImplementedError):
                self._end = _spawn()

    def begin(self, mark: str, group: int = 0) -> None:
        """A run with this mark is about to begin (0) or has this process group."""
        self._say(f"begin {mark} {group}")

    def end(self, mark: str) -> None:
        """The run is over: nothing is to be done about it any more."""
        self._say(f"end {mark} 0")

    def _say(self, line: str) -> None:
        if self._end >= 0 and self._owner == os.getpid():
            with contextlib.suppress(OSError):  # somebody killed the shell
                os.write(self._end, line.encode() + b"\n")


def _spawn() -> int:
    """The writing end of the shell's pipe. Raises OSError."""
    reading, writing = os.pipe()
    try:
        pid = os.posix_spawn(
            SHELL,
            [MARK, "-c", SCRIPT, MARK],
            {"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reading, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setsid=True,
        )
        os.waitpid(pid, 0)
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    os.set_blocking(writing, False)
    return writing


lifeline = Lifeline()
"""This process's own."""
