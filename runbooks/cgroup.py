"""Where the limits of this process's control groups are written, and what they say. Pure.

The groups that the guard makes for its runs are left out: a read is in one, with a limit that is ours.
In a container or a limited slice these limits, not the machine's totals, decide when memory and CPU run out.
Sources: the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
"""

import re

from guard.lines import lines_of
from guard.types import Value
from runbooks.reading import number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT_V2 = "/sys/fs/cgroup"
ROOT_V1_MEMORY = "/sys/fs/cgroup/memory"
ROOTS_V1_CPU = ("/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu")
NO_LIMIT_BYTES = 1 << 60
"""Version 1 writes "no limit" as the largest multiple of the page size; no machine has an exbibyte."""
MEMORY_V2 = ("memory.max", "memory.current", "memory.stat")
MEMORY_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat")
CPU_V2 = ("cpu.max", "cpu.stat", "cpu.pressure")
CPU_V1 = ("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat")
OUR_GROUP = re.compile(r"opsagent-[0-9]+-.*")
"""A run's group, as `guard.hands.sandbox.cgroup` names it."""
DEEPEST = 8
"""So many ancestors are looked at; systemd and Kubernetes nest five deep."""


class MemoryLimit(Value):
    """The tightest memory limit above this process."""

    __slots__ = ("limit", "used", "group")
    limit: int
    """Bytes."""
    used: int
    """Bytes, less the file cache that the kernel gives back first (`inactive_file`)."""
    group: str

    def __init__(self, limit: int, used: int, group: str) -> None:
        self.limit = limit
        self.used = used
        self.group = group


class CpuLimit(Value):
    """The tightest CPU quota above this process."""

    __slots__ = ("cores", "periods", "throttled", "pressure", "group")
    cores: float
    periods: int
    """Accounting periods since the group began, and how many of them were cut short."""
    throttled: int
    pressure: str
    """The group's own pressure file, or ""."""
    group: str

    def __init__(self, cores: float, periods: int, throttled: int, pressure: str, group: str) -> None:
        self.cores = cores
        self.periods = periods
        self.throttled = throttled
        self.pressure = pressure
        self.group = group


def memory_paths(self_cgroup: str) -> "list[str]":
    """The files to read for memory limits, given /proc/self/cgroup."""
    unified, memory = _group(self_cgroup, ""), _group(self_cgroup, "memory")
    if memory is not None:
        return [f"{folder}/{name}" for folder in _upwards(ROOT_V1_MEMORY, memory) for name in MEMORY_V1]
    if unified is not None:
        return [f"{folder}/{name}" for folder in _upwards(ROOT_V2, unified) for name in MEMORY_V2]
    return []


def cpu_paths(self_cgroup: str) -> "list[str]":
    """The files to read for CPU limits, given /proc/self/cgroup."""
    unified, cpu = _group(self_cgroup, ""), _group(self_cgroup, "cpu")
    if cpu is not None:
        return [f"{folder}/{name}" for root in ROOTS_V1_CPU for folder in _upwards(root, cpu) for name in CPU_V1]
    if unified is not None:
        return [f"{folder}/{name}" for folder in _upwards(ROOT_V2, unified) for name in CPU_V2]
    return []


def memory_limit(files: "Mapping[str, str]") -> "MemoryLimit | None":
    """The limit with the least room, or None when nothing limits this process."""
    found = []
    for path, text in files.items():
        folder, _, name = path.rpartition("/")
        if name not in ("memory.max", "memory.limit_in_bytes"):
            continue
        limit = number_of(text.strip())
        current = number_of(
            (files.get(f"{folder}/memory.current") or files.get(f"{folder}/memory.usage_in_bytes") or "").strip()
        )
        if limit is None or limit >= NO_LIMIT_BYTES or current is None:
            continue
        stat = _table(files.get(f"{folder}/memory.stat", ""))
        given_back = stat.get("total_inactive_file", stat.get("inactive_file", 0))
        found.append(MemoryLimit(int(limit), max(0, int(current - given_back)), _name(folder)))
    return min(found, key=lambda one: one.limit - one.used, default=None)


def cpu_limit(files: "Mapping[str, str]") -> "CpuLimit | None":
    """The smallest quota, or None when nothing limits this process."""
    found = []
    for path, text in files.items():
        folder, _, name = path.rpartition("/")
        if name == "cpu.max":
            quota, _, period = text.strip().partition(" ")
        elif name == "cpu.cfs_quota_us":
            quota, period = text.strip(), files.get(f"{folder}/cpu.cfs_period_us", "").strip()
        else:
            continue
        quota_us, period_us = number_of(quota), number_of(period)
        if quota_us is None or period_us is None or quota_us <= 0 or period_us <= 0:
            continue
        stat = _table(files.get(f"{folder}/cpu.stat", ""))
        found.append(
            CpuLimit(
                quota_us / period_us,
                stat.get("nr_periods", 0),
                stat.get("nr_throttled", 0),
                files.get(f"{folder}/cpu.pressure", ""),
                _name(folder),
            )
        )
    return min(found, key=lambda one: one.cores, default=None)


def _group(self_cgroup: str, controller: str) -> "str | None":
    for line in lines_of(self_cgroup):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if (controller in controllers.split(",")) if controller else (number == "0" and not controllers):
            return path
    return None


def _upwards(root: str, group: str) -> "list[str]":
    """The group's folder and its ancestors, deepest first; a run's own is left out.

    `/../x` (a namespace looked at from outside) is `/`.
    """
    parts = [part for part in group.split("/") if part]
    ours = [depth for depth, part in enumerate(parts) if OUR_GROUP.fullmatch(part)]
    if ours:
        parts = parts[: ours[0]]
    if ".." in parts:
        parts = []
    folders = ["/".join((root, *parts[:depth])) for depth in range(len(parts), -1, -1)]
    return folders[:DEEPEST] if len(folders) <= DEEPEST else [*folders[: DEEPEST - 1], folders[-1]]


def _name(folder: str) -> str:
    for root in (ROOT_V1_MEMORY, *ROOTS_V1_CPU, ROOT_V2):
        if folder == root or folder.startswith(root + "/"):
            return folder[len(root) :] or "/"
    return folder


def _table(text: str) -> "dict[str, int]":
    rows = {}
    for line in lines_of(text):
        key, _, value = line.partition(" ")
        number = number_of(value)
        if number is not None:
            rows[key] = int(number)
    return rows
