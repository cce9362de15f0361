"""Requests that wait for a person: kept with their exact bytes for 24 hours. Touches the state folder's `requests/`.

A kept request is the one named exception to redaction beside snapshots: a person must see, and the guard must
run, exactly these bytes. The file is 0600 and goes when it is over. A file change has a second file beside it, the new
content.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from guard.bound import NO_OPTIONS, SnapshotOptions
from guard.clock import utc_text
from guard.errors import StateDamaged, StateError, TooManyAsks
from guard.filechange import MOST_BYTES, parsed
from guard.ledger.formats import FORMAT, MAX_LINE_BYTES, Malformed, decoded, encoded, sha256_of
from guard.ledger.state import state_error_of
from guard.types import Actor, Request, RequestKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from guard.ledger.state import StateFolder
    from guard.ports import Clock, Ids, Liveness
    from guard.types import Assessment

REQUEST_TTL_S = 24 * 3600
"""How long a request waits for an answer."""

FOLDER = "requests"
_CONTENT = ".content"

_TYPES: dict[str, tuple[type, ...]] = {
    "created_boot_s": (float, int),
    "uid": (int,),
    "forceable": (bool,),
    "snapshot_files": (tuple,),
    "snapshot_cmds": (tuple,),
    "no_snapshot_of": (tuple,),
    "environment": (dict,),
}
"""Of the fields that are not text; tuples are lists of text in the file."""

_LISTS = ("snapshot_files", "snapshot_cmds", "no_snapshot_of")

MOST_OPEN = 3
"""Requests of one caller that wait at the same time: more is a flood, and a person stops reading."""

MOST_WAITING = 100
"""Waiting requests in all, whoever made them."""


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """One waiting request, with everything that a person or the guard needs to take it up again."""

    id: str
    """`a-…`"""
    created_at: str
    created_boot: str
    created_boot_s: float
    command: str
    """The exact text, not redacted: redact before it is shown anywhere but in the approval itself."""
    target: str
    cwd: str
    actor: str
    uid: int
    why: str
    shell: str
    client: str
    call_id: str
    session: str
    level: str
    decision: str
    """The verdict: `needs_stamp`, or `refuse` when a forced stamp can change it."""
    decision_code: str
    decision_text: str
    forceable: bool
    snapshot_files: tuple[str, ...] = ()
    snapshot_cmds: tuple[str, ...] = ()
    no_snapshot_of: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the asker's environment gives the command: names, and values only of what points somewhere."""
    kind: str = RequestKind.COMMAND
    """A `RequestKind`."""
    read_before: str = ""
    """What of others' words the asker had read, in words."""

    @property
    def options(self) -> SnapshotOptions:
        """What the asker adds to the snapshot."""
        return SnapshotOptions(self.snapshot_files, self.snapshot_cmds, self.no_snapshot_of)

    @property
    def environ(self) -> dict[str, str] | None:
        """The environment to bind it with, whoever answers; None when the asker's was not kept."""
        return dict(self.environment) or None

    @property
    def caller(self) -> tuple[str, str, str] | None:
        """Who asks, as far as a session or a client's name tells; None for a bare `opsx`, which may be anybody."""
        if self.actor == Actor.PERSON or not (self.session or self.client):
            return None
        return (self.shell, self.client, self.session)

    def request(self) -> Request:
        """The request as it was made."""
        return Request(
            self.command,
            target=self.target,
            cwd=self.cwd,
            actor=self.actor,
            why=self.why,
            shell=self.shell,
            client=self.client,
            call_id=self.call_id,
            session=self.session,
            kind=self.kind,
            read_before=self.read_before,
        )

    def same_as(self, other: KeptRequest) -> bool:
        """Whether one answer would answer both: kind, command, target, cwd, actor, uid, environment, what is saved, and
        whether the asker had read others' words before."""
        return self._key() == other._key()

    def _key(self) -> tuple[object, ...]:
        where = (self.target, self.cwd, self.actor, self.uid)
        return (self.kind, self.command, *where, self.options, dict(self.environment), bool(self.read_before))

    def seconds_left(self, clock: Clock, boot: str) -> float:
        """How long it still waits: by boot clock within its boot (a changed wall clock moves nothing), else by UTC."""
        age = age_s(clock, boot, self.created_at, self.created_boot, self.created_boot_s)
        return REQUEST_TTL_S - age if age >= 0 else -1.0

    def expires_at(self) -> str:
        """When it stops waiting, by the wall clock of its making."""
        return utc_text(int((_epoch_s(self.created_at) + REQUEST_TTL_S) * 1000))


