"""A plan: several commands in one file, approved as one question and carried out in order.

One command a line, or JSONL rows `{"command", "cwd", "why"}`; blank lines and lines that begin with `#` are left out. A
row that is an object without `command` is no row of a plan, so that a mistyped name is never run as a shell command.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass

from cli.report import safe
from guard.errors import UsageError
from guard.types import MAX_COMMAND_BYTES

MOST_STEPS = 50
"""On one screen: more is not read."""
PLAN_BYTES = 16 * MAX_COMMAND_BYTES


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a plan."""

    line: int
    """Of the file, from 1."""
    command: str
    cwd: str
    why: str


def read(path: str, *, cwd: str, why: str, not_done: str) -> tuple[Step, ...]:
    """The steps of a plan file, in order; `-` is standard input.

    Args:
        cwd: where a row that names no folder runs; a relative one starts there.
        not_done: what an error says was not done.
    Raises:
        UsageError: it cannot be read, a row is no step, or there are none or more than 50.
    """
    steps = []
    for number, row in enumerate(_text(path, not_done).split("\n"), 1):
        row = row.removesuffix("\r")
        if not row.strip() or row.lstrip().startswith("#"):
            continue
        step = Step(number, row, cwd, why)
        if row.lstrip().startswith("{") and (fields := _object(row)) is not None:
            unknown = set(fields) - {"command", "cwd", "why"}
            if unknown or "command" not in fields or not all(isinstance(value, str) for value in fields.values()):
                what = f"what is {', '.join(sorted(unknown))}?" if unknown else "command, cwd and why are texts"
                raise UsageError(f"line {number} of the plan is no step: {what}", not_done=not_done)
            folder = os.path.normpath(os.path.join(cwd, fields.get("cwd", "")))
            step = Step(number, fields["command"], folder, fields.get("why", why))
        steps.append(step)
    if not 1 <= len(steps) <= MOST_STEPS:
        raise UsageError(
            f"the plan holds {len(steps)} steps; 1 to {MOST_STEPS} fit a screen that is read", not_done=not_done
        )
    return tuple(steps)


def _object(row: str) -> dict[str, str] | None:
    """The row as a JSON object; None when it is none (`{ echo a; }` is a command)."""
    try:
        fields = json.loads(row)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _text(path: str, not_done: str) -> str:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(PLAN_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(PLAN_BYTES + 1)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the plan {safe(path)} cannot be read: {error}", not_done=not_done) from None
    if len(data) > PLAN_BYTES:
        raise UsageError(f"the plan is longer than {PLAN_BYTES:,} bytes", not_done=not_done)
    return text
