"""A limit on processes that binds uid 0 too, where there is a pids cgroup (version 1) that we may write.

Version 1 takes single threads, so the worker threads are put in once and all that they start is counted. In
version 2 a group with threads of a process outside it makes the parent group "threaded", which is not ours
to change on a machine that systemd runs: there, processes are counted and ended instead (`process.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from dataclasses import dataclass

from guard.hands.liveness import process_start
from guard.hands.sandbox.scratch import PREFIX

MAX_THREADS = 2048
"""In all runs of this process together, workers included."""
ROOT = "/sys/fs/cgroup/pids"


@dataclass(frozen=True, slots=True)
class PidsGroup:
    """A folder of the pids hierarchy with `pids.max` set."""

    folder: str

    def take(self, thread: int) -> None:
        """Moves one thread in; what it starts from now on is counted there. Raises OSError."""
        with open(f"{self.folder}/tasks", "w") as file:
            file.write(str(thread))

    def remove(self) -> None:
        """Moves what is in it (our own worker threads at exit) back to the parent group, and removes it."""
        with contextlib.suppress(OSError):
            with open(f"{self.folder}/tasks") as file:
                threads = file.read().split()
            for thread in threads:
                with open(f"{os.path.dirname(self.folder)}/tasks", "w") as file:
                    file.write(thread)
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)


def make_pids_group(root: str = ROOT) -> PidsGroup | None:
    """A new group below our own, for uid 0 only; None where that is not possible."""
    if os.geteuid() != 0:
        return None
    parent = _own_group(root)
    if parent is None:
        return None
    pid = os.getpid()
    group = PidsGroup(f"{parent}/{PREFIX}{pid}-{process_start(pid)}-{os.urandom(3).hex()}")
    try:
        _remove_abandoned(parent)
        os.mkdir(group.folder, 0o755)
        with open(f"{group.folder}/pids.max", "w") as file:
            file.write(str(MAX_THREADS))
    except OSError:
        group.remove()
        return None
    atexit.register(group.remove)
    return group


def _own_group(root: str) -> str | None:
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as lines:
            for line in lines:
                _, controllers, path = line.rstrip("\n").split(":", 2)
                if "pids" in controllers.split(","):
                    folder = f"{root}{path}".rstrip("/")
                    return folder if os.path.isfile(f"{folder}/tasks") else None
    except (OSError, ValueError):
        return None
    return None


def _remove_abandoned(parent: str) -> None:
    """Groups of processes that were killed: empty ones only can be removed."""
    with os.scandir(parent) as entries:
        for entry in entries:
            parts = entry.name.split("-")
            ours = len(parts) == 4 and f"{parts[0]}-" == PREFIX and parts[1].isdigit() and parts[2].isdigit()
            # In another pid namespace the number says nothing: only old ones, and only an empty one can go.
            old = ours and time.time() - entry.stat().st_ctime > 60
            if old and process_start(int(parts[1])) != int(parts[2]):
                PidsGroup(entry.path).remove()
