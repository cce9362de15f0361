"""What a person would say yes to: one request of any kind, judged and bound as everything is now.

There are three kinds: a command, a change of one file, and a rollback. Each has a function here, and what they return
looks the same, so that little behind them tells kinds apart. Changes nothing and asks nobody.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import core
import execution
from acting import approving, edit, rollback_request, snapshots
from capabilities.edit_words import change_words
from capabilities.rollback_shapes import foreseen_words, kind_words, state_rows
from dialogue.confirm import COMMAND, FILE_CHANGE, ROLLBACK
from guard.bound import NO_OPTIONS
from guard.errors import ApprovalChanged, NotApproved, NotPermitted, UsageError
from guard.filechange import is_file_change
from guard.hands import privilege
from guard.redact import MASK
from guard.types import Level, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from execution import Guard
    from guard.bound import Binding, SnapshotOptions
    from guard.ledger.approvals import KeptRequest
    from guard.saved import Foreseen, RollbackAsked
    from guard.types import Assessment, Request

_HARMLESS = re.compile(r"[A-Za-z0-9_.,/+=@%^~:][A-Za-z0-9_.,/+=@%^~:-]*")
"""What may be hidden as a secret: nothing that a shell acts on, no blank, no option."""
MOST_PIECES = 20
"""A command in more pieces than this between its secrets is shown as it is."""


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
class Subject:
    """One request as it is now. Its texts are not redacted, but for `shown`."""

    kind: str
    """`COMMAND` · `FILE_CHANGE` · `ROLLBACK` of `dialogue.confirm`."""
    assessment: Assessment
    binding: Binding
    shown: str
    """The command or the difference as it may stand on a screen."""
    is_hidden: bool
    """Whether something in `shown` is hidden."""
    saved: tuple[str, ...]
    saved_paths: int
    not_saved: tuple[str, ...]
    details: tuple[str, ...] = ()
    """Rows below the command."""


def subject_of(wanted: Wanted, guard: Guard, *, force: bool) -> Subject:
    """Judges and binds a request.

    Args:
        force: what cannot be undone may be asked for.
    Raises:
        NotPermitted: it cannot be approved, or only with `--force`.
        NotApproved: it does not wait any more. ApprovalChanged: what it is about is something else by now.
        UsageError: it needs no approval. CannotRun: it could not be bound.
    """
    if is_file_change(wanted.request):
        return _file_change(wanted, guard, force=force)
    # Only what was kept can be a rollback: the same words on a command line are a command.
    asked = rollback_request.asked(wanted.request.command) if wanted.id else None
    return _command(wanted, guard, force=force) if asked is None else _rollback(wanted, asked, guard)


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


def _command(wanted: Wanted, guard: Guard, *, force: bool) -> Subject:
    request = wanted.request
    core.require_command(request.command)
    core.require_target(request.target)
    execution.require_cwd(request.cwd)
    assessment = execution.assess(request, guard)
    require_approvable(assessment, force=force, request_id=wanted.id)
    core.require_unattended(assessment)
    binding = approving.bind(request, assessment, guard, wanted.options, wanted.environ)
    foreseen = snapshots.foreseen(approving.plan_of(request, assessment, wanted.options), guard)
    saved, not_saved = foreseen_words(foreseen)
    not_saved += _beyond_our_rights(assessment, foreseen)
    shown, is_hidden = _shown(request.command, guard)
    return Subject(COMMAND, assessment, binding, shown, is_hidden, saved, foreseen.paths, not_saved)


def _beyond_our_rights(assessment: Assessment, foreseen: Foreseen) -> tuple[str, ...]:
    """What a rollback could not do for a change that has more rights than it would have."""
    if privilege.RAISING.isdisjoint(getattr(assessment, "programs", ())):
        return ()
    nodes = [node for node, _ in (*foreseen.roots, *foreseen.metadata)]
    if privilege.may_put_back(nodes) and (privilege.is_root() or not foreseen.states):
        return ()
    return ("the right to put it back: a rollback runs without sudo; run opsagent as root for a way back",)


def _file_change(wanted: Wanted, guard: Guard, *, force: bool) -> Subject:
    kept = guard.ledger.request(wanted.id)
    if kept is None:
        raise NotApproved(f"{wanted.id} does not wait any more", not_done="nothing was approved", hint="opsx pending")
    change = edit.of_kept(wanted.request, guard.ledger.content(kept), guard)
    require_approvable(change.assessment, force=force, request_id=wanted.id)
    binding = edit.binding_of(change, guard)
    foreseen = snapshots.foreseen(change.plan, guard)
    saved, not_saved = foreseen_words(foreseen)
    shown, is_hidden = change_words(change, guard.redactor)
    return Subject(FILE_CHANGE, change.assessment, binding, shown, is_hidden, saved, foreseen.paths, not_saved)


def _rollback(wanted: Wanted, asked: RollbackAsked, guard: Guard) -> Subject:
    request = wanted.request
    plan = execution.plan_rollback(asked.of, guard, overruled=asked.overruled, leave_conflicts=asked.leave_conflicts)
    if execution.rollback_request(plan) != request.command:
        raise ApprovalChanged(
            f"what is there has changed since {wanted.id} was asked",
            not_done="nothing was approved",
            hint=f"opsx rollback {asked.of}",
        )
    differences = execution.rollback_differences(plan, guard)
    rows = [
        row
        for step, text in differences
        for row in (f"{step.action} {step.path}", *(f"  {line}" for line in text.split("\n") if line))
    ]
    rows += [row for step in plan.states for row in state_rows(step)]
    paths = [kind_words(step.now) for step in plan.work if step.path not in plan.unkept]
    shown, is_hidden = _shown(rollback_request.title_of(request.command), guard)
    return Subject(
        ROLLBACK,
        execution.rollback_assessment(plan),
        rollback_request.binding_of(plan, request),
        shown,
        is_hidden,
        saved=(*paths, *(f"the state of {step.label}" for step in plan.state_work)),
        saved_paths=len(paths),
        not_saved=(*plan.notes, *(f"{name} differs and cannot be put back" for name in plan.cannot_return)),
        details=tuple(rows),
    )


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
