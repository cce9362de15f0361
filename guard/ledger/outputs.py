"""Saves long outputs as files: redacted before they touch the disk, bounded, the newest 200 kept.

Touches one folder: the caller's (a checkout's `outputs/`) or the state folder's. Never raises: a command's
result must not be lost because its long form could not be saved; `SavedOutput.reason` says why it was not.
"""

from __future__ import annotations

import codecs
import collections
import contextlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from guard.errors import StateError, StateUnsafe
from guard.ledger.state import state_error_of, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from guard.ledger.state import StateFolder

THRESHOLD_CHARS = 30_000
"""Up to this many characters a result carries the whole output, and nothing is saved."""

FILE_LIMIT_BYTES = 64 * 1024 * 1024
"""A saved output is at most this long: its first and its last part, and a line between that says what is cut."""

KEPT_FILES = 200

CUT_LINE_BYTES = 128
"""Room for the line that says what was cut."""

LATE_CHARS = 4 * 1024 * 1024
"""Once a file's head is full, only its tail matters: so much is held in memory as it came and redacted at the end.
Redacting gigabytes on their way would slow the command that writes them."""

OVERLAP_CHARS = 1 << 16
"""What is only read, not written, of a tail whose left context was cut: more than the longest secret of several
lines (a 16,384 bit RSA key in PEM form has 12.7 kB), so that none is left without its beginning."""

_BUFFER_CHARS = 1 << 16
_SUFFIXES = (".stdout.txt", ".stderr.txt")


class RedactingStream(Protocol):
    """What `Redactor.stream()` gives: text in, redacted text out, a secret never split between two calls."""

    def feed(self, text: str) -> str: ...

    def flush(self) -> str: ...


@dataclass(frozen=True, slots=True)
class SavedOutput:
    """What became of one stream's long form."""

    path: str | None
    """The file; None when the output was short, or could not be saved."""
    size_bytes: int = 0
    """Of the file."""
    cut_bytes: int = 0
    """Redacted bytes between head and tail that the file does not hold."""
    reason: str = ""
    """Why it was not saved; "" when it was, or need not be."""


class OutputFolder:
    """A folder that outputs are saved in."""

    def __init__(self, path: str, opener: Callable[[], int]) -> None:
        self.path = path
        self.open = opener
        """Gives a descriptor that the caller closes. Raises OSError or StateError."""

    @classmethod
    def at(cls, path: str) -> OutputFolder:
        """A folder outside the state folder, such as a checkout's `outputs/`; created (0700) when missing."""
        return cls(path, lambda: _opened(path))

    @classmethod
    def in_state(cls, folder: StateFolder) -> OutputFolder:
        """The state folder's own `outputs/`."""

        def opened() -> int:
            with folder.folder("outputs", create=True) as fd:
                return os.dup(fd)

        return cls(os.path.join(folder.path, "outputs"), opened)

    @classmethod
    def unusable(cls, error: StateError) -> OutputFolder:
        """A folder that is not there: everything that would be saved in it says why not."""

        def refused() -> int:
            raise error

        return cls("", refused)


class OutputWriter:
    """Takes one stream's bytes as they come and keeps memory bounded, whatever their number."""

    def __init__(
        self,
        folder: OutputFolder,
        execution: str,
        stream: str,
        redacting: RedactingStream,
        *,
        threshold_chars: int = THRESHOLD_CHARS,
        limit_bytes: int = FILE_LIMIT_BYTES,
    ) -> None:
        """Args: stream: `stdout` or `stderr`."""
        self._folder = folder
        self._name = f"{execution}.{stream}.txt"
        self._redacting = redacting
        self._threshold = threshold_chars
        self._half = (limit_bytes - CUT_LINE_BYTES) // 2
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._early: list[str] = []
        self._early_chars = 0
        self._buffer: list[str] = []
        self._buffer_chars = 0
        self._file: _HeadAndTail | None = None
        self._reason = ""
        self._live = False
        self._taken_chars = 0
        self._late: collections.deque[str] = collections.deque()
        self._late_chars = 0
        self._dropped_chars = 0

    def keep_live(self) -> None:
        """Saves from the first character on and at once, however short it stays: for a run that others follow."""
        self._threshold = 0
        self._live = True

    def feed(self, data: bytes) -> None:
        """Takes the next bytes. Never raises for the folder or the disk."""
        if not self._reason:
            self._take(self._decoder.decode(data))

    def finish(self) -> SavedOutput:
        """Completes the file, removes the oldest beyond 200, and says what became of it. Call once."""
        if not self._reason:
            self._take(self._decoder.decode(b"", final=True))
        if self._file is None:
            return SavedOutput(None, reason=self._reason)
        saved: SavedOutput | None = None
        with self._reporting():
            self._take_late()
            self._write(self._redacting.flush())
            self._drain()
            size, cut = self._file.finish()
            saved = SavedOutput(os.path.join(self._folder.path, self._name), size, cut + self._dropped_chars)
            self._file.close()
        if saved is None:
            return SavedOutput(None, reason=self._reason)
        with contextlib.suppress(OSError, StateError):
            _prune(self._folder)
        return saved

    def _take(self, text: str) -> None:
        self._taken_chars += len(text)
        if self._file is not None and self._taken_chars > self._half:
            self._late.append(text)
            self._late_chars += len(text)
            while self._late_chars - len(self._late[0]) >= LATE_CHARS:
                gone = self._late.popleft()
                self._late_chars -= len(gone)
                self._dropped_chars += len(gone)
            return
        if self._file is not None:
            with self._reporting():
                self._write(self._redacting.feed(text))
            return
        self._early.append(text)
        self._early_chars += len(text)
        if self._early_chars > self._threshold:
            early, self._early = "".join(self._early), []
            with self._reporting():
                self._file = _HeadAndTail(self._folder, self._name, self._half)
                self._write(self._redacting.feed(early))

    def _take_late(self) -> None:
        """Redacts the tail that was held back. One that lost its beginning starts anew at a line far enough in."""
        text = "".join(self._late)
        self._late.clear()
        if self._dropped_chars:
            start = text.find("\n", OVERLAP_CHARS) + 1 or min(OVERLAP_CHARS, len(text))
            self._dropped_chars += start
            self._write(self._redacting.flush())
            self._write(f"\n[… {self._dropped_chars} characters are cut here …]\n")
            # Read for what it tells of the lines after it (a key that is still open), and not written.
            self._redacting.feed(text[:start])
            text = text[start:]
        for begin in range(0, len(text), _BUFFER_CHARS):
            self._write(self._redacting.feed(text[begin : begin + _BUFFER_CHARS]))

    def _write(self, text: str) -> None:
        self._buffer.append(text)
        self._buffer_chars += len(text)
        if self._live or self._buffer_chars >= _BUFFER_CHARS:
            self._drain()

    def _drain(self) -> None:
        text, self._buffer, self._buffer_chars = "".join(self._buffer), [], 0
        if self._file is not None:
            self._file.write(text.encode("utf-8", "replace"))

    @contextlib.contextmanager
    def _reporting(self) -> Iterator[None]:
        """Turns a failing disk into `reason`, and leaves no half file behind."""
        try:
            yield
        except (OSError, StateError) as error:
            if isinstance(error, OSError):
                error = state_error_of(error, f"the saved output {os.path.join(self._folder.path, self._name)}")
            self._reason = error.message
            self._buffer = []
            if self._file is not None:
                self._file.discard()
                self._file = None


