"""`opsx exec`: one command through the guard."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import core
import execution
from capabilities.shapes import clean_for, exec_object, next_step
from cli import surroundings
from cli.command_text import command_of
from cli.json_text import json_line
from cli.report import as_typed, safe, write
from guard.bound import SnapshotOptions
from guard.types import Actor, Level, Request, Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.options import Parsed
    from execution import Guard

OURS_UNDER_PASSTHROUGH = 125
"""What `--passthrough` ends with when the failure is the guard's, as env(1) and timeout(1) do."""

CODES = {
    Status.SUCCEEDED: 0,
    Status.FAILED: 1,
    Status.TIMED_OUT: 124,
    Status.RUNNING: 124,
    Status.CANCELLED: 130,
    Status.NEEDS_STAMP: 3,
    Status.REFUSED: 4,
    Status.SNAPSHOT_FAILED: 5,
    Status.UNKNOWN: 6,
}
SICK_STATE = 7
"""What needs approval and could not even be kept for it: nobody can say yes before the state folder is well."""


def main(parsed: Parsed) -> int:
    """Runs what the arguments name, if it may run, and shows what became of it."""
    core.require_target(parsed.value("target", "local"))
    passthrough, as_json = parsed.flag("passthrough"), parsed.flag("json")
    if passthrough and as_json:
        from guard.errors import UsageError

        raise UsageError("--json and --passthrough exclude each other", hint=parsed.help_line())
    if parsed.value("plan"):
        from cli import opsx_plan

        return opsx_plan.main(parsed)
    request = Request(
        command_of(parsed),
        cwd=surroundings.cwd(parsed.value("cwd")),
        actor=surroundings.actor(),
        why=parsed.value("why"),
    )
    timeout_s = parsed.whole_number("timeout", execution.READ_TIMEOUT_S, low=1, high=600)
    guard = execution.open_guard(
        surroundings.policy(read_only=parsed.flag("read-only")),
        outputs_folder=surroundings.outputs_folder(),
        noted=surroundings.enforcement(),
    )
    cancel = cancel_on_signals()
    on_output = _pass_on if passthrough else None
    save = snapshot_options(parsed)
    guard = with_dead_man(parsed, guard, request.actor)
    on_begin = _armed_said(guard) if guard.connection else None
    ran = execution.run(
        request, guard, timeout_s=timeout_s, save=save, cancel=cancel, on_output=on_output, on_begin=on_begin
    )
    if as_json:
        sys.stdout.write(json_line(exec_object(ran)) + "\n")
    elif passthrough:
        return _after_passthrough(ran)
    else:
        in_words(ran)
        if guard.connection:
            from cli.opsx_confirm import countdown

            signals_end_this()
            countdown(ran.outcome.execution, guard)
    if ran.outcome.status == Status.NEEDS_STAMP and ran.outcome.not_recorded_because:
        return SICK_STATE
    return CODES[ran.outcome.status]


def _armed_said(guard: Guard) -> Callable[[str], None]:
    """Says that a dead man waits before the change can cut the terminal that it is said on."""

    def said(execution_id: str) -> None:
        from capabilities import countdown

        if (armed := countdown.of(execution_id, guard)) is not None:
            write(f"opsx: begins; {safe(countdown.words(armed, countdown.WAITING, guard))}\n", to_stderr=True)

    return said


def with_dead_man(parsed: Parsed, guard: Guard, actor: str) -> Guard:
    """The guard with the number of seconds that `--dead-man` names, which is for a person to say."""
    from acting.deadman import DEFAULT_S, LEAST_S, MOST_S

    if not parsed.value("dead-man"):
        return guard
    seconds = parsed.whole_number("dead-man", DEFAULT_S, low=0, high=MOST_S)
    if 0 < seconds < LEAST_S:
        from guard.errors import UsageError

        raise UsageError(f"--dead-man is 0 for none, or {LEAST_S} to {MOST_S} seconds", hint=parsed.help_line())
    if actor != Actor.PERSON:
        from guard.errors import NotPermitted

        raise NotPermitted(
            "how long a dead man waits, and whether there is one, is for a person to say", not_done="nothing was run"
        )
    return replace(guard, dead_man_s=seconds)


