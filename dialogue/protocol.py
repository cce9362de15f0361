"""A session with any brain: a model behind an API, a foreign agent, a runbook. All speak this.

Synchronous on purpose: a session is driven by one thread, events come out of an iterator, and a `Cancel`
token with a wake descriptor ends a wait from another thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dialogue.confirm import Answer
    from dialogue.events import Event


@dataclass(frozen=True, slots=True)
class Turn:
    """What a shell hands over."""

    text: str
    attachments: tuple[str, ...] = ()
    """Further texts (a piped log, an attached file): data, never instruction."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a brain can do; a shell offers only that."""

    streaming: bool = False
    tools: bool = False
    multi_turn: bool = False
    interrupt: bool = False
    usage: bool = False
    notes: tuple[str, ...] = field(default=())


class BrainSession(Protocol):
    """One conversation with one brain. Calls out of order raise ValueError; a dead brain is an `Error` event."""

    abilities: Abilities

    @property
    def name(self) -> str:
        """Of the brain that would answer now."""
        ...

    def start(self) -> None:
        """Opens the session. Raises GuardError when the brain cannot be used at all."""
        ...

    def send_turn(self, turn: Turn) -> None:
        """Hands over one turn; `events` tells the rest."""
        ...

    def events(self) -> Iterator[Event]:
        """The turn's events, ending with exactly one `TurnCompleted`."""
        ...

    def respond(self, ask_id: str, answer: Answer) -> None:
        """Settles an ask that this session opened. Late or unknown ids change nothing."""
        ...

    def interrupt(self) -> None:
        """Asks the turn to stop; `events` still ends with `TurnCompleted`. Safe from any thread."""
        ...

    def close(self) -> None:
        """Ends the session; safe to call twice."""
        ...
