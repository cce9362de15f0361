"""What the record says that a person must not miss: unknown and detached runs, a stop; and how full the context is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.compaction import Limits
from guard.errors import GuardError
from guard.types import Status

if TYPE_CHECKING:
    from agent.repl.world import Opened, World

MOST = 100
"""Runs that are looked at: more unknown ones than this are a matter of their own."""


@dataclass(frozen=True, slots=True)
class Record:
    """As it was when it was looked at last."""

    unknown: int = 0
    """Runs above R0 whose end nobody knows and nobody has settled."""
    detached: int = 0
    """Runs that go on by themselves."""
    frozen: str = ""
    """Why everything above R0 is stopped; "" when it is not."""
    context: float = 0.0
    """Share of what is sent before older parts are shortened, 0.0 to 1.0."""


def record_of(world: World, opened: Opened) -> Record:
    """Looks now; where the record cannot be read there is nothing to say about it."""
    context = min(1.0, opened.sent_chars() / Limits().chars)
    ledger = world.guard.ledger
    try:
        unknown = [
            run
            for run in ledger.executions(status=Status.UNKNOWN, limit=MOST).executions
            if not run.resolution and run.level != "R0"
        ]
        running = ledger.executions(status=Status.RUNNING, limit=MOST).executions
        return Record(len(unknown), len(running), ledger.frozen_note(), context)
    except GuardError:
        return Record(context=context)
