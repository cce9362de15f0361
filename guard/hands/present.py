"""A file that shall be changed, as it is now: located through its links, judged fit or unfit, and read whole.

Located first and read later, so that what may not be read is judged before a byte of it is seen. Changes nothing.
"""

from __future__ import annotations

import os
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guard.errors import CannotEdit, SnapshotImpossible
from guard.filechange import MOST_BYTES
from guard.hands.capture import KERNEL_FOLDERS, read_small, survey
from guard.hands.environment import home
from guard.hands.files import MOST_LINKS, Unsafe, Walker, default_acl_of, join, user_name
from guard.quoting import quoted
from guard.saved import FILE, Node, absent

if TYPE_CHECKING:
    from guard.hands.files import Folder, Located

AS_ROOT = "run opsagent as root for this"
ORDINARY_MODE = 0o666
"""What creat(2) is asked for by programs that write ordinary files; the umask takes its bits away."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a change goes: nothing is read yet."""

    path: str
    """Absolute, links followed."""
    asked: str
    """The same as it was asked for, absolute; "" when no link is on the way."""
    exists: bool
    other_names: int
    """Hard links beside this one."""
    new: Node
    """What a new file there would be: its owner, mode and inherited access control list; no content."""
    folder: tuple[int, int]
    """Device and inode of the folder that it is in."""


@dataclass(frozen=True, slots=True)
class Present:
    """The file as it is: attributes, and all of its bytes."""

    place: Place
    node: Node
    content: bytes
    """Empty when there is no file."""


def locate(path: str, cwd: str) -> Place:
    """Follows a path to the file that it names, or to where it would be made.

    Raises:
        CannotEdit: no regular file, too long, no folder, not ours to change, or in a folder that others can change.
    """
    if path == "~" or path.startswith("~/"):
        path = home() + path[1:]
    asked = os.path.join(cwd, path)
    if not path or "\0" in path or asked.endswith("/"):
        raise CannotEdit(f"{path!a} is no path of a file", not_done="nothing was changed")
    try:
        with Walker() as walker:
            located = _followed(walker, asked)
            return _place(walker, located, asked)
    except Unsafe as error:
        raise _unfit(error.path, error.why, error.hint) from None
    except PermissionError:
        raise _unfit(asked, "cannot be reached: permission denied", AS_ROOT) from None
    except (OSError, ValueError) as error:
        raise _unfit(asked, f"cannot be looked at: {getattr(error, 'strerror', None) or 'not a path'}") from None


def read(place: Place) -> Present:
    """The file's attributes and bytes. Raises CannotEdit: gone, another file by now, binary, or not readable."""
    try:
        (node,) = survey((place.path,), recursive=False)
    except SnapshotImpossible as error:
        raise CannotEdit(error.message, not_done="nothing was changed") from None
    if not place.exists:
        if node.kind != "absent":
            raise _unfit(place.path, "has just been made by somebody else")
        return Present(place, absent(place.path), b"")
    content = read_small(node, MOST_BYTES) if node.kind == FILE else None
    if node.kind == FILE and not node.sha256:
        raise _unfit(place.path, "cannot be read: permission denied", AS_ROOT)
    if content is None:
        raise _unfit(place.path, "became something else while it was read")
    from guard.filechange import sha256_of

    if sha256_of(content) != node.sha256:
        raise _unfit(place.path, "was written to while it was read", "try again")
    if b"\0" in content:
        raise _unfit(place.path, "holds NUL bytes: it is no text", "ops_exec can replace it: cp, install, dd")
    return Present(place, node, content)


def _followed(walker: Walker, asked: str) -> Located:
    """The entry itself, links at the end followed as well."""
    current = asked
    for _ in range(MOST_LINKS):
        located = walker.locate(current)
        if located.info is None or not stat.S_ISLNK(located.info.st_mode):
            return located
        if located.info.st_uid not in (0, os.geteuid()):
            raise Unsafe(located.path, f"is a link that {user_name(located.info.st_uid)} made")
        folder = walker.folder(located.folder)
        with folder.acting():
            text = os.readlink(located.name, dir_fd=folder.fd)
        current = text if text.startswith("/") else join(located.folder, text)
    raise Unsafe(asked, "goes through too many links")


