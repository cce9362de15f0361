"""Whether an entry still is what a plan saw, and as whom a step of it is done. Changes nothing."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from guard.saved import DEVICE, DIRECTORY, FIFO, FILE, SYMLINK, Action

if TYPE_CHECKING:
    from guard.saved import Node, Step


def owner_of_work(step: Step) -> int | None:
    """Whose entry it is that a step works on, for `Folder.acting`; None for what only the folder's owner decides."""
    if step.action == Action.DELETE:
        return None
    if step.action == Action.META and (step.now.uid != step.before.uid or _is_roots_business(step)):
        return os.geteuid()
    return step.before.uid


def _is_roots_business(step: Step) -> bool:
    """Whether bare metadata has to be set that its owner may not set: groups, flags, attributes of the system."""
    before, now = step.before, step.now
    if not before.meta:
        return False
    if before.flags > 0 or now.flags > 0:
        return True
    names = {name for name, _ in {*before.xattrs} ^ {*now.xattrs}}
    ours = any(name.startswith(("security.", "trusted.")) for name in names)
    return ours or before.gid != now.gid


def is_still(node: Node, info: os.stat_result) -> bool:
    """Whether an entry is what the plan saw. Folders change while work goes on in them: their inode decides."""
    if (info.st_dev, info.st_ino, stat.S_IFMT(info.st_mode)) != (node.dev, node.ino, _FORMATS.get(node.kind)):
        return False
    if node.meta:
        same_mode = stat.S_IMODE(info.st_mode) == node.mode or node.kind == SYMLINK
        return same_mode and (info.st_uid, info.st_gid) == (node.uid, node.gid)
    if node.kind == DIRECTORY:
        return True
    # ctime changes when another name of the same file goes, which is a step of ours.
    same_change = info.st_ctime_ns == node.ctime_ns or node.nlink > 1
    same_size = node.kind != FILE or info.st_size == node.size
    return same_change and same_size and info.st_mtime_ns == node.mtime_ns


_FORMATS = {
    FILE: stat.S_IFREG,
    DIRECTORY: stat.S_IFDIR,
    SYMLINK: stat.S_IFLNK,
    FIFO: stat.S_IFIFO,
    DEVICE: stat.S_IFCHR,
    "socket": stat.S_IFSOCK,
    "block": stat.S_IFBLK,
}
