"""The brain that needs no model: chooses runbooks for a question, runs their reads, reports what they found.

It only looks. A question that asks for a change gets the matching look and the sentence that this would be a change.
"""

import queue
import threading

from runbooks import runner
from runbooks.catalogue import BUILT_IN, Books
from runbooks.look import BRAIN, look, this_machine
from runbooks.report import Report, error_of, finding_json
from runbooks.wording import answer_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from dialogue.confirm import Answer as Consent
    from dialogue.events import Event
    from dialogue.protocol import Abilities, Turn
    from runbooks.model import Ask, Where


class OfflineSession:
    """`dialogue.protocol.BrainSession` over the runbooks: each turn is a question of its own."""

    name = BRAIN
    abilities: "Abilities"

    def __init__(
        self,
        ask: "Ask",
        *,
        utc: "Callable[[], str]",
        lang: str = "",
        total_s: float = runner.TOTAL_S,
        recall: "Callable[[], Mapping[str, Any]] | None" = None,
        books: Books = BUILT_IN,
        redact: "Callable[[str], str]" = str,
    ) -> None:
        from dialogue.protocol import Abilities

        self.abilities = Abilities(
            streaming=False, tools=True, multi_turn=True, interrupt=True, notes=("looks only; changes nothing",)
        )
        self._ask, self._utc, self._lang, self._total_s = ask, utc, lang, total_s
        self._recall, self._books, self._redact = recall, books, redact
        self._turn: Turn | None = None
        self._stop = threading.Event()
        self._state = "new"
        self.report: Report | None = None
        """The last turn's report, once its events have ended."""

    def start(self) -> None:
        """Opens the session; nothing can go wrong."""
        if self._state != "new":
            raise ValueError("the session was started before")
        self._state = "open"

    def send_turn(self, turn: "Turn") -> None:
        """Takes a question. Raises ValueError before `start`, after `close` and while a turn is running."""
        if self._state != "open" or self._turn is not None:
            raise ValueError("a turn can be sent to an open session without a running turn")
        self._turn = turn
        self._stop.clear()

    def events(self) -> "Iterator[Event]":
        """The turn's events: each read from request to result, the findings, the answer, the end."""
        from dialogue import events

        turn = self._turn
        if turn is None:
            raise ValueError("there is no turn")
        told: queue.SimpleQueue[Any] = queue.SimpleQueue()
        where = this_machine()
        worker = threading.Thread(target=self._work, args=(turn, where, told), daemon=True)
        yield events.TurnStarted(turn.text)
        worker.start()
        while isinstance(got := told.get(), runner.Step):
            yield from _step_events(got)
        self._turn = None
        if isinstance(got, Report):
            self.report = got
            yield from _report_events(got, where)
        elif isinstance(got, runner.Stopped):
            yield events.Error("cancelled", "the question was interrupted", "nothing was changed", "")
            yield events.TurnCompleted(130)
        else:
            yield events.Error("internal", f"the checks broke: {type(got).__name__}", "nothing was changed", "")
            yield events.TurnCompleted(1)

    def _work(self, turn: "Turn", where: "Where", told: "queue.SimpleQueue[Any]") -> None:
        try:
            piped = None
            if turn.attachments:
                from runbooks.piped import Piped

                piped = Piped("\n".join(turn.attachments))
            told.put(
                look(
                    turn.text,
                    self._ask,
                    where,
                    utc=self._utc,
                    lang=self._lang,
                    total_s=self._total_s,
                    on_step=told.put,
                    stopped=self._stop.is_set,
                    recall=self._recall,
                    books=self._books,
                    piped=piped,
                    redact=self._redact,
                )
            )
        except Exception as error:  # the reader of the queue must learn of every end
            told.put(error)

    def respond(self, ask_id: str, answer: "Consent") -> None:
        """Does nothing: this brain never asks."""

    def interrupt(self) -> None:
        """Ends the turn within a moment; reads that run are left to their time-outs."""
        self._stop.set()

    def close(self) -> None:
        """Ends the session; safe to call twice."""
        self._stop.set()
        self._state = "closed"


def _step_events(step: runner.Step) -> "Iterator[Event]":
    from dialogue import events

    id = f"t-{step.number}"
    if step.answer is None:
        yield events.ToolRequested(id, "bash", {"argv": list(step.argv)})
        yield events.ToolStarted(id)
        return
    answer = step.answer
    yield events.ToolCompleted(
        id,
        answer.status,
        execution=answer.execution,
        output=answer.stdout,
        exit_code=answer.exit_code,
        duration_ms=step.took_ms,
    )


def _report_events(report: Report, where: "Where") -> "Iterator[Event]":
    from dialogue import events

    for finding in (*report.findings, *report.not_checked):
        yield events.Finding(finding_json(finding, report.host, report.lang))
    for reason in report.unrecorded:
        yield events.Notice(f"not recorded: {reason}")
    yield events.Text(answer_text(report, now_s=where.now_s))
    error = error_of(report)
    if error is not None:
        yield events.Error(**error)
    yield events.TurnCompleted(report.exit_code)
