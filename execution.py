"""Everything that acts: one guarded run from request to record.

`run` reads as the walk of docs/architecture.md: request → facts → assess → decide → begin → run → end. It never
prints and never asks. What may not run comes back as a value with a reason; only broken surroundings raise.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import core
from acting.act import Act, Change
from acting.following import Onlooker
from acting.judging import assess
from acting.saving import READ_TIMEOUT_S, snapshot
from acting.world import Guard, Ran, WayBack, open_guard, open_store
from guard.bound import NO_OPTIONS
from guard.errors import CwdGone, NotPermitted
from guard.types import Level, RequestKind, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from acting.edit import Edit
    from guard.bound import SnapshotOptions
    from guard.ports import Cancel
    from guard.saved import RollbackPlan, RolledBack, Step
    from guard.types import Assessment, Request

__all__ = [
    "FileChanged",
    "Guard",
    "Onlooker",
    "Ran",
    "READ_TIMEOUT_S",
    "apply_rollback",
    "assess",
    "change_file",
    "open_guard",
    "open_store",
    "plan_rollback",
    "run",
    "snapshot",
]


def run(
    request: Request,
    guard: Guard,
    *,
    timeout_s: float = READ_TIMEOUT_S,
    save: SnapshotOptions = NO_OPTIONS,
    cancel: Cancel | None = None,
    on_output: Callable[[str, bytes], None] | None = None,
    on_begin: Callable[[str], None] | None = None,
) -> Ran:
    """Takes one request through the whole walk.

    Args:
        timeout_s: for a read; a change is never killed by a timer (`acting.change.CHANGE_LIMIT_S`).
        save: what a change's snapshot holds beside what was judged.
        on_begin: called with the execution's id once its begin is recorded, before anything runs.
        on_output: called with `stdout`/`stderr` and redacted bytes as they come; an `Onlooker` gets of a flood the
            beginning and the end. The output of a change is always followed so.
    Returns:
        What was judged, and an `Outcome` whose status says what happened. `needs_stamp` and `refused` mean that
        nothing ran; `request_id` then names the request that a person can approve.
    Raises:
        BadCommand, UnknownTarget, CwdGone, NeedsTerminal, UsageError: the request is malformed.
        CannotRun, SandboxUnavailable: the surroundings are broken. Nothing ran.
        StateDamaged: it is more than a read, and the log was cut. Nothing ran.
    Effects: for a read two log entries (begin, end); else one kept request.
    """
    core.require_command(request.command)
    core.require_target(request.target)
    require_cwd(request.cwd)
    assessment = assess(request, guard)
    decision = assessment.decision
    if not _is_final(assessment):
        core.require_unattended(assessment)
    if assessment.level > Level.R0:
        guard.ledger.require_log()
    act = Act(request, assessment, guard, save, cancel, on_output, on_begin)
    back = _way_back(request, assessment, save)
    if decision.verdict == Verdict.RUN:
        return Ran(assessment, act.read(timeout_s) if assessment.level == Level.R0 else act.change(), back)
    if _is_final(assessment):
        return Ran(assessment, act.not_run(), back)
    return Ran(assessment, act.with_stamp(), back)


def _way_back(request: Request, assessment: Assessment, save: SnapshotOptions) -> WayBack | None:
    if save == NO_OPTIONS or assessment.level == Level.R0:
        return None  # as judged; before a read nothing is saved
    from acting.approving import way_back

    return way_back(request, assessment, save)


def change_file(
    request: Request,
    path: str,
    content: Callable[[bytes], bytes],
    guard: Guard,
    *,
    tells: bool = False,
    on_begin: Callable[[str], None] | None = None,
    checkpoint: Callable[[str], None] = lambda name: None,
) -> FileChanged:
    """Takes a change of one file through the whole walk.

    Args:
        request: who asks, from where, and why; its command is replaced by the text of the change.
        path: absolute, or against the request's folder; `~` is the caller's home. A link is followed, and said.
        content: from what the file holds (nothing when there is none) to what it shall hold. Not called for a file of
            which nothing may be read.
        tells: whether `content` works, and how it fails, tells what the file holds: not done where that is a secret.
        on_begin, checkpoint: see `acting.edit.carry_out`.
    Returns:
        As `run`; with the change itself unless it was refused before the file was read.
    Raises:
        UnknownTarget, CwdGone, CannotEdit: the request is malformed, or the file cannot be changed as a text.
        StateError, NotPermitted: nothing was changed.
    Effects: at most one kept request, or one snapshot, one changed file and its records.
    """
    from acting import edit

    core.require_target(request.target)
    require_cwd(request.cwd)
    guard.ledger.require_log()
    looked = edit.look(request, path, guard)
    if _is_final(looked.assessment):
        asked = request.replace(command=looked.assessment.command, kind=RequestKind.FILE_CHANGE)
        outcome = Act(asked, looked.assessment, guard, NO_OPTIONS, None, None, on_begin).not_run()
        return FileChanged(Ran(looked.assessment, outcome), None)
    change = edit.made(looked, content, guard, tells=tells)
    act = Change(change.request, change.assessment, guard, NO_OPTIONS, None, None, on_begin, change, checkpoint)
    if change.assessment.decision.verdict == Verdict.RUN:
        outcome = act.change()
    else:
        outcome = act.not_run() if _is_final(change.assessment) else act.with_stamp()
    return FileChanged(Ran(change.assessment, outcome), change)


@dataclass(frozen=True, slots=True)
class FileChanged:
    """What became of a file change."""

    ran: Ran
    edit: Edit | None
    """None when it was refused before the file was read."""


def _is_final(assessment: Assessment) -> bool:
    """Whether no person's yes could let it run."""
    return assessment.decision.verdict == Verdict.REFUSE and not assessment.decision.forceable


