"""The conversations that a program at the other end of a wire holds: its turns, its events, what its person is asked.

A turn runs in the thread that asks for it; each ask waits in a thread of its own, and whatever is no answer is none.
What a protocol makes of events and asks is its own (`agent.rpc`, `agent.acp`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import threading
import time
from typing import TYPE_CHECKING, Protocol

from agent.answering import Answering
from agent.messages import User
from capabilities.countdown import WAITING, Watch
from dialogue import events
from dialogue.confirm import COMMAND, Answer
from dialogue.screen import screen_of
from guard.errors import GuardError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import execution
    from agent.jsonrpc import Asked, Reply
    from agent.repl.world import Opened
    from agent.sessions.store import Sessions
    from capabilities.countdown import Told
    from dialogue.confirm import Ask
    from dialogue.protocol import Turn

    Asker = Callable[[str, events.AskOpened], "Asking"]
    """(conversation, what is asked) → the question on its way."""

MOST_OPEN = 16
"""Conversations of one client that are open at once."""
MOST_USES = 100
"""Runs that one approval may be for, as on a terminal."""
COLUMNS = 100
LET_END_S = 15.0
"""How long a turn that is to end gets for it; the tools of one that was interrupted need up to 12 s."""


class TurnRunning(GuardError):
    """A conversation does one turn at a time."""

    code = "session.busy"
    exit_code = 2


class NotOpen(UsageError):
    """No conversation with this id is open here."""

    code = "usage.session"
    rpc_code = -32002


class TooManyOpen(GuardError):
    """A client has as many conversations open as it may."""

    code = "session.too_many"
    exit_code = 2


class World(Protocol):
    """The program around a server on standard input and output; opened at its first use."""

    cwd: str
    """Absolute; where commands run when a client names no folder."""
    person: bool
    """Whether the program at the other end may bring a person's answer."""

    @property
    def guard(self) -> execution.Guard:
        """This machine's."""
        ...

    @property
    def sessions(self) -> Sessions:
        """The conversations on disk. Raises StateError."""
        ...

    def open(self, *, resume: str = "", cwd: str = "", client: str = "", asks: bool = True) -> Opened:
        """Opens a conversation; "" is a new one, and the folder of this process.

        Args:
            client: name and version of the program at the other end.
            asks: whether that program can be asked.
        Raises:
            GuardError: it cannot be opened.
        """
        ...


class Asking:
    """A question to the client's person, on its way."""

    def __init__(self, read: Callable[[Reply], Answer], asked: Asked, timeout_s: float) -> None:
        """Args: read: what a reply means."""
        self._read, self._asked, self._timeout_s = read, asked, timeout_s

    def answer(self) -> Answer:
        """What the person says; waits for it."""
        return self._read(self._asked.wait(self._timeout_s))

    def withdraw(self) -> None:
        """It is settled in another way: no answer counts any more."""
        self._asked.withdraw()


class Unasked(Asking):
    """A question that cannot be put to this client, with its answer."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def answer(self) -> Answer:
        return self._answer

    def withdraw(self) -> None:
        """There is nothing on its way."""


def page_of(ask: Ask) -> str:
    """All of what is asked for, as a person reads it; whoever shows it wraps its lines."""
    return screen_of((ask, *ask.also), COLUMNS)


def shown_sha256(text: str) -> str:
    """Hash of what the person was shown, for the record."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def most_uses(ask: Ask) -> int:
    """For how many runs of exactly this request one answer may be: several only of what is small and reversible."""
    return MOST_USES if ask.kind == COMMAND and ask.level == "R1" and not ask.also else 1


def why_not_here(ask: Ask) -> str:
    """Why a request cannot be asked through a wire at all; "" when it can."""
    if ask.also and any(one.must_type for one in (ask, *ask.also)):
        return "what cannot be undone is approved alone, or on a terminal"
    return ""


class Begun(Protocol):
    """What can be told that nobody waits for a turn any more."""

    def when_cancelled(self, stop: Callable[[], None]) -> None: ...


