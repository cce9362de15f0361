"""What stands in folders, entry by entry, as snapshots look at it: kinds and identities by stat(2), no content."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

from guard.hands.contents import impossible
from guard.hands.files import READ, Folder, join
from guard.saved import BLOCK, DEVICE, DIRECTORY, FIFO, FILE, SOCKET, SYMLINK, Node

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_KINDS = {
    stat.S_IFREG: FILE,
    stat.S_IFDIR: DIRECTORY,
    stat.S_IFLNK: SYMLINK,
    stat.S_IFIFO: FIFO,
    stat.S_IFCHR: DEVICE,
    stat.S_IFBLK: BLOCK,
    stat.S_IFSOCK: SOCKET,
}


def seen(
    folder: Folder, name: str, info: os.stat_result, *, meta: bool, times: bool = False, flags: bool = False
) -> Node:
    """One entry as far as stat(2) tells; content, attributes and flags are not known yet.

    Args:
        meta: its metadata alone counts.
        times, flags: these belong to it.
    """
    kind = _KINDS[stat.S_IFMT(info.st_mode)]
    return Node(
        join(folder.path, name),
        kind,
        mode=stat.S_IMODE(info.st_mode),
        uid=info.st_uid,
        gid=info.st_gid,
        mtime_ns=info.st_mtime_ns,
        size=info.st_size if kind == FILE else 0,
        link=os.readlink(name, dir_fd=folder.fd) if kind == SYMLINK else "",
        rdev=info.st_rdev if kind in (DEVICE, BLOCK) else 0,
        dev=info.st_dev,
        ino=info.st_ino,
        nlink=info.st_nlink,
        ctime_ns=info.st_ctime_ns,
        meta=meta,
        atime_ns=info.st_atime_ns if times else -1,
        flags=0 if flags and kind in (FILE, DIRECTORY) else -1,
    )


@contextlib.contextmanager
def inside(parent_fd: int, name: str, node: Node) -> Iterator[Folder]:
    """The folder that a node stands for, open, with entries to be looked at as whoever we are now.

    Raises:
        SnapshotImpossible: another folder is there by now.
        OSError: it cannot be opened.
    """
    fd = os.open(name, READ | os.O_DIRECTORY, dir_fd=parent_fd)
    try:
        info = os.fstat(fd)
        if (info.st_dev, info.st_ino) != (node.dev, node.ino):
            raise impossible(node.path, "became another folder while it was read")
        yield Folder(node.path, fd, -1, info)
    finally:
        os.close(fd)


def children(folder: Folder, left_out: Sequence[str]) -> Iterator[tuple[str, os.stat_result]]:
    """The entries of a folder, sorted, but for paths that are left out and what goes meanwhile. Raises OSError."""
    for name in sorted(os.listdir(folder.fd)):
        info = None if join(folder.path, name) in left_out else folder.stat(name)
        if info is not None:
            yield name, info
