"""The limits of what a sandboxed run may use, and how they are set on its first process."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of each process of a run; the kernel's, by setrlimit(2)."""

    data_bytes: int
    file_bytes: int = 512 << 20
    descriptors: int = 4096
    more_processes: int = 1024
    """Beyond what runs on the machine at the start: RLIMIT_NPROC counts all of a user's."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of all processes of a run together, where a control group can hold them (`cgroup.py`)."""

    memory_bytes: int
    """Cached file contents count, and go first."""
    threads: int = 1024


def default_limits() -> Limits:
    """Half of the memory, at most 4 GiB and at least 512 MiB, of private writable memory per process."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Limits(data_bytes=max(512 << 20, min(4 << 30, memory // 2)))


def run_limits() -> RunLimits:
    """Half of the memory, at most 8 GiB and at least 512 MiB."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return RunLimits(memory_bytes=max(512 << 20, min(8 << 30, memory // 2)))


LIMITS = default_limits()
RUN_LIMITS = run_limits()


def threads_on_machine() -> int:
    """How many threads there are, from /proc/loadavg; 0 when it cannot be read."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            return int(file.read(128).split()[3].partition(b"/")[2])
    except (OSError, IndexError, ValueError):
        return 0


def wanted_limits(limits: Limits = LIMITS) -> tuple[tuple[int, int], ...]:
    """(resource of setrlimit(2), value) as of now."""
    return (
        # One byte, not 0: only this value also stops a dump into a program (core(5), "piping core dumps").
        (resource.RLIMIT_CORE, 1),
        # Not RLIMIT_AS: Go, Java and V8 reserve far more addresses than they use.
        (resource.RLIMIT_DATA, limits.data_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.descriptors),
        (resource.RLIMIT_NPROC, threads_on_machine() + limits.more_processes),
    )


def set_limits(pid: int, limits: Limits = LIMITS) -> None:
    """Sets them on a process that is stopped in its first intercepted call. Raises OSError."""
    for kind, wanted in wanted_limits(limits):
        _, hard = resource.prlimit(pid, kind)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.prlimit(pid, kind, (value, value))
