"""`opsx confirm`: a person says, over a connection that was opened after a change, that one can still come in."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import execution
from acting import confirming, deadman
from capabilities import countdown as counting
from cli import surroundings
from cli.report import line, write
from guard.errors import UsageError
from guard.types import Actor

if TYPE_CHECKING:
    from cli.options import Parsed
    from execution import Guard

TICK_S = 0.5


def main(parsed: Parsed) -> int:
    """Confirms one execution; without its name, lists those that wait."""
    if len(parsed.words) > 1:
        raise UsageError("name one execution", not_done="nothing was confirmed", hint="opsx confirm e-…")
    guard = execution.open_guard(surroundings.policy())
    if not parsed.words:
        return _listed(guard, as_json=parsed.flag("json"))
    confirming.confirm(parsed.words[0], guard, actor=surroundings.actor(), pid=os.getpid())
    if parsed.flag("json"):
        line({"format": 1, "execution": parsed.words[0], "confirmed": True})
    else:
        write(f"opsx: {parsed.words[0]} stays\n", to_stderr=True)
    return 0


def _listed(guard: Guard, *, as_json: bool) -> int:
    waiting = counting.waiting(guard)
    if as_json:
        rows = [{"execution": one.execution, **(counting.as_object(one.execution, guard) or {})} for one in waiting]
        line({"format": 1, "waiting": rows})
        return 0
    for one in waiting:
        write(f"{counting.words(one, counting.WAITING, guard)}\n")
    if not waiting:
        write("nothing waits for a confirmation\n", to_stderr=True)
    return 0


def countdown(execution_id: str | None, guard: Guard) -> None:
    """Counts down on a person's terminal until the dead man of a change is settled; Ctrl-C leaves it to itself."""
    if execution_id is None or not sys.stderr.isatty() or surroundings.actor() != Actor.PERSON:
        return
    armed = deadman.armed_for(execution_id, guard)
    if armed is None:
        return
    try:
        while (
            not (ended := deadman.ended_as(execution_id, guard)) and deadman.left_s(armed, guard) > -counting.OVERDUE_S
        ):
            write(f"\ropsx: taken back in {deadman.seconds_left(armed, guard):4d} s ", to_stderr=True)
            time.sleep(TICK_S)
    except KeyboardInterrupt:
        write("\nopsx: it goes on counting by itself\n", to_stderr=True)
        return
    write(f"\ropsx: {counting.words(armed, ended or counting.LOST, guard)}\n", to_stderr=True)
