"""A conversation with a model that has guarded hands: `dialogue.protocol.BrainSession` over brain, tools and file.

Synchronous: `events` runs the turn in the thread that reads it. Asks are settled with `respond` between two events or
from another thread; `interrupt` works from anywhere, signal handlers too.
"""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING

from agent.asking import Asks
from agent.compaction import Compactor
from agent.envelope import as_sent
from agent.history import History
from agent.loop import Limits, Turn
from agent.messages import ToolCall, User
from agent.peers import named_peers
from agent.providers.base import Sent
from agent.stop import INTERRUPTED, Stop
from agent.toolset import Toolset
from capabilities.asking import elsewhere
from dialogue.protocol import Abilities

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import execution
    from agent.history import Transcript
    from agent.loop import Brain
    from agent.messages import Message
    from agent.using import Used
    from dialogue import protocol
    from dialogue.confirm import Answer
    from dialogue.events import Event

RUNBOOK, MOST_QUESTION = "runbook", 4000
"""The tool that looks first, and the longest question that it takes."""

NEW, OPEN, TURNING, CLOSED = "new", "open", "turning", "closed"
TERMINALS = ("repl", "oneshot")
"""Shells that put what still waits at the end of a turn to their person by themselves."""


class Conversation:
    """One session with one brain (or chain of brains), from `start` to `close`. One thread drives it.

    Args:
        guard: this machine's; its policy says `read-only` where that was asked for.
        brain: `agent.loop.Brain`: a chain (`agent.brains`), or `agent.providers.one.OneBrain(provider)`. Closed with
            the conversation.
        transcript: the session's file (`agent.sessions.store.create` or `resume`), or `agent.history.Unsaved(id)`; its
            messages are where the conversation goes on. Closed with the conversation.
        cwd: absolute; where commands run and relative paths begin.
        shell: the way in, for the records: `repl` · `oneshot` · `rpc` · `acp`.
        client: name and version of a program that drives the shell; "" without one.
        asks: whether this shell settles `AskOpened` by `respond`. Without, nothing is ever asked: a change is kept as
            a request, and a turn that needed one ends with exit code 3 and its `requests`.
        plans: whether it shows all requests of an ask that holds several (`Ask.also`); then brains may propose plans.
        limits: `agent.loop.Limits(replies, timeout_s)` of each turn.
        system: the system prompt; "" makes the usual one (`agent.prompt`) with the facts of this machine.
        findings: whether a question that the runbooks recognise gets their findings as its first tool result.
        compactor: what of the messages is sent (`agent.compaction.Compactor`, with the window of the model where that
            is known); None: the usual limits.

    Events of a turn: `turn_started`, then any of the others, then exactly one `turn_completed`. `SessionStarted` is the
    shell's to say: it knows whether it resumed. A generator that is dropped in the middle interrupts its turn.
    """

    def __init__(
        self,
        guard: execution.Guard,
        brain: Brain,
        transcript: Transcript,
        *,
        cwd: str,
        shell: str,
        client: str = "",
        asks: bool = False,
        plans: bool = False,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        system: str = "",
        findings: bool = True,
        compactor: Compactor | None = None,
    ) -> None:
        self.abilities = Abilities(streaming=True, tools=True, multi_turn=True, interrupt=True, usage=True)
        self.id = transcript.id
        self.history = History(transcript)
        self._guard, self._brain, self._transcript = guard, brain, transcript
        self._limits, self._system, self._findings = limits, system, findings
        self._compactor = compactor if compactor is not None else Compactor()
        self._told: tuple[str, ...] = ()
        self._forms: dict[int, tuple[Message, Message]] = {}
        """What was sent, by the identity of what was said: nothing is escaped twice."""
        self._cwd, self._shell = cwd, shell
        self._updates: queue.SimpleQueue[Event | Used | None] = queue.SimpleQueue()
        self._stop: Stop | None = None
        self._asks = Asks(
            self._tell,
            stopped=self._stopped,
            elsewhere=lambda request: elsewhere(request, guard),
        )
        self._hands = Toolset(
            guard,
            cwd=cwd,
            shell=shell,
            session=transcript.id,
            client=client,
            asks=self._asks if asks else None,
            plans=plans,
            resumed=bool(self.history.messages),
            read_before=self.history.read_before,
        )
        self._user = User("")
        self._state = NEW

    @property
    def name(self) -> str:
        """Of the brain that would answer now."""
        return self._brain.name

    @property
    def model(self) -> str:
        return self._brain.model

    def start(self) -> None:
        """Opens the session. Raises ValueError when it was started before."""
        if self._state != NEW:
            raise ValueError("the session was started before")
        if not self._system:
            from agent.prompt import system_prompt

            self._system = system_prompt(self._guard, cwd=self._cwd, can_ask=self._hands.can_ask)
        self._state = OPEN

    def send_turn(self, turn: protocol.Turn) -> None:
        """Takes a turn. Raises ValueError before `start`, after `close` and while a turn is running."""
        if self._state != OPEN:
            raise ValueError("a turn can be sent to an open session without a running turn")
        self._user = User(turn.text, turn.attachments)
        if not self.history.read_before() and not turn.attachments:
            # Later it could be what was read that put the address there.
            self._hands.allow_peers(named_peers(turn.text))
        self._updates = queue.SimpleQueue()  # what an abandoned tool of an earlier turn still tells goes nowhere
        self._stop = Stop(self._wake)
        self._state = TURNING

    def events(self) -> Iterator[Event]:
        """The turn's events, ending with exactly one `TurnCompleted`. Raises ValueError without a turn."""
        stop = self._stop
        if self._state != TURNING or stop is None:
            raise ValueError("there is no turn")
        turn = Turn(
            self._brain,
            self._hands,
            self.history,
            sent=self._sent,
            stop=stop,
            updates=self._updates,
            redactor=self._guard.redactor,
            limits=self._limits,
            asks=self._hands.can_ask and self._shell in TERMINALS,
        )
        if self._limits.timeout_s:
            stop.after(self._limits.timeout_s)
        try:
            yield from turn.events(self._user, self._first())
        finally:
            if self._state == TURNING:
                self._state = OPEN
            self._asks.cancel_all()
            self._hands.cancel_all()
            turn.settle_quietly()
            self.history.sync()
            stop.close()
            self._stop = None

    def respond(self, ask_id: str, answer: Answer) -> None:
        """Settles an ask that this session opened; late and unknown ids change nothing. Safe from any thread.

        For a question (`AskOpened.kind`): outcome `answered` with the words as `reason`; anything else is no answer.
        """
        self._asks.respond(ask_id, answer)

    def set_mode(self, mode: str) -> None:
        """What may be done from the next tool call on: `guard.types.Mode`. Whoever calls it may not allow more than the
        configuration does."""
        self._hands.set_mode(mode)

    def compact(self) -> tuple[str, ...]:
        """Makes what is sent from now on much smaller at once; the file keeps everything. What is to be said of it.

        Raises ValueError while a turn is running."""
        if self._state == TURNING:
            raise ValueError("a turn is running")
        return self._compactor.compact(self.history.messages).notes

    def sent_chars(self) -> int:
        """How many characters the next request would hold, without the prompt and the tools."""
        return self._compactor.chars(self.history.messages)

    def interrupt(self) -> None:
        """Asks the turn to stop; `events` still ends with `TurnCompleted`. Safe from any thread and signal handlers."""
        stop = self._stop
        if stop is not None:
            stop.set(INTERRUPTED)

    def close(self) -> None:
        """Ends the session: an open turn is interrupted, what runs is stopped on record. Safe to call twice."""
        if self._state == CLOSED:
            return
        self._state = CLOSED
        self.interrupt()
        self._hands.close()
        self._brain.close()
        self._transcript.close()

    # ── what a turn is made of ───────────────────────────────────────────────────────────────────────────────────

    def _sent(self) -> tuple[Sent, tuple[str, ...]]:
        """The next request: the prompt, what was said as far as it fits, the tools; and what is new to say of it."""
        seen = [(message, self._forms.get(id(message))) for message in self._compactor(self.history.messages)]
        pairs = [known or (message, as_sent(message)) for message, known in seen]
        self._forms = {id(message): (message, form) for message, form in pairs}
        messages = tuple(form for _, form in pairs)
        notes = self._compactor.latest.notes
        new, self._told = () if notes == self._told else notes, notes
        return Sent(self._system, messages, self._hands.tools), new

    def _first(self) -> Sequence[ToolCall]:
        """The look that comes before the brain's first word: the runbooks', where they know what is asked."""
        text = self._user.text
        if not self._findings or self._user.attachments or len(text) > MOST_QUESTION:
            return ()
        from runbooks.planner import plan

        return (ToolCall("", RUNBOOK, {"question": text}),) if plan(text).matched else ()

    def _tell(self, update: Event) -> None:
        self._updates.put(update)

    def _wake(self) -> None:
        self._asks.cancel_all()
        self._updates.put(None)

    def _stopped(self) -> bool:
        return self._stop is not None and self._stop.is_set()
