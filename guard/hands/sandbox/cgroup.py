"""Limits on all processes of a run together: memory and how many there are, where a control group can be made.

Each run gets a group of its own, below one that exists and may be written, and goes into it while its shell waits in
the first call that it makes to the supervisor or, where there is none, for the end of its input. uid 0 is bound by it,
too.

What is never done is to rearrange the group that we are in. In version 2 a group with processes can hand no controllers
down, and one that was emptied for that would be in the way of whoever runs us (`docker exec`, systemd) if we were
killed. So a run's group lies below the nearest ancestor that hands the controllers down already: a slice, or what
systemd delegated to a user.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from guard.hands.liveness import process_start
from guard.hands.sandbox.limits import RUN_LIMITS
from guard.hands.sandbox.scratch import PREFIX

KEPT = 4
"""Groups that wait for their next run."""
END_LIMIT_S = 0.5
"""How long the end of what is left in a group is waited for. What is stuck in the kernel takes longer, or for ever."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder in which a run's group can be made."""

    parent: str
    limits: tuple[tuple[str, str], ...]
    """(file, what is written to it), in this order."""
    wished: tuple[tuple[str, str], ...] = ()
    """The same, as far as the kernel has the file."""
    counters: tuple[tuple[str, str, str], ...] = ()
    """(file, its line, what it means when that is not 0)."""

    @property
    def controls(self) -> frozenset[str]:
        """`memory`, `pids`."""
        return frozenset(name.partition(".")[0] for name, _ in self.limits)


Folders = list[tuple[str, Place]]
"""A group: its folder in each place."""

_MEMORY = str(RUN_LIMITS.memory_bytes)
_TOO_MUCH = f"processes were ended for want of memory (limit {RUN_LIMITS.memory_bytes >> 20} MiB for a run)"
_TOO_MANY = f"it wanted more than {RUN_LIMITS.threads} processes, and got no more"


def version_1(parent: str, controller: str) -> Place:
    """A place in a hierarchy of version 1."""
    if controller == "pids":
        return Place(parent, (("pids.max", str(RUN_LIMITS.threads)),), (), (("pids.events", "max", _TOO_MANY),))
    return Place(
        parent,
        (("memory.limit_in_bytes", _MEMORY),),
        (("memory.memsw.limit_in_bytes", _MEMORY),),
        (("memory.oom_control", "oom_kill", _TOO_MUCH),),
    )


def version_2(parent: str, controllers: frozenset[str]) -> Place:
    """A place in the unified hierarchy, for those of `memory` and `pids` that its parent hands down."""
    limits: list[tuple[str, str]] = []
    wished: list[tuple[str, str]] = []
    counters = []
    if "memory" in controllers:
        limits.append(("memory.max", _MEMORY))
        wished.append(("memory.swap.max", "0"))
        counters.append(("memory.events", "oom_kill", _TOO_MUCH))
    if "pids" in controllers:
        limits.append(("pids.max", str(RUN_LIMITS.threads)))
        counters.append(("pids.events", "max", _TOO_MANY))
    return Place(parent, tuple(limits), tuple(wished), tuple(counters))


class RunGroup:
    """One run's group: a folder in each place."""

    def __init__(self, folders: Folders, let_go: Callable[[Folders, bool], None]) -> None:
        self.folders = folders
        self._let_go = let_go

    def take(self, pid: int) -> None:
        """Moves a process in, unless it has ended; what it starts from now on is in there, too. Raises OSError."""
        for folder, _ in self.folders:
            with contextlib.suppress(ProcessLookupError):
                _write(f"{folder}/cgroup.procs", str(pid))

    def end(self) -> list[str]:
        """Ends what is left in it. Returns what there is to say about the run: which limits were met."""
        told = []
        for folder, place in self.folders:
            told += [means for name, line, means in place.counters if _counter(f"{folder}/{name}", line)]
        self._let_go(self.folders, not told and all(_is_empty(folder) for folder, _ in self.folders))
        return told


