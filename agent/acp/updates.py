"""Events of a turn as `session/update` of the Agent Client Protocol. Pure but for what it remembers of its turn.

A client appends what it is sent, so text that was sent cannot be taken back: a reply that broke off is said to have,
and the next one begins a new message. What is not ours goes through the renderer and, where clients render Markdown,
into a fence that it cannot close.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from agent.sessions.export import fenced
from dialogue import events
from guard import render

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dialogue.events import Event

JSON = dict[str, Any]

KINDS = {
    "bash": "execute",
    "ops_exec": "execute",
    "ops_plan": "execute",
    "ops_rollback": "edit",
    "read": "read",
    "write": "edit",
    "edit": "edit",
    "probe": "search",
    "runbook": "search",
    "ops_check": "think",
    "ask_user": "think",
}
"""Tool → kind of tool call; all others are `other`."""
NAMING = ("command", "path", "question", "what", "request", "id")
"""Arguments that say what a call is about, the first that is there."""
DONE = frozenset(("succeeded", "approved", "answered", "planned", "resolved", "proposed", "running", "live", "revoked"))
"""Statuses of a call that did what it was called for."""
TITLE = 200
MOST_OUTPUT = 30_000
WITH_PLAN = 2
"""Calls in one reply from which on they are shown as a plan."""
BROKE_OFF = "\n\n(that reply broke off and does not count)\n\n"


class Told:
    """What a client was told of one conversation."""

    def __init__(self, cwd: str, *, notices: bool, window_tokens: int = 0) -> None:
        """
        Args:
            cwd: absolute; where relative paths begin.
            notices: whether the client shows notices apart from what the brain says.
            window_tokens: of the brain; 0 when nobody said.
        """
        self._cwd, self._notices, self._window_tokens = cwd, notices, window_tokens
        self._message = 0
        self._streamed = ""
        self._calls: dict[str, events.ToolRequested] = {}
        self._started: dict[str, None] = {}
        self._requested: list[events.ToolRequested] = []
        self._plan: dict[str, JSON] = {}
        self._tokens = (0, 0)
        self.stop_reason = "end_turn"
        """Of the turn, once it has ended."""
        self.exit_code = 0
        self.requests: list[str] = []

    @property
    def asking(self) -> events.ToolRequested | None:
        """The call that is at work, if any: whatever is asked now, it asks. Calls that ask run alone."""
        started = [self._calls[id] for id in self._started if id in self._calls]
        return started[-1] if started else None

    def updates(self, event: Event) -> Iterator[JSON]:
        """What the client is told of one event."""
        if not isinstance(event, events.ToolRequested):
            yield from self._planned()
        match event:
            case events.TurnStarted():
                self.stop_reason, self.exit_code, self.requests, self._tokens = "end_turn", 0, [], (0, 0)
            case events.TextDelta():
                self._streamed += event.delta
                yield self._said(event.delta)
            case events.TextDiscarded():
                if self._streamed:
                    yield self._said(BROKE_OFF)
                self._new_message()
            case events.Text():
                yield from self._text(event.text)
            case events.ToolRequested():
                self._calls[event.id] = event
                self._requested.append(event)
                yield {
                    "sessionUpdate": "tool_call",
                    **self.call(event),
                    "status": "pending",
                    "rawInput": event.arguments,
                }
            case events.ToolStarted():
                self._started[event.id] = None
                yield {"sessionUpdate": "tool_call_update", "toolCallId": event.id, "status": "in_progress"}
                yield from self._stepped(event.id, "in_progress")
            case events.ToolProgress():
                shown = f"{event.elapsed_ms // 1000} s" + (f": {event.last_line}" if event.last_line else "")
                yield {"sessionUpdate": "tool_call_update", "toolCallId": event.id, "content": [text_content(shown)]}
            case events.ToolCompleted():
                yield self._completed(event)
                yield from self._stepped(event.id, "completed")
            case events.Notice():
                yield from self._noticed(event.text, "warning" if event.deadline_at else "info")
            case events.BrainSwitched():
                yield from self._noticed(f"{event.brain} answers now: {event.because}", "warning")
            case events.Error():
                self._failed(event.code)
                parts = (event.message, event.not_done, event.hint and f"hint: {event.hint}")
                yield from self._noticed("\n".join(part for part in parts if part), "error")
            case events.Usage():
                yield from self._used(event)
            case events.TurnCompleted():
                self._ended(event)
                if event.requests:
                    yield from self._noticed(f"needs approval: opsx approve {' '.join(event.requests)}", "warning")
            case _:
                pass

    def call(self, event: events.ToolRequested) -> JSON:
        """The fields of a tool call that say what it is."""
        shown: JSON = {
            "toolCallId": event.id,
            "title": title_of(event.name, event.arguments),
            "name": event.name,
            "kind": KINDS.get(event.name, "other"),
        }
        path = event.arguments.get("path")
        if isinstance(path, str) and path:
            shown["locations"] = [{"path": self._absolute(path)}]
        if diff := self._diff(event):
            shown["content"] = [diff]
        return shown

    # ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _text(self, text: str) -> Iterator[JSON]:
        """The whole of a block: what of it was not sent yet."""
        if text.startswith(self._streamed):
            rest = text.removeprefix(self._streamed)
        else:
            yield self._said(BROKE_OFF)
            self._new_message()
            rest = text
        if rest:
            yield self._said(rest)
        self._new_message()

    def _said(self, text: str) -> JSON:
        content = {"type": "text", "text": render.visible(text)}
        return {"sessionUpdate": "agent_message_chunk", "messageId": f"m-{self._message}", "content": content}

    def _new_message(self) -> None:
        self._message += 1
        self._streamed = ""

    def _noticed(self, text: str, severity: str) -> Iterator[JSON]:
        first, _, rest = render.visible(text).partition("\n")
        if self._notices:
            shown: JSON = {"sessionUpdate": "notice", "severity": severity, "title": first}
            yield {**shown, "description": rest} if rest else shown
            return
        self._new_message()
        yield self._said(f"[opsagent: {render.visible(text)}]\n\n")
        self._new_message()

    # ── tool calls ───────────────────────────────────────────────────────────────────────────────────────────────

    def _completed(self, event: events.ToolCompleted) -> JSON:
        self._started.pop(event.id, None)
        asked = self._calls.pop(event.id, None)
        content = [diff] if asked is not None and (diff := self._diff(asked)) else []
        if event.output:
            content.append(text_content(event.output))
        return {
            "sessionUpdate": "tool_call_update",
            "toolCallId": event.id,
            "status": "completed" if event.status in DONE else "failed",
            "content": content,
            "rawOutput": {
                "status": event.status,
                "exit_code": event.exit_code,
                "execution": event.execution,
                "request": event.request,
                "duration_ms": event.duration_ms,
            },
        }

    def _diff(self, event: events.ToolRequested) -> JSON | None:
        """What an edit wants; all of a `write` reads as new here, and its approval shows the true difference."""
        path, old, new = (event.arguments.get(name) for name in ("path", "old", "new"))
        if event.name == "write":
            old, new = None, event.arguments.get("content")
        if event.name not in ("write", "edit") or not isinstance(path, str) or not isinstance(new, str):
            return None
        diff: JSON = {"type": "diff", "path": self._absolute(path), "newText": new}
        return {**diff, "oldText": old} if isinstance(old, str) else diff

    def _absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._cwd, os.path.expanduser(path)))

    # ── the plan: what one reply wants, where that is more than one thing ─────────────────────────────────────────

    def _planned(self) -> Iterator[JSON]:
        requested, self._requested = self._requested, []
        if len(requested) >= WITH_PLAN:
            self._plan = {
                one.id: {"content": title_of(one.name, one.arguments), "priority": "medium", "status": "pending"}
                for one in requested
            }
            yield self._plan_update()

    def _stepped(self, id: str, status: str) -> Iterator[JSON]:
        if id in self._plan and self._plan[id]["status"] != status:
            self._plan[id]["status"] = status
            yield self._plan_update()

    def _plan_update(self) -> JSON:
        return {"sessionUpdate": "plan", "entries": [dict(entry) for entry in self._plan.values()]}

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _used(self, event: events.Usage) -> Iterator[JSON]:
        """How full the window is: what the last request took, and its reply."""
        before, self._tokens = self._tokens, (event.input_tokens, event.output_tokens)
        used = event.input_tokens - before[0] + event.output_tokens - before[1]
        if self._window_tokens and used > 0:
            yield {"sessionUpdate": "usage_update", "used": used, "size": self._window_tokens}

    def _failed(self, code: str) -> None:
        self.stop_reason = {"turn.limit": "max_turn_requests", "brain.refused": "refusal"}.get(code, self.stop_reason)

    def _ended(self, event: events.TurnCompleted) -> None:
        self.exit_code, self.requests = event.exit_code, event.requests
        if event.exit_code == 130:
            self.stop_reason = "cancelled"
        self._calls, self._started, self._plan, self._requested = {}, {}, {}, []
        self._new_message()


def title_of(name: str, arguments: JSON) -> str:
    """A line that says what a call does."""
    found = next((arguments[one] for one in NAMING if isinstance(arguments.get(one), str) and arguments[one]), "")
    if not found and isinstance(argv := arguments.get("argv"), list):
        found = " ".join(map(str, argv))
    text = render.visible_line(found if name in ("bash", "ops_exec") and found else f"{name} {found}".strip())
    return text if len(text) <= TITLE else text[: TITLE - 1] + "…"


def text_content(text: str) -> JSON:
    """A text of others as the content of a tool call."""
    cut = text if len(text) <= MOST_OUTPUT else text[:MOST_OUTPUT] + "\n…"
    return {"type": "content", "content": {"type": "text", "text": fenced(cut)}}


def diffs_of(path: str, lines: Sequence[str]) -> list[JSON]:
    """The differences in a text that shows a file change (`guard.filechange.difference`), one for each place."""
    found: list[JSON] = []
    old: list[str] = []
    new: list[str] = []

    def settle() -> None:
        if old or new:
            found.append({"type": "diff", "path": path, "oldText": "\n".join(old), "newText": "\n".join(new)})
        old.clear()
        new.clear()

    inside = False
    for line in lines:
        if line.startswith("@@ "):
            settle()
            inside = True
        elif inside and line[:1] in ("-", " "):
            old.append(line[1:])
        if inside and line[:1] in ("+", " "):
            new.append(line[1:])
    settle()
    return found
