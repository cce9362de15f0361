"""The conversation behind the screen: what was typed goes in, events come out, one turn or command at a time.

Knows no terminal. Work runs in threads of its own and is told through `post`, so that everything here changes in the
thread of the screen only.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from agent.repl import by_hand, commands, dock, goals, transcript
from agent.repl.asking import LocalAsks
from agent.repl.attach import attached
from agent.repl.status import Status
from agent.repl.status import words as status_words
from agent.repl.transcript import ErrorRow, NoteRow, Person
from agent.repl.world import Clear, Compose, Copy, Enter, Leave, Pursue, Say, Show, Talk
from capabilities.questions import user_name
from dialogue import events as ev
from dialogue.confirm import CANCELLED, Answer
from dialogue.protocol import Turn
from guard.errors import GuardError
from guard.types import Status as RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.repl.dock import Dock, Key
    from agent.repl.goals import Goal
    from agent.repl.transcript import Piece, Transcript
    from agent.repl.world import Effect, Opened, World
    from dialogue.events import Event

MOST_QUEUED = 50


class Screen(Protocol):
    """What the desk asks of a terminal. Called in the screen's thread."""

    def changed(self) -> None:
        """Something is to be drawn."""
        ...

    def clear(self) -> None: ...

    def copy(self, text: str) -> None: ...

    def compose(self, text: str) -> None:
        """Puts a text into the composer."""
        ...

    def leave(self) -> None:
        """The person wants to go."""
        ...


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
        self.working = ""
        """What is at work: `turn`, or the command; "" when nothing is."""
        self.unknown = self.detached = 0
        self.asks = LocalAsks(self.tell, person=world.person)
        self._began_s = 0.0
        self._asked = self._lost = False
        self._edited = ""
        self._cancel: _Cancel | None = None
        self._threads: list[threading.Thread] = []
        self._closed = False

    # ── what the screen asks ─────────────────────────────────────────────────────────────────────────────────────

    def pieces(self) -> tuple[Piece, ...]:
        """What can be written into the scrollback now; each piece once."""
        pieces, self.transcript = transcript.release(self.transcript)
        return pieces

    def status(self, hint: str = "") -> Status:
        """The status line's content."""
        guard, told = self.world.guard, self.transcript
        busy = ""
        if self.working:
            busy = f"{'working' if self.working == 'turn' else self.working} {self.now_s() - self._began_s:.0f} s"
        return Status(
            brain=told.brain,
            model=told.model,
            host=os.uname().nodename,
            user=user_name().partition(" (")[0],
            root=os.geteuid() == 0,
            mode=str(guard.policy.mode),
            frozen=bool(guard.policy.frozen),
            context=self.opened.context(),
            tokens=told.input_tokens + told.output_tokens,
            cost=told.cost,
            unknown=self.unknown,
            detached=self.detached,
            busy=busy,
            goal=f"goal {self.goal.round}/{self.goal.rounds}" if self.goal else "",
            hint=hint,
        )

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
        return bool(self.working or self.queued) or any(one.is_alive() for one in self._threads)

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
                self.screen.compose(act.command)
            case None:
                pass
        return True

    def stop_editing(self) -> None:
        """Back to the question, with the command as it was."""
        self.editing = ""
        self.screen.compose("")

    def interrupt(self) -> bool:
        """Asks what is at work to stop. False when nothing is."""
        if not self.working:
            return False
        self.goal = None
        self.asks.cancel_all()
        if self.working == "turn":
            self.opened.session.interrupt()
        elif self._cancel is not None:
            self._cancel.set()
        return True

    def close(self) -> None:
        """Ends what is at work, on record, and the conversation. Blocks for that long."""
        self._closed = True
        self.queued.clear()
        self.asks.close()
        self.interrupt()
        self.opened.session.close()
        for thread in self._threads:
            thread.join(timeout=CLOSING_S)

    # ── turns and commands ───────────────────────────────────────────────────────────────────────────────────────

    def tell(self, event: Event) -> None:
        """An event, from any thread."""
        self._post(lambda: self._take(event))

    def look(self) -> None:
        """Counts what is unknown or detached, beside the screen."""
        self._thread(self._count, "look")

    def _go(self, text: str) -> None:
        """Begins a turn, or a run by hand."""
        if text.startswith("!"):
            self._begin(text, lambda: self._by_hand(text[1:].strip()))
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

        self._begin("turn", run)

    def _begin(self, name: str, run: Callable[[], None]) -> None:
        self.working, self._began_s = name, self.now_s()

        def guarded() -> None:
            try:
                run()
            except GuardError as error:
                self._post(lambda error=error: self._fail(error))  # type: ignore[misc]
            except Exception as error:  # a fault of ours must not end the conversation
                self._post(lambda error=error: self.broke(error))  # type: ignore[misc]
            finally:
                self._count()
                self._post(self._over)

        self._thread(guarded, name)

    def _thread(self, run: Callable[[], None], name: str) -> None:
        self._threads = [one for one in self._threads if one.is_alive()]
        thread = threading.Thread(target=run, name=name[:20], daemon=True)
        self._threads.append(thread)
        thread.start()

    def _by_hand(self, command: str) -> None:
        from guard.hands.cancel import CancelToken

        id = f"!{time.monotonic_ns()}"
        self._cancel = token = CancelToken()
        began: list[str] = []
        self.tell(ev.ToolRequested(id, "!", {"command": command}))

        def on_begin(execution: str) -> None:
            began.append(execution)
            self.tell(ev.ToolStarted(id, execution))

        try:
            ran = by_hand.run(
                command,
                self.world.guard,
                self.asks,
                cwd=self.world.cwd,
                session=self.opened.id,
                cancel=token,
                on_begin=on_begin,
            )
        except GuardError as error:
            self.tell(ev.ToolCompleted(id, "error", began[-1] if began else None))
            raise error
        finally:
            self._cancel = None
        texts = [ran.get(name) or "" for name in ("stdout", "stderr")]
        status = str(ran["status"])
        next_step = ran.get("next")
        self.tell(
            ev.ToolCompleted(
                id,
                status,
                ran.get("execution"),
                "\n".join(text.rstrip("\n") for text in texts if text),
                ran.get("exit_code"),
                int(ran.get("duration_ms") or 0),
            )
        )
        if status == RunStatus.REFUSED:
            self.tell(ev.Notice(str(ran["because"]["text"])))
        if next_step:
            self.tell(ev.Notice(f"next: {next_step}"))

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
            self._begin("/" + command.name, run)
        else:
            self._thread(lambda: self._beside(run), command.name)

    def _beside(self, run: Callable[[], None]) -> None:
        try:
            run()
        except GuardError as error:
            self._post(lambda error=error: self._fail(error))  # type: ignore[misc]
        except Exception as error:  # a fault of ours must not end the conversation
            self._post(lambda error=error: self.broke(error))  # type: ignore[misc]

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
            case Show():
                self._show(effect.piece)
            case Enter():
                self._enter(effect.opened)
            case Compose():
                self.screen.compose(effect.text)
            case Copy():
                self.screen.copy(effect.text)
            case Pursue():
                self._pursue(effect.goal)
            case Clear():
                self.screen.clear()
            case Leave():
                self.screen.leave()
        self.screen.changed()

    # ── in the screen's thread ───────────────────────────────────────────────────────────────────────────────────

    def _take(self, event: Event) -> None:
        self.transcript = transcript.reduce(self.transcript, event)
        match event:
            case ev.AskOpened():
                self._asked = self._asked or event.kind == "approval"
                self.dock = dock.opened(self.dock, waiting_of(event, self.now_s()), self.now_s())
            case ev.AskSettled():
                self.dock = dock.over(self.dock, event.id, self.now_s())
                if self.editing == event.id:
                    self.stop_editing()
            case ev.ToolCompleted():
                self._lost = self._lost or event.status == RunStatus.UNKNOWN
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

    def _over(self) -> None:
        """What was at work is done: the next goes, unless the person stopped this one."""
        was = self.working
        self.working = ""
        if self._closed:
            return
        if self._edited:
            text, self._edited = self._edited, ""
            self._go("!" + text)
        elif was == "turn" and self.transcript.exit_code == 130 and self.queued:
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
        self._show(NoteRow("session", f"conversation {opened.id} with {opened.brain}"))
        for note in opened.notes:
            self._show(NoteRow("notice", note))

    def settle(self, id: str, answer: Answer) -> None:
        """Gives an answer to an open ask, of the conversation or of a command."""
        if not self.asks.settle(id, answer):
            self.opened.session.respond(id, answer)

    def _edited_command(self, text: str) -> None:
        id, self.editing = self.editing, ""
        front = next((one for one in self.dock.waiting if one.id == id), None)
        if front is None or front.ask is None or not text.strip() or text == front.ask.command:
            return
        self.dock = dock.over(self.dock, id, self.now_s())
        mine = id.startswith("d-")
        self._edited = text if mine else ""
        wish = "the person changed the command" if mine else f"the person wants exactly this command instead: {text}"
        self.settle(id, Answer(CANCELLED, dock.CONSENT, reason=wish))

    def _show(self, row: Piece) -> None:
        if not isinstance(row, transcript.Written):
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

    def _count(self) -> None:
        unknown, detached = counted(self.world)

        def note() -> None:
            self.unknown, self.detached = unknown, detached
            self.screen.changed()

        self._post(note)


CLOSING_S = 15.0
"""How long the end waits for what was stopped to be on record: more than a turn lets its tools end."""


class _Cancel(Protocol):
    def set(self) -> None: ...


def counted(world: World) -> tuple[int, int]:
    """Runs that nobody knows the end of, and runs that go on by themselves; 0 where the record cannot be read."""
    try:
        ledger = world.guard.ledger
        unknown = [
            run for run in ledger.executions(status=RunStatus.UNKNOWN, limit=100).executions if not run.resolution
        ]
        running = ledger.executions(status=RunStatus.RUNNING, limit=100).executions
    except GuardError:
        return 0, 0
    changing = [run for run in unknown if run.level != "R0"]
    return len(changing), len(running)


def waiting_of(event: ev.AskOpened, now_s: float) -> dock.Waiting:
    """The dock's entry for an ask event."""
    ends_s = now_s + event.timeout_s if event.timeout_s else 0.0
    if event.kind == "question":
        options = event.ask.get("options")
        texts = tuple(str(one) for one in options) if isinstance(options, list | tuple) else ()
        return dock.Waiting(event.id, None, str(event.ask.get("question", "")), texts, ends_s)
    return dock.Waiting(event.id, dock.ask_of(event.ask), ends_s=ends_s)
