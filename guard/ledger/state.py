"""The state folder: where it is, who may open it, and how its files are opened. Touches nothing but that folder.

Promise: every file is opened below a directory descriptor, without following a link at the end, and is a
regular file of ours that nobody else can write. The folder is opened anew for each operation, so a folder
that was moved away or replaced is noticed instead of written into blindly.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time

from guard.errors import StateBusy, StateDamaged, StateError, StateUnsafe, StateUnwritable
from guard.ledger.location import FORMAT, HOME_VARIABLE, config_path, home_of_user, is_folder, state_path
from guard.ledger.parents import check_parents, make_folders
from guard.ledger.presence import records_in
from guard.quoting import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "StateFolder",
    "config_path",
    "home_of_user",
    "is_full",
    "read_up_to",
    "state_error_of",
    "state_path",
    "write_all",
]

KEY_BYTES = 32
"""SHA-256's output size; a longer HMAC key adds nothing (RFC 2104, section 3)."""

OWN_NAMES = frozenset(
    (
        "format",
        "key",
        "lock",
        "log",
        "torn",
        "requests",
        "outputs",
        "snapshots",
        "sessions",
        "usage",
        "config",
        "enforcement",
        "frozen",
        "unsent",
        "deadman",
        "host-settings",
        "runbooks",
        "trusted-rules",
        "index.db",
        "index.db-wal",
        "index.db-shm",
    )
)
"""What may lie in a folder without a `format` file for it to be taken as ours; anything else there is somebody's."""

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
# O_NONBLOCK: opening a FIFO that somebody put here must not hang; it means nothing for a regular file.

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT))


def is_full(error: BaseException | None) -> bool:
    """Whether an error of the system, or one of ours made from it, says that there is no space left."""
    if isinstance(error, StateError):
        error = error.__cause__
    return isinstance(error, OSError) and error.errno in _FULL


def state_error_of(error: OSError, what: str) -> StateError:
    """Our error for one of the system's, with the reason in words. `what` names the thing, not the action."""
    if error.errno in _FULL:
        return StateUnwritable(
            f"no space left for {what}", not_done="nothing was recorded", hint="free space on that file system"
        )
    if error.errno == errno.EROFS:
        return StateUnwritable(
            f"the file system of {what} is read-only",
            not_done="nothing was recorded",
            hint=f"remount it, or set {HOME_VARIABLE} to a writable folder",
        )
    if error.errno == errno.ELOOP:
        return StateUnsafe(
            f"{what} is a symbolic link", not_done="nothing was recorded", hint="replace the link by the real thing"
        )
    if error.errno == errno.ENOTDIR:
        return StateUnsafe(f"{what} is not a folder, or is a link", not_done="nothing was recorded")
    return StateUnwritable(
        f"{what} cannot be used: {os.strerror(error.errno or 0)}", not_done="nothing was recorded", hint=""
    )


