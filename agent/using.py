"""Using tools: the calls that may run beside each other are started, followed and brought to their ends.

What a tool is and does is the business of `Hands` (`agent.toolset`); here is only the waiting: events as they come,
progress of what takes long, and an end for everything, even for a tool that does not stop when it is told to.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agent.messages import Result, ToolCall
from dialogue import events
from guard.types import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent.stop import Stop
    from dialogue.events import Event

SIDE_BY_SIDE = 8
"""Calls that run at once."""
PROGRESS_S = 2.0
"""How long a tool runs before it is said, and then how often (a person wonders after two seconds)."""
LET_END_S = 12.0
"""How long an interrupted tool gets to end on record: a change that is asked to stop needs up to 8 s."""
MAY_HAVE_RUN = "interrupted; it may have run: verify before you do it again"


@dataclass(frozen=True, slots=True)
class Used:
    """What came of one tool call: what the model reads, what shells show, and what it means for the turn's end."""

    result: Result
    completed: events.ToolCompleted
    about: str = ""
    """What was asked for, the same text for the same command, file or snapshot; "" for what needs no approval."""
    unmet: int = 0
    """Exit code of the turn if nothing better comes of `about`: 3 needs approval, 4 refused, 5, 6; 1 approved and not
    carried out; 0: it was done."""
    wrote: bool = False
    """It changed something, or may have."""
    denials: int = 0
    """How often a person said no to this or to the same in other words, if this was such a time; else 0."""


class Hands(Protocol):
    """Uses tools, each call in a thread of its own."""

    def reads(self, call: ToolCall) -> bool:
        """Whether it only looks, so that it may run beside others."""
        ...

    def start(self, call: ToolCall, tell: Callable[[Event | Used], None]) -> Running:
        """Begins; never raises. `tell` gets events and then, exactly once, a `Used`, from another thread."""
        ...


class Running(Protocol):
    """One tool at work."""

    def last_line(self) -> str:
        """The last line of output so far, redacted; "" without output."""
        ...

    def cancel(self) -> None:
        """Asks it to stop; safe when it is over."""
        ...


class _Followed:
    """A call at work."""

    __slots__ = ("began_s", "call", "said_s", "tool")

    def __init__(self, call: ToolCall, tool: Running) -> None:
        self.call, self.tool = call, tool
        self.began_s = self.said_s = time.monotonic()

    def progress(self, now_s: float) -> Event:
        """How long it has been at work, said now."""
        self.said_s = now_s
        return events.ToolProgress(self.call.id, int((now_s - self.began_s) * 1000), self.tool.last_line())


def side_by_side(
    group: Sequence[ToolCall],
    hands: Hands,
    updates: queue.SimpleQueue[Event | Used | None],
    stop: Stop,
    progress_s: float = PROGRESS_S,
) -> Iterator[Event | Used]:
    """Runs these calls at once and tells all until each has come to its `Used`.

    After `stop` nothing more begins, and what is at work gets LET_END_S to end on record; what has not ended then is
    left to itself and may have run. Calls that never began have no `Used`.

    Args:
        updates: where tools tell; `None` in it only wakes.
    """
    waiting, running = deque(group), dict[str, _Followed]()
    give_up_s = 0.0
    while True:
        while waiting and len(running) < SIDE_BY_SIDE and not stop.is_set():
            call = waiting.popleft()
            running[call.id] = _Followed(call, hands.start(call, updates.put))
        if not running:
            return
        if stop.is_set() and not give_up_s:
            give_up_s = time.monotonic() + LET_END_S
            for one in running.values():
                one.tool.cancel()
        due_s = min(one.said_s for one in running.values()) + progress_s
        try:
            update = updates.get(timeout=max(0.0, min(due_s, give_up_s or due_s) - time.monotonic()))
        except queue.Empty:
            now_s = time.monotonic()
            if give_up_s and now_s >= give_up_s:
                yield from (_lost(one.call, hands) for one in running.values())
                return
            yield from (one.progress(now_s) for one in running.values() if now_s - one.said_s >= progress_s)
            continue
        if isinstance(update, Used):
            if running.pop(update.result.call_id, None) is not None:
                yield update
        elif update is not None:
            yield update


def _lost(call: ToolCall, hands: Hands) -> Used:
    """What is known of a call that did not end in time after an interrupt."""
    return Used(
        Result(call.id, call.name, MAY_HAVE_RUN, Status.UNKNOWN),
        events.ToolCompleted(call.id, Status.UNKNOWN, output=MAY_HAVE_RUN),
        wrote=not hands.reads(call),
    )
