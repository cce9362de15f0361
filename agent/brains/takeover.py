"""What a brain is told that takes over in the middle of a turn: what the one before it has done. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.messages import Assistant, Note, Result, User

if TYPE_CHECKING:
    from agent.messages import Message, ToolCall
    from agent.providers.base import Sent

LISTED = 20
"""Calls that are named; more are counted."""


def takeover(sent: Sent) -> Note | None:
    """The note for the next brain; None when no tool was used in this turn."""
    used = _used(sent.messages)
    if not used:
        return None
    text = "Another brain began this turn and failed; you take over. "
    acts = acts_of(sent)
    if not acts:
        return Note(text + f"It has only looked ({len(used)} calls); their results are above.")
    told = "These calls were made, and what they did stands. Do not make them again; look at what they changed first.\n"
    return Note(text + told + "\n".join(acts))


def acts_of(sent: Sent) -> tuple[str, ...]:
    """The calls of this turn that may have changed something, a line each, with their status and execution."""
    reading = {tool.name for tool in sent.tools if tool.hints.read_only}
    acts = [_line(call, result) for call, result in _used(sent.messages) if call.name not in reading]
    more = (f"- {len(acts) - LISTED} earlier calls, above",) if len(acts) > LISTED else ()
    return (*more, *acts[-LISTED:])


def _used(messages: tuple[Message, ...]) -> list[tuple[ToolCall, Result | None]]:
    """The calls since the last question, with what came of each."""
    calls: dict[str, ToolCall] = {}
    results: dict[str, Result] = {}
    for message in messages:
        if isinstance(message, User):
            calls.clear()
            results.clear()
        elif isinstance(message, Assistant):
            calls.update((call.id, call) for call in message.calls)
        elif isinstance(message, Result):
            results[message.call_id] = message
    return [(call, results.get(id)) for id, call in calls.items()]


def _line(call: ToolCall, result: Result | None) -> str:
    if result is None:
        return f"- {call.name}: no result is recorded; it may have run"
    return f"- {call.name}: {result.status}" + (f", {result.execution}" if result.execution else "")