def age_s(clock: Clock, boot: str, at: str, then_boot: str, then_boot_s: object) -> float:
    """Seconds since a moment: by boot clock within its boot (a changed wall clock moves nothing), else by UTC.

    Negative when that moment is in the future by the clock that counts, or cannot be read.
    """
    if boot and boot == then_boot and isinstance(then_boot_s, (int, float)):
        return clock.boot_s() - then_boot_s
    try:
        return _epoch_s(clock.utc()) - _epoch_s(at)
    except ValueError:
        return -1.0


def kept_request_of(
    request_id: str,
    request: Request,
    assessment: Assessment,
    options: SnapshotOptions,
    environment: Mapping[str, str],
    clock: Clock,
    boot: str,
) -> KeptRequest:
    """The value to keep for a request that was just judged."""
    decision = assessment.decision
    return KeptRequest(
        id=request_id,
        created_at=clock.utc(),
        created_boot=boot,
        created_boot_s=clock.boot_s(),
        command=request.command,
        target=request.target,
        cwd=request.cwd,
        actor=request.actor,
        uid=os.geteuid(),
        why=request.why,
        shell=request.shell,
        client=request.client,
        call_id=request.call_id,
        session=request.session,
        level=assessment.level.name,
        decision=decision.verdict,
        decision_code=decision.code,
        decision_text=decision.text,
        forceable=decision.forceable,
        snapshot_files=options.files,
        snapshot_cmds=options.commands,
        no_snapshot_of=options.leave_out,
        environment=dict(environment),
        kind=request.kind,
        read_before=request.read_before,
    )