class Held:
    """One open conversation."""

    def __init__(
        self,
        opened: Opened,
        *,
        tell: Callable[[events.Stamped], None],
        asker: Asker,
        guard: execution.Guard,
    ) -> None:
        """
        Args:
            tell: gets every event, in order, from the thread of the turn.
            asker: puts a question to the person behind the client.
        """
        self.opened, self.id = opened, opened.id
        self._tell, self._asker, self._utc = tell, asker, guard.clock.utc
        self._watch = Watch(guard, self._waits)
        self._number, self._counting = 0, threading.Lock()
        self._turns = sum(isinstance(message, User) for message in opened.messages())
        self._running = threading.Lock()
        self._open: dict[str, Asking] = {}

    @property
    def is_running(self) -> bool:
        """Whether a turn is under way."""
        return self._running.locked()

    def began(self, *, resumed: bool) -> None:
        """Tells that it is open, and what a person should know of it."""
        self._told(events.SessionStarted(self.opened.brain, self.opened.model, resumed), 0)
        for note in self.opened.notes:
            self.note(note)

    def note(self, text: str) -> None:
        """Tells something that a person should know, outside of a turn."""
        self._told(events.Notice(text), 0)

    def _waits(self, told: Told) -> None:
        """Tells how a change stands that a dead man watches over, in a turn or between two."""
        deadline_at = told.deadline_at if told.state == WAITING else None
        self._told(events.Notice(told.text, told.execution, deadline_at), 0)

    def turn(self, turn: Turn, request: Begun) -> Answering:
        """Runs one turn to its end.

        Args:
            request: interrupts the turn when it is cancelled.
        Raises:
            TurnRunning: another one is under way; nothing was done.
        """
        if not self._running.acquire(blocking=False):
            raise TurnRunning(
                f"a turn is running in {self.id}",
                not_done="nothing was asked",
                hint="wait for its answer, or cancel it",
            )
        try:
            try:
                self.opened.session.send_turn(turn)
            except ValueError:
                raise NotOpen(f"{self.id} was just closed", not_done="nothing was asked") from None
            request.when_cancelled(self.opened.session.interrupt)
            self._turns += 1
            answering = Answering(self.opened.brain, self.opened.model)
            for event in self.opened.session.events():
                self._told(event, self._turns)
                self._on(event)
                answering.take(event)
            return answering
        finally:
            for asking in list(self._open.values()):
                asking.withdraw()
            self._running.release()

    def close(self) -> None:
        """Ends the conversation: a running turn is interrupted and gets LET_END_S to end on record."""
        self.opened.session.interrupt()
        if self._running.acquire(timeout=LET_END_S):
            self._running.release()
        self._watch.close()
        self.opened.session.close()

    def _told(self, event: events.Event, turn: int) -> None:
        with self._counting:
            self._number += 1
            self._tell(events.Stamped(event, self.id, turn, self._number, self._utc()))

    def _on(self, event: events.Event) -> None:
        match event:
            case events.AskOpened():
                asking = self._open[event.id] = self._asker(self.id, event)
                arguments = (event.id, asking)
                threading.Thread(target=self._answered, args=arguments, name="ask", daemon=True).start()
            case events.ToolCompleted():
                self._watch.look(event.execution)
            case events.AskSettled():
                if (settled := self._open.pop(event.id, None)) is not None:
                    settled.withdraw()
            case _:
                pass

    def _answered(self, id: str, asking: Asking) -> None:
        self.opened.session.respond(id, asking.answer())


class Table:
    """Which conversations are open."""

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._most = most
        self._held: dict[str, Held] = {}
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Held]:
        return iter(list(self._held.values()))

    def of(self, id: str) -> Held:
        """The one with this id. Raises NotOpen."""
        held = self._held.get(id)
        if held is None:
            raise NotOpen(
                f"{repr(id)[1:-1][:80]} is not open here",
                not_done="nothing was done",
                hint="session/list, session/resume",
            )
        return held

    def require_room(self) -> None:
        """Raises TooManyOpen when no further one may be opened."""
        if len(self._held) >= self._most:
            raise TooManyOpen(
                f"{self._most} conversations are open", not_done="none was opened", hint="close one of them first"
            )

    def add(self, held: Held) -> None:
        with self._lock:
            self._held[held.id] = held

    def close(self, id: str) -> None:
        """Ends one; what is not open stays so."""
        with self._lock:
            held = self._held.pop(id, None)
        if held is not None:
            held.close()

    def close_all(self) -> None:
        """Ends all of them at once, each with its time to end on record."""
        ending = [threading.Thread(target=self.close, args=(held.id,), daemon=True) for held in self]
        for thread in ending:
            thread.start()
        until_s = time.monotonic() + 2 * LET_END_S
        for thread in ending:
            thread.join(max(0.0, until_s - time.monotonic()))


class ClientConfirm:
    """`dialogue.confirm.Confirm` for what a client asks for outside of a turn."""

    def __init__(self, asker: Asker, session: str, request: Begun) -> None:
        """Args: request: withdraws the question when it is cancelled."""
        self._asker, self._session, self._request = asker, session, request

    def ask(self, ask: Ask, *, timeout_s: float) -> Answer:
        """Puts it to the person and waits."""
        opened = events.AskOpened(f"q-{ask.id}", dataclasses.asdict(ask), timeout_s=timeout_s)
        asking = self._asker(self._session, opened)
        self._request.when_cancelled(asking.withdraw)
        return asking.answer()
