"""Everything that acts: one guarded run from request to record.

`run` reads as the walk of docs/architecture.md: request → facts → assess → decide → begin → run → end. It never
prints and never asks. What may not run comes back as a value with a reason; only broken surroundings raise.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import core
from acting.world import Guard, Ran, Sink, open_guard, open_store, outcome_of, status_of
from guard.errors import CwdGone, GuardError, NotPermitted, StateError
from guard.types import Actor, Level, Outcome, Profile, Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from guard.ledger.plans import SnapshotPlan
    from guard.ports import Cancel
    from guard.saved import Output, RollbackPlan, RolledBack, Step
    from guard.types import Assessment, Request

_SAID_PARTS = 1000
"""Pieces of output that are kept of a read of a snapshot plan: about 64 MB."""

READ_TIMEOUT_S = 120
"""A read that takes longer is stopped (DESIGN 9)."""

__all__ = ["Guard", "Ran", "Save", "apply_rollback", "assess", "open_guard", "open_store", "plan_rollback", "run"]


@dataclass(frozen=True, slots=True)
class Save:
    """What a caller adds to, or takes out of, the snapshot that a change gets."""

    files: tuple[str, ...] = ()
    """`--snapshot-file PATH`"""
    commands: tuple[str, ...] = ()
    """`--snapshot-cmd NAME::CMD`, reads only."""
    leave_out: tuple[str, ...] = ()
    """`--no-snapshot-of PATH`"""


NOTHING_ADDED = Save()


def run(
    request: Request,
    guard: Guard,
    *,
    timeout_s: float = READ_TIMEOUT_S,
    save: Save = NOTHING_ADDED,
    cancel: Cancel | None = None,
    on_output: Callable[[str, bytes], None] | None = None,
    on_begin: Callable[[str], None] | None = None,
) -> Ran:
    """Takes one request through the whole walk.

    Args:
        timeout_s: for a read; a change is never killed by a timer (`acting.change.CHANGE_LIMIT_S`).
        save: what a change's snapshot holds beside what was judged.
        on_begin: called with the execution's id once its begin is recorded, before anything runs.
        on_output: called with `stdout`/`stderr` and redacted bytes as they come.
    Returns:
        What was judged, and an `Outcome` whose status says what happened. `needs_stamp` and `refused` mean that
        nothing ran; `request_id` then names the request that a person can approve.
    Raises:
        BadCommand, UnknownTarget, CwdGone: the request is malformed.
        CannotRun, SandboxUnavailable: the surroundings are broken. Nothing ran.
    Effects: for a read two log entries (begin, end); else one kept request.
    """
    core.require_command(request.command)
    core.require_target(request.target)
    require_cwd(request.cwd)
    assessment = assess(request, guard)
    if assessment.decision.verdict != Verdict.RUN:
        return Ran(assessment, _not_run(request, assessment, guard))
    if assessment.level > Level.R0:
        return Ran(assessment, _change(request, assessment, guard, save, "", cancel, on_output, on_begin))
    return Ran(assessment, _read(request, assessment, guard, timeout_s, cancel, on_output, on_begin))


def assess(request: Request, guard: Guard) -> Assessment:
    """Judges a request with everything that is known here: what is enforced, and what its paths really are."""
    from guard.hands.facts import facts_for

    def judge(**facts: object) -> Assessment:
        return core.check(
            request.command,
            target=request.target,
            cwd=request.cwd,
            actor=request.actor,
            enforcement=guard.target.enforcement(),
            policy=guard.policy,
            **facts,  # type: ignore[arg-type]
        )

    first = judge()
    facts = facts_for(first, request.cwd)
    return judge(facts=facts) if facts.real_paths else first


def require_cwd(cwd: str) -> None:
    """Accepts an absolute folder that exists. Raises CwdGone: a folder that is gone is never silently replaced."""
    if not os.path.isabs(cwd) or not os.path.isdir(cwd):
        raise CwdGone(f"{cwd!r} is not an absolute folder that exists", hint="name one that does: --cwd DIR")


# ── going back: `rollback` does the work ─────────────────────────────────────────────────────────────────────────


def snapshot(
    plan: SnapshotPlan,
    guard: Guard,
    *,
    cwd: str,
    actor: str = Actor.AGENT,
    execution: str = "",
    reason: str = "manual",
) -> str:
    """Saves what a plan names, the output of its reads too, and returns the snapshot's id.

    Args:
        execution: the run that it is made for (reason `exec`); "" for one that was asked for.
    Raises:
        SnapshotImpossible: something cannot be saved, or one of the commands did not come to a good end.
        UsageError: one of the commands is not a read.
        StateError: the state folder cannot be used.
    """
    import rollback

    outputs = [_said(name, command, guard, cwd, actor) for name, command in plan.commands]
    return rollback.save(plan, guard, outputs=outputs, execution=execution, reason=reason)


def record_after(snapshot: str, guard: Guard) -> str:
    """Records how a snapshot's paths stand now that its run is over. Returns why not, "" when it did; never raises."""
    import rollback

    return rollback.record_after(snapshot, guard)