class RunGroups:
    """Makes the groups of this process's runs. Threads may share it.

    A group in which all went well is kept for the next run: the kernel keeps a removed one for as long as it remembers
    contents of files that were read in it.
    """

    def __init__(self, places: list[Place]) -> None:
        self.places = places
        self._lock = threading.Lock()
        self._idle: list[Folders] = []
        self._made: dict[str, None] = {}
        self._stuck: list[str] = []
        self._owner = os.getpid()
        weakref.finalize(self, _remove_made, self._made, self._owner)
        for place in places:
            _remove_abandoned(place.parent)

    @property
    def controls(self) -> frozenset[str]:
        """What is limited for a run as a whole: `memory`, `pids`, both or nothing."""
        return frozenset().union(*(place.controls for place in self.places))

    def new(self) -> RunGroup:
        """An empty group with its limits set. Raises OSError; nothing is left then."""
        with self._lock:
            if self._owner != os.getpid():  # after a fork they are the other process's
                self._owner, self._idle, self._made, self._stuck = os.getpid(), [], {}, []
                weakref.finalize(self, _remove_made, self._made, self._owner)
            while self._idle:
                folders = self._idle.pop()
                if all(os.path.isdir(folder) for folder, _ in folders):
                    return RunGroup(folders, self._let_go)
            self._stuck = [folder for folder in self._stuck if not self._forget(folder, gone=_removed(folder))]
        return self._make()

    def _make(self) -> RunGroup:
        group = RunGroup([], self._let_go)
        pid = os.getpid()
        try:
            for place in self.places:
                folder = f"{place.parent}/{PREFIX}{pid}-{process_start(pid)}-{os.urandom(3).hex()}"
                os.mkdir(folder, 0o755)
                self._made[folder] = None
                group.folders.append((folder, place))
                for name, value in place.limits:
                    _write(f"{folder}/{name}", value)
                for name, value in place.wished:
                    with contextlib.suppress(OSError):
                        _write(f"{folder}/{name}", value)
        except OSError:
            self._let_go(group.folders, False)
            raise
        return group

    def _let_go(self, folders: Folders, again: bool) -> None:
        """Keeps a group for the next run, or ends what is in it and removes it."""
        with self._lock:
            if again and len(self._idle) < KEPT:
                self._idle.append(folders)
                return
        for folder, _ in folders:
            gone = _remove(folder)
            with self._lock:
                if not self._forget(folder, gone=gone):
                    self._stuck.append(folder)

    def _forget(self, folder: str, *, gone: bool) -> bool:
        if gone:
            self._made.pop(folder, None)
        return gone

    def close(self) -> None:
        """Removes the groups that wait. Further ones can be made."""
        with self._lock:
            idle, self._idle = self._idle, []
        for folders in idle:
            self._let_go(folders, False)


def _remove_made(made: dict[str, None], owner: int) -> None:
    if os.getpid() == owner:  # a forked child leaves by the same way
        for folder in made:
            _remove(folder)


def find_groups(mounts: str = "/proc/self/mountinfo", own: str = "/proc/self/cgroup") -> RunGroups:
    """Where this process may make groups for its runs; tried, not assumed. Never raises."""
    chosen: list[Place] = []
    missing = {"memory", "pids"}
    for place in _candidates(mounts, own):
        if place.controls & missing and _holds(place):
            chosen.append(place)
            missing -= place.controls
    return RunGroups(chosen)


def _holds(place: Place) -> bool:
    """Whether a group with its limits can be made there and a process of ours be moved into it."""
    if not os.access(f"{place.parent}/cgroup.procs", os.W_OK):
        return False
    groups = RunGroups([place])
    try:
        groups.new().end()
    except OSError:
        return False
    groups.close()
    return True