class Requests:
    """The waiting requests of one state folder."""

    def __init__(self, folder: StateFolder, *, clock: Clock, ids: Ids, liveness: Liveness) -> None:
        self._folder = folder
        self._clock = clock
        self._ids = ids
        self._boot = liveness.boot_id()

    def keep(
        self,
        request: Request,
        assessment: Assessment,
        options: SnapshotOptions = NO_OPTIONS,
        environment: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> tuple[KeptRequest, bool]:
        """Keeps it durably, or finds the same one waiting. Call with the log's lock held.

        Args:
            content: of a file change; on disk before the request that names it.
        Returns: the kept request, and whether it is new.
        Raises:
            TooManyAsks: the caller has three open ones, or there are 100 in all.
            StateError: it cannot be written.
        """

        def kept_as(request_id: str) -> KeptRequest:
            return kept_request_of(request_id, request, assessment, options, environment or {}, self._clock, self._boot)

        candidate = kept_as("")
        open_ones = self.pending()
        for waiting in open_ones:
            if waiting.same_as(candidate):
                return waiting, False
        _require_room(candidate, open_ones)
        with self._folder.folder(FOLDER, create=True) as requests_fd:
            while True:
                kept = kept_as(self._ids.new("a"))
                name = kept.id + _CONTENT
                if content is not None and not self._folder.write_new(name, content, dir_fd=requests_fd):
                    continue
                data = encoded({"format": FORMAT, **asdict(kept), "command_sha256": _sha256_of_text(kept.command)})
                if self._folder.write_new(_file_name(kept.id), data, dir_fd=requests_fd):
                    return kept, True

    def pending(self) -> list[KeptRequest]:
        """What waits, oldest first. A file that cannot be read is left out: it can be approved by nobody."""
        found = []
        for name in self._names():
            with contextlib.suppress(StateError, FileNotFoundError):
                kept = self._load(name)
                if kept.seconds_left(self._clock, self._boot) > 0:
                    found.append(kept)
        return sorted(found, key=lambda kept: (kept.created_at, kept.id))

    def load(self, request_id: str) -> KeptRequest | None:
        """The waiting request with this id; None when there is none, or when its time is over.

        Raises:
            StateDamaged: its file is not what was written.
        """
        try:
            kept = self._load(_file_name(request_id))
        except (FileNotFoundError, ValueError):
            return None
        return kept if kept.seconds_left(self._clock, self._boot) > 0 else None

    def content(self, kept: KeptRequest) -> bytes:
        """What a kept file change would put into the file.

        Raises:
            StateDamaged: it is gone, or is not what was kept. ValueError: the request is no file change.
        """
        change = parsed(kept.command)
        if change is None or kept.kind != RequestKind.FILE_CHANGE:
            raise ValueError(f"{kept.id} is no file change")
        try:
            with self._folder.folder(FOLDER) as requests_fd:
                data = self._folder.read_file(kept.id + _CONTENT, dir_fd=requests_fd, limit_bytes=MOST_BYTES)
        except FileNotFoundError:
            data = None
        if data is None or sha256_of(data) != change.after:
            raise StateDamaged(
                f"the content of {kept.id} in {self._folder.path} is not what was kept",
                not_done="nothing was approved",
                hint="make the request again",
            )
        return data

    def discard(self, request_id: str) -> None:
        """Removes it, once it is answered. Nothing happens when it is gone already. Raises StateError."""
        try:
            with self._folder.folder(FOLDER) as requests_fd:
                os.unlink(_file_name(request_id), dir_fd=requests_fd)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(request_id + _CONTENT, dir_fd=requests_fd)
        except FileNotFoundError:
            return
        except OSError as error:
            raise state_error_of(error, f"{FOLDER}/{request_id} in {self._folder.path}") from error

    def expire(self) -> int:
        """Removes what is over and returns how many. Never raises: what cannot be removed now goes the next time.

        A file that cannot be read may hold a command with secrets all the same; it goes a day after its last change.
        """
        removed = 0
        with contextlib.suppress(StateError, OSError), self._folder.folder(FOLDER) as requests_fd:
            self._folder.require_writable()
            for name in os.listdir(requests_fd):
                with contextlib.suppress(FileNotFoundError):
                    if self._is_over(name, requests_fd):
                        os.unlink(name, dir_fd=requests_fd)
                        removed += not name.endswith(_CONTENT)
        return removed

    def _is_over(self, name: str, requests_fd: int) -> bool:
        if name.endswith(_CONTENT):
            # As old as its request; one that is being made has no request yet.
            changed_s = os.stat(name, dir_fd=requests_fd, follow_symlinks=False).st_mtime
            return _epoch_s(self._clock.utc()) - changed_s >= REQUEST_TTL_S
        try:
            return self._load(name).seconds_left(self._clock, self._boot) <= 0
        except StateDamaged:
            changed_s = os.stat(name, dir_fd=requests_fd, follow_symlinks=False).st_mtime
            return _epoch_s(self._clock.utc()) - changed_s >= REQUEST_TTL_S

    def _names(self) -> Iterator[str]:
        with contextlib.suppress(FileNotFoundError), self._folder.folder(FOLDER) as requests_fd:
            names = sorted(os.listdir(requests_fd))
            yield from (name for name in names if name.startswith("a-") and not name.endswith(_CONTENT))

    def _load(self, name: str) -> KeptRequest:
        with self._folder.folder(FOLDER) as requests_fd:
            data = self._folder.read_file(name, dir_fd=requests_fd, limit_bytes=MAX_LINE_BYTES)
        try:
            fields = decoded(data)
            digest = fields.pop("command_sha256", None)
            if fields.pop("format", None) != FORMAT:
                raise Malformed("another format")
            fields.update({name: tuple(fields[name]) for name in _LISTS if isinstance(fields.get(name), list)})
            kept = KeptRequest(**fields)
            if any(type(item) is not str for name in _LISTS for item in getattr(kept, name)):
                raise Malformed("a list holds something else than text")
            if any(type(part) is not str for pair in kept.environment.items() for part in pair):
                raise Malformed("the environment holds something else than text")
            if any(type(getattr(kept, name)) not in _TYPES.get(name, (str,)) for name in KeptRequest.__slots__):
                raise Malformed("a field has another type")
            if _file_name(kept.id) != name or digest != _sha256_of_text(kept.command):
                raise Malformed("its id or its command is not the one that was kept")
            _epoch_s(kept.created_at)
        except (Malformed, TypeError, ValueError) as error:
            raise StateDamaged(
                f"{FOLDER}/{name} in {self._folder.path} is not what was written: {error}",
                hint="make the request again",
            ) from None
        return kept


def _require_room(candidate: KeptRequest, open_ones: list[KeptRequest]) -> None:
    caller = candidate.caller
    mine = [waiting for waiting in open_ones if caller is not None and waiting.caller == caller]
    if len(mine) >= MOST_OPEN:
        raise TooManyAsks(
            f"{len(mine)} requests of this caller wait for a person already",
            hint=f"a person answers first: opsx approve {mine[0].id}, or opsx deny {mine[0].id}",
        )
    if len(open_ones) >= MOST_WAITING:
        raise TooManyAsks(f"{len(open_ones)} requests wait for a person already", hint="opsx pending")


def _file_name(request_id: str) -> str:
    """Raises ValueError for what cannot be an id, so that no path is ever made of one."""
    if not request_id.startswith("a-") or len(request_id) > 64:
        raise ValueError("not the id of a request")
    if any(character not in "abcdefghijklmnopqrstuvwxyz0123456789-" for character in request_id):
        raise ValueError("not the id of a request")
    return request_id + ".json"


def _sha256_of_text(text: str) -> str:
    return sha256_of(text.encode("utf-8", "surrogatepass"))


def _epoch_s(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