def plan_rollback(
    of: str, guard: Guard, *, overruled: Iterable[str] = (), leave_conflicts: bool = False
) -> RollbackPlan:
    """What going back to before an execution (or to a snapshot) would do. Changes nothing; see `rollback.plan`."""
    import rollback

    return rollback.plan(of, guard, overruled=overruled, leave_conflicts=leave_conflicts)


def rollback_differences(plan: RollbackPlan, guard: Guard) -> tuple[tuple[Step, str], ...]:
    """The steps of a plan that do something or are in conflict, each with its difference in words, redacted."""
    import rollback

    return rollback.differences(plan, guard)


def rollback_request(plan: RollbackPlan) -> str:
    """The command that stands for exactly this plan in requests, stamps and records."""
    import rollback

    return rollback.request_of(plan)


def rollback_assessment(plan: RollbackPlan) -> Assessment:
    """A plan as an assessment, for keeping it as a request."""
    import rollback

    return rollback.judged(plan)


def apply_rollback(
    plan: RollbackPlan, request: Request, guard: Guard, *, stamp: str = "", consent: str = ""
) -> RolledBack:
    """Carries out exactly the plan that a person consented to; see `rollback.apply`. Asking is the caller's duty.

    Raises:
        NotPermitted: neither a stamp nor a consent, or things changed since the plan was made.
        SnapshotImpossible, StateError: nothing was touched.
    """
    import rollback

    if not stamp and not consent:
        raise NotPermitted("a rollback needs a person's consent", not_done="nothing was changed")
    return rollback.apply(plan, request, guard, stamp=stamp, consent=consent)


def _said(name: str, command: str, guard: Guard, cwd: str, actor: str) -> Output:
    """What one read of a snapshot plan printed, its exact bytes."""
    from guard.errors import SnapshotImpossible, UsageError
    from guard.hands.environment import build_environment
    from guard.saved import Output
    from guard.types import Request

    request = Request(command, cwd=cwd, actor=actor, shell="snapshot")
    core.require_command(command)
    assessment = assess(request, guard)
    if assessment.level > Level.R0:
        raise UsageError(f"--snapshot-cmd {name} is {assessment.level.name}: only reads may be run to save something")
    if assessment.decision.verdict != Verdict.RUN:
        raise SnapshotImpossible(
            f"the read {name} may not run unasked: {assessment.decision.text}",
            hint=f"to go on without it: leave out --snapshot-cmd {name}::…",
        )
    kept: list[bytes] = []
    begun = guard.ledger.begin_read(request, assessment, profile=assessment.profile, enforced="none")
    result = guard.target.run(
        command,
        cwd=cwd,
        profile=assessment.profile,
        ports=assessment.ports,
        env=build_environment(assessment.env).env,
        timeout_s=READ_TIMEOUT_S,
        hidden=guard.hidden,
        on_output=lambda stream, data: kept.append(data) if stream == "stdout" and len(kept) < _SAID_PARTS else None,
    )
    guard.ledger.end(begun.execution, Outcome(status_of(result), execution=begun.execution, exit_code=result.exit_code))
    data = b"".join(kept)
    if result.exit_code != 0 or result.stdout.size_bytes != len(data):
        raise SnapshotImpossible(
            f"the read {name} "
            + ("said too much to keep" if result.exit_code == 0 else f"ended with {result.exit_code}"),
            hint=f"to go on without it: leave out --snapshot-cmd {name}::…",
        )
    return Output("command", name, command, data, 0)


