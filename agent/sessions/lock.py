"""One writer for each conversation: a small file beside it, held with flock(2), that names the holder.

The lock goes with its process, whatever ends it; a file that a crash left behind holds nothing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from typing import TYPE_CHECKING

from guard.errors import StateBusy
from guard.ledger.state import state_error_of

if TYPE_CHECKING:
    from guard.ledger.state import StateFolder

SUFFIX = ".lock"


class Held:
    """A lock that this process holds until `release`."""

    __slots__ = ("_fd", "_folder", "_name")

    def __init__(self, folder: StateFolder, name: str, fd: int) -> None:
        self._folder = folder
        self._name = name
        self._fd = fd

    def release(self) -> None:
        """Gives the lock back and removes its file; safe to call twice."""
        if self._fd < 0:
            return
        with contextlib.suppress(OSError), self._folder.folder("sessions") as dir_fd:
            if _is_named(self._fd, self._name, dir_fd):
                os.unlink(self._name, dir_fd=dir_fd)
        os.close(self._fd)
        self._fd = -1


def hold(folder: StateFolder, session: str, *, dir_fd: int) -> Held:
    """The lock of a conversation.

    Raises:
        StateBusy: another opener has it; the message names its process.
        StateError: the lock's file cannot be used.
    """
    name = session + SUFFIX
    while True:
        fd = folder.open_file(name, os.O_RDWR | os.O_CREAT, dir_fd=dir_fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_named(fd, name, dir_fd):
                os.close(fd)  # its holder removed it just now: another file has that name, or none
                continue
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        except OSError as error:
            holder = _holder(fd)
            os.close(fd)
            if error.errno != errno.EWOULDBLOCK:
                raise state_error_of(error, f"{name} in {folder.path}") from error
            raise StateBusy(
                f"the conversation {session} is open in {holder}",
                not_done="it was not opened",
                hint=f"end it there, or go on in a copy: opsagent sessions fork {session}",
            ) from None
        return Held(folder, name, fd)


def is_held(folder: StateFolder, session: str, *, dir_fd: int) -> bool:
    """Whether somebody has the conversation open for writing now."""
    try:
        fd = folder.open_file(session + SUFFIX, os.O_RDONLY, dir_fd=dir_fd)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _is_named(fd: int, name: str, dir_fd: int) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(name, dir_fd=dir_fd, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _holder(fd: int) -> str:
    try:
        pid = os.pread(fd, 32, 0).strip()
    except OSError:
        pid = b""
    if not pid.isdigit():
        return "another process"
    return "this process already" if int(pid) == os.getpid() else f"process {int(pid)}"
