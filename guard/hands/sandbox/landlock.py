"""Landlock rule sets: what may be read, written and connected to, held by the kernel for a thread.

Landlock can only allow. To keep some paths from being read, everything around them is allowed instead: the
right to list on `/`, and the right to read on every sibling along each masked path. Such rules hold inodes,
so what appears later next to a masked path is unreadable until the rules are made again: `Reach.is_current`
tells when that is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import stat
import struct
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from guard.hands.sandbox.kernel import Kernel, syscall

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT, SCOPE_SIGNAL = 1, 2
RULE_PATH, RULE_PORT = 1, 2

READ = READ_FILE | EXECUTE
WRITE_DEVICE = WRITE_FILE | TRUNCATE
SCRATCH = (
    READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | REFER | REMOVE_DIR | REMOVE_FILE
    | MAKE_DIR | MAKE_REG | MAKE_SYM | MAKE_FIFO | MAKE_SOCK
)  # fmt: skip
"""The rights in the private folder: no device nodes there, whoever runs."""

DEVICES = ("null", "zero", "full", "random", "urandom")
"""The device nodes that can be read."""
WRITABLE_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
NETWORK_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs", "autofs", "glusterfs", "lustre", "fuse")
"""File systems on which even opening a folder can hang; names before a dot (`fuse.sshfs`)."""


def handled_rights(abi: int) -> int:
    """Every file right that this Landlock knows."""
    rights = (1 << 13) - 1
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        if abi >= since:
            rights |= right
    return rights


@dataclass(slots=True)
class Reach:
    """Which folders and files to allow for reading, so that `masked` stay closed; and when that goes stale."""

    masked: tuple[str, ...]
    """Real paths that exist and are closed."""
    allowed: list[str] = field(default_factory=list)
    watched: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    """Folder → (inode, ctime in ns) as of now; None when it was absent."""
    mounts: int = -1
    """A descriptor of the mount table; polls as urgent after a change."""

    def is_current(self) -> bool:
        """Whether nothing was added, replaced or mounted where it would be wrongly closed or wrongly open."""
        if any(signature(folder) != seen for folder, seen in self.watched.items()):
            return False
        if self.mounts < 0:
            return True
        poll = select.poll()
        poll.register(self.mounts, select.POLLPRI)
        return not any(event & (select.POLLPRI | select.POLLERR) for _, event in poll.poll(0))

    def watch(self, folder: str) -> None:
        """Makes the rules stale when something is added to a folder, or removed from it."""
        self.watched[folder] = signature(folder)

    def close(self) -> None:
        if self.mounts >= 0:
            os.close(self.mounts)
            self.mounts = -1


class Branch(dict[str, "Branch"]):
    """Folder names below a folder that lead to masked paths."""


def signature(folder: str) -> tuple[int, int] | None:
    """Changes whenever an entry of the folder is created, removed or replaced."""
    try:
        status = os.stat(folder, follow_symlinks=False)
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


def reach_around(masked: Iterable[str], candidates: Iterable[str]) -> Reach:
    """Works out what to allow.

    Args:
        masked: real absolute paths, existing, to keep closed (with all below, when a folder).
        candidates: absolute paths that would be masked if they existed; watched, so that they will be.
    Effects: lists folders, opens the mount table. Raises nothing for folders that cannot be listed: what is in
        them stays closed.
    """
    closed = tuple(sorted(set(masked)))
    reach = Reach(closed)
    with contextlib.suppress(OSError):
        reach.mounts = os.open("/proc/self/mounts", os.O_RDONLY | os.O_CLOEXEC)
    for folder in {os.path.dirname(candidate) for candidate in candidates}:
        existing = _nearest_existing(folder)
        reach.watched.setdefault(existing, signature(existing))
    tree = Branch({"dev": Branch()})  # device nodes are closed one by one, so /dev is always walked
    for path in closed:
        node = tree
        for part in path.strip("/").split("/"):
            node = node.setdefault(part, Branch())
    _allow_siblings(reach, "", tree, frozenset(closed))
    return reach


def _allow_siblings(reach: Reach, folder: str, node: Branch, closed: frozenset[str]) -> None:
    here = folder or "/"
    if here != "/dev":
        reach.watched[here] = signature(here)
    try:
        entries = list(os.scandir(here))
    except OSError:
        return
    for entry in entries:
        path = f"{folder}/{entry.name}"
        if path in closed or entry.is_symlink():
            continue  # a link is read where it leads
        if entry.name in node:
            _allow_siblings(reach, path, node[entry.name], closed)
        elif here != "/dev" or entry.name in DEVICES or (entry.is_dir(follow_symlinks=False) and entry.name != "pts"):
            reach.allowed.append(path)


def _nearest_existing(folder: str) -> str:
    while folder != "/" and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return os.path.realpath(folder)


@dataclass(slots=True)
class Rules:
    """A rule set under construction. Any thread may build it; only `enforce` binds the calling one."""

    kernel: Kernel
    descriptor: int
    rights: int

    def allow(self, path: str, rights: int, *, slow: bool = False) -> bool:
        """Allows `rights` at a path and below. False when it cannot be opened."""
        opened = _open_in_time(path) if slow else _open_path(path)
        if opened is None:
            return False
        try:
            self._add_path(opened, rights & self.rights)
        except OSError:
            return False  # an object that takes no rules (a pipe file system): it stays closed
        finally:
            os.close(opened)
        return True

    def _add_path(self, opened: int, rights: int) -> None:
        """Adds a rule; for what is no folder only the rights that a file can have.

        The kernel tells which it is (landlock_add_rule(2): EINVAL). fstat would ask the file system, and one whose
        server is gone never answers.
        """
        try:
            self._add(RULE_PATH, struct.pack("=Qi", rights, opened))
        except OSError as error:
            of_files = rights & (READ_FILE | EXECUTE | WRITE_FILE | TRUNCATE | IOCTL_DEV)
            if error.errno != errno.EINVAL or of_files == rights or not of_files:
                raise
            self._add(RULE_PATH, struct.pack("=Qi", of_files, opened))

    def allow_port(self, port: int) -> None:
        self._add(RULE_PORT, struct.pack("=QQ", CONNECT_TCP, port))

    def _add(self, kind: int, attributes: bytes) -> None:
        syscall(self.kernel.numbers["landlock_add_rule"], self.descriptor, kind, attributes, 0)

    def enforce(self) -> None:
        """Binds the calling thread and what it starts, for good. Needs no_new_privs or CAP_SYS_ADMIN."""
        syscall(self.kernel.numbers["landlock_restrict_self"], self.descriptor, 0)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def build(
    kernel: Kernel,
    reach: Reach,
    *,
    scratch: str | None,
    ports: Sequence[int] | None,
    reopened: Sequence[str] = (),
    devices: bool = False,
) -> Rules:
    """A rule set for one worker.

    Args:
        scratch: the folder that can be written.
        ports: TCP ports that can be connected to; None leaves TCP to the filter.
        reopened: paths below masked ones that this run's programs need.
        devices: disks can be opened for reading, and asked what they are.
    Raises: OSError.
    """
    abi = kernel.landlock_abi
    rights = handled_rights(abi)
    network = BIND_TCP | CONNECT_TCP if abi >= 4 and ports is not None else 0
    scopes = SCOPE_ABSTRACT | SCOPE_SIGNAL if abi >= 6 else 0
    attributes = struct.pack("=QQQ", rights, network, scopes)[: 24 if abi >= 6 else 16 if abi >= 4 else 8]
    descriptor = syscall(kernel.numbers["landlock_create_ruleset"], attributes, len(attributes), 0)
    rules = Rules(kernel, descriptor, rights)
    try:
        slow = _slow_mounts()
        if not rules.allow("/", READ_DIR):
            raise OSError("the root folder takes no Landlock rule")
        for path in reach.allowed:
            rules.allow(path, READ, slow=path in slow)
        for path in reopened:
            rules.allow(path, READ)
        for device in WRITABLE_DEVICES:
            rules.allow(device, WRITE_DEVICE | READ_FILE)
        for device in disks() if devices else ():
            rules.allow(device, READ_FILE | IOCTL_DEV)
        if scratch is not None and not rules.allow(scratch, SCRATCH):
            raise OSError(f"{scratch} takes no Landlock rule")
        for port in ports if network and ports else ():
            rules.allow_port(port)
    except BaseException:
        rules.close()
        raise
    return rules


def disks(root: str = "/dev") -> list[str]:
    """Block devices, and the character devices of disk controllers, below a folder of device nodes."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in ("pts", "shm", "mqueue", "hugepages")]
        for name in names:
            path = f"{folder}/{name}"
            with contextlib.suppress(OSError):
                mode = os.lstat(path).st_mode
                if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and _CONTROLLER.match(path.removeprefix(root))):
                    found.append(path)
    return found


_CONTROLLER = re.compile(r"/(sg\d+|bsg/.*|nvme\d+|ng\d+n\d+)$")


def _open_path(path: str) -> int | None:
    try:
        return os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None


def _open_in_time(path: str, limit_s: float = 1.0) -> int | None:
    """Opens a path that may hang; a thread that hangs is left behind, and the path stays closed."""
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.extend(_as_list(_open_path(path))), daemon=True)
    thread.start()
    thread.join(limit_s)
    return found[0] if found else None


def _as_list(value: int | None) -> list[int]:
    return [] if value is None else [value]


def _slow_mounts() -> frozenset[str]:
    return frozenset(mount for mount, kind in mount_points() if kind.split(".")[0] in NETWORK_FILE_SYSTEMS)


def mount_points() -> list[tuple[str, str]]:
    """(mount point, file system type) of this mount namespace; empty when it cannot be read."""
    found = []
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                left, _, right = line.partition(" - ")
                found.append((_unescape(left.split(" ")[4]), right.split(" ")[0]))
    except (OSError, IndexError):
        return []
    return found


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
