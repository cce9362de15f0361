"""From what was asked to what a person is shown: judges and binds a request as it is now, and puts the `Ask` together.

Asks nobody and approves nothing; `cli.opsx_approve` and `capabilities.asking` do. Every way of asking shows this one.
"""

from __future__ import annotations

import os
import pwd
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import core
import execution
from acting import approving, deadman, edit, rollback
from capabilities.edit_words import change_words
from capabilities.rollback_shapes import foreseen_words, kind_words, state_rows
from capabilities.sensitive import sensitive_parts
from dialogue.confirm import COMMAND, FILE_CHANGE, RESOLVE, ROLLBACK, Ask
from dialogue.screen import marked_spans, typeable
from guard.bound import NO_OPTIONS
from guard.errors import ApprovalChanged, NotApproved, NotPermitted, UsageError
from guard.filechange import is_file_change
from guard.ledger.answers import ToApprove
from guard.ledger.entries import command_hmac
from guard.redact import MASK
from guard.types import Actor, Level, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from execution import Guard
    from guard.bound import Binding, SnapshotOptions
    from guard.ledger.approvals import KeptRequest
    from guard.ledger.records import Execution
    from guard.types import Assessment, Request

_HARMLESS = re.compile(r"[A-Za-z0-9_.,/+=@%^~:][A-Za-z0-9_.,/+=@%^~:-]*")
"""What may be hidden as a secret: nothing that a shell acts on, no blank, no option."""
MOST_PIECES = 20
MOST_SHOWN = 60
"""Reasons, effects and gaps beyond this many are counted."""
_FINGERPRINT = 16


