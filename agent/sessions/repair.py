"""Makes a conversation that every API takes: each call has its one result behind it, each id is used once. Pure.

A crash between a call and its result leaves a call of which nobody knows whether it ran. It gets a result that says
exactly that; it is never run again by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent.messages import Assistant, Note, Result
from guard.types import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent.messages import Message, ToolCall

NOT_RECORDED = "not recorded; it may have run; verify before you retry"


@dataclass(frozen=True, slots=True)
class RunOnRecord:
    """What the log holds about one run that a call began."""

    execution: str
    """`e-…`"""
    status: str
    """A `guard.types.Status`."""


if TYPE_CHECKING:
    RunsOf = Callable[[str], Sequence[RunOnRecord] | None]
    """The runs that the log holds for a call's id; None when the log cannot be asked."""


@dataclass(frozen=True, slots=True)
class Paired:
    """A conversation in which calls and results fit each other."""

    messages: tuple[Message, ...]
    notes: tuple[str, ...]
    """Sentences for people about what did not fit."""
    added: tuple[Result, ...]
    """The results, at the end of `messages`, that stand for those that were never recorded."""


def nobody_knows(call_id: str) -> None:
    """For `paired`, where there is no log to ask."""


def paired(messages: Sequence[Message], *, runs_of: RunsOf = nobody_knows, still_open: bool = False) -> Paired:
    """The conversation with every call followed by its result.

    A result without a call is left out, and so is a second one; an id that was used before gets a new one. A call
    without a result gets one that says so and names what the log knows.

    Args:
        still_open: somebody goes on with it right now: what the last calls give is yet to come.
    """
    repair = _Repair(runs_of)
    for message in messages:
        repair.take(message)
    return repair.finish(still_open=still_open)


class _Repair:
    """One pass over a conversation."""

    def __init__(self, runs_of: RunsOf) -> None:
        self._runs_of = runs_of
        self._out: list[Message] = []
        self._used: set[str] = set()
        self._open: list[tuple[str, ToolCall]] = []
        """Calls without a result yet: the id as recorded, and the call as it stands in `_out`."""
        self._held: list[Message] = []
        """Notes that came while calls were open: they go behind the results."""
        self._notes: list[str] = []
        self._strays = self._renamed = self._missing = 0

    def take(self, message: Message) -> None:
        if isinstance(message, Result):
            call = self._answered(message.call_id)
            if call is None:
                self._strays += 1
                return
            same = message.call_id == call.id and message.name == call.name
            self._out.append(message if same else replace(message, call_id=call.id, name=call.name))
            self._release()
        elif isinstance(message, Note) and self._open:
            self._held.append(message)
        else:
            self._settle()
            if isinstance(message, Assistant) and message.calls:
                message = self._with_own_ids(message)
            self._out.append(message)

    def finish(self, *, still_open: bool) -> Paired:
        if still_open and self._open:
            self._notes.append(f"it is going on: calls whose result is yet to come ({len(self._open)})")
            self._open.clear()
            self._release()
        added = self._settle()
        for count, text in (
            (self._strays, "results that belong to no call, or to one that has its result, are left out"),
            (self._renamed, "calls with an id that was used before have a new one"),
            (self._missing, f"calls whose result was {NOT_RECORDED}"),
        ):
            if count:
                self._notes.append(f"{text} ({count})")
        return Paired(tuple(self._out), tuple(self._notes), added)

    def _answered(self, call_id: str) -> ToolCall | None:
        """Takes the open call that a result with this id belongs to: by the id as recorded, or the one it got here."""
        for index in (0, 1):
            for at, pair in enumerate(self._open):
                if call_id == (pair[0], pair[1].id)[index]:
                    return self._open.pop(at)[1]
        return None

    def _settle(self) -> tuple[Result, ...]:
        """Gives every open call the result that says that there is none."""
        added = tuple(
            # Under an id that was used twice the log may hold the other call's run.
            not_recorded(call, self._runs_of(recorded) if recorded == call.id else None)
            for recorded, call in self._open
        )
        self._missing += len(added)
        self._open.clear()
        self._out += added
        self._release()
        return added

    def _release(self) -> None:
        if not self._open:
            self._out += self._held
            self._held.clear()

    def _with_own_ids(self, message: Assistant) -> Assistant:
        calls = []
        for call in message.calls:
            own = call
            if call.id in self._used:
                self._renamed += 1
                own = replace(call, id=self._fresh(call.id))
            self._used.add(own.id)
            self._open.append((call.id, own))
            calls.append(own)
        return message if tuple(calls) == message.calls else replace(message, calls=tuple(calls))

    def _fresh(self, call_id: str) -> str:
        number = 2
        while f"{call_id[:240]}-{number}" in self._used:
            number += 1
        return f"{call_id[:240]}-{number}"


def not_recorded(call: ToolCall, runs: Sequence[RunOnRecord] | None) -> Result:
    """The result of a call whose own was never recorded."""
    if runs:
        known = "On record for this call: " + ", ".join(f"{run.execution}: {run.status}" for run in runs) + "."
    elif runs is None:
        known = "What the log says about it is not known here."
    else:
        known = "The log has no run for this call."
    return Result(
        call_id=call.id,
        name=call.name,
        text=f"The result of this call was {NOT_RECORDED}. {known}",
        status=Status.UNKNOWN,
        execution=runs[-1].execution if runs else "",
    )