def require_cwd(cwd: str) -> None:
    """Accepts an absolute folder that exists. Raises CwdGone: a folder that is gone is never silently replaced."""
    if not os.path.isabs(cwd) or not os.path.isdir(cwd):
        raise CwdGone(f"{cwd!r} is not an absolute folder that exists", hint="name one that does: --cwd DIR")


# ── going back: `rollback` does the work ─────────────────────────────────────────────────────────────────────────


def record_after(snapshot: str, guard: Guard) -> str:
    """Records how a snapshot's paths stand now that its run is over. Returns why not, "" when it did; never raises."""
    from acting import snapshots

    return snapshots.record_after(snapshot, guard)


def plan_rollback(
    of: str, guard: Guard, *, overruled: Iterable[str] = (), leave_conflicts: bool = False
) -> RollbackPlan:
    """What going back to before an execution (or to a snapshot) would do. Changes nothing; see `rollback.plan`."""
    from acting import rollback

    return rollback.plan(of, guard, overruled=overruled, leave_conflicts=leave_conflicts)


def rollback_differences(plan: RollbackPlan, guard: Guard) -> tuple[tuple[Step, str], ...]:
    """The steps of a plan that do something or are in conflict, each with its difference in words, redacted."""
    from acting import rollback

    return rollback.differences(plan, guard)


def rollback_request(plan: RollbackPlan) -> str:
    """The command that stands for exactly this plan in requests, stamps and records."""
    from acting import rollback_request

    return rollback_request.request_of(plan)


def rollback_assessment(plan: RollbackPlan) -> Assessment:
    """A plan as an assessment, for keeping it as a request."""
    from acting import rollback_request

    return rollback_request.judged(plan)


def rollback_stamp(plan: RollbackPlan, request: Request, guard: Guard) -> str:
    """The id of a live stamp for exactly this plan, "" when there is none. Raises StateError."""
    from acting import rollback_request
    from guard.bound import Stamp

    found = guard.ledger.stamps.find(rollback_request.binding_of(plan, request))
    return found.id if isinstance(found, Stamp) else ""


def apply_rollback(
    plan: RollbackPlan, request: Request, guard: Guard, *, stamp: str = "", consent: str = ""
) -> RolledBack:
    """Carries out exactly the plan that a person consented to; see `rollback.apply`. Asking is the caller's duty.

    Raises:
        NotPermitted: neither a stamp nor a consent, or things changed since the plan was made.
        SnapshotImpossible, StateError: nothing was touched.
    """
    from acting import rollback

    if not stamp and not consent:
        raise NotPermitted("a rollback needs a person's consent", not_done="nothing was changed")
    return rollback.apply(plan, request, guard, stamp=stamp, consent=consent)
