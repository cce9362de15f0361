"""What a conversation on a terminal needs of the program around it, and what its commands can make happen. Types only.

`cli.opsagent_repl` provides the world; the terminal (`app`) and the plain form (`plain`) carry out the effects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import execution
    from agent.messages import Message
    from agent.repl.goals import Goal
    from agent.repl.transcript import Row
    from agent.sessions.store import Sessions
    from dialogue.confirm import Confirm
    from dialogue.protocol import BrainSession


@dataclass(frozen=True, slots=True)
class Opened:
    """A conversation that is open, and what a person should know of it."""

    session: BrainSession
    id: str
    """`c-…`"""
    brain: str
    model: str = ""
    messages: Callable[[], Sequence[Message]] = tuple
    """What was said so far, oldest first."""
    notes: tuple[str, ...] = ()
    """What was mended when it was read."""
    sent_chars: Callable[[], int] = lambda: 0
    """How many characters of them the next request would hold."""
    compact: Callable[[], tuple[str, ...]] | None = None
    """Makes that much smaller at once and gives what is to be said of it; None where nothing is sent."""
    window_tokens: int = 0
    """Of the brains, the smallest; 0 when nobody said."""


class Place(Protocol):
    """What a conversation is opened in."""

    guard: execution.Guard
    cwd: str
    """Absolute; where commands run."""
    person: bool
    """Whether somebody is there who may approve."""
    environ: Mapping[str, str]

    @property
    def sessions(self) -> Sessions:
        """The conversations on disk. Raises StateError."""
        ...


class World(Place, Protocol):
    """The program around a conversation."""

    def open(self, *, brain: str = "", model: str = "", resume: str = "", cwd: str = "") -> Opened:
        """Opens a conversation; "" is what is configured, a new file, and this folder.

        Raises:
            GuardError: a brain that does not exist, a file that cannot be read or is open elsewhere.
        """
        ...

    def brains(self) -> tuple[str, ...]:
        """Names that `/brain` takes."""
        ...

    def verb(self, program: str, argv: list[str]) -> tuple[str, int]:
        """What `opsx` or `opsagent` prints for this verb, and its exit code. Verbs that ask nothing only."""
        ...


class Screen(Protocol):
    """What a conversation asks of a terminal. Called in the screen's thread."""

    def changed(self) -> None:
        """Something is to be drawn."""
        ...

    def clear(self) -> None: ...

    def copy(self, text: str) -> None: ...

    def compose(self, text: str) -> None:
        """Puts a text into the composer, before what is written there."""
        ...

    def edit(self, text: str | None) -> None:
        """Puts a text into the composer in place of what is written there; None brings that back."""
        ...

    def remember(self, texts: tuple[str, ...]) -> None:
        """Puts texts into the history of the composer, oldest first."""
        ...

    def leave(self) -> None:
        """The person wants to go."""
        ...


@dataclass(frozen=True, slots=True)
class Say:
    """Words for the transcript, exactly as they stand."""

    text: str
    visible: bool = False
    """Whether everything invisible in them was made visible before."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows for the transcript: what was said and done before."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Enter:
    """From here on the conversation is another one."""

    opened: Opened


@dataclass(frozen=True, slots=True)
class Copy:
    """Text for the clipboard."""

    text: str


@dataclass(frozen=True, slots=True)
class Pursue:
    """A goal begins; None: there is none any more."""

    goal: Goal | None


@dataclass(frozen=True, slots=True)
class Clear:
    """An empty screen."""


@dataclass(frozen=True, slots=True)
class Leave:
    """The end of the program."""


Effect = Say | Rows | Enter | Copy | Pursue | Clear | Leave


@dataclass(frozen=True, slots=True)
class Talk:
    """What a command may look at and use."""

    world: World
    opened: Opened
    confirm: Confirm
    """Asks the person, in the dock or on a line."""
    question: Callable[[str, tuple[str, ...]], str]
    """Asks for words, with options; "" when there was no answer."""
    answer: str = ""
    """The last complete answer."""
    goal: Goal | None = None
    status: Callable[[], str] = field(default=lambda: "")
    """The status line in words."""
