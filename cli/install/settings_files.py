"""Settings files of other programs: read and replaced whole, never through a link; the text from before is kept.

What was there before the first change lies in the state folder (docs/formats.md, "host settings"), mode 0600, because
such files hold credentials. It is what `--remove` puts back when nobody changed the file since.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from execution import open_store
from guard.errors import CannotRun, StateError
from guard.hands.files import READ, Folder, Unsafe, Walker
from guard.ledger import location
from guard.ledger.state import write_all
from guard.redact import Redactor

if TYPE_CHECKING:
    from cli.install.entries import Change

KEPT_FOLDER = "host-settings"
MOST_BYTES = 64 << 20
"""Claude Code keeps its history beside its servers."""
_UNCHANGED = "this file was not changed"


@dataclass(frozen=True, slots=True)
class Kept:
    """A file as it was before our entries."""

    text: str | None
    """None: there was none."""
    written: str
    """SHA-256 of what was written in its place."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What is to become of one file."""

    path: str
    now: str | None
    """Its text; None when it is not there."""
    then: str | None
    """None: it goes away."""
    before: str | None
    """What `--remove` puts back."""

    @property
    def changes(self) -> bool:
        return self.now != self.then


def to_install(change: Change, widest: Change) -> Rewrite:
    """With our entries, whatever an earlier call put in.

    Args:
        widest: the same change with everything that an earlier call can have put in.
    Raises:
        CannotRun: the file cannot be read, or our entries do not go into it.
    """
    now = read(change.path)
    kept = _kept(change.path)
    before = now if kept is None else _without(widest, now, kept)
    try:
        then = change.with_ours(before or "")
    except ValueError as error:
        raise _cannot(change.path, str(error)) from None
    return Rewrite(change.path, now, then, before)


def to_remove(widest: Change) -> Rewrite:
    """Without our entries. Raises CannotRun."""
    now = read(widest.path)
    left = _without(widest, now, _kept(widest.path))
    return Rewrite(widest.path, now, left, left)


def _without(change: Change, now: str | None, kept: Kept | None) -> str | None:
    if kept is not None and now is not None and kept.written == _digest(now):
        return kept.text
    if now is None:
        return None
    try:
        return change.without_ours(now, None if kept is None else kept.text)
    except ValueError as error:
        raise _cannot(change.path, str(error)) from None


def carry_out(rewrite: Rewrite, *, keep: bool) -> None:
    """Makes it so. Keeps the text from before first, or forgets it when it has been put back.

    Raises:
        CannotRun: the file is not what it was, a link or another user's folder is in the way, or nothing can be
            written. The file is then as it was.
    """
    folder, name = os.path.split(rewrite.path)
    try:
        if keep and rewrite.then is not None:
            _keep(rewrite.path, Kept(rewrite.before, _digest(rewrite.then)))
        with Walker() as walker:
            place = _made(walker, folder)
            with place.acting():
                _replace(place, name, rewrite)
    except Unsafe as error:
        raise _cannot(rewrite.path, str(error)) from None
    except StateError as error:
        raise _cannot(rewrite.path, error.message) from None
    except OSError as error:
        raise _cannot(rewrite.path, error.strerror or str(error)) from None
    if not keep:
        forget(rewrite.path)


def forget(path: str) -> None:
    """Drops what was kept of a file."""
    with contextlib.suppress(OSError, StateError):
        os.unlink(_kept_path(path))


def read(path: str) -> str | None:
    """The text of a file; None when it is not there. Raises CannotRun for anything but a plain UTF-8 file."""
    try:
        fd = os.open(path, READ)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = "it is a link; change the file that it points to" if os.path.islink(path) else error.strerror
        raise _cannot(path, why or str(error)) from None
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise _cannot(path, "it is not a plain file")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise _cannot(path, f"it is longer than {MOST_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _cannot(path, "it is not UTF-8") from None


def _made(walker: Walker, folder: str) -> Folder:
    """The folder, made where it is missing, for us alone as the hosts make theirs."""
    missing: list[str] = []
    while folder != "/" and not os.path.lexists(folder):
        folder, name = os.path.split(folder)
        missing.append(name)
    for name in reversed(missing):
        place = walker.folder(folder)
        with place.acting():
            os.mkdir(name, 0o700, dir_fd=place.fd)
            if os.geteuid() == 0:
                os.chown(name, place.info.st_uid, place.info.st_gid, dir_fd=place.fd, follow_symlinks=False)
        folder = os.path.join(folder, name)
    return walker.folder(folder)


def _replace(place: Folder, name: str, rewrite: Rewrite) -> None:
    info = place.stat(name)
    if rewrite.then is None:
        _same(rewrite)
        os.unlink(name, dir_fd=place.fd)
        _sync(place)
        return
    scratch = f".{name}.opsagent-{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(scratch, flags, 0o600, dir_fd=place.fd)
    try:
        write_all(fd, rewrite.then.encode())
        owner = info or place.info
        if os.geteuid() == 0:
            os.fchown(fd, owner.st_uid, owner.st_gid)
        if info is not None:
            os.fchmod(fd, stat.S_IMODE(info.st_mode))
        os.fsync(fd)
        # As late as can be: the host may have written its file meanwhile.
        _same(rewrite)
        os.rename(scratch, name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        _sync(place)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch, dir_fd=place.fd)
        raise
    finally:
        os.close(fd)


def _sync(place: Folder) -> None:
    """The folder's entries onto the disk; `place.fd` itself is good for looking only."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place.fd)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _same(rewrite: Rewrite) -> None:
    if read(rewrite.path) != rewrite.now:
        raise _cannot(rewrite.path, "it was changed in this moment")


def _cannot(path: str, why: str) -> CannotRun:
    return CannotRun(
        f"{path}: {why}", not_done=_UNCHANGED, hint="close the host and try again, or make the change by hand"
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _kept_path(path: str) -> str:
    return os.path.join(location.state_path(), KEPT_FOLDER, hashlib.sha256(path.encode()).hexdigest()[:32])


def _kept(path: str) -> Kept | None:
    """What was there before; None when nothing is known. A damaged note counts as none."""
    try:
        with open(os.open(_kept_path(path), READ), "rb") as file:
            row = json.loads(file.read(2 * MOST_BYTES))
        if row["format"] == 1 and row["path"] == path and isinstance(row["text"], str | None):
            return Kept(row["text"], str(row["written"]))
    except (OSError, ValueError, KeyError, TypeError, StateError):
        pass
    return None


def _keep(path: str, kept: Kept) -> None:
    """Raises OSError, StateError."""
    open_store(Redactor())  # makes the state folder, or says why there is none
    place = _kept_path(path)
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    scratch = f"{place}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(FileNotFoundError):
        os.unlink(scratch)
    fd = os.open(scratch, flags, 0o600)
    try:
        row = {"format": 1, "path": path, "text": kept.text, "written": kept.written}
        write_all(fd, json.dumps(row).encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(scratch, place)