class StateFolder:
    """An opened, checked state folder. All names below are single path components.

    `notes` holds sentences for people about what was repaired (modes that were too open).
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.notes: list[str] = []
        self._key: bytes | None = None
        self._place: Callable[[], str] | None = None

    @classmethod
    def open(cls, path: str) -> StateFolder:
        """Opens the folder, creating it (0700) with its `format` file when it is not there.

        A folder on a read-only file system is opened for reading.

        Raises:
            StateUnsafe: a link, somebody else's, writable by others, or a folder with other things in it.
            StateUnwritable: it is not there and cannot be created.
            StateDamaged: its format is no number.

        A folder of a newer version can be read; whatever would write raises StateUnwritable.
        """
        return cls(path)._opened()

    @classmethod
    def open_own(cls) -> StateFolder:
        """As `open`, at this user's own place; follows it when the records move while this object lives."""
        folder = cls(state_path())
        folder._place = state_path
        # One that is there now is never made: it may be moving away this very moment.
        return folder._opened(is_there=is_folder(folder.path))

    def _opened(self, *, is_there: bool = False) -> StateFolder:
        path = self.path
        try:
            self._create(is_there)
            with self.root() as root:
                self._check_format(root)
        except OSError as error:
            raise state_error_of(error, f"the state folder {path}") from error
        return self

    @contextlib.contextmanager
    def root(self) -> Iterator[int]:
        """A descriptor of the folder, checked, for the length of a `with` block."""
        try:
            fd = self._open_root()
        except OSError as error:
            raise state_error_of(error, f"the state folder {self.path}") from error
        try:
            self._check(fd, self.path, stat.S_ISDIR, 0o700)
            yield fd
        finally:
            os.close(fd)

    def _open_root(self) -> int:
        try:
            return os.open(self.path, _FOLDER_FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            now = self._place() if self._place is not None else self.path
            if now == self.path:
                raise
            check_parents(os.path.dirname(now))
            self.path = now
            return os.open(now, _FOLDER_FLAGS)

    @contextlib.contextmanager
    def folder(self, name: str, *, create: bool = False) -> Iterator[int]:
        """A descriptor of the folder `name` in it.

        Raises:
            FileNotFoundError: it is not there and `create` is false.
            StateError: it is not safe, or cannot be created.
        """
        if create:
            self.require_writable()
        with self.root() as root:
            shown = os.path.join(self.path, name)
            try:
                fd = os.open(name, _FOLDER_FLAGS, dir_fd=root)
            except FileNotFoundError:
                if not create:
                    raise
                try:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=root)
                        os.fsync(root)
                    fd = os.open(name, _FOLDER_FLAGS, dir_fd=root)
                except OSError as error:
                    raise state_error_of(error, shown) from error
            except OSError as error:
                raise state_error_of(error, shown) from error
            try:
                self._check(fd, shown, stat.S_ISDIR, 0o700)
                yield fd
            finally:
                os.close(fd)

    def open_file(self, name: str, flags: int, *, dir_fd: int) -> int:
        """Opens a regular file of ours; with O_CREAT it gets mode 0600. The caller closes it.

        Raises:
            FileNotFoundError, FileExistsError: as open(2) says them.
            StateError: not safe, or it cannot be opened.
        """
        try:
            fd = os.open(name, flags | _FILE_FLAGS, 0o600, dir_fd=dir_fd)
        except (FileNotFoundError, FileExistsError):
            raise
        except OSError as error:
            raise state_error_of(error, f"{name} in {self.path}") from error
        try:
            self._check(fd, f"{name} in {self.path}", stat.S_ISREG, 0o600)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def write_new(self, name: str, data: bytes, *, dir_fd: int) -> bool:
        """Creates a whole file or none, durably. False when the name is taken already; that file is left alone.

        Raises:
            StateError: it cannot be written; nothing half-written stays behind.
        """
        temporary = f".{name}.{os.urandom(6).hex()}.new"
        try:
            fd = self.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=dir_fd)
            try:
                write_all(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)
            os.link(temporary, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=False)
            os.fsync(dir_fd)
        except FileExistsError:
            return False
        except OSError as error:
            raise state_error_of(error, f"{name} in {self.path}") from error
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=dir_fd)
        return True

    def write_over(self, name: str, data: bytes, *, dir_fd: int) -> None:
        """Puts a whole new file in the place of an older one, durably; readers see one or the other.

        Raises:
            StateError: it cannot be written; the older one is still there.
        """
        temporary = f".{name}.{os.urandom(6).hex()}.new"
        if not self.write_new(temporary, data, dir_fd=dir_fd):
            raise StateUnwritable(f"{temporary} in {self.path} is there already", not_done="nothing was recorded")
        try:
            os.rename(temporary, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
            os.fsync(dir_fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=dir_fd)
            raise state_error_of(error, f"{name} in {self.path}") from error

    def read_file(self, name: str, *, dir_fd: int, limit_bytes: int) -> bytes:
        """The file's bytes. Raises FileNotFoundError; StateError when it is unsafe, unreadable or above the limit."""
        fd = self.open_file(name, os.O_RDONLY, dir_fd=dir_fd)
        try:
            data = read_up_to(fd, limit_bytes + 1)
        except OSError as error:
            raise state_error_of(error, f"{name} in {self.path}") from error
        finally:
            os.close(fd)
        if len(data) > limit_bytes:
            raise StateDamaged(f"{name} in {self.path} is larger than {limit_bytes} bytes")
        return data

    def key(self) -> bytes:
        """The 32 random bytes that key the command digests; made at the first call, the same ever after.

        Raises:
            StateDamaged: the file has another size. StateError: it cannot be made or read.
        """
        if self._key is None:
            with self.root() as root:
                try:
                    data = self.read_file("key", dir_fd=root, limit_bytes=KEY_BYTES)
                except FileNotFoundError:
                    data = self._first_key(root)
            if len(data) != KEY_BYTES:
                raise StateDamaged(
                    f"key in {self.path} has {len(data)} bytes instead of {KEY_BYTES}",
                    not_done="nothing was recorded",
                    hint="restore it from a backup; a new key cannot confirm the old records' commands",
                )
            self._key = data
        return self._key

    def _first_key(self, root: int) -> bytes:
        from guard.ledger.segments import lines_from

        if not any(b'"command_hmac":' in line.raw for line in lines_from(self)):
            self.write_new("key", os.urandom(KEY_BYTES), dir_fd=root)
        try:
            # Whoever made the first record meanwhile made the key before it.
            return self.read_file("key", dir_fd=root, limit_bytes=KEY_BYTES)
        except FileNotFoundError:
            path = os.path.join(self.path, "key")
            raise StateDamaged(
                f"{path} is gone, and the log holds what was made with it",
                not_done="nothing was recorded, and nothing of what was is lost",
                hint="look: opsx audit verify; put it back from a backup, or go on with a new one (approvals that hold "
                "are void then, commands on record cannot be confirmed, conversations count as another machine's): "
                f"head -c {KEY_BYTES} /dev/urandom > {quoted(path)}",
            ) from None

    def require_writable(self) -> None:
        """Raises StateUnwritable when a newer version wrote here, also since this folder was opened; StateDamaged."""
        with self.root() as root:
            self._require_format(root)

    def _require_format(self, root: int) -> None:
        number = self._format(root)
        if number == 0:
            raise self._without_format(self._records(root))
        if number > FORMAT:
            raise StateUnwritable(
                f"{self.path} has format {number}; this version writes format {FORMAT} and only reads what is there",
                not_done="nothing was recorded",
                hint="use the newer opsagent that wrote it",
            )

    def _format(self, root: int) -> int:
        """The number in the `format` file; 0 when there is none. Raises StateDamaged."""
        try:
            text = self.read_file("format", dir_fd=root, limit_bytes=64).strip()
        except FileNotFoundError:
            return 0
        if not text.isdigit():
            raise StateDamaged(f"format in {self.path} is not a number", not_done="nothing was recorded")
        return int(text)

    def remember_once(self, name: str, text: str) -> bool:
        """Whether the small file `name` holds another text, which it does not from here on. False when it cannot."""
        try:
            with self.root() as root:
                with contextlib.suppress(FileNotFoundError):
                    if self.read_file(name, dir_fd=root, limit_bytes=4096) == text.encode():
                        return False
                    os.unlink(name, dir_fd=root)
                return self.write_new(name, text.encode(), dir_fd=root)
        except (StateError, OSError):
            return False

    @contextlib.contextmanager
    def locked(self, wait_s: float) -> Iterator[None]:
        """The folder's one lock, held for the length of a `with` block.

        Raises:
            StateBusy: another process held it for `wait_s` seconds.
            StateUnwritable: a newer version wrote here. StateError: the folder cannot be used.
        """
        deadline = time.monotonic() + wait_s
        pause_s = 0.0005
        with self.root() as root:
            while True:
                fd = self.open_file("lock", os.O_RDWR | os.O_CREAT, dir_fd=root)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.path.samestat(os.fstat(fd), os.stat("lock", dir_fd=root, follow_symlinks=False)):
                        break
                    os.close(fd)  # removed while we waited: what we hold is nobody's lock any more
                    continue
                except FileNotFoundError:
                    os.close(fd)
                    continue
                except OSError as error:
                    os.close(fd)
                    if error.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                        raise state_error_of(error, f"lock in {self.path}") from error
                if time.monotonic() >= deadline:
                    raise StateBusy(
                        f"another process has held the log's lock for {wait_s:g} s",
                        not_done="nothing was recorded",
                        hint="try again; if it stays, find the holder: fuser " + os.path.join(self.path, "lock"),
                    )
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, 0.02)
            try:
                self._require_format(root)
                yield
            finally:
                os.close(fd)

    def _create(self, is_there: bool) -> None:
        parent, name = os.path.split(self.path)
        if not name:
            raise StateUnsafe("the root folder cannot be a state folder", hint=f"set {HOME_VARIABLE} to another folder")
        try:
            make_folders(parent)
        except OSError as error:
            raise state_error_of(error, f"the folder {parent}") from error
        check_parents(parent)
        if is_there:
            return
        try:
            os.mkdir(self.path, 0o700)
        except FileExistsError:
            return
        except OSError as error:
            raise state_error_of(error, f"the state folder {self.path}") from error

    def _check(self, fd: int, shown: str, is_kind: Callable[[int], bool], mode: int) -> None:
        info = os.fstat(fd)
        if not is_kind(info.st_mode):
            raise StateUnsafe(f"{shown} is not a regular file or folder", not_done="nothing was recorded")
        if info.st_uid != os.geteuid():
            raise StateUnsafe(
                f"{shown} belongs to user {info.st_uid}, not to user {os.geteuid()}",
                not_done="nothing was recorded",
                hint=f"use it as its owner, or set {HOME_VARIABLE} to a folder of your own",
            )
        if info.st_mode & 0o022:
            raise StateUnsafe(
                f"{shown} can be written by others (mode {stat.S_IMODE(info.st_mode):04o})",
                not_done="nothing was recorded",
                hint=f"look at what changed there, then: chmod {mode:04o} {shown}",
            )
        if info.st_mode & 0o077:
            if shown == self.path:
                # Before a mode is tightened: OPSAGENT_HOME=/etc must be an error, not a broken machine.
                self._refuse_foreign_names(fd)
            try:
                os.fchmod(fd, mode)
            except OSError as error:
                raise StateUnsafe(
                    f"{shown} can be read by others and its mode cannot be changed: {error.strerror}",
                    not_done="nothing was recorded",
                    hint=f"chmod {mode:04o} {shown}",
                ) from error
            self.notes.append(f"{shown} was readable by others; its mode is now {mode:04o}")

    def _refuse_foreign_names(self, root: int) -> None:
        names = set(os.listdir(root))
        if "format" in names or all(name.startswith((".format.", "enforcement")) for name in names - OWN_NAMES):
            return
        raise StateUnsafe(
            f"{self.path} is not a state folder: it has other things in it, such as {min(names - OWN_NAMES)}",
            not_done="nothing was recorded",
            hint=f"set {HOME_VARIABLE} to an empty or new folder",
        )

    def _check_format(self, root: int) -> None:
        """Makes the `format` file of a new folder. One that holds records and has none is read and never written."""
        if self._format(root):
            return
        self._refuse_foreign_names(root)
        found = self._records(root)
        if not found:
            self.write_new("format", b"%d\n" % FORMAT, dir_fd=root)
        elif not self._format(root):  # whoever made the first record meanwhile made the file before it
            self.notes.append(self._without_format(found).message)

    def _records(self, root: int) -> str:
        try:
            return records_in(root)
        except OSError as error:
            raise state_error_of(error, f"the state folder {self.path}") from error

    def _without_format(self, found: str) -> StateDamaged:
        path = os.path.join(self.path, "format")
        return StateDamaged(
            f"{path} is gone" + (f", and {found} holds records" if found else ""),
            not_done="nothing was recorded, and nothing of what was is lost",
            hint="look: opsx audit verify; was it written by this version or an older one: "
            f"echo {FORMAT} > {quoted(path)}",
        )


def write_all(fd: int, data: bytes) -> None:
    """Writes every byte. Raises OSError, with any part of them written."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_up_to(fd: int, limit_bytes: int) -> bytes:
    """Bytes from the current position to the end, at most this many."""
    parts = []
    while limit_bytes > 0 and (part := os.read(fd, min(limit_bytes, 1 << 20))):
        parts.append(part)
        limit_bytes -= len(part)
    return b"".join(parts)
