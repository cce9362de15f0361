"""`opsx wait`, `tail` and `cancel`: a change that goes on by itself."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import execution
from capabilities.shapes import execution_object
from cli import surroundings
from cli.opsx_records import NoSuchRecord
from cli.report import line, safe, write
from guard.errors import NotPermitted, UsageError
from guard.redact import Redactor
from guard.types import Status

if TYPE_CHECKING:
    from cli.options import Parsed
    from guard.ledger.records import Execution

TICK_S = 0.2
_CODES = {
    Status.SUCCEEDED: 0,
    Status.FAILED: 1,
    Status.TIMED_OUT: 124,
    Status.RUNNING: 124,
    Status.CANCELLED: 130,
    Status.UNKNOWN: 6,
}


def main(parsed: Parsed) -> int:
    """Dispatches to the verb."""
    if len(parsed.words) != 1:
        raise UsageError("name one execution", hint=f"opsx executions lists them; opsx {parsed.verb.name} e-…")
    return {"wait": _wait, "tail": _tail, "cancel": _cancel}[parsed.verb.name](parsed, parsed.words[0])


def _found(store: Any, execution_id: str) -> Execution:
    run: Execution | None = store.show(execution_id).execution
    if run is None:
        raise NoSuchRecord(
            f"there is no execution {repr(execution_id)[1:-1][:64]}",
            not_done="nothing was done",
            hint="opsx executions",
        )
    return run


def _wait(parsed: Parsed, execution_id: str) -> int:
    """Waits until it has ended, or for `--timeout` seconds."""
    store = execution.open_store(Redactor())
    limit_s = parsed.whole_number("timeout", 86_400, low=1, high=86_400)
    deadline = time.monotonic() + limit_s
    run = _found(store, execution_id)
    while run.status == Status.RUNNING and time.monotonic() < deadline:
        time.sleep(TICK_S)
        run = _found(store, execution_id)
    return _said(run, parsed)


def _said(run: Execution, parsed: Parsed) -> int:
    if parsed.flag("json"):
        line({"format": 1, **execution_object(run)})
    else:
        code = "" if run.exit_code is None else f", exit code {run.exit_code}"
        write(f"{run.id} {run.status}{code}\n")
        if run.output_file:
            write(f"output: {safe(run.output_file)}\n")
    return _CODES.get(run.status, 1)


def _tail(parsed: Parsed, execution_id: str) -> int:
    """Prints what it has said so far (redacted), then what comes, until it ends; `--once` prints and leaves."""
    store = execution.open_store(Redactor())
    run = _found(store, execution_id)
    at = {"stdout": 0, "stderr": 0}
    while True:
        ended = run.status != Status.RUNNING
        for stream in at:
            text = _saved_from(f"{execution_id}.{stream}.txt", at[stream])
            at[stream] += len(text)
            write(text.decode("utf-8", "replace"), to_stderr=stream == "stderr")
        if ended or parsed.flag("once"):
            break
        time.sleep(TICK_S)
        run = _found(store, execution_id)
    if not any(at.values()):
        write(f"opsx: {run.id} ({run.status}) has said nothing that was kept; opsx show {run.id}\n", to_stderr=True)
    return _CODES.get(run.status, 1)


def _saved_from(name: str, position: int) -> bytes:
    """What was added to a saved output since; nothing when there is no such file (yet)."""
    folder = surroundings.outputs_folder()
    try:
        with open(os.path.join(folder or "/nonexistent", name), "rb") as file:
            file.seek(position)
            return file.read()
    except FileNotFoundError:
        return b""


def _cancel(parsed: Parsed, execution_id: str) -> int:
    """Stops it: TERM, two seconds, KILL. What is unsafe to interrupt needs `--force`."""
    from acting.change import UNSAFE_TO_INTERRUPT, unsafe_to_interrupt
    from guard.hands.liveness import process_start

    store = execution.open_store(Redactor())
    run = _found(store, execution_id)
    if run.status != Status.RUNNING:
        raise UsageError(f"{run.id} is not running: {run.status}", not_done="nothing was stopped")
    if run.level == "R0" and run.shell != "opsx":
        raise NotPermitted(
            f"{run.id} is a read inside another program ({run.shell}, process {run.pid}); stopping it would stop that",
            not_done="nothing was stopped",
            hint="a read ends by itself, at its time limit at the latest",
        )
    words = tuple(
        word for word in run.command.replace("/", " ").split() if word.partition(".")[0] in UNSAFE_TO_INTERRUPT
    )
    left = unsafe_to_interrupt(words)
    if left and not parsed.flag("force"):
        raise NotPermitted(
            f"stopping {run.id} would leave {left}",
            not_done="nothing was stopped",
            hint=f"let it end: opsx wait {run.id} · or, if that is worse: opsx cancel --force {run.id}",
        )
    if run.pid <= 1 or str(process_start(run.pid)) != run.pid_start:
        raise UsageError(f"{run.id} is gone already", not_done="nothing was stopped", hint=f"opsx show {run.id}")
    os.kill(run.pid, signal.SIGTERM)
    deadline = time.monotonic() + 10
    while run.status == Status.RUNNING and time.monotonic() < deadline:
        time.sleep(TICK_S)
        run = _found(store, execution_id)
    _said(run, parsed)
    return 0 if run.status != Status.RUNNING else _CODES[Status.RUNNING]
