"""Whether a process that an old record names is still the one that was meant."""

from __future__ import annotations

import os


def boot_id() -> str:
    """This boot's random id (36 characters), or "" where the kernel has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def process_stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name, from the state on; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read(4096)
    except OSError:
        return None
    # The name may hold blanks and brackets: the last bracket ends it.
    return text[text.rindex(b")") + 2 :].decode("ascii", "replace").split()


def process_start(pid: int) -> int:
    """When the process began, in clock ticks since boot; 0 when there is none (or no /proc)."""
    fields = process_stat(pid)
    return int(fields[19]) if fields else 0


def is_alive(boot: str, pid: int, start: int) -> bool:
    """Whether the process of this boot, pid and start time still runs. A zombie does not.

    Without /proc (`start` 0 and no boot id) only the pid can be asked for, and the answer may be another process.
    """
    if boot != boot_id() or pid <= 0:
        return False
    if not boot and not start:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
    fields = process_stat(pid)
    return fields is not None and int(fields[19]) == start and fields[0] not in "ZX"


class ProcLiveness:
    """The port `guard.ports.Liveness` on this machine's process table."""

    def boot_id(self) -> str:
        """Names this boot; "" where the kernel has no boot id."""
        return boot_id()

    def start_of(self, pid: int) -> str:
        """When the process started, as ticks since boot; "" when there is none."""
        start = process_start(pid)
        return str(start) if start else ""

    def alive(self, boot: str, pid: int, start: str) -> bool:
        """True only if this boot's process `pid` still is the one that started at `start`."""
        return is_alive(boot, pid, int(start) if start.isdigit() else 0)