def _change(
    request: Request,
    assessment: Assessment,
    guard: Guard,
    save: Save,
    stamp: str,
    cancel: Cancel | None,
    on_output: Callable[[str, bytes], None] | None,
    on_begin: Callable[[str], None] | None,
) -> Outcome:
    from acting import change
    from guard.ledger.plans import snapshot_plan

    plan = snapshot_plan(
        assessment.snapshot_plan,
        cwd=request.cwd,
        files=save.files,
        commands=save.commands,
        leave_out=save.leave_out,
    )
    wanted = bool(plan.items or plan.commands)
    return change.carry_out(
        request,
        assessment,
        guard,
        save=(lambda: snapshot(plan, guard, cwd=request.cwd, actor=request.actor, reason="exec")) if wanted else None,
        stamp=stamp,
        cancel=cancel,
        on_output=on_output,
        on_begin=on_begin,
    )


def _not_run(request: Request, assessment: Assessment, guard: Guard) -> Outcome:
    decision = assessment.decision
    refused = decision.verdict == Verdict.REFUSE
    request_id: str | None = None
    notes: tuple[str, ...] = ()
    if request.actor != Actor.RUNBOOK and (decision.forceable or not refused):
        try:
            request_id = guard.ledger.keep_request(request, assessment)
        except StateError as error:
            notes = (f"the request could not be kept: {error.message}",)
    return Outcome(
        Status.REFUSED if refused else Status.NEEDS_STAMP,
        request_id=request_id,
        profile=assessment.profile,
        decision=decision,
        at=guard.clock.utc(),
        notes=notes,
    )


def _read(
    request: Request,
    assessment: Assessment,
    guard: Guard,
    timeout_s: float,
    cancel: Cancel | None,
    on_output: Callable[[str, bytes], None] | None,
    on_begin: Callable[[str], None] | None,
) -> Outcome:
    from guard.hands.environment import build_environment

    enforced = guard.target.enforcement()
    profile = assessment.profile if assessment.profile in enforced.profiles else Profile.NONE
    child = build_environment(assessment.env)
    for value in child.secrets:
        guard.redactor.add(value)
    # `enforced` is a plan here; the end says what held.
    at = guard.clock.utc()
    begun = guard.ledger.begin_read(
        request, assessment, profile=profile, enforced=enforced.mechanism if profile != Profile.NONE else "none"
    )
    if on_begin is not None:
        on_begin(begun.execution)
    sink = Sink(guard, begun.execution, on_output)
    try:
        result = guard.target.run(
            request.command,
            cwd=request.cwd,
            profile=profile,
            ports=assessment.ports,
            env=child.env,
            timeout_s=timeout_s,
            hidden=guard.hidden,
            cancel=cancel,
            on_output=sink,
        )
    except GuardError as error:
        guard.ledger.end(begun.execution, Outcome(Status.FAILED, execution=begun.execution, notes=(error.message,)))
        raise
    outcome = outcome_of(result, begun.execution, guard, sink).replace(at=at, decision=assessment.decision)
    recorded = guard.ledger.end(begun.execution, outcome)
    # A begin that failed is written together with the end; only what is missing after that is missing.
    return outcome.replace(recorded=recorded.ok, not_recorded_because=recorded.because)
