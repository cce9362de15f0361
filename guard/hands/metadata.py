"""Owner, mode, attributes, times and inode flags of paths whose content does not matter. Reads; `setting` puts back.

What is looked at is bounded in number, and its size does not count: nothing here opens a file's content. Only files
with set-id bits or capabilities are handed back to be kept in full: whoever gets the right to write into such a file
must not find it trusted again afterwards.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from guard.errors import SnapshotImpossible
from guard.hands.contents import impossible
from guard.hands.entries import children, inside, seen
from guard.hands.environment import home
from guard.hands.files import Folder, Located, Unsafe, Walker, join, xattrs_of
from guard.hands.listing import escaped, listing
from guard.metadata import SETTABLE_FLAGS
from guard.quoting import quoted
from guard.saved import DIRECTORY, FILE, SYMLINK, Limits, Node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from guard.metadata import Wanted

HANDLE = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opens a thing without opening its content."""

PINNING_FLAGS = 0x30
"""`i` and `a`: nothing else of such a file can be changed."""

_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
_NO_FLAGS = frozenset((errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS))
CAPABILITY = "security.capability"
SET_ID = stat.S_ISUID | stat.S_ISGID
MOST_LINKS = 40
MOST_LISTED = 100_000
"""Names of one pattern; with more of them nothing that it lists is saved."""


def listed(pattern: str) -> tuple[str, ...]:
    """What bash makes of a pattern; nothing where that cannot be told exactly."""
    found = listing(pattern, MOST_LISTED)
    return found.names if found.whole else ()


def below_home(path: str, *, pattern: bool) -> str:
    """The path with a leading `~` as the folder that it stands for."""
    if path == "~" or path.startswith("~/"):
        return (escaped(home()) if pattern else home()) + path[1:]
    return path


class MetadataLooker:
    """Finds the paths that plan items mean, and how they are now but for attributes and flags (`read_metadata`)."""

    def __init__(self, limits: Limits, left_out: Iterable[str]) -> None:
        self.found: dict[str, Node] = {}
        self.roots: dict[str, None] = {}
        """The paths that were named, real."""
        self.absent: dict[str, None] = {}
        """Named ones that are not there and will be made."""
        self.privileged: dict[str, None] = {}
        """Files that have to be kept in full."""
        self.unsaved: list[str] = []
        self._led_to: list[Node] = []
        self._limits = limits
        self._left_out = tuple(left_out)

    def add(self, walker: Walker, path: str, wanted: Wanted) -> None:
        """Adds what one plan item names. Raises SnapshotImpossible."""
        path = below_home(path, pattern=wanted.pattern)
        if not path.startswith("/"):
            raise impossible(path, "is not an absolute path")
        names: tuple[str, ...] = (path,)
        if wanted.pattern:
            names = listed(path)
            if not names:
                self.unsaved.append(f"what {path} lists is not saved")
        for name in names:
            self._named(walker, name, name, wanted, 0)
        alone = replace(wanted, tree=False, links=False, pattern=False)
        while self._led_to:
            link = self._led_to.pop()
            self._named(walker, link.path, _target_of(link), alone, 1)

    def _is_left_out(self, path: str) -> bool:
        return any(path == left or path.startswith(left + "/") for left in self._left_out)

    def _named(self, walker: Walker, root: str, path: str, wanted: Wanted, through: int) -> None:
        if self._is_left_out(os.path.normpath(path)):
            return
        try:
            located = _exactly(walker, path) if wanted.exact else walker.locate(path)
            if self._is_left_out(located.whole):
                return
            if located.info is None or located.missing:
                if wanted.times and not wanted.exact:
                    self.absent[path] = None
                return
            folder = walker.folder(located.folder)
            with folder.acting():
                node = self._add(folder, located.name, located.info, wanted, root)
                if node.kind == DIRECTORY and wanted.tree:
                    self._below(folder.fd, located.name, node, wanted, root, 1)
        except Unsafe as error:
            raise impossible(error.path, error.why, error.hint) from None
        except OSError as error:
            raise unreadable(path, error) from None
        self.roots[node.path] = None
        if node.kind == SYMLINK and not wanted.exact and through < MOST_LINKS:
            self._named(walker, root, _target_of(node), wanted, through + 1)

    def _below(self, parent_fd: int, name: str, node: Node, wanted: Wanted, root: str, depth: int) -> None:
        if depth > self._limits.depth:
            raise impossible(root, f"is nested more than {self._limits.depth} folders deep")
        try:
            with inside(parent_fd, name, node) as here:
                for child, info in children(here, self._left_out):
                    below = self._add(here, child, info, wanted, root)
                    if below.kind == SYMLINK and wanted.links:
                        self._led_to.append(below)
                    if below.kind == DIRECTORY:
                        self._below(here.fd, child, below, wanted, root, depth + 1)
        except OSError as error:
            raise unreadable(node.path, error) from None

    def _add(self, folder: Folder, name: str, info: os.stat_result, wanted: Wanted, root: str) -> Node:
        node = seen(folder, name, info, meta=True, times=wanted.times, flags=wanted.flags)
        known = self.found.get(node.path)
        if known is not None:
            node = replace(node, atime_ns=max(node.atime_ns, known.atime_ns), flags=max(node.flags, known.flags))
        elif len(self.found) >= self._limits.entries:
            most = f"{self._limits.entries:,}"
            without = f"to go on without a way back for it: --no-snapshot-of {quoted(root)}"
            raise SnapshotImpossible(f"{root} has too many paths: a snapshot holds at most {most}", hint=without)
        self.found[node.path] = node
        if is_privileged(folder, name, node):
            self.privileged[node.path] = None
        return node


