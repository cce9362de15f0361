"""What persons said: approvals, denials, revocations, a stop to everything, and how unknown runs really ended.

Each answer is an entry in the log, written under its lock together with what it settles. Touches the state folder only.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from guard.bound import DEFAULT_TTL_S, LOOKED, NOT_FROZEN, RESOLUTIONS, STOPPED_UNRECORDED, TTY, Denial, Stamp
from guard.errors import ApprovalUnsigned, Frozen, NotApproved, NotPermitted, StateError, UsageError
from guard.ledger import index
from guard.ledger.entries import command_hmac
from guard.ledger.location import FROZEN_NAME, frozen_note
from guard.ledger.overlap import changing, overlapping, same
from guard.ledger.records import Fold
from guard.ledger.signed import KIND as SIGNING
from guard.ledger.signed import change_of_signing, statement_sha256, text_of
from guard.ledger.stamps import MOST_ANSWERS, require_ttl_and_uses
from guard.ledger.stop import lost_of
from guard.types import Actor, Level, Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from guard.bound import Binding, Consent
    from guard.ledger.approvals import KeptRequest, Requests
    from guard.ledger.entries import Entries
    from guard.ledger.formats import Entry
    from guard.ledger.log import Log
    from guard.ledger.records import Execution
    from guard.ledger.stamps import Stamps
    from guard.ledger.state import StateFolder
    from guard.ports import Clock, Ids, Liveness, Signatures
    from guard.types import Assessment, Request

MOST_UNKNOWN = 1000
"""Runs without an end that are looked at, the newest first."""


@dataclass(frozen=True, slots=True)
class ToApprove:
    """One request that a person said yes to."""

    request: Request
    assessment: Assessment
    binding: Binding
    request_id: str = ""
    """`a-…` of the kept request that it answers; "" for an approval beforehand."""
    forced: bool = False
    resolves: tuple[str, ...] = ()
    """Unknown runs that the person was shown and says to have looked at."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one state folder. Cheap to make."""

    folder: StateFolder
    log: Log
    requests: Requests
    stamps: Stamps
    entries: Entries
    clock: Clock
    ids: Ids
    liveness: Liveness
    small_log_bytes: int
    signatures: Signatures | None = None
    """What an approval has to be signed by."""

    # ── approvals ────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def signer(self) -> str:
        """Whose signature an approval needs here; "" when it needs none."""
        return self.signatures.signer if self.signatures is not None else ""

    def approve(
        self,
        items: Sequence[ToApprove],
        consent: Consent,
        *,
        ttl_s: int = DEFAULT_TTL_S,
        uses: int = 1,
    ) -> tuple[Stamp, ...]:
        """Issues one stamp for each, all or none. Asking is the caller's duty.

        Args:
            items: in the order in which they will run; `forced` is needed for an R3.
            ttl_s: 1..86,400 seconds from now. uses: 1..100 runs of exactly the same request.
        Raises:
            NotPermitted: it cannot be approved by anybody, or everything is frozen.
            NotApproved: the kept request was answered or ended meanwhile.
            ApprovalUnsigned: a signature is asked for, and it was not made, or the answer came from no terminal.
            UsageError: length or uses out of range, an R3 without force.
            StateError: it could not be recorded; nothing was approved.
        Effects: appends `approved` and `resolved` entries durably; removes the kept requests.
        """
        require_ttl_and_uses(ttl_s, uses)
        for item in items:
            _require_approvable(item)
        stamps = [self.ids.new("t") for _ in items]
        approvals = [
            self._approval(stamp, item, consent, ttl_s, uses) for stamp, item in zip(stamps, items, strict=True)
        ]
        # Outside of the lock: a person may have to touch a token for it.
        self._sign(approvals, consent)
        written: list[Entry] = []
        for stamp, item, approval in zip(stamps, items, approvals, strict=True):
            written.append(approval)
            written += [self._resolved(run, LOOKED, f"approved again as {stamp}") for run in item.resolves]
        with self.log.writer() as writer:
            why, last = standing(self.folder, self.small_log_bytes)
            if why:
                raise Frozen(f"everything above R0 is stopped: {why}", not_done="nothing was approved")
            for item in items:
                self._require_waiting(item)
            signing = change_of_signing(last, self.signatures)
            writer.append([*signing, *written], durable=True, use_reserve=True)
            for item in items:
                self._discard(item.request_id)
        return tuple(found for stamp in stamps if (found := self.stamps.show(stamp)) is not None)

    def _approval(self, stamp: str, item: ToApprove, consent: Consent, ttl_s: int, uses: int) -> Entry:
        terms = {
            "request": item.request_id or None,
            **self.stamps.bound_fields(item.binding),
            "ttl_s": ttl_s,
            "uses": uses,
            "forced": item.forced,
            "issued_at": self.clock.utc(),
            "issued_boot_s": self.clock.boot_s(),
            "resolves": list(item.resolves),
            "uid": os.geteuid(),
        }
        return self.entries.approved(stamp, item.request, item.assessment, consent, terms)

    def _sign(self, approvals: Sequence[Entry], consent: Consent) -> None:
        if self.signatures is None:
            return
        if consent.how != TTY:
            raise ApprovalUnsigned(
                f"an approval here needs a signature of {self.signer}, and nothing can be signed this way",
                not_done="nothing was approved",
                hint="on a terminal: opsx approve",
            )
        boot = self.liveness.boot_id()
        statements = [statement_sha256(approval, boot) for approval in approvals]
        signature = self.signatures.sign(text_of(statements))
        for approval in approvals:
            approval.update(signed=statements, signature=signature)

    def revoke(self, stamp_id: str, *, actor: str = Actor.PERSON) -> Stamp:
        """Takes an approval back; anybody may, since it only takes away.

        Raises: UsageError: there is none, or it is over already. StateError.
        """
        with self.log.writer() as writer:
            stamp = self.stamps.show(stamp_id)
            if stamp is None:
                raise UsageError(f"there is no stamp {ascii(stamp_id)[1:-1][:64]}", not_done="nothing was revoked")
            if stamp.state != "live":
                raise UsageError(f"{stamp_id} is {stamp.state} already", not_done="nothing was revoked")
            entry = self.entries.noted("revoked", {"stamp": stamp_id, "actor": actor})
            writer.append([entry], durable=True, use_reserve=True)
        return replace(stamp, state="revoked", seconds_left=0.0)

    def deny(
        self,
        request: Request,
        *,
        request_id: str = "",
        assessment: Assessment | None = None,
        reason: str = "",
    ) -> None:
        """Records a person's no and removes the kept request. A yes that came in another shell meanwhile ends with it.

        Args:
            assessment: for what the no is about; without it, what was recorded when the request was kept.
        Raises: StateError: it could not be recorded.
        """
        effects = self.entries.effects_of(assessment) if assessment is not None else self._asked_effects(request_id)
        with self.log.writer() as writer:
            entry = self.entries.denied(request_id, request, effects, reason)
            ended = [
                self.entries.noted("revoked", {"stamp": stamp.id, "actor": Actor.PERSON})
                for stamp in (self.stamps.listed() if request_id else ())
                if stamp.request == request_id
            ]
            writer.append([entry, *ended], durable=True, use_reserve=True)
            self._discard(request_id)

    def withdraw(self, request_id: str, *, reason: str = "") -> None:
        """Records that a person wants something else in place of a kept request, and removes it.

        No denial: the same may be asked for again. Raises StateError: it could not be recorded.
        """
        with self.log.writer() as writer:
            fields: dict[str, object] = {"request": request_id, "actor": Actor.PERSON, "reason": reason or None}
            writer.append([self.entries.noted("withdrawn", fields)], durable=True, use_reserve=True)
            self._discard(request_id)

    def denial_of(self, request: Request, assessment: Assessment) -> Denial | None:
        """What a person denied before and this would do again: the same bytes, or the same effect on the same object.

        What the text does not name (a script that was not read) is the same only when the bytes are.

        An approval of the same bytes ends what was denied before it. Raises StateError.
        """
        mine = tuple(self.entries.effects_of(assessment))
        return self._denial(command_hmac(self.folder.key(), request.command), mine, request.target)

    def times_denied(self, session: str) -> int:
        """How often a person said no to what they denied last in a conversation, or to the same in other words.

        0 when they denied nothing there. Of an answer to several requests at once each counts, but once. Raises
        StateError.
        """
        newest: Mapping[str, Any] | None = None
        count = 0
        for entry in self._recent("denied"):
            if entry.get("session") != session or not session:
                continue
            newest = newest or entry
            if entry is not newest and not _is_same_answer(entry, newest):
                break
            denial = self._denial(entry.get("command_hmac"), _pairs(entry), entry.get("target"))
            count = max(count, denial.count if denial is not None else 0)
        return count

    def _denial(self, said: object, mine: tuple[tuple[str, str], ...], target: object) -> Denial | None:
        found: list[Mapping[str, Any]] = []
        for entry in self._recent("denied", "approved"):
            if entry.get("target") != target:
                continue
            is_same = entry.get("command_hmac") == said
            if entry["kind"] == "approved":
                if is_same:
                    break
            elif (is_same or same(mine, _pairs(entry))) and not any(_is_same_answer(entry, other) for other in found):
                found.append(entry)
        if not found:
            return None
        newest = found[0]
        reason = str(newest.get("reason") or "")
        return Denial(str(newest["at"]), str(newest.get("request") or ""), len(found), reason)

    # ── freeze ───────────────────────────────────────────────────────────────────────────────────────────────

    def frozen(self) -> str:
        """Why everything above R0 is stopped, "" when it is not. Raises StateError."""
        return frozen_of(self.folder, self.small_log_bytes)

    def freeze(self, reason: str, *, actor: str) -> str:
        """Stops everything above R0, in every shell at once; returns the note that says why.

        The note file comes first: a stop holds even when the log cannot be written, and only a thaw ends it.

        Raises: StateError: not even the note could be written, or the log could not (the stop holds then).
        """
        note = self.entries.short(reason) or "no reason was given"
        note = f"{note} (since {self.clock.utc()})"
        is_stopped = False
        try:
            with self.log.writer() as writer, self.folder.root() as root:
                self.folder.write_new(FROZEN_NAME, note.encode("utf-8", "replace") + b"\n", dir_fd=root)
                is_stopped = True
                entry = self.entries.noted("frozen", {"reason": note, "actor": actor})
                writer.append([entry], durable=True, use_reserve=True)
        except StateError as error:
            is_stopped = is_stopped or bool(frozen_note(self.folder.path))
            error.not_done = STOPPED_UNRECORDED if is_stopped else NOT_FROZEN
            raise
        return self.frozen()

    def restore_note(self, wait_s: float) -> None:
        """Writes the note of a stop again that the log tells, so that shells which only look for it see it.

        Raises: StateError.
        """
        with self.log.writer(wait_s), self.folder.root() as root:
            (last,) = index.last_of(self.folder, [("frozen", "thawed")], small_log_bytes=self.small_log_bytes)
            if last is not None and last["kind"] == "frozen":
                note = str(last.get("reason") or "no reason was given")
                self.folder.write_new(FROZEN_NAME, note.encode("utf-8", "replace") + b"\n", dir_fd=root)

    def thaw(self, *, actor: str = Actor.PERSON) -> bool:
        """Ends the stop; False when there was none. Only a person may, which the caller sees to. Raises StateError."""
        with self.log.writer() as writer, self.folder.root() as root:
            if not self.frozen():
                return False
            writer.append([self.entries.noted("thawed", {"actor": actor})], durable=True, use_reserve=True)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(FROZEN_NAME, dir_fd=root)
                os.fsync(root)
        return True

    # ── unknown runs ─────────────────────────────────────────────────────────────────────────────────────────

    def unresolved(self, request: Request, assessment: Assessment) -> tuple[tuple[Execution, str], ...]:
        """Unknown runs above R0 that must be looked at before this one, each with the object that both touch.

        The same bytes, or an overlapping effect on the same target. Empty for R0. Raises StateError.
        """
        if assessment.level == Level.R0:
            return ()
        said = command_hmac(self.folder.key(), request.command)
        mine = changing(self.entries.effects_of(assessment))
        runs, _ = index.newest(
            self.folder,
            self.liveness,
            status=Status.UNKNOWN,
            since=None,
            limit=MOST_UNKNOWN,
            small_log_bytes=self.small_log_bytes,
        )
        found = []
        for run in runs:
            if run.level == Level.R0.name or run.resolution or run.target != request.target:
                continue
            total = run.effects_total if run.effects_total >= 0 else None
            shared = "the same command" if run.command_hmac == said else ""
            shared = shared or overlapping(mine, changing(run.effects, total=total))
            if shared:
                found.append((run, shared))
        return tuple(found)

    def resolve(
        self,
        execution: str,
        outcome: str,
        *,
        evidence: str = "",
        actor: str = Actor.PERSON,
        consent: Consent | None = None,
    ) -> None:
        """Records what a person found out about an unknown run. Only a person may, which the caller sees to.

        Args:
            outcome: `done` · `not_done` · `looked`
            consent: how they said so, where it was not their own `opsx resolve`.
        Raises:
            UsageError: there is no such run, it is not unknown, or somebody said already.
            StateError: it could not be recorded.
        """
        if outcome not in RESOLUTIONS:
            raise UsageError(f"{outcome!r} is no outcome", hint=f"one of {', '.join(RESOLUTIONS)}")
        with self.log.writer() as writer:
            about = index.about(self.folder, execution, small_log_bytes=self.small_log_bytes)
            run = Fold().add_all(about).executions.get(execution)
            if run is None:
                raise UsageError(
                    f"there is no execution {ascii(execution)[1:-1][:64]}", not_done="nothing was recorded"
                )
            run = run.read_with(self.liveness)
            if run.status != Status.UNKNOWN or run.resolution:
                what = f"resolved as {run.resolution}" if run.resolution else run.status
                raise UsageError(f"{execution} is {what}: there is nothing to resolve", not_done="nothing was recorded")
            entry = self._resolved(execution, outcome, evidence, actor)
            if consent is not None:
                entry = {**entry, **self.entries.answered(consent)}
            writer.append([entry], durable=True, use_reserve=True)

    # ── small things ─────────────────────────────────────────────────────────────────────────────────────────

    def _resolved(self, execution: str, outcome: str, evidence: str, actor: str = Actor.PERSON) -> Entry:
        fields = {"execution": execution, "outcome": outcome, "evidence": evidence, "actor": actor}
        return self.entries.noted("resolved", fields)

    def _require_waiting(self, item: ToApprove) -> None:
        if not item.request_id:
            return
        kept: KeptRequest | None = self.requests.load(item.request_id)
        if kept is None or kept.request() != item.request:
            raise NotApproved(
                f"{item.request_id} does not wait any more: it was answered, or its 24 hours are over",
                not_done="nothing was approved",
                hint=f"opsx show {item.request_id}",
            )

    def _discard(self, request_id: str) -> None:
        """The answer is on record; a file that stays behind goes when its day is over, and is refused until then."""
        if request_id:
            with contextlib.suppress(StateError):
                self.requests.discard(request_id)

    def _asked_effects(self, request_id: str) -> tuple[tuple[str, str], ...]:
        for entry in index.about(self.folder, request_id, small_log_bytes=self.small_log_bytes):
            if entry["kind"] == "requested" and entry.get("request") == request_id:
                return _pairs(entry)
        return ()

    def _recent(self, *kinds: str) -> Sequence[Mapping[str, Any]]:
        return index.recent(self.folder, kinds, most=MOST_ANSWERS, small_log_bytes=self.small_log_bytes)


