"""`ops_snapshot` and `ops_rollback`: save before a change; take one back when a person consented to that very plan."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import execution
from capabilities.approvals import not_approved
from capabilities.asking import settle
from capabilities.ops import ID, PATHS, READS, answer_schema, spelled
from capabilities.registry import JSON, Tool, hints_of, parameters
from capabilities.rollback_shapes import created_object, plan_object, result_object
from capabilities.subjects import Wanted
from guard.errors import NotPermitted, UsageError
from guard.types import Level, Mode, Status

if TYPE_CHECKING:
    from capabilities.asking import Settled
    from capabilities.call import Call
    from guard.saved import RollbackPlan
    from guard.types import Request

APPLY_WITHIN_S = 60
"""How long the approval of a plan holds when it is applied at once."""


def snapshot_tool(guard: execution.Guard, call: Call) -> Tool:
    """`ops_snapshot`: saves files, and what reads say, into the state folder. Changes nothing else."""

    def run(arguments: JSON) -> JSON:
        from guard.ledger.plans import snapshot_plan

        plan = snapshot_plan(
            (),
            cwd=call.cwd,
            files=[os.path.join(call.cwd, path) for path in arguments.get("files", [])],
            commands=spelled(arguments.get("cmds", [])),
        )
        if not plan.items and not plan.commands:
            raise UsageError(
                "nothing to save was named", not_done="nothing was saved", hint="ops_snapshot{files: [PATH…]}"
            )
        snapshot = execution.snapshot(plan, guard, cwd=call.cwd, actor=call.actor)
        made = created_object(guard.ledger.snapshots.load(snapshot), guard.redactor.text)
        return {**made, "next": f'to go back: ops_rollback{{"id": "{snapshot}"}}'}

    return Tool(
        "ops_snapshot",
        "Saves files and the output of reads, so that they can be put back. ops_exec does so itself for what it is "
        "seen to change; this is for what only you know of.",
        parameters({}, {"files": PATHS, "cmds": READS}),
        hints_of(Level.R1),
        run,
        answer_schema("snapshot"),
    )


def _settled(guard: execution.Guard, call: Call, plan: RollbackPlan, request: Request) -> Settled:
    """What the person says to exactly this plan. It is kept first, so that it can be answered anywhere."""
    kept = guard.ledger.request(guard.ledger.keep_request(request, execution.rollback_assessment(plan)))
    if kept is None:
        raise NotPermitted("the request is gone already", not_done="nothing was changed", hint="ask again")
    return settle(Wanted.of_kept(kept), guard, call, ttl_s=APPLY_WITHIN_S)


def rollback_tool(guard: execution.Guard, call: Call) -> Tool:
    """`ops_rollback`: the plan; with `confirm` it is asked for, never done on the caller's word."""

    def run(arguments: JSON) -> JSON:
        plan = execution.plan_rollback(arguments["id"], guard)
        found = plan_object(plan, execution.rollback_differences(plan, guard), guard.redactor.text)
        if plan.in_the_way:
            return {
                **found,
                "status": Status.REFUSED,
                "next": f"for the person: opsx rollback {plan.of} --leave-conflicts, or --overrule PATH for each",
            }
        if not plan.does_something:
            left = len(plan.cannot_return)
            lost = f"{left} differ and cannot be put back: their content was not saved" if left else None
            return {**found, "status": Status.FAILED if left else Status.SUCCEEDED, "next": lost}
        if not arguments.get("confirm", False):
            return {
                **found,
                "status": "planned",
                "next": f'to ask for it: ops_rollback{{"id": "{plan.of}", "confirm": true}}',
            }
        policy = guard.policy
        if policy.frozen or policy.mode == Mode.READ_ONLY:
            why = f"changes are frozen: {policy.frozen}" if policy.frozen else "this target is read-only"
            raise NotPermitted(why, not_done="nothing was changed")
        request = call.request(execution.rollback_request(plan))
        stamp = execution.rollback_stamp(plan, request, guard)
        if not stamp:
            settled = _settled(guard, call, plan, request)
            if settled.stamp is None:
                return {**found, **not_approved(settled)}
            stamp = settled.stamp.id
        done = execution.apply_rollback(plan, request, guard, stamp=stamp)
        return {**found, **result_object(done, guard.redactor.text), "next": None}

    return Tool(
        "ops_rollback",
        "Shows what going back to before a run (e-…) or to a snapshot (s-…) would do. With confirm the person is "
        "asked; it is applied only if they approve exactly this plan.",
        parameters({"id": ID}, {"confirm": {"type": "boolean"}}),
        hints_of(Level.R3),
        run,
        answer_schema("status"),
    )
