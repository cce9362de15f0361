"""Puts back what a rollback plan says, path by path. Changes the paths of the plan and nothing else.

Each path is checked against the plan right before it is touched. Contents are written to a new file beside it that
is complete, owned, labelled and synced before one rename puts it in place; so a path is at any moment what it was
or what it shall be. Only bare metadata is set in place. A second run goes on where a first one stopped.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import replace
from typing import TYPE_CHECKING

from guard.errors import SnapshotImpossible, StateDamaged
from guard.hands.capture import survey
from guard.hands.files import (
    NOBODY,
    READ,
    Unsafe,
    Walker,
    exchange,
    rename_new,
    user_name,
)
from guard.hands.identity import is_still, owner_of_work
from guard.hands.metadata import HANDLE, PINNING_FLAGS, flags_of, set_flags
from guard.hands.setting import as_is, same_metadata, set_by_handle, set_metadata, unpin
from guard.quoting import quoted
from guard.saved import ABSENT, CONFLICTS, DEVICE, DIRECTORY, FIFO, FILE, SYMLINK, Action, State, StepResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from guard.hands.files import Folder
    from guard.saved import Node, RollbackPlan, Source, Step

DONE = "done"
CONFLICT = "conflict"
FAILED = "failed"

_TEMPORARY = ".opsx-"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_REASONS = {
    errno.EPERM: "is not permitted",
    errno.EACCES: "is not permitted",
    errno.ENOSPC: "has no space left",
    errno.EROFS: "is on a read-only file system",
    errno.ENOTEMPTY: "is a folder with other things in it",
}


class _Conflict(Exception):
    """The path is not what the plan says it is."""


def apply(
    plan: RollbackPlan,
    source: Source,
    *,
    tag: str,
    stale_tags: Iterable[str] = (),
    on_step: Callable[[StepResult], None] = lambda result: None,
    checkpoint: Callable[[str], None] = lambda name: None,
) -> tuple[StepResult, ...]:
    """Carries out a plan and checks the outcome; one result per step that does something.

    Args:
        tag: the rollback's execution id; its temporary files carry it in their names.
        stale_tags: ids of earlier rollbacks that did not come to their end: what they left is removed.
        on_step: called after each step.
        checkpoint: called between the parts of a step, by name; tests stop the process there.
    Effects: changes the paths of the plan, atomically one by one. Never raises for a single path: its result says
        what happened, and the others go on.
    """
    restorer = _Restorer(source, tag, tuple(stale_tags), checkpoint)
    results: dict[str, StepResult] = {}
    try:
        for step in plan.work:
            results[step.path] = result = restorer.take(step)
            on_step(result)
        for failed in restorer.finish(plan):
            results[failed.path] = failed
    finally:
        restorer.close()
    return tuple(_verified(plan, results).values())


class _Restorer:
    """Works through steps; keeps what the end has to finish."""

    def __init__(
        self, source: Source, tag: str, stale_tags: tuple[str, ...], checkpoint: Callable[[str], None]
    ) -> None:
        self._source = source
        self._prefix = f"{_TEMPORARY}{tag}-"
        self._stale = tuple(f"{_TEMPORARY}{stale}-" for stale in stale_tags)
        self._checkpoint = checkpoint
        self._walker = Walker()
        self._other = Walker()
        self._count = 0
        self._touched: dict[str, None] = {}
        self._folders: dict[str, tuple[Node, tuple[int, int]]] = {}
        self._written: dict[str, tuple[int, int]] = {}

    def close(self) -> None:
        """Closes all descriptors."""
        self._walker.close()
        self._other.close()

    def take(self, step: Step) -> StepResult:
        """Does one step."""
        try:
            parent, name = os.path.split(step.path)
            folder = self._walker.folder(parent)
            with folder.acting(owner_of_work(step)):
                if parent not in self._touched:
                    self._sweep(folder)
                if step.now.flags >= 0 and step.now.flags & PINNING_FLAGS:
                    step = self._unpinned(folder, name, step)
                self._check(folder, name, step)
                _WORK[step.action](self, folder, name, step)
                self._touched[parent] = None
            self._checkpoint("done")
        except _Conflict as error:
            return StepResult(step.path, step.action, CONFLICT, str(error))
        except (Unsafe, OSError, StateDamaged) as error:
            return StepResult(step.path, step.action, FAILED, _why(error, step))
        if DIRECTORY in (step.before.kind, step.now.kind):
            # Names on the way to what follows may now be other folders, or belong to another user.
            self._walker.forget()
            self._other.forget()
        return StepResult(step.path, step.action, DONE)

    def finish(self, plan: RollbackPlan) -> list[StepResult]:
        """Folders get their final mode and times, deepest first; then all that was touched is made durable."""
        with_more = {os.path.dirname(step.path) for step in plan.steps if step.state == State.EXTRA}
        for step in plan.steps:
            quiet = step.action == Action.NONE and step.state in (State.BACK, State.UNCHANGED)
            full = step.before.kind == DIRECTORY and not step.before.meta
            if quiet and full and step.path in self._touched and step.path not in with_more:
                self._folders[step.path] = (step.before, (step.now.dev, step.now.ino))
        failed = []
        for path in sorted(self._folders, key=lambda path: path.count("/"), reverse=True):
            node, inode = self._folders[path]
            try:
                parent, name = os.path.split(path)
                folder = self._walker.folder(parent)
                with folder.acting(os.geteuid() if node.flags > 0 else node.uid):
                    fd = os.open(name, READ | os.O_DIRECTORY, dir_fd=folder.fd)
                    try:
                        info = os.fstat(fd)
                        if (info.st_dev, info.st_ino) != inode:
                            raise Unsafe(path, "became another folder")
                        if node.meta:
                            os.fchmod(fd, node.mode)
                        else:
                            set_metadata(fd, node)
                        if node.flags >= 0:
                            set_flags(fd, node.flags)
                        os.fsync(fd)
                    finally:
                        os.close(fd)
            except (Unsafe, OSError) as error:
                failed.append(StepResult(path, Action.META, FAILED, f"its owner or mode: {_why(error, None)}"))
            self._walker.forget()
        for path in self._touched:
            with contextlib.suppress(Unsafe, OSError):
                folder = self._walker.folder(path)
                with folder.acting():
                    _sync_folder(folder)
        return failed

    # ── the actions ──────────────────────────────────────────────────────────────────────────────────────────────

    def _write(self, folder: Folder, name: str, step: Step) -> None:
        node = step.before
        temporary = self._temporary()
        fd = os.open(temporary, _CREATE, 0o600, dir_fd=folder.fd)
        try:
            self._checkpoint("created")
            self._fill(fd, node)
            self._checkpoint("filled")
            set_metadata(fd, node)
            os.fsync(fd)
            info = os.fstat(fd)
            self._checkpoint("complete")
            self._put(folder, temporary, name, step)
            if node.flags >= 0:
                set_flags(fd, node.flags)
        except OSError as error:
            if error.errno != errno.EBUSY or step.now.kind != FILE:
                raise
            # A mount point cannot be renamed over: a file that is mounted into a container, for example.
            info = self._write_in_place(folder, name, step)
        finally:
            os.close(fd)
            self._drop(folder, temporary)
        self._written[step.path] = (info.st_dev, info.st_ino)

    def _write_in_place(self, folder: Folder, name: str, step: Step) -> os.stat_result:
        flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(name, flags, dir_fd=folder.fd)
        try:
            info = os.fstat(fd)
            if not is_still(step.now, info) or info.st_nlink > 1:
                raise _Conflict("it was changed since the plan was made")
            self._fill(fd, step.before)
            set_metadata(fd, step.before)
            os.fsync(fd)
            return info
        finally:
            os.close(fd)

    def _fill(self, fd: int, node: Node) -> None:
        def write(offset: int, chunk: bytes) -> None:
            view = memoryview(chunk)
            while view:
                count = os.pwrite(fd, view, offset)
                view, offset = view[count:], offset + count

        # Cut first: in a file that is written in place, the holes must not keep what was there.
        os.ftruncate(fd, 0)
        self._source.read_into(node.sha256, write)
        os.ftruncate(fd, node.size)

    def _link(self, folder: Folder, name: str, step: Step) -> None:
        first = step.links[0]
        written = self._written.get(first)
        if written is None:
            raise _Conflict(f"{first}, whose other name it is, was not put back")
        other = self._other.folder(os.path.dirname(first))
        temporary = self._temporary()
        try:
            os.link(
                os.path.basename(first),
                temporary,
                src_dir_fd=other.fd,
                dst_dir_fd=folder.fd,
                follow_symlinks=False,
            )
            info = folder.stat(temporary)
            if info is None or (info.st_dev, info.st_ino) != written:
                raise _Conflict(f"{first}, whose other name it is, was changed meanwhile")
            self._put(folder, temporary, name, step)
        finally:
            self._drop(folder, temporary)

    def _metadata(self, folder: Folder, name: str, step: Step) -> None:
        """Of the very thing that the snapshot saw. What it holds is not looked at, and other names of it follow."""
        node = step.before
        fd = os.open(name, HANDLE, dir_fd=folder.fd)
        try:
            info = os.fstat(fd)
            if (info.st_dev, info.st_ino) != (node.dev, node.ino) and step.state not in CONFLICTS:
                raise _Conflict("something else is there by now")
            if not same_metadata(fd, step.now):
                raise _Conflict("it was changed since the plan was made")
            if node.kind == DIRECTORY and node.mode & 0o700 != 0o700:
                # What is in it has to be reached first; `finish` sets the mode.
                set_by_handle(fd, replace(node, mode=node.mode | 0o700))
                self._folders[step.path] = (node, (info.st_dev, info.st_ino))
            else:
                set_by_handle(fd, node)
                if node.flags >= 0:
                    set_flags(fd, node.flags)
        finally:
            os.close(fd)

    def _unpinned(self, folder: Folder, name: str, step: Step) -> Step:
        """The step with the change time that taking `i` and `a` away gave to what is there."""
        fd = os.open(name, HANDLE, dir_fd=folder.fd)
        try:
            if not is_still(step.now, os.fstat(fd)):
                raise _Conflict("it was changed since the plan was made")
            unpin(fd)
            return replace(step, now=as_is(step.now, fd))
        finally:
            os.close(fd)

    def _meta(self, folder: Folder, name: str, step: Step) -> None:
        node = step.before
        if node.meta:
            self._metadata(folder, name, step)
            return
        if node.kind in (FIFO, DEVICE):
            self._meta_by_handle(folder, name, step)
            return
        flags = READ | (os.O_DIRECTORY if node.kind == DIRECTORY else 0)
        try:
            fd = os.open(name, flags, dir_fd=folder.fd)
        except PermissionError:
            # Its owner may set its mode without being allowed to read it; then it opens.
            self._meta_by_handle(folder, name, step)
            fd = os.open(name, flags, dir_fd=folder.fd)
            step = replace(step, now=as_is(step.now, fd))
        try:
            info = os.fstat(fd)
            if not is_still(step.now, info):
                raise _Conflict("it was changed since the plan was made")
            if node.kind == FILE and info.st_nlink > 1:
                raise _Conflict("it has another name (a hard link), which would change with it")
            if node.kind == DIRECTORY:
                self._open_up(fd, step)
            else:
                set_metadata(fd, node)
                if node.flags >= 0:
                    set_flags(fd, node.flags)
                os.fsync(fd)
        finally:
            os.close(fd)

    def _make(self, folder: Folder, name: str, step: Step) -> None:
        node = step.before
        if node.kind == DIRECTORY:
            if folder.acts_as != NOBODY and node.uid not in (folder.acts_as, os.geteuid()):
                # Between making and opening it, the folder's owner could put another one in its place.
                raise Unsafe(step.path, f"belonged to {user_name(node.uid)} in a folder of {user_name(folder.acts_as)}")
            if step.now.kind != ABSENT:
                os.unlink(name, dir_fd=folder.fd)
            os.mkdir(name, 0o700, dir_fd=folder.fd)
            self._checkpoint("created")
            fd = os.open(name, READ | os.O_DIRECTORY, dir_fd=folder.fd)
            try:
                self._open_up(fd, step)
            finally:
                os.close(fd)
            return
        temporary = self._temporary()
        try:
            if node.kind == SYMLINK:
                os.symlink(node.link, temporary, dir_fd=folder.fd)
            elif node.kind == FIFO:
                os.mkfifo(temporary, 0o600, dir_fd=folder.fd)
            else:
                os.mknod(temporary, stat.S_IFCHR | 0o600, node.rdev, dir_fd=folder.fd)
            self._checkpoint("created")
            fd = os.open(temporary, HANDLE, dir_fd=folder.fd)
            try:
                set_by_handle(fd, node)
            finally:
                os.close(fd)
            self._put(folder, temporary, name, step)
        finally:
            self._drop(folder, temporary)

    def _meta_by_handle(self, folder: Folder, name: str, step: Step) -> None:
        fd = os.open(name, HANDLE, dir_fd=folder.fd)
        try:
            info = os.fstat(fd)
            if not is_still(step.now, info):
                raise _Conflict("it was changed since the plan was made")
            if step.before.kind == FILE and info.st_nlink > 1:
                raise _Conflict("it has another name (a hard link), which would change with it")
            mode = step.before.mode | (0o700 if step.before.kind == DIRECTORY else 0)
            set_by_handle(fd, replace(step.before, mode=mode))
        finally:
            os.close(fd)

    def _delete(self, folder: Folder, name: str, step: Step) -> None:
        if step.now.kind == DIRECTORY:
            os.rmdir(name, dir_fd=folder.fd)
        else:
            os.unlink(name, dir_fd=folder.fd)

    # ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _open_up(self, fd: int, step: Step) -> None:
        """A folder's owner and attributes, and enough mode to work in it; `finish` sets the rest."""
        node = step.before
        set_metadata(fd, replace(node, mode=node.mode | 0o700))
        info = os.fstat(fd)
        self._folders[step.path] = (node, (info.st_dev, info.st_ino))

    def _check(self, folder: Folder, name: str, step: Step) -> None:
        info = folder.stat(name)
        if info is None and step.now.kind == ABSENT:
            return
        if info is None or not is_still(step.now, info):
            raise _Conflict("it was changed since the plan was made")

    def _put(self, folder: Folder, temporary: str, name: str, step: Step) -> None:
        """One rename from the plan's `now` to its `before`, which takes nothing with it that the plan does not know."""
        self._check(folder, name, step)
        self._checkpoint("checked")
        if step.now.kind == ABSENT:
            try:
                rename_new(folder.fd, temporary, name)
            except FileExistsError:
                raise _Conflict("it was made by somebody else meanwhile") from None
        elif step.now.kind != FILE or not self._swapped(folder, temporary, name, step):
            if step.now.kind == DIRECTORY:
                os.rmdir(name, dir_fd=folder.fd)
            os.rename(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        self._checkpoint("renamed")

    def _swapped(self, folder: Folder, temporary: str, name: str, step: Step) -> bool:
        """Swaps the new file in and looks at what came out: what somebody wrote since the check goes back.

        False where the file system cannot swap.
        """
        try:
            if not exchange(folder.fd, temporary, name):
                return False
        except FileNotFoundError:
            raise _Conflict("it was removed meanwhile") from None
        out = folder.stat(temporary)
        # A rename changes the change time, so that alone says nothing here.
        if out is None or not is_still(replace(step.now, ctime_ns=out.st_ctime_ns), out):
            exchange(folder.fd, temporary, name)
            raise _Conflict("it was written to meanwhile")
        return True

    def _temporary(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def _drop(self, folder: Folder, temporary: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder.fd)

    def _sweep(self, folder: Folder) -> None:
        """Removes what an earlier rollback left half-made in this folder."""
        if not self._stale:
            return
        with contextlib.suppress(OSError):
            fd = os.open(".", READ | os.O_DIRECTORY, dir_fd=folder.fd)
            try:
                names = [name for name in os.listdir(fd) if name.startswith(self._stale)]
            finally:
                os.close(fd)
            for name in names:
                self._drop(folder, name)


_WORK = {
    Action.WRITE: _Restorer._write,
    Action.LINK: _Restorer._link,
    Action.META: _Restorer._meta,
    Action.MAKE: _Restorer._make,
    Action.DELETE: _Restorer._delete,
}


def _sync_folder(folder: Folder) -> None:
    fd = os.open(".", READ | os.O_DIRECTORY, dir_fd=folder.fd)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _verified(plan: RollbackPlan, results: dict[str, StepResult]) -> dict[str, StepResult]:
    """The results, those taken back that do not look like what was saved."""
    done = [step for step in plan.work if results[step.path].result == DONE]
    try:
        found = {node.path: node for node in _again(done)}
    except SnapshotImpossible as error:
        for step in done:
            results[step.path] = StepResult(step.path, step.action, FAILED, f"cannot be verified: {error.message}")
        return results
    for step in done:
        if not found[step.path].looks_like(step.before):
            results[step.path] = StepResult(step.path, step.action, FAILED, "it is not what was saved, after all")
    return results


def _again(done: list[Step]) -> tuple[Node, ...]:
    full = [step.path for step in done if not step.before.meta]
    alone = [step.before for step in done if step.before.meta or step.before.flags >= 0]
    return survey(full, recursive=False, metadata=alone)


def _why(error: Exception, step: Step | None) -> str:
    if isinstance(error, Unsafe):
        return str(error)
    if isinstance(error, StateDamaged):
        return error.message
    assert isinstance(error, OSError)
    if error.errno == errno.EPERM and step is not None and (place := _pinned(step.path)):
        # Whoever set it meant that nothing changes there, and it is theirs to say otherwise.
        return f"somebody protected {place} since (chattr +i or +a): chattr -ia {quoted(place)}, then go back again"
    text = _REASONS.get(error.errno or 0) or f"failed: {os.strerror(error.errno or 0)}"
    if error.errno == errno.EPERM and step is not None and step.before.uid != os.geteuid():
        text += f" (it belonged to {user_name(step.before.uid)})"
    if error.errno in (errno.EPERM, errno.EACCES) and os.geteuid() != 0:
        text += ": only root can put it back"
    return text


def _pinned(path: str) -> str:
    """The path itself or its folder, whichever may not be changed for its inode flags; "" for neither."""
    for place in (path, os.path.dirname(path)):
        with contextlib.suppress(OSError):
            handle = os.open(place, HANDLE)
            try:
                if flags_of(handle) & PINNING_FLAGS:
                    return place
            finally:
                os.close(handle)
    return ""