@dataclass(frozen=True, slots=True)
class Wanted:
    """One request to be approved."""

    request: Request
    options: SnapshotOptions = NO_OPTIONS
    environ: Mapping[str, str] | None = None
    """The asker's environment, as far as it was kept; None is this process's."""
    id: str = ""
    """`a-…`"""

    @classmethod
    def of_kept(cls, kept: KeptRequest) -> Wanted:
        """What a kept request asks for, in its asker's environment and not in that of whoever answers."""
        return cls(kept.request(), kept.options, kept.environ, kept.id)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The same, judged and bound as everything is now."""

    wanted: Wanted
    assessment: Assessment
    binding: Binding
    ask: Ask
    unknown: tuple[str, ...]
    """Runs whose end is not known and that touch the same; shown, and resolved by the yes."""

    def to_approve(self) -> ToApprove:
        """What the ledger is given after a yes."""
        return ToApprove(
            self.wanted.request,
            self.assessment,
            self.binding,
            self.wanted.id,
            forced=self.assessment.level == Level.R3,
            resolves=self.unknown,
        )


def prepared(wanted: Wanted, guard: Guard, *, force: bool, holds: str, expires_at: str = "") -> Prepared:
    """Judges and binds a request.

    Args:
        force: what cannot be undone may be asked for.
        holds: how long the approval holds, in words.
        expires_at: when an answer no longer counts; "" where whoever asks keeps the time.
    Raises:
        NotPermitted: it cannot be approved, or only with `--force`.
        ApprovalChanged: it is a rollback, and its plan is another one by now.
        UsageError: it needs no approval. CannotRun: it could not be bound.
    """
    request = wanted.request
    kind, shown, is_hidden = COMMAND, "", False
    asked = rollback.asked(request.command) if wanted.id else None
    details: tuple[str, ...] = ()
    saved: tuple[str, ...]
    not_saved: tuple[str, ...]
    if is_file_change(request):
        kind = FILE_CHANGE
        change = _kept_change(wanted, guard)
        assessment = change.assessment
        require_approvable(assessment, force=force, request_id=wanted.id)
        binding = edit.binding_of(change, guard)
        saved, not_saved = foreseen_words(foreseen := rollback.foreseen(change.plan, guard))
        saved_paths = foreseen.paths
        shown, is_hidden = change_words(change, guard.redactor)
    elif asked is not None:
        kind = ROLLBACK
        plan = execution.plan_rollback(
            asked.of, guard, overruled=asked.overruled, leave_conflicts=asked.leave_conflicts
        )
        if execution.rollback_request(plan) != request.command:
            raise ApprovalChanged(
                f"what is there has changed since {wanted.id} was asked",
                not_done="nothing was approved",
                hint=f"opsx rollback {asked.of}",
            )
        assessment = execution.rollback_assessment(plan)
        binding = rollback.binding_of(plan, request)
        details = tuple(
            row
            for step, text in execution.rollback_differences(plan, guard)
            for row in (f"{step.action} {step.path}", *(f"  {line}" for line in text.split("\n") if line))
        )
        details += tuple(row for step in plan.states for row in state_rows(step))
        saved = tuple(kind_words(step.now) for step in plan.work if step.path not in plan.unkept)
        saved_paths, not_saved = len(saved), plan.notes
        saved += tuple(f"the state of {step.label}" for step in plan.state_work)
        not_saved += tuple(f"{name} differs and cannot be put back" for name in plan.cannot_return)
    else:
        core.require_command(request.command)
        core.require_target(request.target)
        execution.require_cwd(request.cwd)
        assessment = execution.assess(request, guard)
        require_approvable(assessment, force=force, request_id=wanted.id)
        binding = approving.bind(request, assessment, guard, wanted.options, wanted.environ)
        foreseen = rollback.foreseen(approving.plan_of(request, assessment, wanted.options), guard)
        saved, not_saved = foreseen_words(foreseen)
        saved_paths = foreseen.paths
    answers = guard.ledger.answers
    unknown = answers.unresolved(request, assessment)
    remarks = [
        f"{run.id} began {run.started_at} and nobody knows how it ended; both touch {shared}: look first. "
        "A yes says that you looked"
        for run, shared in unknown
    ]
    if (denial := answers.denial_of(request, assessment)) is not None:
        times = f" ({denial.count} times by now)" if denial.count > 1 else ""
        remarks.append(f"you denied this at {denial.at}{times}" + (f": {denial.reason}" if denial.reason else ""))
    if request.read_before:
        remarks.append(f"proposed after reading: {request.read_before}")
    if watched := deadman.words(assessment, guard):
        remarks.append(watched)
    if wanted.options.leave_out:
        remarks.append(f"not saved, by the asker's own wish: {', '.join(wanted.options.leave_out)}")
    if kind != FILE_CHANGE:
        shown, is_hidden = _shown(request.command, guard)
    key = guard.ledger.answers.folder.key()
    redact = guard.redactor.text
    ask = Ask(
        id=wanted.id,
        target=request.target,
        host=os.uname().nodename,
        user=user_name(),
        cwd=redact(request.cwd),
        command=shown,
        level=assessment.level.name,
        reasons=_counted([redact(reason.text) for reason in assessment.reasons if reason.level == assessment.level]),
        effects=_counted([redact(f"{effect.kind} {effect.object}".strip()) for effect in assessment.effects]),
        reversible=assessment.reversible,
        snapshot_plan=_counted([redact(text) for text in saved]),
        not_bound=_counted([redact(text) for text in binding.unbound]),
        must_type=_object_of(assessment, redact=redact) if assessment.level == Level.R3 else "",
        why=redact(request.why),
        expires_at=expires_at,
        ambient=tuple(redact(f"{name} {text}") for name, text in binding.shown.items()),
        remarks=tuple(redact(text) for text in remarks),
        asked_by=_asker(request),
        holds=holds,
        fingerprint=command_hmac(key, request.command)[:_FINGERPRINT] if is_hidden else "",
        details=tuple(redact(text) for text in details),
        saved_paths=saved_paths,
        not_saved=_counted([redact(text) for text in not_saved]),
        kind=kind,
        resolves=tuple(run.id for run, _ in unknown),
        sensitive=sensitive_parts(assessment),
        digest=binding.digest,
        marked=_marked(request.command, shown, assessment) if kind != FILE_CHANGE else (),
    )
    return Prepared(wanted, assessment, binding, ask, tuple(run.id for run, _ in unknown))


def holds_words(ttl_s: int, uses: int = 1) -> str:
    """How long an approval holds, and for how many runs."""
    minutes, seconds = divmod(ttl_s, 60)
    length = f"{ttl_s} s" if seconds else f"{minutes} min"
    return f"one run within {length}" if uses == 1 else f"{uses} runs within {length}"


def require_approvable(assessment: Assessment, *, force: bool, request_id: str = "") -> None:
    """Accepts what a person's yes can let run. Raises NotPermitted, or UsageError when it needs none."""
    decision = assessment.decision
    if decision.verdict == Verdict.RUN:
        raise UsageError("this needs no approval", not_done="nothing was approved", hint="opsx exec -- CMD runs it")
    if decision.verdict == Verdict.REFUSE and not decision.forceable:
        raise NotPermitted(f"{decision.text}; no approval changes that", not_done="nothing was approved")
    if assessment.level == Level.R3 and not force:
        raise NotPermitted(
            f"R3: {decision.text}",
            not_done="nothing was approved",
            hint=f"opsx approve --force {request_id or '-- CMD'}",
        )


