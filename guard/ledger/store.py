"""The ledger: what was asked, approved and run, behind one face. Touches the state folder and nothing else.

`Ledger` implements `guard.ports.Store`. A sick state folder never stops a read (`begin_read`, `end` answer with
a reason) and always stops a change (`begin` raises). `open_ledger` gives a `NullLedger` when there is no
usable folder at all, which answers in the same way.
"""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from guard.bound import NO_OPTIONS
from guard.errors import Frozen, NotApproved, StateDamaged, StateError
from guard.ledger import index
from guard.ledger.answers import Answers, standing
from guard.ledger.approvals import KeptRequest, Requests
from guard.ledger.carried import entries_of
from guard.ledger.entries import Entries, Owner
from guard.ledger.house import NO_RULES
from guard.ledger.housekeeping import Housekeeping
from guard.ledger.location import frozen_note, is_roots_own, since_the_move
from guard.ledger.log import LOCK_WAIT_S, SEGMENT_BYTES, Log
from guard.ledger.null import NullLedger
from guard.ledger.outputs import OutputFolder, OutputWriter
from guard.ledger.packs import KEEP, KEEP_SLACK, Snapshots
from guard.ledger.records import Fold
from guard.ledger.retention import Retention
from guard.ledger.segments import LOG_FOLDER, lines_from
from guard.ledger.shown import EXECUTIONS_LIMIT, Listing, Shown, unreadable_notes
from guard.ledger.signed import change_of_signing
from guard.ledger.stamps import Stamps
from guard.ledger.state import StateFolder, is_full, state_error_of
from guard.ledger.stop import cut_of, fault_of, stop_of
from guard.ledger.verify import VerifyReport, verify
from guard.types import Begun, Level, Recorded, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from guard.bound import Binding, SnapshotOptions
    from guard.ledger.formats import Entry
    from guard.ledger.house import House
    from guard.ledger.outputs import RedactingStream
    from guard.ledger.records import Execution
    from guard.ledger.retention import Needed
    from guard.ledger.segments import Place
    from guard.ports import Clock, Ids, Liveness
    from guard.saved import Manifest
    from guard.types import Assessment, Outcome, Request

READ_BEGIN_WAIT_S = 0.5
READ_END_WAIT_S = 1.5
"""Together the 2 s that a read waits at most for the log's lock."""

LATE_LIMIT = 100
"""Entries that wait in memory for a state that can be written again; older ones are lost, as was said at their time."""


@dataclass(slots=True)
class _Run:
    """A run that this process has begun."""

    request: Request
    is_read: bool
    unwritten: Callable[[], Entry] | None = None
    """Makes the started entry that could not be written yet; it goes out together with the end."""


