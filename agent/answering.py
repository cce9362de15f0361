"""From a turn's events to one answer: what a one-shot prints when the turn is over. Pure.

The answer is the last whole text; what came before a tool was used is said on the way and is not the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dialogue import events

if TYPE_CHECKING:
    from dialogue.events import Event

FORMAT = 1


@dataclass(slots=True)
class Answering:
    """What has been told so far."""

    brain: str
    model: str = ""
    text: str = ""
    code: int = 1
    executions: dict[str, None] = field(default_factory=dict)
    requests: dict[str, None] = field(default_factory=dict)
    """`a-…` that wait for a person."""
    findings: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    error: dict[str, str] | None = None
    usage: events.Usage | None = None

    def take(self, event: Event) -> None:
        """Takes the next event of the turn."""
        match event:
            case events.Text():
                self.text = event.text
            case events.ToolCompleted():
                if event.execution:
                    self.executions[event.execution] = None
            case events.Finding():
                self.findings.append(event.finding)
            case events.Notice():
                self.notices.append(event.text)
            case events.BrainSwitched():
                self.brain, self.model = event.brain, ""
                self.notices.append(f"{event.brain} answers now: {event.because}")
            case events.Usage():
                self.usage = event
            case events.Error():
                self.error = {name: getattr(event, name) for name in ("code", "message", "not_done", "hint")}
            case events.TurnCompleted():
                self.code = event.exit_code
                self.requests.update(dict.fromkeys(event.requests))
            case _:
                pass

    @property
    def next(self) -> str:
        """What a person does so that it can go on; "" for nothing."""
        return f"opsx approve {' '.join(self.requests)}" if self.requests else ""

    def as_json(self, *, host: str, at: str, session: str) -> dict[str, Any]:
        """The one object of `-p --json` (docs/answer.schema.json)."""
        usage = self.usage
        return {
            "format": FORMAT,
            "host": host,
            "at": at,
            "brain": self.brain,
            "answer": self.text,
            "runbooks": [],
            "findings": self.findings,
            "not_checked": [],
            "executions": list(self.executions),
            "requests": list(self.requests),
            "error": self.error,
            "next": self.next or None,
            "model": self.model,
            "session": session,
            "exit_code": self.code,
            "usage": None
            if usage is None
            else {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost": usage.cost},
            "notices": self.notices,
        }
