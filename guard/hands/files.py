"""Folders and files by descriptor: never through a link, never where somebody else can swap them.

Every snapshot and restore reaches the disk through this module. A path is opened one component at a time from /
with O_NOFOLLOW, and each folder on the way is judged: one that other people can write is refused, unless all of
them are one user whom root can act as. Then the kernel itself keeps us to what that user may do (setfsuid(2)), so a
swapped link or a planted hard link gains nothing. Sticky folders such as /tmp are accepted: entries of ours
cannot be moved there, and every file is checked by device and inode before it is used.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import grp
import os
import platform
import pwd
import stat
import struct
import sys
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""O_NONBLOCK: a FIFO that was swapped in must not hang us; it means nothing for a regular file (open(2))."""

MOST_LINKS = 40
"""The kernel's own limit (path_resolution(7))."""

NOBODY = -1
"""Act as ourselves."""

LAST_SERVICE_UID = 999
"""SYS_UID_MAX (login.defs(5)). A folder that root shares with service accounts only, such as /var/log with syslog, is
used like a sticky one: what counts is the identity of each file."""

_SETGROUPS = {"x86_64": 116, "aarch64": 159}.get(platform.machine()) if sys.platform == "linux" else None
# The raw call changes this thread alone; libc's setgroups() would change every thread of the process.

_ACL = "system.posix_acl_access"
_DEFAULT_ACL = "system.posix_acl_default"
NOT_KEPT = frozenset(("security.evm", "security.ima"))
"""Made by the kernel over the very inode; a copy would be refused or wrong."""


class Unsafe(Exception):
    """A path cannot be used safely. `path` is what stands in the way."""

    def __init__(self, path: str, why: str, hint: str = "") -> None:
        super().__init__(f"{path} {why}")
        self.path = path
        self.why = why
        self.hint = hint


class NoFolder(Unsafe):
    """Something else stands where a folder was, such as a link: nothing lies below that path."""


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder, good until the `Walker` moves on."""

    path: str
    fd: int
    acts_as: int
    """The only other user who can change things here, to be acted as; NOBODY when there is none."""
    info: os.stat_result

    def acting(self, owner: int | None = None) -> contextlib.AbstractContextManager[None]:
        """Everything done in this folder is done inside this.

        Args:
            owner: of the entry that is worked on, when that matters. In another user's folder we are that user, but
                for entries that are not theirs: these we reach as ourselves, by descriptors that are compared by
                device and inode, as in a sticky folder.
        """
        theirs = owner is None or owner == self.acts_as or self.info.st_uid != self.acts_as
        return acting_as(self.acts_as if theirs else NOBODY)

    def stat(self, name: str) -> os.stat_result | None:
        """What the entry is, not following a link; None when there is none. Call while `acting`."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None


@dataclass(frozen=True, slots=True)
class Located:
    """A path with the links of its folders followed."""

    folder: str
    """Real path of the deepest folder that exists."""
    name: str
    """The entry in it."""
    missing: tuple[str, ...]
    """Further components below `name`, when `name` is not there or is no folder."""
    info: os.stat_result | None
    """Of `name`, not followed; None when it is not there."""

    @property
    def path(self) -> str:
        """The entry's own path, without `missing`."""
        return join(self.folder, self.name)

    @property
    def whole(self) -> str:
        """The path that was asked for, links in its folders followed."""
        return "/".join((self.path, *self.missing))


