"""Other names of closed paths: bind mounts, and file systems that are mounted more than once.

A rule of Landlock holds an inode, but what is allowed around a closed path is allowed by folders, and through another
mount the same file lies in other folders. proc(5), mountinfo: the root of each mount within its file system.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo."""

    device: str
    """major:minor of its file system."""
    root: str
    """What of the file system it shows."""
    point: str
    """Where."""


def mounts(table: str = "/proc/self/mountinfo") -> list[Mount]:
    """The mounts of this namespace in their order; none when the table cannot be read."""
    try:
        with open(table, "rb") as stream:
            lines = os.fsdecode(stream.read()).split("\n")
    except OSError:
        return []
    fields = (line.split(" ") for line in lines)
    return [Mount(each[2], _plain(each[3]), _plain(each[4])) for each in fields if len(each) > 4]


def aliases(paths: Iterable[str], table: list[Mount]) -> list[str]:
    """Further paths under which these, or what lies below them, can be reached.

    Args:
        paths: real absolute paths.
    Returns:
        Paths as the table tells them. Another mount may cover one of them: whoever closes it compares it first.
    """
    found: dict[str, None] = {}
    for path in paths:
        holder = _holder(path, table)
        if holder is None:
            continue
        inside = _joined(holder.root, path[len(holder.point.rstrip("/")) :])
        for mount in table:
            if mount.device != holder.device or mount is holder:
                continue
            if _is_below(inside, mount.root):
                found[_joined(mount.point, inside[len(mount.root.rstrip("/")) :])] = None
            elif _is_below(mount.root, inside):
                found[mount.point] = None
    return [path for path in found if path != "/"]


def _holder(path: str, table: list[Mount]) -> Mount | None:
    """The mount that a path is on: the deepest one, and of several on one point the last."""
    best: Mount | None = None
    for mount in table:
        if _is_below(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _joined(folder: str, rest: str) -> str:
    return (folder.rstrip("/") + rest) or "/"


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
