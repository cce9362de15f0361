"""Saving what a plan names before a change, and what its reads say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import core
from acting.judging import assess
from acting.world import status_of
from guard.types import Actor, Level, Outcome, Verdict

if TYPE_CHECKING:
    from acting.world import Guard
    from guard.ledger.plans import SnapshotPlan
    from guard.saved import Output

_SAID_PARTS = 1000
"""Pieces of output that are kept of a read of a snapshot plan: about 64 MB."""

READ_TIMEOUT_S = 120
"""A read that takes longer is stopped."""


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
    from acting import snapshots, states

    outputs = [_said(name, command, guard, cwd, actor) for name, command in plan.commands]
    kept, unread = states.outputs(plan.items, guard)
    return snapshots.save(plan, guard, outputs=[*outputs, *kept], unread=unread, execution=execution, reason=reason)


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
