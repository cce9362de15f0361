"""The status line: what a person must never have to ask for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.repl.lines import Line, cut
from capabilities import countdown
from capabilities.questions import user_name
from guard import render

if TYPE_CHECKING:
    from agent.repl.desk import Desk


WRITTEN = 30
"""Characters of what was written that are shown."""


@dataclass(frozen=True, slots=True)
class Status:
    """What the line is made of."""

    brain: str = ""
    model: str = ""
    host: str = ""
    user: str = ""
    root: bool = False
    mode: str = "guarded"
    frozen: bool = False
    context: float = 0.0
    """0.0 to 1.0"""
    tokens: int = 0
    cost: float | None = None
    unknown: int = 0
    """Runs whose end is not on record and that nobody has settled."""
    detached: int = 0
    """Runs that go on by themselves."""
    waits: str = ""
    """The change that is taken back next unless it is confirmed, and in how many seconds; "" when none waits."""
    busy: str = ""
    """What is at work, with its time; "" when nothing is."""
    goal: str = ""
    written: str = ""
    """What stands in the composer while the dock covers it."""
    hint: str = ""
    """What the next key would do, such as leaving."""


def status_of(desk: Desk, *, hint: str = "", written: str = "") -> Status:
    """What the line says about a desk now."""
    told, goal = desk.transcript, desk.goal
    return Status(
        brain=told.brain,
        model=told.model,
        host=os.uname().nodename,
        user=user_name().partition(" (")[0],
        root=os.geteuid() == 0,
        mode=str(desk.world.guard.policy.mode),
        frozen=bool(desk.record.frozen),
        context=desk.record.context,
        tokens=told.input_tokens + told.output_tokens,
        cost=told.cost,
        unknown=desk.record.unknown,
        detached=desk.record.detached,
        waits=countdown.in_short(desk.watch.now(), desk.world.guard),
        busy=desk.busy_words(),
        goal=f"goal {goal.round}/{goal.rounds}" if goal else "",
        written=written,
        hint=hint,
    )


def status_line(status: Status, columns: int) -> Line:
    """One row, never wider than the window; what is urgent stands first, so that a narrow window cuts the rest."""
    spans: list[tuple[str, str]] = []

    def put(text: str, style: str = "status") -> None:
        if text:
            spans.append(("status", " · " if spans else " "))
            spans.append((style, render.visible_line(text)))

    put(status.hint, "status-danger")
    put(status.waits, "status-danger")
    if status.unknown:
        put(f"{status.unknown} UNKNOWN: /executions", "status-danger")
    if status.detached:
        put(f"{status.detached} detached", "status-danger")
    if status.frozen:
        put("FROZEN: /thaw", "status-danger")
    put(status.busy)
    if status.written:
        put(f"kept for later: {status.written[:WRITTEN]}{'…' if len(status.written) > WRITTEN else ''}")
    put(status.goal)
    put(f"{status.user}@{status.host}", "status-danger" if status.root else "status")
    put(status.mode)
    put(short_brain(status.brain) + (f" {status.model}" if status.model else ""))
    if status.context >= 0.01:
        put(f"context {status.context:.0%}")
    if status.tokens:
        put(f"{_thousands(status.tokens)} tokens")
    if status.cost is not None:
        put(f"{status.cost:.2f}")
    line = cut(spans, columns)
    used = sum(render.width(text) for _, text in line)
    return (*line, ("status", " " * max(0, columns - used)))


def short_brain(name: str) -> str:
    """A brain's name in few columns: of a script the file's own name."""
    kind, colon, path = name.partition(":")
    return f"{kind}:{path.rpartition('/')[2]}" if colon else name


def words(status: Status) -> str:
    """The same in words, for /status and plain output."""
    return "".join(text for _, text in status_line(status, 10_000)).strip()


def _thousands(number: int) -> str:
    return f"{number / 1000:.1f}k" if number >= 1000 else str(number)
