"""Brings root's records from below root's home, where they were kept before, to the system's place. Once, and whole.

At any moment, and after a kill at any moment, there is one truth. `location.state_path` names it from what is there:

    there                               the truth        what the next one does
    OLDER                               OLDER            moves it
    OLDER.moving (another file system)  OLDER.moving     copies it from the start
    PLACE/format                        PLACE            removes an OLDER.moving that it holds

Within a file system one rename is the move. To another one the records are taken aside, copied, synced and compared,
and one rename lets the copy count. Where they were, a small file says where they are; an older version that still runs
meets it and stops, where it would begin a second set of records otherwise. Touches these folders and nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from typing import TYPE_CHECKING

from guard.errors import StateDamaged, StateError, StateInTwoPlaces, StateUnsafe, StateUnwritable
from guard.ledger import claims, index, location
from guard.ledger.carried import records_of
from guard.ledger.location import HOME_VARIABLE, MOVING
from guard.ledger.log import Log, fault_at, head_of
from guard.ledger.parents import check_parents, make_folders
from guard.ledger.presence import records_in
from guard.ledger.segments import lines_from
from guard.ledger.state import KEY_BYTES, StateFolder, state_error_of, write_all
from guard.quoting import quoted
from guard.types import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from guard.ports import Clock, Liveness

STAGING = ".new"
"""Behind the name of the place while a copy of the records grows there."""

SPARE_BYTES = 64 << 20
"""Space that a copy leaves free on the file system that it goes to: as much as the log wants for its reserve."""

LEFT_BEHIND = frozenset(("lock", "enforcement", "index.db", "index.db-wal", "index.db-shm"))
"""Made anew at the next use."""

_CHUNK_BYTES = 1 << 20


def move(*, clock: Clock, liveness: Liveness, holders: Callable[[str], str]) -> tuple[str, ...]:
    """Moves them if that is due, and returns sentences for people about it. Never raises: what stays is used there.

    Args:
        holders: who has files below a folder open, in words (`guard.hands.holders`).
    """
    if not location.move_is_due():
        return ()
    system, source = location.system_place(), location.state_path()
    try:
        if source == system:
            _remove_copied(location.older_place() + MOVING)
            return ()
        return _moved(source, system, clock, liveness, holders)
    except StateError as error:
        why = error.message
    except OSError as error:
        why = error.strerror or str(error)
    return (f"root's records stay in {location.state_path()}, and are not moved to {system}: {why}",)


def require_one_place(folder: StateFolder) -> None:
    """Raises StateInTwoPlaces when root's folder is the system's and other records are where they were kept before.

    Copies of what is in the system's folder (a backup that was put back) are no other records.
    """
    older = location.older_place() if folder.path == location.system_place() else ""
    for place in (older, older + MOVING) if older else ():
        if not location.is_folder(place) or _is_held_by(folder, StateFolder(place)):
            continue
        raise StateInTwoPlaces(
            f"there are records of root in two places: {folder.path} and {place}",
            not_done="nothing was recorded",
            hint=f"nothing is lost; look at them with {HOME_VARIABLE}={quoted(place)} opsx executions, keep them under "
            f"another name, mv {quoted(place)} {quoted(place + '.kept')}, and {folder.path} counts",
        )


def _is_held_by(folder: StateFolder, other: StateFolder) -> bool:
    """Whether `other` has nothing that `folder` has not: no records, or a log that is the beginning of its log."""
    with other.root() as root:
        if not records_in(root):
            return True
        if other.path.endswith(MOVING):
            # Nothing was written there since it got this name, and parts of it may be gone: the key says whose it is.
            with contextlib.suppress(FileNotFoundError):
                return other.read_file("key", dir_fd=root, limit_bytes=KEY_BYTES) == folder.key()
    head = head_of(other)
    return head is not None and not fault_at(folder, head)


def _moved(
    source: str, system: str, clock: Clock, liveness: Liveness, holders: Callable[[str], str]
) -> tuple[str, ...]:
    folder = StateFolder.open(source)
    with Log(folder, clock=clock, liveness=liveness).writer() as writer:
        if location.state_path() != source:
            return ()  # another process moved them while we waited for the lock
        why = _in_use(folder, liveness) or holders(source)
        if why:
            return (f"root's records stay in {source} for now, and go to {system} later: {why}",)
        parent = os.path.dirname(system)
        make_folders(parent)
        check_parents(parent)
        _require_room(source, system)
        text = f"root's records go from {source} to {system}"
        writer.append([{"kind": "notice", "code": "state-moved", "text": text}], durable=True, use_reserve=True)
        older = source.removesuffix(MOVING)
        try:
            os.rename(source, system)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise StateUnsafe(f"{system} is there, and is no state folder") from error
            if error.errno != errno.EXDEV:
                raise
            _copied(source, system)
        _sync(parent)
        _sync(os.path.dirname(older))
        _leave_note(older, system)
    _remove_copied(older + MOVING)
    return (f"root's records are in {system} from now on; they were in {older}",)


def _in_use(folder: StateFolder, liveness: Liveness) -> str:
    """Which process would lose its way to the records, in words; "" when none would."""
    running, _ = index.newest(folder, liveness, status=Status.RUNNING, since=None, limit=1)
    if running:
        return f"{running[0].id} is running"
    for line in lines_from(folder):
        if b'"kind":"deadman_armed"' not in line.raw:
            continue
        for entry in records_of(iter((line,))):
            execution, pid = str(entry.get("execution")), entry.get("pid")
            waits = entry["kind"] == "deadman_armed" and not claims.outcome_of(folder, execution)
            if waits and liveness.alive(str(entry.get("boot")), int(pid or 0), str(entry.get("pid_start"))):
                return f"the dead man of {execution} waits"
    return ""


def _require_room(source: str, system: str) -> None:
    """That the place can be written and, on another file system, has the space. Raises StateUnwritable, OSError."""
    parent = os.path.dirname(system)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise StateUnwritable(f"{parent} cannot be written")
    if os.stat(parent).st_dev == os.stat(source).st_dev:
        return
    needed = 0
    for folder, _, names in os.walk(source):
        needed += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
    space = os.statvfs(parent)
    if space.f_bavail * space.f_frsize < needed + SPARE_BYTES:
        raise StateUnwritable(f"{parent} has no room for {needed >> 20} MiB")


def _copied(source: str, system: str) -> None:
    """Copies them to another file system. When this returns, the copy counts and the original is a leftover.

    Raises OSError, StateError: they are where they were.
    """
    older = source.removesuffix(MOVING)
    moving, staging = older + MOVING, system + STAGING
    if source == older:
        os.rename(older, moving)
        _sync(os.path.dirname(older))
        _leave_note(older, system)
    try:
        shutil.rmtree(staging, ignore_errors=True)
        _copy_folder(moving, staging, top=True)
        os.rename(staging, system)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        if not location.is_folder(older):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(older)
            os.rename(moving, older)
        raise


def _copy_folder(source: str, target: str, *, top: bool = False) -> None:
    os.mkdir(target, 0o700)
    with os.scandir(source) as entries:
        for entry in entries:
            name, path = os.path.join(target, entry.name), entry.path
            if (top and entry.name in LEFT_BEHIND) or path.endswith("/log/reserve"):
                continue
            if entry.is_dir(follow_symlinks=False):
                _copy_folder(path, name)
            elif entry.is_file(follow_symlinks=False):
                _copy_file(path, name)
            else:
                raise StateUnsafe(f"{path} is not a regular file or folder")
    _sync(target)


def _copy_file(source: str, target: str) -> None:
    """Copies one file with its mode and times, durably, and reads it back. Raises OSError, StateDamaged."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    digest = hashlib.sha256()
    read_fd = os.open(source, os.O_RDONLY | flags)
    try:
        was = os.fstat(read_fd)
        write_fd = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o600)
        try:
            while chunk := os.read(read_fd, _CHUNK_BYTES):
                digest.update(chunk)
                write_all(write_fd, chunk)
            os.fchmod(write_fd, was.st_mode & 0o7700)
            os.utime(write_fd, ns=(was.st_atime_ns, was.st_mtime_ns))
            os.fsync(write_fd)
            os.lseek(write_fd, 0, os.SEEK_SET)
            again = hashlib.sha256()
            while chunk := os.read(write_fd, _CHUNK_BYTES):
                again.update(chunk)
        finally:
            os.close(write_fd)
    except OSError as error:
        raise state_error_of(error, target) from error
    finally:
        os.close(read_fd)
    if again.digest() != digest.digest():
        raise StateDamaged(f"the copy of {source} is not what was written")


def _remove_copied(moving: str) -> None:
    """Removes what a copy left, if the system's place holds it; else it stays, and `require_one_place` says so."""
    if not location.is_folder(moving) or not _is_held_by(StateFolder(location.system_place()), StateFolder(moving)):
        return
    with contextlib.suppress(OSError):  # the next one goes on with it
        for name in os.listdir(moving):
            if name != "key":  # it says whose the rest is, so it goes last
                _remove(os.path.join(moving, name))
        shutil.rmtree(moving)


def _remove(path: str) -> None:
    if location.is_folder(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _leave_note(older: str, system: str) -> None:
    """A file where the folder was. A missing one is no harm: the place decides."""
    text = f"The records of opsagent that were here are in {system}.\nThis note can be deleted.\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        fd = os.open(older, flags, 0o600)
        try:
            write_all(fd, text.encode())
        finally:
            os.close(fd)


def _sync(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
