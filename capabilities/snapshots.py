"""`ops_snapshot` and `ops_rollback`: save before a change; take one back when a person consented to that very plan."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import execution
from capabilities.ops import ID, PATHS, READS, answer_schema, spelled
from capabilities.registry import JSON, Tool, hints_of, parameters
from capabilities.rollback_shapes import plan_object
from guard.errors import NotPermitted, UsageError
from guard.types import Level, Mode, Status

if TYPE_CHECKING:
    from capabilities.call import Call


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
        return {"format": 1, "snapshot": snapshot, "next": f'to go back: ops_rollback{{"id": "{snapshot}"}}'}

    return Tool(
        "ops_snapshot",
        "Saves files (and the output of reads) so that they can be put back. ops_exec saves what it will change by "
        "itself; this is for what only you know of.",
        parameters({}, {"files": PATHS, "cmds": READS}),
        hints_of(Level.R1),
        run,
        answer_schema(snapshot={"type": "string"}),
    )


def rollback_tool(guard: execution.Guard, call: Call) -> Tool:
    """`ops_rollback`: the plan; with `confirm` it is asked for, never done on the caller's word."""

    def run(arguments: JSON) -> JSON:
        plan = execution.plan_rollback(arguments["id"], guard)
        found = plan_object(plan, execution.rollback_differences(plan, guard), guard.redactor.text)
        if plan.conflicts:
            return {
                **found,
                "status": Status.REFUSED,
                "next": f"for the person: opsx rollback {plan.of} --leave-conflicts, or --overrule PATH for each",
            }
        if not plan.work:
            return {**found, "status": Status.SUCCEEDED, "next": None}
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
        kept = guard.ledger.keep_request(request, execution.rollback_assessment(plan))
        return {**found, "status": Status.NEEDS_STAMP, "request": kept, "next": f"opsx approve {kept}"}

    return Tool(
        "ops_rollback",
        "Shows what going back to before a run (e-…) or to a snapshot (s-…) would do: paths, differences, conflicts. "
        "With confirm it is applied only if a person approved exactly this plan; else it is kept as a request.",
        parameters({"id": ID}, {"confirm": {"type": "boolean"}}),
        hints_of(Level.R3),
        run,
        answer_schema("status"),
    )