def _candidates(mounts: str, own: str) -> Iterator[Place]:
    """Version 2 first, from our own group upwards; then our own groups of version 1."""
    paths = dict(_own_paths(own))
    hierarchies = list(_hierarchies(mounts))
    for controllers, root, point in hierarchies:
        if controllers is None and "" in paths:
            folder = _folder(root, point, paths[""])
            while folder and folder.startswith(point):
                handed = _handed_down(folder)
                if handed:
                    yield version_2(folder, handed)
                folder = os.path.dirname(folder)
    for controllers, root, point in hierarchies:
        for name in ("memory", "pids"):
            if controllers is not None and name in controllers and name in paths:
                folder = _folder(root, point, paths[name])
                if folder:
                    yield version_1(folder, name)


def _own_paths(own: str) -> Iterator[tuple[str, str]]:
    """(controller, path in its hierarchy); the controller is "" for version 2."""
    try:
        with open(own, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                _, names, path = line.rstrip("\n").split(":", 2)
                for name in names.split(","):
                    yield name, path
    except (OSError, ValueError):
        return


def _hierarchies(mounts: str) -> Iterator[tuple[list[str] | None, str, str]]:
    """(controllers, None for version 2; which folder of the hierarchy is mounted; where)."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                left, _, right = line.rstrip("\n").partition(" - ")
                kind, _, options = right.split(" ", 2)
                if kind in ("cgroup", "cgroup2"):
                    fields = left.split(" ")
                    yield (None if kind == "cgroup2" else options.split(",")), fields[3], fields[4]
    except (OSError, ValueError, IndexError):
        return


def _folder(root: str, point: str, path: str) -> str:
    """Where a group's folder is below a mount that shows `root` of the hierarchy; "" when it is not shown."""
    if "/.." in path:
        return ""  # outside of our cgroup namespace
    if root != "/":
        if path != root and not path.startswith(root + "/"):
            return ""
        path = path[len(root) :]
    folder = (point + path).rstrip("/")
    return folder if os.path.isdir(folder) else ""


def _handed_down(folder: str) -> frozenset[str]:
    try:
        with open(f"{folder}/cgroup.subtree_control", encoding="ascii") as file:
            return frozenset(file.read().split()) & {"memory", "pids"}
    except OSError:
        return frozenset()


def _counter(path: str, line: str) -> int:
    try:
        with open(path, encoding="ascii") as file:
            for each in file:
                name, _, value = each.partition(" ")
                if name == line:
                    return int(value)
    except (OSError, ValueError):
        pass
    return 0


def _write(path: str, value: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)  # never makes a file where there is no such setting
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def _remove(folder: str, pause: Callable[[float], None] = time.sleep) -> bool:
    """Ends what is in a group of ours and removes it. False when something that is stuck in the kernel keeps it."""
    end = time.monotonic() + END_LIMIT_S
    while not _removed(folder):
        _kill_all(folder)
        if time.monotonic() > end:
            return False
        pause(0.002)
    return True


def _is_empty(folder: str) -> bool:
    try:
        with open(f"{folder}/cgroup.procs", encoding="ascii") as file:
            return not file.read(1)
    except OSError:
        return False


def _removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _kill_all(folder: str) -> None:
    with contextlib.suppress(OSError):  # since Linux 5.14, and at once for all of them
        _write(f"{folder}/cgroup.kill", "1")
        return
    with contextlib.suppress(OSError, ValueError), open(f"{folder}/cgroup.procs", encoding="ascii") as file:
        for line in file:
            pid = int(line)
            if pid != os.getpid() and pid > 0:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def _remove_abandoned(parent: str) -> None:
    """Groups of processes that were killed. Only empty ones can go, and nothing in them is touched."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            parts = entry.name.split("-")
            ours = len(parts) == 4 and f"{parts[0]}-" == PREFIX and parts[1].isdigit() and parts[2].isdigit()
            # In another pid namespace the number says nothing: only old ones.
            with contextlib.suppress(OSError):
                if ours and time.time() - entry.stat().st_ctime > 60 and process_start(int(parts[1])) != int(parts[2]):
                    os.rmdir(entry.path)