class Walker:
    """Opens folders one after another, keeping those on the way open: cheap for sorted paths."""

    def __init__(self) -> None:
        fd = os.open("/", os.O_RDONLY | _FOLDER)
        self._levels: list[tuple[str, Folder]] = [("", Folder("/", fd, NOBODY, os.fstat(fd)))]

    def __enter__(self) -> Walker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all descriptors."""
        for _, folder in self._levels:
            os.close(folder.fd)
        self._levels.clear()

    def folder(self, path: str) -> Folder:
        """The folder at a real path.

        Raises:
            NoFolder: a link or something else than a folder is on the way.
            Unsafe: others can write there.
            FileNotFoundError, PermissionError: as open(2) says them.
        """
        names = [name for name in path.split("/") if name]
        same = 0
        while same < len(names) and same + 1 < len(self._levels) and self._levels[same + 1][0] == names[same]:
            same += 1
        while len(self._levels) > same + 1:
            os.close(self._levels.pop()[1].fd)
        for name in names[same:]:
            self._levels.append((name, self._below(self._levels[-1][1], name)))
        return self._levels[-1][1]

    def forget(self) -> None:
        """Closes everything but /: the next look is at what is there then."""
        while len(self._levels) > 1:
            os.close(self._levels.pop()[1].fd)

    def locate(self, path: str) -> Located:
        """Follows the links in a path's folders, one checked folder at a time, but not a link at its end.

        Raises:
            Unsafe: too many links, one that somebody else made, or a folder that others can write.
            PermissionError: a folder cannot be searched.
        """
        todo = [name for name in reversed(path.split("/")) if name not in ("", ".")]
        current, links = "/", 0
        while todo:
            name = todo.pop()
            if name == "..":
                current = os.path.dirname(current)
                continue
            folder = self.folder(current)
            with folder.acting():
                info = folder.stat(name)
                if info is None or not todo:
                    return Located(current, name, tuple(reversed(todo)), info)
                if stat.S_ISLNK(info.st_mode):
                    links += 1
                    if links > MOST_LINKS:
                        raise Unsafe(path, "goes through too many links")
                    if info.st_uid not in (0, os.geteuid()):
                        raise Unsafe(join(current, name), f"is a link that {user_name(info.st_uid)} made")
                    text = os.readlink(name, dir_fd=folder.fd)
                    todo += [part for part in reversed(text.split("/")) if part not in ("", ".")]
                    current = "/" if text.startswith("/") else current
                    if not todo:
                        break
                    continue
            if not stat.S_ISDIR(info.st_mode):
                return Located(current, name, tuple(reversed(todo)), info)
            current = join(current, name)
        if current == "/":
            raise Unsafe("/", "is the root folder")
        parent, name = os.path.split(current)
        with self.folder(parent).acting():
            return Located(parent, name, (), self.folder(parent).stat(name))

    def _below(self, above: Folder, name: str) -> Folder:
        path = join(above.path, name)
        with above.acting():
            try:
                fd = os.open(name, _PATH_ONLY | _FOLDER, dir_fd=above.fd)
            except OSError as error:
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    raise NoFolder(path, "is a link or no folder") from None
                raise
        info = os.fstat(fd)
        try:
            acts_as = _whom_to_act_as(path, info, above.acts_as, fd)
        except Unsafe:
            os.close(fd)
            raise
        return Folder(path, fd, acts_as, info)


def join(folder: str, name: str) -> str:
    """A path from a folder's and an entry's name."""
    return f"{folder.rstrip('/')}/{name}"


def _whom_to_act_as(path: str, info: os.stat_result, inherited: int, fd: int) -> int:
    """Who else can change this folder's entries. Raises Unsafe when that is not one user whom we can act as."""
    me = os.geteuid()
    sticky = info.st_mode & stat.S_ISVTX
    if info.st_mode & stat.S_IWOTH and not sticky:
        raise Unsafe(path, "can be written by everybody", f"chmod o-w {path}")
    if info.st_mode & stat.S_IWGRP and not sticky:
        known = (0, me, info.st_uid, inherited)
        others = {uid for uid in _group_writers(info.st_gid, fd) if uid not in known and uid > LAST_SERVICE_UID}
        if others:
            names = ", ".join(user_name(uid) for uid in sorted(others)[:3])
            raise Unsafe(path, f"can be written by {names} through its group", f"chmod g-w {path}")
    if info.st_uid in (0, me):
        return inherited
    if inherited not in (NOBODY, info.st_uid):
        raise Unsafe(path, f"belongs to {user_name(info.st_uid)}, below a folder of {user_name(inherited)}")
    if me != 0 or _SETGROUPS is None:
        raise Unsafe(path, f"belongs to {user_name(info.st_uid)}", f"run as {user_name(info.st_uid)}, or as root")
    return info.st_uid


def _group_writers(gid: int, fd: int) -> set[int]:
    """Users to whom the group bits of a folder give write permission, its access control list counted."""
    writers = set(_members(gid))
    with contextlib.suppress(OSError):
        data = os.getxattr(f"/proc/self/fd/{fd}", _ACL)
        for tag, permissions, owner in struct.iter_unpack("<HHI", data[4:]):
            if permissions & 2 and tag == 0x02:  # ACL_USER (acl(5))
                writers.add(owner)
            elif permissions & 2 and tag == 0x08:  # ACL_GROUP
                writers |= _members(owner)
    return writers


def default_acl_of(fd: int) -> bytes | None:
    """The access control list that new entries of a folder start from, as its attribute holds it; None without one."""
    if not hasattr(os, "getxattr"):
        return None
    try:
        return os.getxattr(f"/proc/self/fd/{fd}", _DEFAULT_ACL)
    except OSError:
        return None


@lru_cache(maxsize=256)
def _members(gid: int) -> frozenset[int]:
    try:
        named = set(grp.getgrgid(gid).gr_mem)
    except KeyError:
        named = set()
    return frozenset(entry.pw_uid for entry in pwd.getpwall() if entry.pw_gid == gid or entry.pw_name in named)


