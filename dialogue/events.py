"""Events, version 1: what a turn tells its shell. Shells are reducers over a stream of these.

On the wire an event is one JSON object a line: `{"format": 1, "type", "session", "turn", "seq", "at"}` and its
own fields. An item (a tool call, an ask) carries one `id` from its request to its result. The completed item
is the authority; deltas and progress are for display. Readers ignore types that they do not know.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Event:
    """Base of the events; the envelope's fields are added by `Stamped`."""

    type: ClassVar[str]


@dataclass(frozen=True, slots=True)
class SessionStarted(Event):
    """A session is open and can take a turn."""

    type: ClassVar[str] = "session_started"
    brain: str
    model: str = ""
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class TurnStarted(Event):
    """A person's (or a program's) words were taken; work begins."""

    type: ClassVar[str] = "turn_started"
    prompt: str


@dataclass(frozen=True, slots=True)
class TextDelta(Event):
    """A piece of the answer's text, for display only."""

    type: ClassVar[str] = "text_delta"
    delta: str


@dataclass(frozen=True, slots=True)
class TextDiscarded(Event):
    """The deltas since the last complete block do not count: the reply broke off and is asked for again, or was cut."""

    type: ClassVar[str] = "text_discarded"


@dataclass(frozen=True, slots=True)
class Text(Event):
    """A complete block of the answer; replaces the deltas before it."""

    type: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class ToolRequested(Event):
    """The brain wants a tool to be used; nothing has happened yet."""

    type: ClassVar[str] = "tool_requested"
    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolStarted(Event):
    """The tool's work began; for a command, `execution` names its record."""

    type: ClassVar[str] = "tool_started"
    id: str
    execution: str | None = None


@dataclass(frozen=True, slots=True)
class ToolProgress(Event):
    """Still at work."""

    type: ClassVar[str] = "tool_progress"
    id: str
    elapsed_ms: int
    last_line: str = ""


@dataclass(frozen=True, slots=True)
class ToolCompleted(Event):
    """The tool's work ended; `status` is one of guard.types.Status, or `error` for bad arguments."""

    type: ClassVar[str] = "tool_completed"
    id: str
    status: str
    execution: str | None = None
    output: str = ""
    exit_code: int | None = None
    duration_ms: int = 0
    request: str | None = None
    """`a-…` that a person can approve, when it did not run for want of that."""


@dataclass(frozen=True, slots=True)
class AskOpened(Event):
    """A person is asked, and the turn waits for `respond` with this id, or for the end of its time."""

    type: ClassVar[str] = "ask_opened"
    id: str
    """Of this ask: `q-…`, new each time that something is asked."""
    ask: dict[str, Any]
    """`approval`: dialogue.confirm.Ask as JSON. `question`: {"question": text, "options": [texts]}, which approves
    nothing; it is settled by an Answer with outcome ANSWERED and the words as its reason."""
    kind: str = "approval"
    """`approval` · `question`"""
    timeout_s: float = 0.0
    """How long it stays open; 0: nobody said."""


@dataclass(frozen=True, slots=True)
class AskSettled(Event):
    """The ask is over: approved · denied · expired · cancelled · unanswered, or answered for a question."""

    type: ClassVar[str] = "ask_settled"
    id: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Finding(Event):
    """One thing that a check found; the fields are those of docs/runbooks.md, "finding"."""

    type: ClassVar[str] = "finding"
    finding: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """Something that the reader should know and that is no error: degraded, detached, not recorded."""

    type: ClassVar[str] = "notice"
    text: str
    execution: str | None = None
    """`e-…` that it is about: a change that is taken back at its deadline unless a person confirms it."""
    deadline_at: str | None = None
    """RFC 3339; while that change waits."""


@dataclass(frozen=True, slots=True)
class BrainSwitched(Event):
    """The chain of brains moved on."""

    type: ClassVar[str] = "brain_switched"
    brain: str
    because: str


@dataclass(frozen=True, slots=True)
class Usage(Event):
    """What the turn has cost so far; `cost` only where a price is configured."""

    type: ClassVar[str] = "usage"
    input_tokens: int
    output_tokens: int
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Error(Event):
    """What went wrong, in the three parts of guard.errors."""

    type: ClassVar[str] = "error"
    code: str
    message: str
    not_done: str
    hint: str


@dataclass(frozen=True, slots=True)
class TurnCompleted(Event):
    """The turn is over; `exit_code` is what a one-shot ends with (docs/loop.md)."""

    type: ClassVar[str] = "turn_completed"
    exit_code: int
    requests: list[str] = field(default_factory=list)
    """The `a-…` of changes that the turn wanted and that still wait for a person: `opsx approve a-…`."""


EVENTS: tuple[type[Event], ...] = (
    SessionStarted,
    TurnStarted,
    TextDelta,
    TextDiscarded,
    Text,
    ToolRequested,
    ToolStarted,
    ToolProgress,
    ToolCompleted,
    AskOpened,
    AskSettled,
    Finding,
    Notice,
    BrainSwitched,
    Usage,
    Error,
    TurnCompleted,
)
_BY_TYPE = {event.type: event for event in EVENTS}


@dataclass(frozen=True, slots=True)
class Stamped:
    """An event with its place in the conversation."""

    event: Event
    session: str
    turn: int
    seq: int
    """Counts from 1 within the session, without gaps."""
    at: str
    """RFC 3339, UTC, milliseconds."""

    def as_json(self) -> dict[str, Any]:
        """The wire object."""
        own = {f.name: getattr(self.event, f.name) for f in dataclasses.fields(self.event)}
        envelope = {
            "format": FORMAT,
            "type": self.event.type,
            "session": self.session,
            "turn": self.turn,
            "seq": self.seq,
            "at": self.at,
        }
        return {**envelope, **own}


def from_json(row: dict[str, Any]) -> Stamped | None:
    """The event in a wire object, or None for a type that this version does not know.

    Only known fields are kept.

    Raises:
        ValueError: another format, or a required field is missing.
    """
    if row.get("format") != FORMAT:
        raise ValueError(f"events have format {FORMAT}, this one has {row.get('format')!r}")
    kind = _BY_TYPE.get(str(row.get("type")))
    if kind is None:
        return None
    fields = dataclasses.fields(kind)
    missing = [f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING and f.name not in row]
    missing += [name for name in ("session", "turn", "seq", "at") if name not in row]
    if missing:
        raise ValueError(f"{kind.type} lacks {', '.join(missing)}")
    own = {f.name: row[f.name] for f in fields if f.name in row}
    return Stamped(kind(**own), row["session"], row["turn"], row["seq"], row["at"])