def snapshot_options(parsed: Parsed) -> SnapshotOptions:
    """What the arguments add to the snapshot of a change, or leave out."""
    names = ("snapshot-file", "snapshot-cmd", "no-snapshot-of")
    return SnapshotOptions(*(tuple(parsed.many(name)) for name in names))


def cancel_on_signals() -> Any:
    """A token that Ctrl-C and TERM set; the run then ends its child and is recorded as cancelled."""
    from guard.hands.cancel import CancelToken

    token = CancelToken()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: token.set())
    return token


def signals_end_this() -> None:
    """Takes `cancel_on_signals` back: nothing is left that a signal could cancel."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _pass_on(stream: str, data: bytes) -> None:
    """Bytes as they come; a reader that went away gets no more, and the run goes on to its recorded end."""
    target = sys.stderr if stream == "stderr" else sys.stdout
    try:
        target.buffer.write(data)
        target.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), target.fileno())


def in_words(ran: execution.Ran) -> None:
    """The output as it is, and on stderr whatever a reader has to know about it."""
    outcome = ran.outcome
    write(outcome.stdout.text)
    write(outcome.stderr.text, to_stderr=True)
    remarks(ran)


def remarks(ran: execution.Ran, *, not_done: str = "nothing was run") -> None:
    """Says on stderr what is not in the output: why nothing ran, what was refused, masked, cut or not recorded."""
    outcome, said = ran.outcome, []
    if outcome.status == Status.NEEDS_STAMP:
        said.append(f"{ran.assessment.level.name} needs approval: {ran.assessment.decision.text}")
        said += _worst(ran)
        said.append(not_done)
    elif outcome.status == Status.REFUSED:
        said.append(f"{ran.assessment.level.name} refused: {ran.assessment.decision.text}")
        said += _worst(ran)
        said.append(not_done)
    elif outcome.status == Status.TIMED_OUT:
        said.append("stopped: it ran longer than the time limit")
    elif outcome.status == Status.CANCELLED:
        said.append("stopped: interrupted")
    elif outcome.status == Status.SNAPSHOT_FAILED:
        said.append(f"{not_done}: what it would change could not be saved; the approval still stands")
    elif outcome.status == Status.UNKNOWN and outcome.execution is None:
        said.append(not_done)
    if outcome.execution and ran.assessment.level > Level.R0 and outcome.status not in (Status.RUNNING,):
        said.append(f"{outcome.execution} {outcome.status}" + ("" if outcome.snapshot else "; no known way back"))
    if outcome.status == Status.FAILED and outcome.exit_code not in (None, 0, 1):
        said.append(f"the command's own exit code was {outcome.exit_code}")  # ours is 1 for all of them
    if outcome.interference:
        shown = ", ".join(f"{item.operation} {item.path}".strip() for item in outcome.interference[:5])
        more = len(outcome.interference) - 5
        said.append(f"the sandbox refused: {shown}" + (f" and {more} more" if more > 0 else ""))
    if outcome.execution and not outcome.recorded and outcome.not_recorded_because:
        said.append(f"not recorded: {outcome.not_recorded_because}")
    said += outcome.notes
    step = next_step(outcome)
    if step:
        said.append(f"{'way back' if outcome.snapshot else 'next'}: {as_typed(step)}")
    if said:
        write("".join(f"opsx: {safe(line)}\n" for line in said), to_stderr=True)


def _worst(ran: execution.Ran) -> list[str]:
    """The first three reasons that made the level, each once."""
    level = ran.assessment.level
    clean = clean_for(ran.assessment)
    texts = [clean(reason.text) for reason in ran.assessment.reasons if reason.level == level and level > Level.R0]
    return [f"  {text}" for text in dict.fromkeys(texts)][:3]


def _after_passthrough(ran: execution.Ran) -> int:
    remarks(ran)
    outcome = ran.outcome
    if ran.assessment.decision.verdict == Verdict.RUN and outcome.exit_code is not None:
        return outcome.exit_code
    return OURS_UNDER_PASSTHROUGH
