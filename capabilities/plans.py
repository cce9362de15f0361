"""`ops_plan`: several commands with one answer of the person, run in order until one does not succeed.

For shells that can show all of a plan on one screen. What is approved is all of it as shown, and of each step that
cannot be undone the person types what it destroys: each step gets a stamp of its own, or none does; what is left of
them when the plan stops is taken back. Nothing is undone by itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import core
import execution
from capabilities.asking import ASK_TIMEOUT_S, answered, because_of, consent_of, later, no_way_to_ask
from capabilities.ops import COMMAND, answer_schema, exec_tool
from capabilities.questions import holds_words, prepared
from capabilities.registry import JSON, Tool, hints_of, parameters
from capabilities.subjects import Wanted
from dialogue.confirm import APPROVED, DENIED, UNANSWERED
from guard.bound import DEFAULT_TTL_S, LIVE
from guard.errors import ApprovalChanged, NotPermitted
from guard.types import Level, Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capabilities.call import Call
    from capabilities.questions import Prepared
    from guard.bound import Stamp
    from guard.types import Request

MOST_STEPS = 20
"""More are not read."""
TAIL_CHARACTERS = 800
"""Of a step's output in the answer; all of it is in the record."""
NOT_DONE = "nothing was run"


def plan_tool(guard: execution.Guard, call: Call) -> Tool:
    """`ops_plan`: asks once for all steps and runs them in order."""

    def run(arguments: JSON) -> JSON:
        requests = [call.request(step["command"], why=step.get("why", "")) for step in arguments["steps"]]
        for request in requests:
            core.require_command(request.command)
        execution.require_cwd(call.cwd)
        changes = [request for request in requests if _needs_a_yes(request, guard)]
        stamps: Sequence[Stamp] = ()
        if changes:
            refusal, stamps = _asked(changes, guard, call)
            if refusal:
                return refusal
        try:
            return _carried_out(requests, guard, call)
        finally:
            _take_back(stamps, guard, call)

    return Tool(
        "ops_plan",
        "Several shell commands as one plan: the person sees all of them and answers once; then they run in order "
        "until one does not succeed. A step must not change what a later one is judged by.",
        parameters(
            {
                "steps": {
                    "type": "array",
                    "minItems": 2,
                    "maxItems": MOST_STEPS,
                    "items": parameters({"command": COMMAND}, {"why": {"type": "string", "maxLength": 500}}),
                }
            }
        ),
        hints_of(Level.R3),
        run,
        answer_schema("status", "steps"),
    )


def _needs_a_yes(request: Request, guard: execution.Guard) -> bool:
    """Whether a step is a change. Raises NotPermitted for one that no plan may hold."""
    assessment = execution.assess(request, guard)
    decision = assessment.decision
    if decision.verdict == Verdict.REFUSE and not decision.forceable:
        raise NotPermitted(decision.text, not_done=NOT_DONE)
    return bool(decision.verdict != Verdict.RUN)


def _asked(changes: Sequence[Request], guard: execution.Guard, call: Call) -> tuple[JSON, Sequence[Stamp]]:
    """One answer for all of them: ({}, the stamps), or (why nothing runs, ())."""

    def judged_now() -> list[Prepared]:
        expires_at = later(guard.clock.utc(), ASK_TIMEOUT_S)
        holds = holds_words(DEFAULT_TTL_S)
        return [prepared(Wanted(one), guard, force=True, holds=holds, expires_at=expires_at) for one in changes]

    if why_not := no_way_to_ask(guard, call):
        return _not_run(Status.NEEDS_STAMP, why_not), ()
    shown = judged_now()
    first, *others = (one.ask for one in shown)
    answer = answered(replace(first, also=tuple(others)), call)
    if answer.outcome == DENIED:
        for one in shown:
            guard.ledger.answers.deny(one.wanted.request, assessment=one.assessment, reason=answer.reason)
    if answer.outcome != APPROVED:
        return _not_run(answer.outcome, because_of(answer)), ()
    now = judged_now()
    for before, after in zip(shown, now, strict=True):
        if before.binding.digest != after.binding.digest or not set(after.unknown) <= set(before.unknown):
            raise ApprovalChanged(
                "something changed since it was shown", not_done="nothing was approved", hint="ask for it again"
            )
    stamps = guard.ledger.answers.approve([one.to_approve() for one in now], consent_of(answer, call))
    return {}, stamps


def _carried_out(requests: Sequence[Request], guard: execution.Guard, call: Call) -> JSON:
    """Runs the steps until one does not succeed."""
    steps: list[JSON] = []
    changed: list[str] = []
    for request in requests:
        if call.stopped():
            break
        ran = exec_tool(guard, call).run({"command": request.command, "why": request.why})
        steps.append(_step(request, ran, guard))
        if ran.get("snapshot") and ran.get("execution"):
            changed.append(ran["execution"])
        if ran["status"] != Status.SUCCEEDED:
            break
    last = steps[-1]["status"] if steps else Status.CANCELLED
    left = len(requests) - len(steps)
    answer: JSON = {
        "format": 1,
        "status": Status.CANCELLED if left and last == Status.SUCCEEDED else last,
        "execution": next((step["execution"] for step in reversed(steps) if step["execution"]), None),
        "steps": steps,
        "not_run": [guard.redactor.text(request.command) for request in requests[len(steps) :]],
        "output": _in_words(steps, left),
        "next": None,
    }
    if answer["status"] != Status.SUCCEEDED and changed:
        back = ", ".join(reversed(changed))
        answer["next"] = f"to go back, newest first: ops_rollback for {back}"
    return answer


def _step(request: Request, ran: JSON, guard: execution.Guard) -> JSON:
    text = "\n".join(part.rstrip("\n") for part in (ran.get("stdout"), ran.get("stderr")) if part)
    because = "" if ran["execution"] else str((ran.get("because") or {}).get("text", ""))
    return {
        "command": guard.redactor.text(request.command),
        "status": ran["status"],
        "exit_code": ran["exit_code"],
        "execution": ran["execution"],
        "because": because,
        "output": text[-TAIL_CHARACTERS:],
    }


def _in_words(steps: Sequence[JSON], left: int) -> str:
    rows = []
    for number, step in enumerate(steps, 1):
        code = f" (exit {step['exit_code']})" if step["exit_code"] else ""
        rows.append(f"{number}. {step['status']}{code} {step['execution'] or ''}: {step['command']}")
        rows += [f"   {line}" for line in (step["because"] or step["output"]).split("\n") if line]
    if left:
        rows.append(f"not run: {left} more")
    return "\n".join(rows)


def _take_back(stamps: Sequence[Stamp], guard: execution.Guard, call: Call) -> None:
    """Approvals of steps that were not run do not outlive the plan."""
    mine = {stamp.id for stamp in stamps}
    for stamp in guard.ledger.stamps.listed() if mine else ():
        if stamp.id in mine and stamp.state == LIVE:
            guard.ledger.answers.revoke(stamp.id, actor=call.actor)


def _not_run(status: str, because: str) -> JSON:
    found: dict[str, Any] = {"format": 1, "status": status, "steps": [], "because": because}
    alone = status in (Status.NEEDS_STAMP, UNANSWERED)
    return {**found, "next": "ask for the steps one by one: ops_exec"} if alone else found
