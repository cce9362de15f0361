"""`-p`: one question, one answer, in the form that was asked for. Builds text; prints nothing.

A plain answer, `--json` and `--nagios` are made from the report directly; `--output stream-json` is the event stream
of a session, because its readers follow along.
"""

from guard.errors import UsageError
from runbooks.catalogue import BUILT_IN, Books
from runbooks.look import look, this_machine
from runbooks.report import report_json
from runbooks.wording import answer_text, nagios_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Protocol

    from runbooks import runner
    from runbooks.model import Ask, Words
    from runbooks.piped import Piped
    from runbooks.report import Report

    class Memory(Protocol):
        """Where findings are kept (`cli.runbook_memory`)."""

        def recall(self) -> Mapping[str, Any]: ...

        def remember(self, report: Report, /) -> None: ...


MOST_CHARACTERS = 32_768
"""A question is at most this long: longer texts are data for a model, which this brain is not."""
OUTPUTS = ("text", "json", "stream-json", "nagios")


class Question:
    """What was asked and how to answer it."""

    __slots__ = ("text", "output", "lang", "total_s", "shown", "watch_s", "piped", "cut")

    def __init__(self, text: str, *, output: str = "text", lang: str = "", total_s: float = 20.0) -> None:
        self.text = text
        self.output = output
        self.lang = lang
        """`en`, `zh`, or "" for the language of the question."""
        self.total_s = total_s
        self.shown = text
        """What events may repeat of the question; the shell redacts it."""
        self.watch_s = 0.0
        """Ask again after so many seconds; 0: once."""
        self.piped = ""
        """A text that came with the question: data, never part of it."""
        self.cut: Words | None = None
        """How `piped` is not whole; None when it is."""


def require_question(text: str) -> str:
    """The question without surrounding blanks.

    Raises:
        UsageError: empty, too long, with a NUL, or not valid UTF-8.
    """
    example = """opsagent -p "check this machine's disk and memory\""""
    if "\0" in text:
        raise UsageError("the question holds a NUL", hint=example)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError("the question is not valid UTF-8", hint=example) from None
    if not text.strip():
        raise UsageError("the question is empty", hint=example)
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"the question is {len(text):,} characters long; the limit is {MOST_CHARACTERS:,}", hint=example
        )
    return text.strip()


def answer(
    question: Question,
    ask: "Ask",
    *,
    utc: "Callable[[], str]",
    encode: "Callable[[object], str]",
    on_step: "Callable[[runner.Step], None] | None" = None,
    stopped: "Callable[[], bool] | None" = None,
    memory: "Memory | None" = None,
    books: Books = BUILT_IN,
    redact: "Callable[[str], str]" = str,
) -> "tuple[str, int]":
    """The answer's text for stdout and the exit code, for every output but `stream-json`.

    Args:
        encode: one JSON object as one line of text.
        memory: keeps findings from one question to the next, for "changed since".
        redact: takes secrets out of what is shown of the piped text.
    Raises:
        runbooks.runner.Stopped: interrupted.
    """
    where = this_machine()
    report = look(
        question.text,
        ask,
        where,
        utc=utc,
        lang=question.lang,
        total_s=question.total_s,
        on_step=on_step,
        stopped=stopped,
        recall=memory.recall if memory else None,
        books=books,
        piped=_piped_of(question),
        redact=redact,
    )
    if memory:
        memory.remember(report)
    return shown(report, question.output, now_s=where.now_s, encode=encode)


def _piped_of(question: Question) -> "Piped | None":
    if not question.piped:
        return None
    from runbooks.piped import Piped

    return Piped(question.piped, cut=question.cut)


def shown(report: "Report", output: str, *, now_s: float, encode: "Callable[[object], str]") -> "tuple[str, int]":
    """A report in one of the outputs, and the exit code that belongs to it."""
    if output == "nagios":
        return nagios_text(report), report.nagios_code
    text = answer_text(report, now_s=now_s)
    if output == "json":
        return encode(report_json(report, text)) + "\n", report.exit_code
    return text, report.exit_code


def stream(
    question: Question,
    ask: "Ask",
    *,
    utc: "Callable[[], str]",
    session: str,
    encode: "Callable[[object], str]",
    stopped: "Callable[[], bool] | None" = None,
    memory: "Memory | None" = None,
    books: Books = BUILT_IN,
    redact: "Callable[[str], str]" = str,
) -> "Iterator[tuple[str, int | None]]":
    """Events v1, one JSON line each as they happen; the last one carries the exit code beside it."""
    from agent import offline
    from dialogue.events import SessionStarted, Stamped, TurnCompleted, TurnStarted
    from dialogue.protocol import Turn

    recall = memory.recall if memory else None
    brain = offline.OfflineSession(
        ask, utc=utc, lang=question.lang, total_s=question.total_s, recall=recall, books=books, redact=redact
    )
    brain.start()
    brain.send_turn(Turn(question.text, (question.piped,) if question.piped else ()))
    number = 1
    yield encode(Stamped(SessionStarted(brain=brain.name), session, 0, number, utc()).as_json()) + "\n", None
    for event in brain.events():
        if isinstance(event, TurnStarted):
            event = TurnStarted(question.shown)
        if stopped is not None and stopped():
            brain.interrupt()
        number += 1
        code = event.exit_code if isinstance(event, TurnCompleted) else None
        yield encode(Stamped(event, session, 1, number, utc()).as_json()) + "\n", code
    if memory and brain.report:
        memory.remember(brain.report)
    brain.close()
