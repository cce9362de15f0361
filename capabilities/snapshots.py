"""`ops_snapshot` and `ops_rollback`: save before a change; take one back when a person consented to that very plan."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import execution
from capabilities import consent
from capabilities.ops import ID, PATHS, READS, answer_schema, spelled
from capabilities.registry import JSON, Tool, hints_of, parameters
from capabilities.rollback_shapes import created_object, plan_object, result_object
from dialogue.confirm import APPROVED, DENIED, Ask
from guard.errors import NotPermitted, UsageError
from guard.types import Level, Mode, Status

if TYPE_CHECKING:
    from capabilities.call import Call
    from guard.saved import RollbackPlan
    from guard.types import Request


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


def _asked(guard: execution.Guard, call: Call, plan: RollbackPlan, found: JSON, request: Request) -> str:
    """What the person says to this plan, where the host can ask; NEEDS_STAMP where it cannot."""
    if call.asker is None:
        return Status.NEEDS_STAMP
    lines = [request.command]
    for step in found["steps"]:
        lines += ["", f"{step['action']} {step['path']} ({step['state']})", *step["diff"].split("\n")]
    assessment = execution.rollback_assessment(plan)
    ask = Ask(
        id=plan.of,
        target=plan.target,
        host=os.uname().nodename,
        user=consent.user_name(),
        cwd=request.cwd,
        command="\n".join(lines),
        level=assessment.level.name,
        reasons=(*(reason.text for reason in assessment.reasons), *(guard.redactor.text(note) for note in plan.notes)),
        effects=(f"takes back {len(plan.work)} paths",),
        reversible=assessment.reversible,
        snapshot_plan=("what is there now",),
        not_bound=(),
        must_type="",
        why=request.why,
        expires_at="",
    )
    code = consent.new_code()
    text = consent.words(ask, code, ttl_s=int(consent.TTL_S))
    if consent.askable(Level.R2, text):
        return Status.NEEDS_STAMP
    state: JSON = {"code": code, "sha256": consent.sha256_of(text)}
    response, state = call.asker(f"rollback {plan.digest}", text, consent.form(code), state)
    return consent.answer_of(response, state["sha256"], state["code"]).outcome


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
            lost = f"{len(plan.lost)} differ and cannot be put back: their content was not saved" if plan.lost else None
            return {**found, "status": Status.FAILED if plan.lost else Status.SUCCEEDED, "next": lost}
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
        outcome = APPROVED if stamp else _asked(guard, call, plan, found, request)
        if outcome == APPROVED:
            how = "" if stamp else consent.CONSENT
            done = execution.apply_rollback(plan, request, guard, stamp=stamp, consent=how)
            return {**found, **result_object(done, guard.redactor.text), "next": None}
        if outcome == DENIED:
            guard.ledger.answers.deny(request, assessment=execution.rollback_assessment(plan))
            return {**found, "status": DENIED, "next": "the person said no: leave it"}
        kept = guard.ledger.keep_request(request, execution.rollback_assessment(plan))
        return {**found, "status": outcome, "request": kept, "next": f"opsx approve {kept}"}

    return Tool(
        "ops_rollback",
        "Shows what going back to before a run (e-…) or to a snapshot (s-…) would do. With confirm the person is "
        "asked; it is applied only if they approve exactly this plan.",
        parameters({"id": ID}, {"confirm": {"type": "boolean"}}),
        hints_of(Level.R3),
        run,
        answer_schema("status"),
    )
