"""All conversations of a state folder: begun, resumed, read, listed, copied and thrown away. Touches `sessions` in it.

    sessions = Sessions.open(redactor)
    transcript = sessions.create(cwd=os.getcwd(), brain="anthropic", model="…")
    transcript = sessions.resume("last", runs_of=…)

What is read from a file is messages: data for the next brain. Approvals, denials, grants and runs are the log's.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from agent.messages import User
from agent.sessions.cleaning import clean_line
from agent.sessions.lines import Chain, Header, header_record, is_session_id
from agent.sessions.lock import hold, is_held
from agent.sessions.reading import Read, read, read_head
from agent.sessions.records import record_of
from agent.sessions.repair import Paired, paired
from agent.sessions.transcript import Transcript
from guard.clock import RandomIds, SystemClock, utc_text
from guard.errors import StateBusy, StateError, UsageError
from guard.ledger.formats import sha256_of
from guard.ledger.state import StateFolder, read_up_to, state_error_of
from guard.redact import RULES_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent.messages import Message
    from agent.sessions.repair import RunOnRecord
    from guard.ports import Clock, Ids
    from guard.redact import Redactor

    RunsOf = Callable[[str, str], Sequence[RunOnRecord] | None]
    """(conversation, id of a call) → the runs that the log holds for it; None when the log cannot be asked."""

KEEP = 200
"""How many conversations `prune` leaves when nobody says otherwise: as many as saved outputs and snapshots."""

LARGEST_FILE_BYTES = 512 * 1024 * 1024
"""A conversation of a million messages stays below; a larger file is none that we wrote."""

HEAD_BYTES = 16 * 1024
"""What a listing reads of each file: the header, and most first questions."""

_SUFFIX = ".jsonl"


def no_log(session: str, call_id: str) -> None:
    """For where there is no log to ask."""


class NoSuchSession(UsageError):
    """There is no conversation, or more than one, that this names."""

    code = "usage.session"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation, read."""

    header: Header
    messages: tuple[Message, ...]
    """Oldest first; every call is followed by its result, but for the last ones of a conversation that is going on."""
    times: tuple[str, ...]
    """When each message was written (one that was added: when the one before it was); as long as `messages`."""
    notes: tuple[str, ...]
    """Sentences for people about what was repaired or left out."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One row of a listing."""

    id: str
    at: str
    """When it began."""
    used_at: str
    """When it was last written to."""
    first_line: str
    """Of the first question; "" when it stands too far in the file. Redacted."""
    size_bytes: int
    brain: str
    model: str
    cwd: str
    is_open: bool
    """Somebody has it open now."""
    fault: str = ""
    """Why its beginning cannot be read."""


