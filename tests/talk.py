"""Conversations in tests: a scripted brain, tools through a guard, the events as a list."""

from __future__ import annotations

from agent.conversation import Conversation
from agent.history import Unsaved
from agent.providers.one import OneBrain
from agent.providers.scripted import Scripted, steps_of
from dialogue.events import TurnCompleted
from dialogue.protocol import Turn


def scripted(*rows) -> Scripted:
    """A brain that plays these replies; a text stands for a reply of that text."""
    return Scripted("script:test", steps_of([{"text": row} if isinstance(row, str) else row for row in rows]))


def use(tool: str, **arguments) -> dict:
    """A call, as scripts say it."""
    return {"tool": tool, "arguments": arguments}


def conversation(guard, brain, cwd, *, transcript=None, findings=False, **more) -> Conversation:
    """An open conversation; without the runbooks' findings unless they are asked for."""
    made = Conversation(
        guard,
        OneBrain(brain) if isinstance(brain, Scripted) else brain,
        transcript or Unsaved("c-test"),
        cwd=str(cwd),
        shell="oneshot",
        findings=findings,
        **more,
    )
    made.start()
    return made


def turn(talk: Conversation, text: str = "go", attachments=(), *, on_event=None) -> list:
    """The events of one turn; `on_event` sees each as it comes."""
    talk.send_turn(Turn(text, tuple(attachments)))
    events = []
    for event in talk.events():
        events.append(event)
        if on_event is not None:
            on_event(event)
    assert [type(event) for event in events].count(TurnCompleted) == 1
    assert isinstance(events[-1], TurnCompleted)
    return events


def of(events, kind) -> list:
    """Those of one type."""
    return [event for event in events if isinstance(event, kind)]
