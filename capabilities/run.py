"""Reads for those who look by themselves: runbooks and the `bash` tool. R0 only, whatever stamps exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import core
import execution
from capabilities.registry import JSON, Tool, hints_of, parameters
from capabilities.shapes import check_object, exec_object
from guard.errors import GuardError
from guard.quoting import joined
from guard.types import Actor, Level, Request, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from capabilities.call import Call
    from guard.ports import Cancel
    from guard.types import Interference


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """What came of one read."""

    exit_code: int | None
    """None when it did not end or was never started."""
    stdout: str
    stderr: str
    status: str
    """A `guard.types.Status`."""
    execution: str | None
    interference: tuple[Interference, ...] | None
    recorded: bool
    reason: str
    """Why it did not run, or why it was not recorded; "" when both went well."""
    at: str


def read_only_runner(
    guard: execution.Guard,
    *,
    cwd: str = "/",
    shell: str = "oneshot",
    session: str = "",
    cancel: Cancel | None = None,
    client: str = "",
    call_id: str = "",
) -> Callable[[Sequence[str], float], ReadAnswer]:
    """A function that runs one argv as a read through the guard and never raises for a command that could not run.

    The argv is quoted word by word, so no word of it is ever read as shell. Safe to call from several threads.
    """

    def ask(argv: Sequence[str], timeout_s: float) -> ReadAnswer:
        request = Request(
            joined(argv),
            cwd=cwd,
            actor=Actor.RUNBOOK,
            shell=shell,
            session=session,
            client=client,
            call_id=call_id,
        )
        try:
            outcome = execution.run(request, guard, timeout_s=timeout_s, cancel=cancel).outcome
        except GuardError as error:
            return ReadAnswer(None, "", "", Status.FAILED, None, None, False, error.message, guard.clock.utc())
        reason = outcome.not_recorded_because
        if outcome.status in (Status.NEEDS_STAMP, Status.REFUSED) and outcome.decision:
            reason = outcome.decision.text
        return ReadAnswer(
            exit_code=outcome.exit_code,
            stdout=outcome.stdout.text,
            stderr=outcome.stderr.text,
            status=outcome.status,
            execution=outcome.execution,
            interference=outcome.interference,
            recorded=outcome.recorded,
            reason=reason,
            at=outcome.at,
        )

    return ask


def bash_tool(guard: execution.Guard, call: Call) -> Tool:
    """`bash`: runs a read at once; anything else is an answer that says what to do instead."""

    def run(arguments: JSON) -> JSON:
        request = call.request(arguments["command"])
        core.require_command(request.command)
        execution.require_cwd(request.cwd)
        assessment = execution.assess(request, guard)
        if assessment.level > Level.R0:
            # Whatever mode or stamp would let it run: a tool that says "read only" is one.
            return {
                **check_object(assessment),
                "status": Status.REFUSED,
                "execution": None,
                "next": "this is a change: ops_exec with the same command",
            }
        ran = execution.run(
            request,
            guard,
            timeout_s=arguments.get("timeout_s", execution.READ_TIMEOUT_S),
            cancel=call.cancel,
            on_output=call.on_output,
            on_begin=call.on_begin,
        )
        return exec_object(ran)

    return Tool(
        "bash",
        "Runs one read-only shell command (level R0) in a sandbox and returns its output. "
        "A command that would change anything does not run: use ops_exec for it.",
        parameters(
            {"command": {"type": "string", "minLength": 1}},
            {"timeout_s": {"type": "number", "minimum": 1, "maximum": 600}},
        ),
        hints_of(Level.R0, open_world=True),
        run,
        {"type": "object", "required": ["format", "status"]},
    )