def frozen_of(folder: StateFolder, small_log_bytes: int) -> str:
    """Why everything above R0 is stopped: the note, a lost head, or the log; "" when it is not. Raises StateError."""
    if note := frozen_note(folder.path):
        return note
    return standing(folder, small_log_bytes)[0]


def standing(folder: StateFolder, small_log_bytes: int) -> tuple[str, Mapping[str, Any] | None]:
    """Why everything above R0 is stopped, and what was last said about the signer; one way through the log for both.

    Raises StateError.
    """
    stop, signing = index.last_of(folder, (("frozen", "thawed"), (SIGNING,)), small_log_bytes=small_log_bytes)
    why = frozen_note(folder.path) or lost_of(folder.path)
    if not why and stop is not None and stop["kind"] == "frozen":
        why = str(stop.get("reason") or "no reason was given")
    return why, signing


def _require_approvable(item: ToApprove) -> None:
    assessment = item.assessment
    decision = assessment.decision
    if decision.verdict == Verdict.REFUSE and not decision.forceable:
        raise NotPermitted(decision.text, not_done="nothing was approved")
    if assessment.level == Level.R3 and not item.forced:
        raise UsageError("what cannot be undone needs --force", not_done="nothing was approved", hint="--force")
    if item.binding.fields.get("command") != item.request.command:
        raise ValueError("the binding is of another request")


def _is_same_answer(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether one no of a person was to both: to steps of one plan, which is asked by one call."""
    plan = (one.get("session"), one.get("call_id"))
    return all(plan) and not one.get("request") and plan == (other.get("session"), other.get("call_id"))


def _pairs(entry: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    effects = entry.get("effects")
    if not isinstance(effects, list):
        return ()
    return tuple(
        (item[0], item[1])
        for item in effects
        if isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item)
    )
