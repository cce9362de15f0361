"""From a request to what a person approves, and from there to the stamp that fits it. Changes nothing by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import core
from guard.bound import NO_OPTIONS, Refusal
from guard.errors import StateError
from guard.types import Level

if TYPE_CHECKING:
    from collections.abc import Mapping

    from acting.world import Guard, WayBack
    from guard.bound import Binding, SnapshotOptions, Stamp
    from guard.ledger.plans import SnapshotPlan
    from guard.types import Assessment, Request


def plan_of(request: Request, assessment: Assessment, options: SnapshotOptions = NO_OPTIONS) -> SnapshotPlan:
    """What is saved before this request runs. Raises UsageError for options that are none."""
    from guard.ledger.plans import snapshot_plan

    return snapshot_plan(
        assessment.snapshot_plan,
        cwd=request.cwd,
        files=options.files,
        commands=options.commands,
        leave_out=options.leave_out,
    )


def way_back(request: Request, assessment: Assessment, options: SnapshotOptions) -> WayBack:
    """What is saved before this request runs and what of it comes back, with what the asker adds and leaves out.

    What is added to a plan that holds nothing brings a part back, what is left out of one takes a part away. The output
    of a read (`--snapshot-cmd`) brings nothing back. Raises UsageError for options that are none.
    """
    from acting.world import WayBack

    judged = plan_of(request, assessment)
    plan = plan_of(request, assessment, options)
    told = assessment.reversible
    comes_back = any(item.kind != "command" for item in plan.items)
    if assessment.level in (Level.R1, Level.R2):
        if not comes_back:
            told = "partial" if assessment.level == Level.R1 else "no"
        elif told == "no" or not set(judged.items) <= set(plan.items):
            told = "partial"
    return WayBack(plan.items, told)


def bind(
    request: Request,
    assessment: Assessment,
    guard: Guard,
    options: SnapshotOptions = NO_OPTIONS,
    environ: Mapping[str, str] | None = None,
) -> Binding:
    """The request as it is now; see `guard.hands.binding.bind`. Raises CannotRun, UsageError."""
    from guard.hands import binding

    return binding.bind(
        request,
        assessment,
        plan_digest=plan_of(request, assessment, options).digest,
        policy_version=core.policy_version(),
        policy=guard.policy,
        environ=environ,
    )


def environment_to_keep(assessment: Assessment, guard: Guard) -> dict[str, str]:
    """What a kept request remembers of this process's environment (`Ledger.keep_request`, `environment`)."""
    from guard.hands.binding import asked_environment

    return asked_environment(assessment, guard.policy)


def stamp_for(binding: Binding, guard: Guard) -> Stamp | Refusal:
    """The live stamp that fits, or why there is none; a state folder that cannot be read has none."""
    try:
        return guard.ledger.stamps.find(binding)
    except StateError as error:
        return Refusal("missing", f"no approval can be looked up: {error.message}")