class _HeadAndTail:
    """A file that grows to `half_bytes`; what comes after goes round in a ring of the same size beside it."""

    def __init__(self, folder: OutputFolder, name: str, half_bytes: int) -> None:
        self._half = half_bytes
        self._name = name
        self._head_bytes = 0
        self._ring_total = 0
        self._ring_fd = -1
        self._dir_fd = folder.open()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._fd = os.open(name, flags, 0o600, dir_fd=self._dir_fd)
        except BaseException:
            os.close(self._dir_fd)
            raise

    def write(self, data: bytes) -> None:
        room = self._half - self._head_bytes
        if len(data) > room > 0:
            while room and data[room] & 0xC0 == 0x80:
                room -= 1  # the head ends with a whole character
        if room:
            write_all(self._fd, data[:room])
            self._head_bytes += min(room, len(data))
        if len(data) > room:
            self._head_bytes = self._half
            self._ring(data[room:])

    def finish(self) -> tuple[int, int]:
        """Puts the tail behind the head; returns the file's size and how many bytes are cut."""
        cut = 0
        if self._ring_total > self._half:
            start = self._ring_total % self._half
            skipped = self._start_of_line(start)
            cut = self._ring_total - self._half + skipped
            write_all(self._fd, f"\n[… {cut} bytes are cut here …]\n".encode())
            self._copy((start + skipped) % self._half, self._half - skipped)
        elif self._ring_total:
            self._copy(0, self._ring_total)
        return os.fstat(self._fd).st_size, cut

    def close(self) -> None:
        for fd in (self._fd, self._dir_fd, self._ring_fd):
            if fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(fd)

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._name, dir_fd=self._dir_fd)
        self.close()

    def _ring(self, data: bytes) -> None:
        if self._ring_fd < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            name = f".{self._name}.tail"
            self._ring_fd = os.open(name, flags, 0o600, dir_fd=self._dir_fd)
            os.unlink(name, dir_fd=self._dir_fd)  # goes with its descriptor, also after kill -9
        if len(data) > self._half:
            self._ring_total += len(data) - self._half
            data = data[-self._half :]
        while data:
            at = self._ring_total % self._half
            part = data[: self._half - at]
            written = os.pwrite(self._ring_fd, part, at)
            self._ring_total += written
            data = data[written:]

    def _start_of_line(self, start: int) -> int:
        """Bytes to leave out so that the tail begins with a whole line, or at least with a whole character."""
        window = os.pread(self._ring_fd, 4096, start)
        newline = window.find(b"\n")
        if newline >= 0:
            return newline + 1
        return next((at for at in range(min(4, len(window))) if window[at] & 0xC0 != 0x80), 0)

    def _copy(self, at: int, count: int) -> None:
        while count:
            data = os.pread(self._ring_fd, min(count, self._half - at, 1 << 18), at)
            if not data:
                raise OSError("the tail of the output is shorter than what was written")
            write_all(self._fd, data)
            at, count = (at + len(data)) % self._half, count - len(data)


def _opened(path: str) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    info = os.fstat(fd)
    if info.st_uid not in (os.geteuid(), 0) or info.st_mode & stat.S_IWOTH:
        os.close(fd)
        raise StateUnsafe(
            f"{path} belongs to somebody else or can be written by everybody",
            not_done="the output was not saved",
            hint=f"chmod o-w {path}",
        )
    return fd


def _prune(folder: OutputFolder) -> None:
    """Removes the oldest saved outputs beyond 200. Names that are not ours are not touched."""
    dir_fd = folder.open()
    try:
        ours = []
        for name in os.listdir(dir_fd):
            if name.startswith("e-") and name.endswith(_SUFFIXES):
                with contextlib.suppress(FileNotFoundError):
                    info = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid():
                        ours.append((info.st_mtime_ns, name))
        for _, name in sorted(ours)[:-KEPT_FILES]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=dir_fd)
    finally:
        os.close(dir_fd)