def _target_of(link: Node) -> str:
    return link.link if link.link.startswith("/") else join(os.path.dirname(link.path), link.link)


def _exactly(walker: Walker, path: str) -> Located:
    """A real path as it is; no link on the way is followed."""
    parent, name = os.path.split(path)
    folder = walker.folder(parent)
    with folder.acting():
        return Located(parent, name, (), folder.stat(name))


def is_privileged(folder: Folder, name: str, node: Node) -> bool:
    """Whether it is a file that gives whoever starts it more rights: set-id bits or capabilities."""
    if node.kind != FILE:
        return False
    if node.mode & SET_ID:
        return True
    if not hasattr(os, "getxattr"):
        return False
    fd = os.open(name, HANDLE, dir_fd=folder.fd)
    try:
        os.getxattr(by_handle(fd), CAPABILITY)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def read_metadata(folder: Folder, name: str, node: Node) -> Node:
    """The node with its attributes, and flags where these belong to it. Call while acting.

    Raises OSError, and SnapshotImpossible when something else is there by now.
    """
    fd = os.open(name, HANDLE, dir_fd=folder.fd)
    try:
        info = os.fstat(fd)
        if (info.st_dev, info.st_ino) != (node.dev, node.ino):
            raise impossible(node.path, "became something else while it was read")
        return replace(
            node,
            mode=stat.S_IMODE(info.st_mode),
            uid=info.st_uid,
            gid=info.st_gid,
            ctime_ns=info.st_ctime_ns,
            xattrs=() if node.kind == SYMLINK else xattrs_of(by_handle(fd)),
            flags=flags_of(fd) if node.flags >= 0 else -1,
        )
    finally:
        os.close(fd)


def by_handle(fd: int) -> int | str:
    """What names the thing behind a handle for calls that take no O_PATH descriptor."""
    return f"/proc/self/fd/{fd}" if hasattr(os, "O_PATH") else fd


def flags_of(handle: int) -> int:
    """The inode flags of a file or folder that chattr(1) can set; 0 where the file system has none. Raises OSError."""
    fd = os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return _all_flags(fd) & SETTABLE_FLAGS
    finally:
        os.close(fd)


def set_flags(handle: int, flags: int) -> None:
    """Makes the flags that chattr(1) can set exactly these. Raises OSError."""
    fd = os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        present = _all_flags(fd)
        wanted = (present & ~SETTABLE_FLAGS) | (flags & SETTABLE_FLAGS)
        if wanted != present:
            fcntl.ioctl(fd, _SET_FLAGS, struct.pack("@q", wanted))
    finally:
        os.close(fd)


def _all_flags(fd: int) -> int:
    try:
        (flags,) = struct.unpack("@q", fcntl.ioctl(fd, _GET_FLAGS, bytes(8)))
    except OSError as error:
        if error.errno in _NO_FLAGS:
            return 0
        raise
    return int(flags) & 0xFFFFFFFF


def unreadable(path: str, error: OSError) -> SnapshotImpossible:
    """The error for a path that cannot be looked at."""
    hint = "" if error.errno not in (errno.EACCES, errno.EPERM) else "run opsagent as root for this"
    return impossible(path, f"cannot be read: {os.strerror(error.errno or 0)}", hint)
