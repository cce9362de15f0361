"""What the supervisor does itself for a command where no Landlock decides: the few writes that a read needs.

The null devices, the command's own output pipes, and everything below the private folder. Each is done by the
supervisor, from descriptors that it opened, so that nothing in the command's memory can change what happens. All else
is refused.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator

from guard.hands.sandbox.kernel import Kernel, syscall

DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
BENEATH, NO_MAGICLINKS = 0x08, 0x02
"""openat2(2): RESOLVE_BENEATH, RESOLVE_NO_MAGICLINKS."""
KEPT_FLAGS = (
    os.O_ACCMODE | os.O_CREAT | os.O_EXCL | os.O_TRUNC | os.O_APPEND | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_TMPFILE
    | os.O_NOATIME
)  # fmt: skip
STANDARD = {"/dev/stdout": "1", "/dev/stderr": "2"}
OWN_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/")


class StandIn:
    """Opens and changes things on behalf of one worker's commands."""

    def __init__(self, kernel: Kernel, scratch: str | None) -> None:
        self._openat2 = kernel.numbers["openat2"]
        self._scratch = scratch
        probe = os.pipe()
        self._pipes = os.fstat(probe[0]).st_dev
        for descriptor in probe:
            os.close(descriptor)

    def open(self, pid: int, path: str, flags: int, mode: int) -> int:
        """A descriptor of ours for the command's open(2) with a write mode. Raises OSError; EPERM: not allowed."""
        if path in DEVICES:
            return os.open(path, flags & os.O_ACCMODE | os.O_CLOEXEC)
        number = STANDARD.get(path, "")
        for prefix in (*OWN_DESCRIPTORS, f"/proc/{pid}/fd/"):
            if path.startswith(prefix):
                number = path.removeprefix(prefix)
        if number.isdigit():
            return self._reopen(f"/proc/{pid}/fd/{number}", flags)
        return self._beneath(path, flags & KEPT_FLAGS, mode & 0o755 if flags & (os.O_CREAT | 0o20000000) else 0)

    def _reopen(self, link: str, flags: int) -> int:
        """Another descriptor of a pipe that the command has already."""
        if not os.readlink(link).startswith("pipe:"):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        opened = os.open(link, flags & os.O_ACCMODE | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(opened)
        if not stat.S_ISFIFO(status.st_mode) or status.st_dev != self._pipes:  # it was swapped meanwhile
            os.close(opened)
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        os.set_blocking(opened, not flags & os.O_NONBLOCK)
        return opened

    def _beneath(self, path: str, flags: int, mode: int) -> int:
        """Opens a path below the private folder; links cannot lead out of it."""
        scratch = self._scratch
        if scratch is None or not path.startswith(scratch + "/"):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        folder = os.open(scratch, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # A FIFO there must not hold up the supervisor; O_PATH takes no such flag, and opens nothing.
            more = os.O_CLOEXEC if flags & os.O_PATH else os.O_CLOEXEC | os.O_NONBLOCK
            how = struct.pack("=QQQ", flags | more, mode, BENEATH | NO_MAGICLINKS)
            name = ctypes.create_string_buffer(os.fsencode(path.removeprefix(scratch + "/")))
            opened = syscall(self._openat2, folder, name, how, len(how))
        finally:
            os.close(folder)
        if not flags & os.O_PATH:
            fcntl.fcntl(opened, fcntl.F_SETFL, flags & os.O_APPEND)
        return opened

    def change(self, name: str, path: str, mode: int, other: str = "") -> None:
        """mkdir, unlink, rmdir, rename or symlink below the private folder. Raises OSError; EPERM: not allowed.

        Args:
            path: absolute; for rename the new one.
            other: the old path of a rename, the text of a symbolic link.
        """
        with self._parent(path) as (folder, last):
            if name.startswith("mkdir"):
                os.mkdir(last, 0o700 | mode & 0o755, dir_fd=folder)
            elif name == "rmdir":
                os.rmdir(last, dir_fd=folder)
            elif name.startswith("unlink"):
                os.unlink(last, dir_fd=folder)
            elif name.startswith("symlink"):
                os.symlink(other, last, dir_fd=folder)
            elif name.startswith("rename"):
                with self._parent(other) as (source, old):
                    os.rename(old, last, src_dir_fd=source, dst_dir_fd=folder)
            else:
                raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    @contextlib.contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        above, _, last = path.rpartition("/")
        if self._scratch is None or last in ("", ".", "..") or not (above + "/").startswith(self._scratch + "/"):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        folder = self._beneath(above + "/.", os.O_PATH | os.O_DIRECTORY, 0)
        try:
            yield folder, last
        finally:
            os.close(folder)
