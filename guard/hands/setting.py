"""Sets owner, attributes, mode, times and inode flags of one open thing, in the order in which none undoes another."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from guard.hands.files import chown_handle, set_xattrs, touch_handle, xattrs_of
from guard.hands.metadata import PINNING_FLAGS, by_handle, flags_of, set_flags
from guard.saved import SYMLINK

if TYPE_CHECKING:
    from guard.saved import Node


def set_metadata(fd: int, node: Node) -> None:
    """Of an open file or folder. chown(2) drops set-id bits, so it comes first."""
    info = os.fstat(fd)
    if (info.st_uid, info.st_gid) != (node.uid, node.gid):
        os.fchown(fd, node.uid, node.gid)
    set_xattrs(fd, node.xattrs)
    os.fchmod(fd, node.mode)
    os.utime(fd, ns=(info.st_atime_ns, node.mtime_ns))


def set_by_handle(fd: int, node: Node) -> None:
    """The same for what is not opened: a link, a FIFO, a device. Never by name, so that none can be swapped in."""
    info = os.fstat(fd)
    if (info.st_uid, info.st_gid) != (node.uid, node.gid):
        chown_handle(fd, node.uid, node.gid)
    if node.kind != SYMLINK:
        place = by_handle(fd)
        if not _has_attributes(fd, node):
            os.chmod(place, node.mode | 0o600)  # enough to set attributes
            set_xattrs(place, node.xattrs)
        os.chmod(place, node.mode)
    if not node.meta:
        with contextlib.suppress(OSError):
            touch_handle(fd, node.mtime_ns)  # Linux before 5.8 cannot; nothing depends on these times
    elif node.atime_ns >= 0:
        _set_times(fd, node)


def _set_times(fd: int, node: Node) -> None:
    if node.kind == SYMLINK:
        touch_handle(fd, node.mtime_ns, node.atime_ns)
    else:
        os.utime(by_handle(fd), ns=(node.atime_ns, node.mtime_ns))


def _has_attributes(fd: int, node: Node) -> bool:
    try:
        return xattrs_of(by_handle(fd)) == node.xattrs
    except PermissionError:
        return False


def same_metadata(fd: int, node: Node) -> bool:
    """Whether what an O_PATH descriptor holds is the node, its content and times left aside."""
    info = os.fstat(fd)
    same = (info.st_dev, info.st_ino) == (node.dev, node.ino) and (info.st_uid, info.st_gid) == (node.uid, node.gid)
    return same and (node.kind == SYMLINK or (info.st_mode & 0o7777 == node.mode and _has_attributes(fd, node)))


def unpin(fd: int) -> None:
    """Takes away the flags that keep everything else of a file or folder from being changed."""
    flags = flags_of(fd)
    if flags & PINNING_FLAGS:
        set_flags(fd, flags & ~PINNING_FLAGS)


def as_is(node: Node, fd: int) -> Node:
    """The node with the change time that a step of ours gave it."""
    return replace(node, ctime_ns=os.fstat(fd).st_ctime_ns)
