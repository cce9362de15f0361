"""One conversation that is being held: its messages, and its file, which grows by a line with each of them.

A disk that fails costs the record, never the conversation: what could not be written stays here and goes out with the
next message that can. Used by one thread at a time.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from agent.messages import Assistant
from agent.sessions.cleaning import clean
from agent.sessions.lines import Chain, Header, header_record
from agent.sessions.lock import hold
from agent.sessions.records import record_of
from guard.errors import StateError, StateUnsafe
from guard.ledger.state import state_error_of, write_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.messages import Message
    from agent.sessions.lock import Held
    from guard.ledger.state import StateFolder
    from guard.ports import Clock
    from guard.redact import Redactor

_FLAGS = os.O_WRONLY | os.O_APPEND

_sync = getattr(os, "fdatasync", os.fsync)


class Transcript:
    """A conversation, open for writing. `agent.sessions.store.Sessions` makes it.

    A new one has no file until its first message, so that a conversation in which nothing was said leaves nothing.
    """

    def __init__(
        self,
        header: Header,
        *,
        clock: Clock,
        redactor: Redactor,
        folder: StateFolder,
        messages: Sequence[Message] = (),
        notes: Sequence[str] = (),
        held: Held | None = None,
        end: int = 0,
        last_mark: bytes = b"",
    ) -> None:
        """Args:
        held, end, last_mark: of a file that exists: its lock, its length in bytes, and its last line's mark.
        """
        self.header = header
        self.notes = tuple(notes)
        """Sentences for people about what was repaired when it was opened."""
        self._messages = list(messages)
        self._clock = clock
        self._redactor = redactor
        self._folder = folder
        self._held = held
        self._end = end
        self._mark = last_mark
        self._fd = -1
        self._waiting: list[tuple[Message, str]] = []
        self._unsynced = False
        self._closed = False

    @property
    def id(self) -> str:
        """`c-…`"""
        return self.header.id

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, oldest first, as they are on disk: redacted and bounded."""
        return tuple(self._messages)

    def append(self, message: Message) -> None:
        """Takes the next message and writes it.

        A reply of a brain reaches the disk before this returns: it ends a turn, or its tools run next. Anything else
        goes to the disk with the next reply, or with `sync`.

        Raises:
            StateError: it is not in the file yet; it is in `messages`, and the next call tries again.
        """
        if self._closed:
            raise ValueError("the conversation is closed")
        message = clean(message, self._redactor)
        self._messages.append(message)
        self._waiting.append((message, self._clock.utc()))
        self._write(sync=isinstance(message, Assistant))

    def sync(self) -> None:
        """Waits until all so far is on the disk: at the end of a turn, before something above R0. Raises StateError."""
        self._write(sync=True)

    def close(self) -> None:
        """Writes what is left and lets others open it. Never raises (`append` said what it could not write)."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(StateError):
            self._write(sync=True)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._held is not None:
            self._held.release()

    def _write(self, *, sync: bool) -> None:
        try:
            if self._waiting:
                self._write_waiting(self._folder)
            if sync and self._unsynced:
                _sync(self._fd)
                self._unsynced = False
        except OSError as error:
            raise state_error_of(error, f"the conversation {self.id}") from error

    def _write_waiting(self, folder: StateFolder) -> None:
        """Writes all that waits with one call, or nothing."""
        chain = Chain(folder.key(), self._mark)
        data = b"" if self._end else chain.line(header_record(self.header))
        data += b"".join(chain.line(record_of(message, at)) for message, at in self._waiting)
        if self._fd < 0:
            self._open(folder)
        info = os.fstat(self._fd)
        if info.st_nlink == 0 or info.st_size != self._end:
            raise StateUnsafe(f"the file of the conversation {self.id} was removed or changed by somebody else")
        try:
            write_all(self._fd, data)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._end)
            raise
        self._end += len(data)
        self._mark = chain.last
        self._waiting.clear()
        self._unsynced = True

    def _open(self, folder: StateFolder) -> None:
        is_new = not self._end
        with folder.folder("sessions", create=True) as dir_fd:
            if self._held is None:
                self._held = hold(folder, self.id, dir_fd=dir_fd)
            flags = _FLAGS | (os.O_CREAT | os.O_EXCL if is_new else 0)
            self._fd = folder.open_file(f"{self.id}.jsonl", flags, dir_fd=dir_fd)
            if is_new:
                os.fsync(dir_fd)
