"""`opsagent -p` with a model: one turn of a conversation, its answer on stdout, everything else on stderr.

On a terminal a change is asked about with the same screen as `opsx approve`. Without one nothing is asked: the turn
ends with exit code 3 and the line that a person can run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

from agent.answering import Answering
from agent.brains.opening import open_conversation
from agent.loop import Limits
from cli.report import as_typed, line, safe, write
from cli.waiting import Waiting
from dialogue import events
from dialogue.confirm import ANSWERED, CANCELLED, Answer, ask_of
from dialogue.protocol import Turn
from guard.errors import StateError
from guard.types import Actor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    import execution
    from agent.brains.choice import Link
    from agent.brains.opening import Opened
    from agent.conversation import Conversation
    from agent.oneshot import Question
    from agent.sessions.store import Sessions
    from runbooks.catalogue import Books

SHELL = "oneshot"
ANSWER_IN = {"en": "Answer in English.", "zh": "Answer in Chinese."}
SHOWN_CHARS = 60


def main(
    question: Question,
    links: Sequence[Link],
    guard: execution.Guard,
    *,
    cwd: str,
    books: Books,
    replies: int = 0,
    resume: str = "",
) -> int:
    """Holds the turn and returns its exit code.

    Args:
        replies: at most so many requests to the brain; 0: the usual limit.
        resume: the conversation that goes on; "" begins one.
    Raises:
        GuardError: the conversation cannot be opened.
    """
    from cli import surroundings

    person = surroundings.actor() == Actor.PERSON
    opened = open_conversation(
        guard,
        links,
        _sessions(guard),
        cwd=cwd,
        shell=SHELL,
        environ=os.environ,
        resume=resume,
        asks=person,
        limits=Limits(replies or Limits().replies, question.total_s),
        books=books,
        warm=False,
    )
    try:
        return _Turn(opened, question, guard).run()
    finally:
        opened.conversation.close()


def _sessions(guard: execution.Guard) -> Sessions | StateError:
    from agent.sessions.store import Sessions

    try:
        return Sessions.open(guard.redactor)
    except StateError as error:
        return error


class _Turn:
    """One turn on this terminal, or on none."""

    def __init__(self, opened: Opened, question: Question, guard: execution.Guard) -> None:
        self._opened, self._question, self._guard = opened, question, guard
        self._utc = guard.clock.utc
        self._conversation: Conversation = opened.conversation
        self._answering = Answering(opened.chain.name, opened.chain.model)
        self._asking = False
        self._waiting = Waiting(bool(sys.stderr.isatty()))

    def run(self) -> int:
        """Sends the question, follows the turn, prints the answer."""
        attachments = (self._question.piped,) if self._question.piped else ()
        for note in self._opened.notes:
            _say(note)
        text = "\n\n".join(part for part in (self._question.text, ANSWER_IN.get(self._question.lang, "")) if part)
        self._conversation.send_turn(Turn(text, attachments))
        with _signals(self._interrupted), self._waiting:
            for event in self._events():
                self._answering.take(event)
                self._on(event)
        self._answering.model = self._answering.model or self._conversation.model
        self._print()
        return self._answering.code

    def _events(self) -> Iterator[events.Event]:
        """The turn's events; each is printed first where the stream of them is the answer."""
        streams = self._question.output == "stream-json"
        number = 0
        turn = sum(message.__class__.__name__ == "User" for message in self._conversation.history.messages) + 1

        def told(event: events.Event, turn: int) -> None:
            nonlocal number
            number += 1
            if streams:
                line(events.Stamped(event, self._conversation.id, turn, number, self._utc()).as_json())

        told(events.SessionStarted(self._answering.brain, self._answering.model, self._opened.resumed), 0)
        for event in self._conversation.events():
            told(event, turn)
            yield event

    def _on(self, event: events.Event) -> None:
        """What a person has to see or answer while the turn goes on."""
        match event:
            case events.AskOpened():
                self._conversation.respond(event.id, self._asked(event))
            case events.Notice():
                _say(event.text)
            case events.BrainSwitched():
                _say(f"{event.brain} answers now: {event.because}")
            case events.ToolRequested():
                self._waiting.now(event.id, _call_words(event))
            case events.ToolCompleted():
                self._waiting.over(event.id)
                self._watched(event.execution)
            case _:
                pass

    def _watched(self, execution: str | None) -> None:
        """Says that a change is taken back unless it is confirmed. It is not waited for: it goes on by itself."""
        if not execution or not self._guard.connection:
            return
        from capabilities import countdown

        if (armed := countdown.of(execution, self._guard)) is not None:
            _say(countdown.words(armed, countdown.WAITING, self._guard))

    def _asked(self, event: events.AskOpened) -> Answer:
        """Asks on the terminal: an approval with its screen, or a question with a line."""
        from cli.ask import TIMEOUT_S, TerminalConfirm

        self._asking = True
        try:
            with self._waiting.hidden():
                if event.kind == "approval":
                    return TerminalConfirm().ask(ask_of(event.ask), timeout_s=event.timeout_s or TIMEOUT_S)
                return _words(str(event.ask.get("question", "")), event.ask.get("options") or [])
        except KeyboardInterrupt:
            self._conversation.interrupt()
            return Answer(CANCELLED)
        finally:
            self._asking = False

    def _interrupted(self) -> None:
        if self._asking:
            raise KeyboardInterrupt
        self._conversation.interrupt()

    def _print(self) -> None:
        answering, output = self._answering, self._question.output
        if output == "json":
            line(answering.as_json(host=os.uname().nodename, at=self._utc(), session=self._conversation.id))
        elif output == "text":
            from cli.opsagent_ask import visible

            if answering.text:
                write(visible(answering.text.rstrip("\n")))
        if answering.error is not None and output == "text":
            shown = answering.error
            lines = [f"error[{shown['code']}]: {shown['message']}", shown["not_done"]]
            lines += [f"hint: {as_typed(shown['hint'])}"] if shown["hint"] else []
            write("".join(f"{safe(one)}\n" for one in lines if one), to_stderr=True)
        if answering.next:
            _say(f"needs approval: {as_typed(answering.next)}")
            go_on = as_typed(f"opsagent --resume {self._conversation.id} -p 'go on'")
            _say(f"then go on with: {go_on}")


def _say(text: str) -> None:
    write(f"opsagent: {safe(text)}\n", to_stderr=True)


def _call_words(event: events.ToolRequested) -> str:
    """What a tool is used for, for a person who waits."""
    for name in ("command", "path", "question", "what", "id"):
        if isinstance(found := event.arguments.get(name), str) and found:
            text = " ".join(found.split())
            return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
    return event.name


def _words(question: str, options: Sequence[object]) -> Answer:
    """Asks for words on one line; they approve nothing."""
    _say(question)
    for number, option in enumerate(options, 1):
        write(f"  {number}. {safe(str(option))}\n", to_stderr=True)
    write("answer (nothing: none): ", to_stderr=True)
    typed = sys.stdin.readline().strip()
    if typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(options):
        typed = str(options[int(typed) - 1])
    return Answer(ANSWERED, "tty", reason=typed) if typed else Answer(CANCELLED)


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C, a polite kill and a closed terminal stop the turn, which then ends on record."""

    def handle(number: int, frame: FrameType | None) -> None:
        stop()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
