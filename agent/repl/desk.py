"""The conversation behind the screen: what was typed goes in, events come out, one turn or command at a time.

Knows no terminal. Work runs in threads of its own and is told through `post`, so that everything here changes in the
thread of the screen only.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from agent.repl import by_hand, commands, conversations, dock, goals, transcript
from agent.repl.asking import LocalAsks
from agent.repl.attach import attached
from agent.repl.record import Record, record_of
from agent.repl.status import Status, short_brain, status_of
from agent.repl.status import words as status_words
from agent.repl.transcript import ErrorRow, NoteRow, Person
from agent.repl.work import Work
from agent.repl.world import Clear, Copy, Enter, Leave, Pursue, Rows, Say, Talk
from capabilities.countdown import Watch
from dialogue import events as ev
from dialogue.confirm import CANCELLED, Answer
from dialogue.protocol import Turn
from guard.errors import GuardError
from guard.types import Status as RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.repl.dock import Dock, Key
    from agent.repl.goals import Goal
    from agent.repl.transcript import Piece, Row, Transcript
    from agent.repl.world import Effect, Opened, Screen, World
    from capabilities.countdown import Told
    from dialogue.events import Event

MOST_QUEUED = 50
TURN = "turn"


class Desk:
    """One person's place at a conversation."""

    def __init__(
        self,
        world: World,
        opened: Opened,
        screen: Screen,
        post: Callable[[Callable[[], None]], None],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            post: runs a function in the screen's thread, soon and in order.
            now_s: a clock that only goes on.
        """
        self.world, self.opened, self.screen = world, opened, screen
        self._post, self.now_s = post, now_s
        self.transcript: Transcript = transcript.Transcript(brain=opened.brain, model=opened.model)
        self.dock: Dock = dock.Dock()
        self.queued: list[str] = []
        self.goal: Goal | None = None
        self.editing = ""
        """The ask whose command the person is changing; "" when none is."""
        self.record = Record()
        self.asks = LocalAsks(self.tell, person=world.person)
        self._asked = self._lost = False
        self._edited = ""
        self._replaced: set[str] = set()
        """Asks whose command the person changed, until they are settled."""
        self._cancel: _Cancel | None = None
        self.watch = Watch(world.guard, self._waits)
        self._work = Work(post, fault=self._said, over=self._over, after=self._count)
        self._closed = False

    @property
    def working(self) -> str:
        """What is at work: TURN, or the command; "" when nothing is."""
        return self._work.name

    # ── what the screen asks ─────────────────────────────────────────────────────────────────────────────────────

    def pieces(self) -> tuple[Piece, ...]:
        """What can be written into the scrollback now; each piece once."""
        pieces, self.transcript = transcript.release(self.transcript)
        return pieces

    def status(self, hint: str = "", *, written: str = "") -> Status:
        """The status line's content; the arguments are what only the screen knows."""
        return status_of(self, hint=hint, written=written)

    def busy_words(self) -> str:
        """What is at work and for how long; "" when nothing is."""
        if not self.working:
            return ""
        return f"{'working' if self.working == TURN else self.working} {self._work.elapsed_s():.0f} s"

    def ask_is_open(self) -> bool:
        """Whether the dock is what keys go to."""
        return bool(self.dock.waiting) and not self.editing

    # ── what the person does ─────────────────────────────────────────────────────────────────────────────────────

    def submit(self, text: str) -> None:
        """Takes what was sent from the composer: a command, a run by hand, or words for the brain."""
        text = text.strip("\n")
        if self.editing:
            self._edited_command(text)
        elif not text.strip():
            return
        elif commands.is_command(text):
            self._command(text)
        elif self.working:
            if len(self.queued) >= MOST_QUEUED:
                self._fail(GuardError("too much is queued", not_done="this was not queued"))
            else:
                self.queued.append(text)
        else:
            self._go(text)
        self.screen.changed()

    def busy(self) -> bool:
        """Whether a turn, a run or a command is at work, or something waits for its turn."""
        return bool(self.queued) or self._work.is_busy()

    def drop(self, id: str) -> None:
        """Takes an ask out of the dock: its answer was given in another way."""
        self.dock = dock.over(self.dock, id, self.now_s())

    def take_back(self) -> str:
        """The last queued text, no longer queued; "" when there is none."""
        return self.queued.pop() if self.queued else ""

    def press(self, key: Key) -> bool:
        """Gives a key to the dock. False when it belongs to the composer."""
        self.dock, act = dock.press(self.dock, key, self.now_s())
        self.screen.changed()
        match act:
            case dock.Forward():
                return False
            case dock.Settle():
                self.settle(act.id, act.answer)
                if act.stop:
                    self.interrupt()
            case dock.Edit():
                self.editing = act.id
                self.screen.edit(act.command)
            case None:
                pass
        return True

    def stop_editing(self) -> None:
        """Back to the question, with the command as it was."""
        self.editing = ""
        self.screen.edit(None)

    def interrupt(self) -> bool:
        """Asks what is at work to stop. False when nothing is."""
        if not self.working:
            return False
        self.goal = None
        self.asks.cancel_all()
        if self.working == TURN:
            self.opened.session.interrupt()
        elif self._cancel is not None:
            self._cancel.set()
        return True

    def close(self) -> None:
        """Ends what is at work, on record, and the conversation. Blocks for that long."""
        self._closed = True
        self.queued.clear()
        self.asks.close()
        self.watch.close()
        self.interrupt()
        self.opened.session.close()
        self._work.join(CLOSING_S)

    # ── turns and commands ───────────────────────────────────────────────────────────────────────────────────────

    def tell(self, event: Event) -> None:
        """An event, from any thread."""
        self._post(lambda: self._take(event))

    def begin(self, first: str = "") -> None:
        """Looks at the record and at earlier conversations, beside the screen; then does as if `first` was typed."""
        self._work.beside(self._count)
        self._work.beside(self._remember)
        self._work.beside(self.watch.look_at_all)
        if first:
            self.submit(first)

    def _go(self, text: str) -> None:
        """Begins a turn, or a run by hand."""
        if text.startswith("!"):
            self._run_by_hand(text)
            return
        try:
            texts = attached(text, self.world.cwd, self.world.guard.redactor.text)
        except GuardError as error:
            self._fail(error)
            self.screen.compose(text)
            return
        self._turn(text, texts)

    def _turn(self, text: str, texts: tuple[str, ...] = ()) -> None:
        self._asked = self._lost = False
        session = self.opened.session

        def run() -> None:
            session.send_turn(Turn(text, texts))
            for event in session.events():
                self.tell(event)

        self._work.begin(TURN, run)

    def _run_by_hand(self, text: str) -> None:
        from guard.hands.cancel import CancelToken

        self._cancel = token = CancelToken()
        world, session = self.world, self.opened.id

        def run() -> None:
            by_hand.run_and_tell(
                text[1:].strip(), world.guard, self.asks, self.tell, cwd=world.cwd, session=session, cancel=token
            )

        self._work.begin(text, run)

    def _command(self, text: str) -> None:
        self._show(Person(text))
        try:
            command, words = commands.found(text)
            if command.alone and self.working:
                raise GuardError(f"/{command.name} needs a still conversation", hint="Esc interrupts the turn")
        except GuardError as error:
            self._fail(error)
            return
        talk = self.talk()

        def run() -> None:
            for effect in command.run(talk, words):
                self._post(lambda effect=effect: self._carry_out(effect))  # type: ignore[misc]

        if command.alone:
            self._work.begin("/" + command.name, run)
        else:
            self._work.beside(run)

    def talk(self) -> Talk:
        """What commands and completion may look at now."""
        return Talk(
            self.world,
            self.opened,
            self.asks,
            self.asks.question,
            answer=self.transcript.answer,
            goal=self.goal,
            status=lambda: status_words(self.status()),
        )

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Say():
                self._show(NoteRow("shown" if effect.visible else "echo", effect.text))
            case Rows():
                for row in effect.rows:
                    self._show(row)
            case Enter():
                self._enter(effect.opened)
            case Copy():
                self.screen.copy(effect.text)
            case Pursue():
                self._pursue(effect.goal)
            case Clear():
                self.screen.clear()
            case Leave():
                self.screen.leave()
        self.screen.changed()

    def _waits(self, told: Told) -> None:
        """How a change stands that a dead man watches over; from a thread of the watch's."""
        self.tell(ev.Notice(told.text, told.execution, told.deadline_at))

    # ── in the screen's thread ───────────────────────────────────────────────────────────────────────────────────

    def _take(self, event: Event) -> None:
        if isinstance(event, ev.AskSettled) and event.id in self._replaced:
            self._replaced.discard(event.id)
            event = replace(event, outcome=transcript.REPLACED if event.outcome == CANCELLED else event.outcome)
        self.transcript = transcript.reduce(self.transcript, event)
        match event:
            case ev.AskOpened():
                self._asked = self._asked or event.kind == "approval"
                self.dock = dock.opened(self.dock, dock.waiting_of(event, self.now_s()), self.now_s())
            case ev.AskSettled():
                self.dock = dock.over(self.dock, event.id, self.now_s())
                if self.editing == event.id:
                    self.stop_editing()
            case ev.ToolCompleted():
                self._lost = self._lost or event.status == RunStatus.UNKNOWN
                if event.execution and self.world.guard.connection:
                    self._work.beside(lambda: self.watch.look(event.execution))
            case ev.TurnCompleted():
                self._turn_over(event.exit_code)
        self.screen.changed()

    def _turn_over(self, exit_code: int) -> None:
        if self.goal is None:
            return
        ended = goals.Ended(exit_code, self.transcript.answer, self._asked, self._lost)
        why = goals.why_over(self.goal, ended)
        if why:
            self.goal = None
            self._show(NoteRow("notice", why))

    def _over(self, was: str) -> None:
        """What was at work is done: the next goes, unless the person stopped this one."""
        self._cancel = None
        if self._closed:
            return
        if self._edited:
            text, self._edited = self._edited, ""
            self._go("!" + text)
        elif was == TURN and self.transcript.exit_code == 130 and self.queued:
            self.screen.compose("\n".join(self.queued))
            self.queued.clear()
        elif self.queued:
            self._go(self.queued.pop(0))
        elif self.goal is not None:
            self._next_round()
        self.screen.changed()

    def _next_round(self) -> None:
        assert self.goal is not None
        self.goal, told = goals.next_round(self.goal)
        spent = self.transcript.input_tokens + self.transcript.output_tokens
        self._show(NoteRow("notice", f"{self.goal.shown()} ({spent:,} tokens in the last turn)"))
        self._turn(told)

    def _pursue(self, goal: Goal | None) -> None:
        self.goal = goal
        if goal is not None and not self.working:
            self._next_round()

    def _enter(self, opened: Opened) -> None:
        if opened.session is not self.opened.session:
            self.opened.session.close()
        self.opened = opened
        self.transcript = replace(self.transcript, brain=opened.brain, model=opened.model, answer="")
        self._show(NoteRow("session", f"conversation {opened.id} with {short_brain(opened.brain)}"))
        for note in opened.notes:
            self._show(NoteRow("notice", note))

    def settle(self, id: str, answer: Answer) -> None:
        """Gives an answer to an open ask, of the conversation or of a command."""
        if not self.asks.settle(id, answer):
            self.opened.session.respond(id, answer)

    def _edited_command(self, text: str) -> None:
        id = self.editing
        self.stop_editing()
        front = next((one for one in self.dock.waiting if one.id == id), None)
        if front is None or front.ask is None or not text.strip() or text == front.ask.command:
            return
        self.dock = dock.over(self.dock, id, self.now_s())
        mine = id.startswith("d-")
        self._edited = text if mine else ""
        self._replaced.add(id)
        wish = "the person changed the command" if mine else f"the person wants exactly this command instead: {text}"
        self.settle(id, Answer(CANCELLED, dock.CONSENT, reason=wish, withdrawn=True))

    def _show(self, row: Row) -> None:
        self.transcript = transcript.add(self.transcript, row)
        self.screen.changed()

    def _fail(self, error: GuardError) -> None:
        text = self.world.guard.redactor.text
        self._show(ErrorRow(error.code, text(error.message), text(error.not_done), text(error.hint)))

    def broke(self, error: BaseException) -> None:
        """Says a fault of our own; the conversation goes on."""
        frame, place = error.__traceback__, ""
        while frame is not None:
            place = f"{os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}"
            frame = frame.tb_next
        words = self.world.guard.redactor.text(str(error))[:200]
        self._show(ErrorRow("internal", f"a fault in opsagent itself: {type(error).__name__}: {words} ({place})"))

    def _said(self, fault: Exception) -> None:
        if isinstance(fault, GuardError):
            self._fail(fault)
        else:
            self.broke(fault)

    def _remember(self) -> None:
        """The history of the composer; in a thread of the work."""
        texts = conversations.earlier(self.world)
        self._post(lambda: self.screen.remember(texts))

    def _count(self) -> None:
        """Looks at the record; in a thread of the work."""
        record = record_of(self.world, self.opened)

        def note() -> None:
            self.record = record
            self.screen.changed()

        self._post(note)


CLOSING_S = 15.0
"""How long the end waits for what was stopped to be on record: more than a turn lets its tools end."""


class _Cancel(Protocol):
    def set(self) -> None: ...
