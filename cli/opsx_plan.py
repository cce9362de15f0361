"""`opsx exec --plan`: the steps of a file in order, stopping at the first that does not succeed.

Nothing runs before every step is known to be allowed: a plan that stops half-way for want of an approval would be worse
than one that never began. Each step is judged and bound again when its turn comes: what an earlier one changed is seen.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import core
import execution
from acting import approving
from capabilities.shapes import exec_object
from cli import plans, surroundings
from cli.opsx_exec import CODES, cancel_on_signals, in_words, snapshot_options
from cli.report import as_typed, line, safe, write
from guard.bound import MISSING, Refusal
from guard.errors import CannotRun, UsageError
from guard.types import LOCAL, Level, Request, Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.options import Parsed
    from cli.plans import Step
    from execution import Guard, Ran
    from guard.bound import SnapshotOptions

NOT_DONE = "nothing was run"
_RANK = {Status.REFUSED: 0, Status.UNKNOWN: 1, Status.NEEDS_STAMP: 2}
"""What is said of a plan in which several steps cannot run: the one that a yes changes least."""


class Held(NamedTuple):
    """A step that could not run as everything is now."""

    step: Step
    status: str
    because: str
    needs_force: bool = False


def main(parsed: Parsed) -> int:
    """Runs the plan and says what ran, what did not, and the way back."""
    if parsed.words or parsed.value("file") or parsed.flag("passthrough"):
        raise UsageError("--plan names all of it; leave the rest out", hint=parsed.help_line())
    core.require_target(parsed.value("target", LOCAL))
    save = snapshot_options(parsed)
    if save.commands:
        raise UsageError("--snapshot-cmd is for one command, not for a plan", hint=parsed.help_line())
    cwd = surroundings.cwd(parsed.value("cwd"))
    steps = plans.read(parsed.value("plan"), cwd=cwd, why=parsed.value("why"), not_done=NOT_DONE)
    timeout_s = parsed.whole_number("timeout", execution.READ_TIMEOUT_S, low=1, high=600)
    guard = execution.open_guard(
        surroundings.policy(read_only=parsed.flag("read-only")),
        outputs_folder=surroundings.outputs_folder(),
        noted=surroundings.enforcement(),
    )
    actor = surroundings.actor()
    requests = [Request(step.command, cwd=step.cwd, actor=actor, why=step.why) for step in steps]
    held = _held(requests, steps, guard, save)
    if held:
        return _not_begun(parsed, steps, held, guard)
    cancel = cancel_on_signals()
    ran: list[Ran] = []
    for request, step in zip(requests, steps, strict=True):
        if not parsed.flag("json"):
            shown = safe(guard.redactor.text(request.command)).replace("\n", " ")
            write(f"opsx: {len(ran) + 1} of {len(steps)}, line {step.line}: {shown[:200]}\n", to_stderr=True)
        ran.append(execution.run(request, guard, timeout_s=timeout_s, save=save, cancel=cancel))
        if not parsed.flag("json"):
            in_words(ran[-1])
        if ran[-1].outcome.status != Status.SUCCEEDED:
            break
    return _told(parsed, steps, ran, guard)


def _held(requests: Sequence[Request], steps: Sequence[Step], guard: Guard, save: SnapshotOptions) -> list[Held]:
    """The steps that could not run as everything is now."""
    held: list[Held] = []
    needed = Counter[str]()
    for request, step in zip(requests, steps, strict=True):
        core.require_command(request.command)
        execution.require_cwd(request.cwd)
        assessment = execution.assess(request, guard)
        decision = assessment.decision
        if decision.verdict == Verdict.RUN:
            continue
        if decision.verdict == Verdict.REFUSE and not decision.forceable:
            held.append(Held(step, Status.REFUSED, decision.text))
            continue
        try:
            binding = approving.bind(request, assessment, guard, save)
        except CannotRun as error:
            held.append(Held(step, Status.NEEDS_STAMP, f"it could not be held fast: {error.message}"))
            continue
        needs_force = decision.verdict == Verdict.REFUSE
        found = approving.stamp_for(binding, guard)
        needed[binding.digest] += 1
        if isinstance(found, Refusal):
            why = f"{assessment.level.name}: {decision.text}" if found.code == MISSING else found.text
            held.append(Held(step, Status.NEEDS_STAMP, why, needs_force))
        elif guard.ledger.stamps.uses_left(binding) < needed[binding.digest]:
            why = "it stands in the plan more often than it was approved"
            held.append(Held(step, Status.NEEDS_STAMP, why, needs_force))
        elif unknown := guard.ledger.answers.unresolved(request, assessment):
            runs = ", ".join(run.id for run, _ in unknown)
            held.append(Held(step, Status.UNKNOWN, f"how {runs} ended is not known: opsx resolve"))
    return held


def _not_begun(parsed: Parsed, steps: Sequence[Step], held: Sequence[Held], guard: Guard) -> int:
    status = min((one.status for one in held), key=_RANK.__getitem__)
    redact = guard.redactor.text
    force = any(one.needs_force for one in held)
    next_line = _approve_line(parsed, force=force) if status == Status.NEEDS_STAMP else None
    if parsed.flag("json"):
        by = [{"line": one.step.line, "status": one.status, "because": redact(one.because)} for one in held]
        line({**_head(parsed, status), "steps": [], "held_by": by, "not_run": _rows(steps, guard), "next": next_line})
        return CODES[status]
    for one in held:
        held_words = "waits for approval" if one.status == Status.NEEDS_STAMP else one.status
        write(f"opsx: line {one.step.line} {held_words}: {safe(redact(one.because))}\n", to_stderr=True)
    write(f"opsx: {NOT_DONE}: none of the {len(steps)} steps\n", to_stderr=True)
    if next_line:
        write(f"opsx: next: {as_typed(next_line)}\n", to_stderr=True)
    return CODES[status]


def _told(parsed: Parsed, steps: Sequence[Step], ran: list[Ran], guard: Guard) -> int:
    status = ran[-1].outcome.status
    left = steps[len(ran) :]
    back = [
        f"opsx rollback {one.outcome.execution}"
        for one in reversed(ran)
        if one.outcome.execution and one.outcome.snapshot
    ]
    for_good = [
        one.outcome.execution
        for one in reversed(ran)
        if one.outcome.execution and not one.outcome.snapshot and one.assessment.level > Level.R0
    ]
    stopped = status != Status.SUCCEEDED
    if parsed.flag("json"):
        rows = [{"line": step.line, **exec_object(one)} for step, one in zip(steps, ran, strict=False)]
        told = {"steps": rows, "held_by": [], "not_run": _rows(left, guard), "rollback": back, "no_way_back": for_good}
        line({**_head(parsed, status), **told, "next": back[0] if stopped and back else None})
        return CODES[status]
    if stopped:
        write(f"opsx: the plan stopped at line {steps[len(ran) - 1].line}: {status}\n", to_stderr=True)
        for step in left:
            shown = safe(guard.redactor.text(step.command)).replace("\n", " ")
            write(f"opsx: not run: line {step.line}: {shown[:200]}\n", to_stderr=True)
        for row in back:
            write(f"opsx: way back, newest first: {row}\n", to_stderr=True)
        for run in for_good:
            write(f"opsx: no known way back: {run}\n", to_stderr=True)
    else:
        write(f"opsx: all {len(ran)} steps succeeded\n", to_stderr=True)
    return CODES[status]


def _head(parsed: Parsed, status: str) -> dict[str, Any]:
    return {"format": 1, "plan": parsed.value("plan"), "status": status}


def _rows(steps: Sequence[Step], guard: Guard) -> list[dict[str, Any]]:
    return [{"line": step.line, "command": guard.redactor.text(step.command)} for step in steps]


def _approve_line(parsed: Parsed, *, force: bool) -> str:
    options = [
        f"--{name} {shlex.quote(value)}"
        for name in ("cwd", "snapshot-file", "no-snapshot-of")
        for value in (parsed.many(name) or [parsed.value(name)])
        if value
    ]
    plan = ["--plan", shlex.quote(parsed.value("plan"))]
    return " ".join(["opsx approve", *(["--force"] if force else []), *plan, *options])