def user_name(uid: int) -> str:
    """`alice`, or `user 1234` when the system has no name for it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


# ── acting as another user ───────────────────────────────────────────────────────────────────────────────────────

_libc = ctypes.CDLL(None, use_errno=True)
_acting = threading.local()


@contextlib.contextmanager
def acting_as(uid: int) -> Iterator[None]:
    """File access of this thread with exactly that user's rights, for the length of a `with` block.

    setfsuid(2) takes the file capabilities away with the user id, and it changes one thread only.
    """
    if uid in (NOBODY, getattr(_acting, "uid", NOBODY)):
        yield
        return
    groups = os.getgroups()
    before = getattr(_acting, "uid", NOBODY)
    if before != NOBODY:
        raise AssertionError("already acting as another user")
    try:
        entry = pwd.getpwuid(uid)
        gid, wanted = entry.pw_gid, os.getgrouplist(entry.pw_name, entry.pw_gid)
    except KeyError:
        gid, wanted = uid, []
    try:
        _set_groups(wanted)
        _libc.setfsgid(gid)
        _libc.setfsuid(uid)
        _acting.uid = uid
        if _libc.setfsuid(-1) != uid or _libc.setfsgid(-1) != gid:
            raise Unsafe(f"uid {uid}", "cannot be acted as here")
        yield
    finally:
        _libc.setfsuid(os.geteuid())
        _libc.setfsgid(os.getegid())
        _set_groups(groups)
        _acting.uid = NOBODY


def _set_groups(groups: list[int]) -> None:
    values = (ctypes.c_uint32 * max(1, len(groups)))(*groups)
    if _libc.syscall(ctypes.c_long(_SETGROUPS or -1), ctypes.c_long(len(groups)), values) != 0:
        raise Unsafe(f"{len(groups)} groups", "cannot be set here")


# ── attributes ───────────────────────────────────────────────────────────────────────────────────────────────────


def xattrs_of(handle: int | str) -> tuple[tuple[str, str], ...]:
    """All extended attributes of an open file (or of a /proc/self/fd path) as sorted (name, value in hex).

    Raises OSError when one that is listed cannot be read.
    """
    if not hasattr(os, "listxattr"):
        return ()
    try:
        names = os.listxattr(handle)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            return ()
        raise
    return tuple(sorted((name, os.getxattr(handle, name).hex()) for name in names if name not in NOT_KEPT))


def set_xattrs(fd: int | str, wanted: tuple[tuple[str, str], ...]) -> None:
    """Makes the attributes exactly these. Raises OSError for one that cannot be set or removed."""
    if not hasattr(os, "listxattr"):
        return
    present = dict(xattrs_of(fd))
    for name in present.keys() - dict(wanted).keys():
        try:
            os.removexattr(fd, name)
        except OSError as error:
            # A label that the system's own policy puts on every file stays (selinux(8)).
            if name == "security.capability" or not name.startswith("security."):
                raise error
    for name, value in wanted:
        if present.get(name) != value:
            os.setxattr(fd, name, bytes.fromhex(value))


_AT_EMPTY_PATH = 0x1000


def chown_handle(fd: int, uid: int, gid: int) -> None:
    """Changes the owner of what an O_PATH descriptor holds, a link itself too. Raises OSError."""
    if _libc.fchownat(fd, b"", uid, gid, _AT_EMPTY_PATH | 0x100) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def touch_handle(fd: int, mtime_ns: int, atime_ns: int | None = None) -> None:
    """Sets the times of what an O_PATH descriptor holds; that of access stays where it is None.

    Raises OSError where the kernel cannot.
    """
    accessed = (0, _UTIME_OMIT) if atime_ns is None else divmod(atime_ns, 1_000_000_000)
    times = (ctypes.c_long * 4)(*accessed, *divmod(mtime_ns, 1_000_000_000))
    if _libc.utimensat(fd, b"", times, _AT_EMPTY_PATH | 0x100) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


_UTIME_OMIT = (1 << 30) - 2

_NOREPLACE, _EXCHANGE = 1, 2
_NOT_HERE = frozenset((errno.EINVAL, errno.ENOSYS, errno.ENOTSUP))
"""A file system or a kernel without the flags of renameat2(2)."""


def rename_new(folder_fd: int, source: str, name: str) -> None:
    """Renames within a folder, never over something: FileExistsError. OSError as rename(2) says."""
    if not _renamed(folder_fd, source, name, _NOREPLACE):
        os.rename(source, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)


def exchange(folder_fd: int, one: str, other: str) -> bool:
    """Swaps two entries of a folder in one step; False where the file system cannot. OSError as rename(2) says."""
    return _renamed(folder_fd, one, other, _EXCHANGE)


def _renamed(folder_fd: int, source: str, name: str, flags: int) -> bool:
    call = getattr(_libc, "renameat2", None)
    if call is None:
        return False
    if call(folder_fd, os.fsencode(source), folder_fd, os.fsencode(name), ctypes.c_uint(flags)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_HERE:
        return False
    raise OSError(number, os.strerror(number), name)