class Sessions:
    """The conversations of one state folder. Safe beside other processes."""

    def __init__(self, folder: StateFolder, *, clock: Clock, ids: Ids, redactor: Redactor) -> None:
        self._folder = folder
        self._clock = clock
        self._ids = ids
        self._redactor = redactor

    @classmethod
    def open(cls, redactor: Redactor, path: str | None = None) -> Sessions:
        """Those of this user's state folder, or of the one at `path`. Raises StateError."""
        folder = StateFolder.open(path) if path else StateFolder.open_own()
        return cls(folder, clock=SystemClock(), ids=RandomIds(), redactor=redactor)

    # ── one conversation ─────────────────────────────────────────────────────────────────────────────────────

    def create(self, *, cwd: str, brain: str = "", model: str = "", title: str = "") -> Transcript:
        """Begins a conversation. Its file comes with its first message."""
        header = self._header(cwd=cwd, brain=brain, model=model, title=title)
        return Transcript(header, clock=self._clock, redactor=self._redactor, folder=self._folder)

    def resume(self, which: str, *, runs_of: RunsOf = no_log) -> Transcript:
        """Opens a conversation to go on with it; what a crash left half-done is mended and said in `notes`.

        Args:
            which: an id, the beginning of one, or `last`.
            runs_of: what the log knows about a call whose result is missing (`agent.sessions.on_record.runs_in`).
        Raises:
            NoSuchSession: none, or several, are named so.
            StateBusy: another process has it open; the message names it.
            StateDamaged: a line in the middle is not what was written; the message names it.
            StateError: the folder or the file cannot be used.
        """
        session = self.find(which)
        with self._dir() as dir_fd:
            held = hold(self._folder, session, dir_fd=dir_fd)
            try:
                data = self._bytes(session, dir_fd)
                found = self._read(data, session)
                mended = paired(found.messages, runs_of=partial(runs_of, session))
                if found.foreign or found.header.rules != RULES_VERSION:
                    found = self._rewritten(found, data, dir_fd)
                elif found.whole_bytes < len(data):
                    self._cut(session, data, found.whole_bytes, dir_fd)
            except BaseException:
                held.release()
                raise
        kept = mended.messages[: len(mended.messages) - len(mended.added)]
        transcript = Transcript(
            found.header,
            clock=self._clock,
            redactor=self._redactor,
            folder=self._folder,
            messages=kept,
            notes=(*found.notes, *mended.notes),
            held=held,
            end=found.whole_bytes,
            last_mark=found.last_mark,
        )
        for result in mended.added:
            transcript.append(result)
        return transcript

    def read(self, which: str, *, runs_of: RunsOf = no_log) -> Conversation:
        """Reads a conversation, whether or not somebody has it open. Changes nothing.

        Raises: as `resume`, except for StateBusy.
        """
        session = self.find(which)
        with self._dir() as dir_fd:
            still_open = is_held(self._folder, session, dir_fd=dir_fd)
            found = self._read(self._bytes(session, dir_fd), session)
        mended = paired(found.messages, runs_of=partial(runs_of, session), still_open=still_open)
        return _conversation(found, mended)

    def fork(self, which: str, *, turns: int | None = None, runs_of: RunsOf = no_log) -> Conversation:
        """Copies a conversation into a new one, also while it is open, and returns the copy.

        Of a damaged file it copies what stands before the damage, and says so in `notes`.

        Args:
            turns: only the first so many questions with what followed them; None is all.
        Raises:
            NoSuchSession, StateDamaged (nothing of it can be read), StateError.
        """
        session = self.find(which)
        with self._dir() as dir_fd:
            found = self._read(self._bytes(session, dir_fd), session, until_damage=True)
            found = _first_turns(found, turns)
            mended = paired(found.messages, runs_of=partial(runs_of, session))
            copy = _conversation(found, mended)
            header = replace(
                found.header,
                id=self._ids.new("c"),
                at=self._clock.utc(),
                forked_from=session,
                rules=RULES_VERSION,
            )
            data, _ = self._lines(header, copy.messages, copy.times)
            if not self._folder.write_new(header.id + _SUFFIX, data, dir_fd=dir_fd):
                raise StateError(f"there is a conversation {header.id} already", not_done="nothing was copied")
        return replace(copy, header=header)

    def find(self, which: str) -> str:
        """The id that an id, the beginning of one, or `last` names. Raises NoSuchSession, StateError."""
        if which == "last":
            newest = self.listing(limit=1)
            if not newest:
                raise _none("there is no conversation yet")
            return newest[0].id
        wanted = which if which.startswith("c-") else f"c-{which}"
        if not is_session_id(wanted):
            raise _none(f"{repr(which)[:80]} is not the id of a conversation")
        ids = sorted(name.removesuffix(_SUFFIX) for name, _ in self._files())
        if wanted in ids:
            return wanted
        fitting = [session for session in ids if session.startswith(wanted)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise _none(f"{len(fitting)} conversations begin with {wanted}: {', '.join(fitting[:5])}")
        raise _none(f"there is no conversation {wanted}")

    # ── all of them ──────────────────────────────────────────────────────────────────────────────────────────

    def listing(self, *, limit: int | None = None) -> tuple[Summary, ...]:
        """The conversations, the one that was used last first. Reads only the beginning of each. Raises StateError."""
        newest = sorted(self._files(), key=lambda item: (item[1].st_mtime_ns, item[0]), reverse=True)[:limit]
        if not newest:
            return ()
        with self._dir() as dir_fd:
            return tuple(
                summary for name, info in newest if (summary := self._summary(name, info, dir_fd=dir_fd)) is not None
            )

    def delete(self, which: str) -> str:
        """Deletes one conversation, named as `find` takes it, and returns its id.

        Raises: NoSuchSession. StateBusy: it is open; nothing was deleted. StateError.
        """
        session = self.find(which)
        with self._dir() as dir_fd:
            held = hold(self._folder, session, dir_fd=dir_fd)
            try:
                os.unlink(session + _SUFFIX, dir_fd=dir_fd)
            except FileNotFoundError:
                raise _none(f"there is no conversation {session} any more") from None
            except OSError as error:
                raise state_error_of(error, f"{session}{_SUFFIX} in {self._folder.path}") from error
            finally:
                held.release()
        return session

    def prune(self, *, keep: int = KEEP, older_than_s: float = 0.0) -> tuple[str, ...]:
        """Deletes conversations and returns their ids: those beyond the `keep` used last that are older than so many
        seconds. One that is open stays. Raises StateError."""
        newest = sorted(self._files(), key=lambda item: (item[1].st_mtime_ns, item[0]), reverse=True)
        before_ns = time.time_ns() - int(older_than_s * 1e9) if older_than_s else None
        gone = []
        for name, info in newest[max(0, keep) :]:
            if before_ns is not None and info.st_mtime_ns > before_ns:
                continue
            session = name.removesuffix(_SUFFIX)
            with self._dir() as dir_fd:
                try:
                    held = hold(self._folder, session, dir_fd=dir_fd)
                except StateBusy:
                    continue
                try:
                    os.unlink(name, dir_fd=dir_fd)
                    gone.append(session)
                except FileNotFoundError:
                    pass
                except OSError as error:
                    raise state_error_of(error, f"{name} in {self._folder.path}") from error
                finally:
                    held.release()
        return tuple(gone)

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────

    def _header(self, *, cwd: str, brain: str, model: str, title: str) -> Header:
        def shown(text: str) -> str:
            return clean_line(text, self._redactor)

        said = {"cwd": shown(cwd), "brain": shown(brain), "model": shown(model), "title": shown(title)}
        return Header(self._ids.new("c"), self._clock.utc(), **said, rules=RULES_VERSION)

    def _dir(self) -> contextlib.AbstractContextManager[int]:
        return self._folder.folder("sessions", create=True)

    def _files(self) -> list[tuple[str, os.stat_result]]:
        """Names and states of the session files; other things in the folder are nobody's business here."""
        found = []
        try:
            with self._folder.folder("sessions") as dir_fd:
                for name in os.listdir(dir_fd):
                    if name.endswith(_SUFFIX) and is_session_id(name.removesuffix(_SUFFIX)):
                        with contextlib.suppress(FileNotFoundError):
                            info = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
                            if stat.S_ISREG(info.st_mode):
                                found.append((name, info))
        except FileNotFoundError:
            return []
        return found

    def _bytes(self, session: str, dir_fd: int) -> bytes:
        try:
            return self._folder.read_file(session + _SUFFIX, dir_fd=dir_fd, limit_bytes=LARGEST_FILE_BYTES)
        except FileNotFoundError:
            raise _none(f"there is no conversation {session} any more") from None

    def _read(self, data: bytes, session: str, *, until_damage: bool = False) -> Read:
        key = self._folder.key()
        return read(data, shown=session + _SUFFIX, key=key, redactor=self._redactor, until_damage=until_damage)

    def _summary(self, name: str, info: os.stat_result, *, dir_fd: int) -> Summary | None:
        session = name.removesuffix(_SUFFIX)
        header, first, fault, is_open = Header(session, ""), "", "", False
        try:
            fd = self._folder.open_file(name, os.O_RDONLY, dir_fd=dir_fd)
            try:
                head = read_up_to(fd, HEAD_BYTES)
            finally:
                os.close(fd)
            is_open = is_held(self._folder, session, dir_fd=dir_fd)
            header, first = read_head(head, shown=name, key=self._folder.key(), redactor=self._redactor)
        except FileNotFoundError:
            return None
        except StateError as error:
            fault = error.message
        except OSError as error:
            fault = state_error_of(error, name).message
        return Summary(
            id=session,
            at=header.at,
            used_at=utc_text(info.st_mtime_ns // 1_000_000),
            first_line=header.title or first,
            size_bytes=info.st_size,
            brain=header.brain,
            model=header.model,
            cwd=header.cwd,
            is_open=is_open,
            fault=fault,
        )

    def _lines(self, header: Header, messages: tuple[Message, ...], times: tuple[str, ...]) -> tuple[bytes, bytes]:
        """A whole file, and the mark of its last line."""
        chain = Chain(self._folder.key())
        parts = [chain.line(header_record(header))]
        parts += [chain.line(record_of(message, at or header.at)) for message, at in zip(messages, times, strict=True)]
        return b"".join(parts), chain.last

    def _rewritten(self, found: Read, data: bytes, dir_fd: int) -> Read:
        """Makes a file one of ours as of now: checked and redacted records, our marks.

        What a foreign file held beside that is set aside. One that older rules redacted is not: it may hold what only
        the present rules see.
        """
        if found.foreign:
            self._set_aside(found.header.id, 0, data)
        header = replace(found.header, rules=RULES_VERSION)
        fresh, mark = self._lines(header, found.messages, found.times)
        self._folder.write_over(found.header.id + _SUFFIX, fresh, dir_fd=dir_fd)
        return replace(found, header=header, whole_bytes=len(fresh), last_mark=mark, foreign=False)

    def _cut(self, session: str, data: bytes, whole_bytes: int, dir_fd: int) -> None:
        """Takes a half last line off the file; it stays readable in `torn`."""
        self._set_aside(session, whole_bytes, data[whole_bytes:])
        fd = self._folder.open_file(session + _SUFFIX, os.O_WRONLY, dir_fd=dir_fd)
        try:
            os.ftruncate(fd, whole_bytes)
            os.fsync(fd)
        except OSError as error:
            raise state_error_of(error, f"{session}{_SUFFIX} in {self._folder.path}") from error
        finally:
            os.close(fd)

    def _set_aside(self, session: str, offset: int, data: bytes) -> None:
        data = self._redactor.text(data.decode("utf-8", "replace")).encode()
        with self._folder.folder("torn", create=True) as torn_fd:
            self._folder.write_new(f"{session}-{offset}-{sha256_of(data)[:8]}", data, dir_fd=torn_fd)


def _conversation(found: Read, mended: Paired) -> Conversation:
    return Conversation(found.header, mended.messages, _times(found, mended), (*found.notes, *mended.notes))


def _times(found: Read, mended: Paired) -> tuple[str, ...]:
    """The time of each mended message: most are the very objects that were read."""
    at = {id(message): time for message, time in zip(found.messages, found.times, strict=True)}
    last, times = "", []
    for message in mended.messages:
        last = at.get(id(message), last)
        times.append(last)
    return tuple(times)


def _first_turns(found: Read, turns: int | None) -> Read:
    if turns is None:
        return found
    seen = 0
    for index, message in enumerate(found.messages):
        seen += isinstance(message, User)
        if seen > turns:
            return replace(found, messages=found.messages[:index], times=found.times[:index])
    return found


def _none(text: str) -> NoSuchSession:
    return NoSuchSession(text, not_done="nothing was opened", hint="opsagent sessions list")