def _place(walker: Walker, located: Located, asked: str) -> Place:
    path, info = located.path, located.info
    if located.missing:
        if info is not None:
            raise _unfit(path, "is no folder")
        raise _unfit(path, "does not exist", f"make the folder first: mkdir -p {quoted(os.path.dirname(asked))}")
    if f"{path}/".startswith(KERNEL_FOLDERS):
        raise _unfit(path, "is part of the running kernel, which is changed by a command: ops_exec")
    if info is not None:
        _require_fit(path, info)
    folder = walker.folder(located.folder)
    with folder.acting(info.st_uid if info is not None else None):
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder.fd, effective_ids=True):
            raise _unfit(path, f"lies in {folder.path}, which cannot be written", "" if _is_root() else AS_ROOT)
        new = _new(path, folder)
    other_names = info.st_nlink - 1 if info is not None else 0
    through = asked if os.path.normpath(asked) != path else ""
    return Place(path, through, info is not None, other_names, new, (folder.info.st_dev, folder.info.st_ino))


def _require_fit(path: str, info: os.stat_result) -> None:
    kind = next((name for test, name in _OTHER_KINDS if test(info.st_mode)), "")
    if kind:
        raise _unfit(path, f"is {kind}, and only regular files are changed in this way")
    if info.st_size > MOST_BYTES:
        hint = "ops_exec can change it: sed -i, or a script"
        raise _unfit(path, f"is {info.st_size:,} bytes long; the most is {MOST_BYTES:,}", hint)
    if _is_root():
        return
    # The new file has the same owner and group; only root can give a file away (chown(2)).
    if info.st_uid != os.geteuid():
        raise _unfit(path, f"belongs to {user_name(info.st_uid)}", AS_ROOT)
    if info.st_gid not in (os.getegid(), *os.getgroups()):
        raise _unfit(path, f"belongs to group {info.st_gid}, which is none of yours", AS_ROOT)


_OTHER_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a block device"),
)


def _new(path: str, folder: Folder) -> Node:
    """Owner, group, mode and list of a new file, as open(2) and acl(5) say."""
    gid = folder.info.st_gid if folder.info.st_mode & stat.S_ISGID else os.getegid()
    acl = default_acl_of(folder.fd)
    if acl is None:
        return Node(path, FILE, mode=ORDINARY_MODE & ~_umask(), uid=os.geteuid(), gid=gid)
    mode, entries = _inherited(acl)
    xattrs = ((_ACCESS_ACL, entries.hex()),) if entries else ()
    return Node(path, FILE, mode=mode, uid=os.geteuid(), gid=gid, xattrs=xattrs)


_ACCESS_ACL = "system.posix_acl_access"
_USER_OBJ, _GROUP_OBJ, _MASK, _OTHER = 0x01, 0x04, 0x10, 0x20


def _inherited(acl: bytes) -> tuple[int, bytes]:
    """Mode and access control list of a new file in a folder with this default list; none where the mode says it all.

    Each class keeps what both the list and the wanted mode allow; the umask does not count (acl(5)).
    """
    entries = list(struct.iter_unpack("<HHI", acl[4:]))
    has_mask = any(tag == _MASK for tag, _, _ in entries)
    shifts = {_USER_OBJ: 6, (_MASK if has_mask else _GROUP_OBJ): 3, _OTHER: 0}
    mode, packed = 0, acl[:4]
    for tag, permissions, owner in entries:
        if tag in shifts:
            permissions &= ORDINARY_MODE >> shifts[tag]
            mode |= permissions << shifts[tag]
        packed += struct.pack("<HHI", tag, permissions, owner)
    return mode, packed if has_mask else b""


def _umask() -> int:
    """This process's umask, read without setting it: that would be seen by other threads."""
    with (
        suppress(OSError, ValueError, IndexError),
        open("/proc/self/status", encoding="ascii", errors="replace") as file,
    ):
        return int(next(line for line in file if line.startswith("Umask:")).split()[1], 8)
    return 0o022


def _is_root() -> bool:
    return os.geteuid() == 0


def _unfit(path: str, why: str, hint: str = "") -> CannotEdit:
    return CannotEdit(f"{path} {why}", not_done="nothing was changed", hint=hint)