def resolution(run: Execution, outcome: str, evidence: str, guard: Guard, *, expires_at: str) -> Ask:
    """What is asked of a person who is to say how an unknown run ended.

    Args:
        outcome: `done` · `not_done`, as the asker proposes.
        evidence: the asker's words.
    """
    redact = guard.redactor.text
    said = "done" if outcome == "done" else "not done"
    return Ask(
        id=run.id,
        target=run.target,
        host=os.uname().nodename,
        user=user_name(),
        cwd=redact(run.cwd),
        command=run.command,
        level=run.level,
        reasons=(f"it began {run.started_at} and nobody knows how it ended",),
        effects=_counted([redact(f"{kind} {object}".strip()) for kind, object in run.effects]),
        reversible="no",
        snapshot_plan=(),
        not_bound=(),
        must_type="",
        why=redact(evidence),
        expires_at=expires_at,
        remarks=(f"nothing is run: a yes records {run.id} as {said}; look at the machine before you say so",),
        kind=RESOLVE,
        resolves=(run.id,),
        digest=sha256(f"{run.id} {outcome}".encode()).hexdigest(),
    )


def _kept_change(wanted: Wanted, guard: Guard) -> edit.Edit:
    """The kept file change as its file is now.

    Raises:
        NotApproved: it does not wait any more. ApprovalChanged: its file is another one by now.
    """
    kept = guard.ledger.request(wanted.id)
    if kept is None:
        raise NotApproved(f"{wanted.id} does not wait any more", not_done="nothing was approved", hint="opsx pending")
    return edit.of_kept(wanted.request, guard.ledger.content(kept), guard)


def _shown(command: str, guard: Guard) -> tuple[str, bool]:
    """The command as it may stand on a screen, and whether something in it is hidden.

    Hiding must not hide what would run. So only pieces that no shell acts on are hidden: the text around them with
    harmless words in their place is the command.
    """
    text = guard.redactor.text(command)
    if text == command:
        return command, False
    pieces = text.split(MASK)
    if len(pieces) > MOST_PIECES:
        return command, False
    fitting = re.fullmatch(f"({_HARMLESS.pattern})".join(re.escape(piece) for piece in pieces), command)
    if fitting is None:
        return command, False
    return text, True


def _marked(command: str, shown: str, assessment: Assessment) -> tuple[tuple[int, int], ...]:
    """Where to look in the command as it is shown; with a secret hidden in it, spans of the real one say nothing."""
    changed = [effect.object for effect in assessment.effects if effect.kind in ("write", "delete")]
    worst = [reason.span for reason in assessment.reasons if reason.level == assessment.level]
    return marked_spans(shown, worst if shown == command else (), changed)


def _object_of(assessment: Assessment, *, redact: Callable[[str], str]) -> str:
    """What an R3 destroys, as the person has to type it; the host's name when that cannot be typed as shown."""
    order = ("delete", "write")
    effects = sorted(assessment.effects, key=lambda effect: order.index(effect.kind) if effect.kind in order else 2)
    for effect in effects:
        if effect.kind in ("read", "secret-read", "privilege") or effect.object in ("", "?"):
            continue
        if typeable(effect.object) and redact(effect.object) == effect.object:
            return effect.object
    return os.uname().nodename


def _asker(request: Request) -> str:
    through = f" through {request.shell}" if request.shell and request.actor != Actor.PERSON else ""
    return request.actor + (f" ({request.client})" if request.client else "") + through


def user_name() -> str:
    """Whom commands run as, for people."""
    uid = os.geteuid()
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _counted(texts: list[str]) -> tuple[str, ...]:
    texts = list(dict.fromkeys(texts))
    if len(texts) <= MOST_SHOWN:
        return tuple(texts)
    return (*texts[:MOST_SHOWN], f"and {len(texts) - MOST_SHOWN} more")