class Ledger:
    """The record of one state folder. Safe to use from several threads and beside other processes."""

    def __init__(
        self,
        folder: StateFolder,
        *,
        clock: Clock,
        ids: Ids,
        redact: Callable[[str], str],
        liveness: Liveness,
        segment_bytes: int = SEGMENT_BYTES,
        small_log_bytes: int = index.SMALL_LOG_BYTES,
        house: House = NO_RULES,
    ) -> None:
        self.folder = folder
        self._clock = clock
        self._ids = ids
        self._redact = redact
        self._liveness = liveness
        self._log = Log(folder, clock=clock, liveness=liveness, segment_bytes=segment_bytes, heads=house.heads)
        self._requests = Requests(folder, clock=clock, ids=ids, liveness=liveness)
        self._owner = Owner(os.getpid(), liveness.start_of(os.getpid()))
        self._small_log_bytes = small_log_bytes
        self._house = house
        self._runs: dict[str, _Run] = {}
        self._late: list[Entry] = []
        self._keeping_house = Housekeeping(
            folder,
            limits=house.limits,
            boot=liveness.boot_id(),
            retention=lambda: self.retention,
            note=self.note,
        )
        self._late_lock = threading.Lock()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what was repaired in the folder (modes that were too open)."""
        return tuple(self.folder.notes)

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────

    def begin_read(self, request: Request, assessment: Assessment, *, profile: str, enforced: str) -> Begun:
        """Records that an R0 run is about to start, so that a killed one reads as unknown. Never raises.

        Not waited for: the begin reaches the disk together with the end. When it cannot be written now, it is
        tried again then.
        """
        execution = self._ids.new("e")
        began_at = self._clock.utc()

        def entry() -> Entry:
            return self._entries().started(
                execution,
                request,
                assessment,
                profile=profile,
                enforced=enforced,
                stamp="",
                owner=self._owner,
                began_at=began_at,
            )

        run = _Run(request, True)
        self._runs[execution] = run
        try:
            self._append([entry()], durable=False, wait_s=READ_BEGIN_WAIT_S)
        except (StateError, OSError) as error:
            run.unwritten = entry
            return Begun(execution, self._not_recorded(error))
        return Begun(execution, Recorded(True))

    def new_execution(self) -> str:
        """An id for a run that is about to begin, for what has to name it before that: its snapshot."""
        return self._ids.new("e")

    def begin(
        self,
        request: Request,
        assessment: Assessment,
        *,
        profile: str,
        enforced: str,
        stamp: str = "",
        binding: Binding | None = None,
        execution: str = "",
        snapshot: str = "",
        owner: tuple[int, str] | None = None,
    ) -> str:
        """Records durably that a change is about to run, and returns its execution id. From here on it may have run.

        Verifies under the log's lock, in the same critical section as the record: nothing is frozen, and the stamp is
        live and of exactly this binding. The record is the stamp's consumption.
        May use the reserve: on a full disk the command that a person approved is often the one that frees space.

        Args:
            stamp: the approval that it uses up; "" for what needs none.
            binding: the request as it is now (`guard.hands.binding.bind`); needed with `stamp`.
            execution: from `new_execution`; a fresh one by default.
            snapshot: what was saved for it.
            owner: pid and start (`Liveness.start_of`) of the process that runs it, when that is not this one.
        Raises:
            NotApproved: the stamp is not live any more, or is of something else. Nothing was consumed.
            Frozen: everything above R0 is stopped.
            StateError: it could not be recorded, so it must not run.
        """
        if stamp and binding is None:
            raise ValueError("a stamp is verified against a binding")
        if assessment.level == Level.R3 and not stamp:
            raise NotApproved("what cannot be undone never runs without an approval")
        execution = execution or self._ids.new("e")
        entry = self._entries().started(
            execution,
            request,
            assessment,
            profile=profile,
            enforced=enforced,
            stamp=stamp,
            owner=Owner(*owner) if owner else self._owner,
            began_at=self._clock.utc(),
            snapshot=snapshot,
        )

        def verify_again() -> list[Entry]:
            why, signing = standing(self.folder, self._small_log_bytes)
            if why:
                raise Frozen(f"everything above R0 is stopped: {why}", hint="opsx thaw")
            if stamp and binding is not None:
                self.stamps.require(stamp, request, binding)
            return change_of_signing(signing, self._house.signatures)

        self._append([entry], durable=True, use_reserve=True, first=verify_again)
        self._runs[execution] = _Run(request, False)
        return execution

    def end(self, execution: str, outcome: Outcome) -> Recorded:
        """Records how a run ended, durably, together with a begin that could not be written. Never raises.

        An end that cannot be written is kept in memory and goes out with a later record: a process that lives long
        would else leave runs that read as running for as long as it does.
        """
        run = self._runs.pop(execution, None)
        is_read = run is not None and run.is_read
        entries: list[Entry] = []
        try:
            if run is not None and run.unwritten is not None:
                entries.append(run.unwritten())
            ended_at = self._clock.utc()
            entries.append(self._entries().ended(execution, run.request if run else None, outcome, ended_at=ended_at))
            wait_s = READ_END_WAIT_S if is_read else LOCK_WAIT_S
            self._append(entries, durable=True, wait_s=wait_s, use_reserve=not is_read)
        except (StateError, OSError) as error:
            with self._late_lock:
                self._late = [*self._late, *entries][-LATE_LIMIT:]
            return self._not_recorded(error)
        if run is not None and outcome.status == Status.RUNNING:
            run.unwritten = None
            self._runs[execution] = run
        self._keeping_house.tidy()
        return Recorded(True)

    def note(self, kind: str, **fields: object) -> Recorded:
        """Records something about a run or the state, such as `output_lost`. Never raises for a sick state."""
        try:
            self._log.append([self._entries().noted(kind, dict(fields))], durable=False, wait_s=READ_BEGIN_WAIT_S)
        except (StateError, OSError) as error:
            return self._not_recorded(error)
        return Recorded(True)

    def record(self, kind: str, **fields: object) -> None:
        """Records something durably that must be on record before one goes on. Raises StateError."""
        self._append([self._entries().noted(kind, dict(fields))], durable=True, use_reserve=True)

    # ── snapshots ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def snapshots(self) -> Snapshots:
        """What was saved before changes."""
        return Snapshots(self.folder, log=self._log, clock=self._clock, ids=self._ids, redact=self._redact)

    def prune_snapshots(self, *, keep: int = KEEP, only_when_many: bool = False) -> tuple[str, ...]:
        """Removes the oldest snapshots beyond `keep`, never one that an unresolved execution needs; returns their ids.

        Args:
            only_when_many: do nothing unless 20 more than `keep` have gathered, so that it is not looked up each time.
        Raises: StateError.
        """
        snapshots = self.snapshots
        if only_when_many and len(snapshots.ids()) <= keep + KEEP_SLACK:
            return ()
        return snapshots.prune(keep=keep, is_needed=self._is_needed)

    def _is_needed(self, manifest: Manifest) -> bool:
        """Whether the run that it was made for may still be going on, or ended nobody knows how."""
        if not manifest.execution:
            return False
        run = self.show(manifest.execution).execution
        if run is None:
            return False  # it never began
        return run.status in (Status.RUNNING, Status.UNKNOWN) and not run.resolution

    def output_writer(
        self, execution: str, stream: str, redacting: RedactingStream, *, folder: str | None = None
    ) -> OutputWriter:
        """Saves the long form of one stream (`stdout`, `stderr`) of a run; in the state folder unless one is named."""
        place = OutputFolder.in_state(self.folder) if folder is None else OutputFolder.at(folder)
        return OutputWriter(place, execution, stream, redacting)

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────

    def keep_request(
        self,
        request: Request,
        assessment: Assessment,
        options: SnapshotOptions = NO_OPTIONS,
        environment: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> str:
        """Keeps a request that a person can approve, and returns its id. The same one waiting already: its id.

        Args:
            options: what the asker adds to the snapshot; the approval is bound to the plan that follows.
            environment: from `guard.hands.binding.asked_environment`, so that a person elsewhere approves what the
                asker's process would run.
            content: of a file change.
        Raises:
            TooManyAsks: three requests of this caller wait already.
            StateError: it could not be kept.
        """
        entries = self._entries()
        self._requests.expire()
        with self._log.writer() as writer:
            while True:
                try:
                    kept, is_new = self._requests.keep(request, assessment, options, environment, content)
                    break
                except StateError as error:
                    # The request may be the one that frees space.
                    if not (is_full(error) and writer.release_reserve()):
                        raise
            if is_new:
                entry = entries.requested(kept.id, request, assessment, expires_at=kept.expires_at())
                try:
                    writer.append([entry], durable=True, use_reserve=True)
                except StateError:
                    with contextlib.suppress(StateError):
                        self._requests.discard(kept.id)
                    raise
        if is_new and self._house.on_request is not None:
            self._house.on_request(kept)
        return kept.id

    def pending(self) -> list[KeptRequest]:
        """The requests that wait, oldest first. Raises StateError."""
        self._requests.expire()
        return self._requests.pending()

    def request(self, request_id: str) -> KeptRequest | None:
        """The waiting request with this id, None when there is none. Raises StateError."""
        return self._requests.load(request_id)

    def content(self, kept: KeptRequest) -> bytes:
        """What a kept file change would put into the file. Raises StateError: it is not what was kept."""
        return self._requests.content(kept)

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def stamps(self) -> Stamps:
        """Approvals: `find`, `listed`, `show`."""
        return Stamps(
            self.folder,
            clock=self._clock,
            boot=self._liveness.boot_id(),
            redact=self._redact,
            small_log_bytes=self._small_log_bytes,
            signatures=self._house.signatures,
        )

    def frozen_note(self) -> str:
        """Why everything above R0 is stopped, by the note in the folder: one open(2), for each request."""
        return frozen_note(self.folder.path)

    def stop(self) -> str:
        """Why nothing above R0 may begin; "" when it may. For requests above R0: it looks into the log. Never raises.

        A stop that the log tells and whose note is gone gets its note again.
        """
        why = stop_of(self.folder.path)
        if why and not self.frozen_note() and not fault_of(self.folder.path):
            with contextlib.suppress(StateError, OSError):
                self.answers.restore_note(READ_BEGIN_WAIT_S)
        return why

    def require_log(self) -> None:
        """Raises StateDamaged: the log was cut, or cannot be read, so that nothing above R0 can be recorded."""
        if why := cut_of(self.folder.path):
            raise StateDamaged(
                why,
                not_done="nothing was run",
                hint=f"to begin a new log, move {self.folder.path}/{LOG_FOLDER} aside",
            )

    @property
    def answers(self) -> Answers:
        """What persons said: `approve`, `deny`, `revoke`, `freeze`, `thaw`, `resolve`, and what follows from it."""
        return Answers(
            folder=self.folder,
            log=self._log,
            requests=self._requests,
            stamps=self.stamps,
            entries=self._entries(),
            clock=self._clock,
            ids=self._ids,
            liveness=self._liveness,
            small_log_bytes=self._small_log_bytes,
            signatures=self._house.signatures,
        )

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────

    def entries(self) -> Iterator[Mapping[str, object]]:
        """The log, oldest first; what is not a record comes as `{"kind": "unreadable", …}`. Raises StateError."""
        return entries_of(lines_from(self.folder))

    def executions(
        self, *, status: str | None = None, since: str | None = None, limit: int = EXECUTIONS_LIMIT
    ) -> Listing:
        """The newest executions.

        Args:
            status: only these; `running` and `unknown` are told apart now, by their owners.
            since: only those that started at this time or later, RFC 3339 in UTC with `Z`.
            limit: 1..1,000.
        Raises:
            StateError: the log cannot be read.
        """
        found, unreadable = index.newest(
            self.folder,
            self._liveness,
            status=status,
            since=since,
            limit=max(1, min(limit, EXECUTIONS_LIMIT)),
            small_log_bytes=self._small_log_bytes,
        )
        return Listing(tuple(self._as_it_lies(run) for run in found), unreadable_notes(unreadable))

    def show(self, record_id: str) -> Shown:
        """Everything about one id: an execution, a request, a stamp or a snapshot. Raises StateError."""
        entries = tuple(index.about(self.folder, record_id, small_log_bytes=self._small_log_bytes))
        execution = Fold().add_all(entries).executions.get(record_id)
        return Shown(
            record_id,
            self._as_it_lies(execution.read_with(self._liveness)) if execution else None,
            self._requests.load(record_id) if record_id.startswith("a-") else None,
            entries,
        )

    def _as_it_lies(self, run: Execution) -> Execution:
        """With its saved output where that is now."""
        if not run.output_file:
            return run
        return replace(run, output_file=since_the_move(run.output_file, self.folder.path))

    def audit(self, tail: int = 20) -> tuple[Mapping[str, object], ...]:
        """The last entries of the log, oldest of them first. Raises StateError."""
        return tuple(index.last_entries(self.folder, max(0, tail)))

    def head(self) -> Place | None:
        """The last entry that is known to be on disk; None when that is not known. Never raises."""
        return self._log.head()

    def fault_at(self, place: Place) -> str:
        """Why the log no longer holds what it held at a place; "" when it does, or let it go since. Never raises."""
        return self._log.fault_at(place)

    def verify(self, sent: Mapping[int, str] | None = None) -> VerifyReport:
        """Checks the whole log, also against heads that were kept elsewhere (`guard.hands.journal.heads_sent`).

        Raises StateError.
        """
        return verify(self.folder, sent)

    # ── retention ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def retention(self) -> Retention:
        """What of the log may go: `plan`, `apply`."""
        return Retention(
            self.folder,
            log=self._log,
            clock=self._clock,
            liveness=self._liveness,
            needed=self._needed,
            small_log_bytes=self._small_log_bytes,
        )

    def _needed(self) -> Needed:
        from guard.ledger.needed import needed_of

        return needed_of(
            self.folder,
            self._liveness,
            stamps=self.stamps,
            waiting=[kept.id for kept in self._requests.pending()],
            snapshots=self.snapshots.ids(),
            small_log_bytes=self._small_log_bytes,
        )

    def _append(
        self,
        entries: Sequence[Entry],
        *,
        durable: bool,
        wait_s: float = LOCK_WAIT_S,
        use_reserve: bool = False,
        first: Callable[[], Sequence[Entry]] | None = None,
    ) -> None:
        """Appends what waits in memory and then the entries; when that fails, what waited goes on waiting.

        Args:
            first: called with the lock held, before anything is written; what it raises stops the append, and the
                entries that it returns go before the others.
        """
        with self._late_lock:
            late, self._late = self._late, []
        try:
            with self._log.writer(wait_s) as writer:
                ahead = first() if first is not None else ()
                appended = writer.append([*late, *ahead, *entries], durable=durable, use_reserve=use_reserve)
            self._keeping_house.saw(appended)
        except BaseException:
            with self._late_lock:
                self._late = [*late, *self._late]
            raise

    def _not_recorded(self, error: StateError | OSError) -> Recorded:
        if isinstance(error, OSError):
            error = state_error_of(error, f"the state folder {self.folder.path}")
        return Recorded(False, error.message)

    def _entries(self) -> Entries:
        return Entries(self._redact, self.folder.key())


def own_folder() -> StateFolder:
    """This user's state folder, created when it is missing. Raises StateError."""
    folder = StateFolder.open_own()
    if is_roots_own():
        from guard.ledger.moving import require_one_place

        require_one_place(folder)
    return folder


def open_ledger(
    *,
    clock: Clock,
    ids: Ids,
    redact: Callable[[str], str],
    liveness: Liveness,
    path: str | None = None,
    house: House = NO_RULES,
) -> Ledger | NullLedger:
    """The ledger of this user's state folder, or of `path`; a `NullLedger` when the folder cannot be used.

    Never raises for the folder; `NullLedger.error` is the reason. Creates the folder when it is missing.
    """
    try:
        folder = StateFolder.open(path) if path is not None else own_folder()
    except StateError as error:
        return NullLedger(error, ids=ids)
    return Ledger(
        folder,
        clock=clock,
        ids=ids,
        redact=redact,
        liveness=liveness,
        house=house,
    )
