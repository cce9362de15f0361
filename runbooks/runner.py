"""Runs the reads of several runbooks at once, within 20 s in all, and gives their findings.

Reads that two runbooks share run once. Work is taken in the order of the catalogue, so when time runs short the
first runbooks have finished, and whatever is missing reads "not checked". A read whose thread does not come back
(a child stuck in the kernel) is given up and does not hold the others.
"""

import threading
import time

from runbooks.catalogue import BUILT_IN, Books
from runbooks.model import Answer, Answers, Finding, Words
from runbooks.reading import not_checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from runbooks.model import Ask, Command, Runbook, Where

TOTAL_S = 20.0
EACH_S = 8.0
AT_ONCE = 4
GRACE_S = 1.5
"""How long after its own time-out a read may take to come back, with what its end costs; a quarter of a short total."""
MOST_ROUNDS = 6
"""No runbook asks in more rounds than this; a module that would is a bug, not a reason to go on for ever."""
LATE = "the time for all checks was used up"


class Step:
    """What happened to one read, for shells that show progress. `answer` is None when it begins."""

    __slots__ = ("number", "argv", "answer", "took_ms")

    def __init__(self, number: int, argv: "tuple[str, ...]", answer: "Answer | None" = None, took_ms: int = 0) -> None:
        self.number = number
        self.argv = argv
        self.answer = answer
        self.took_ms = took_ms


class Checked:
    """What the chosen runbooks found and what they ran."""

    __slots__ = ("findings", "answers")

    def __init__(self, findings: "list[Finding]", answers: "list[Answer]") -> None:
        self.findings = findings
        self.answers = answers
        """Every read that was tried, in the order in which it began."""


class Stopped(Exception):
    """The caller asked for an end; what was found so far is dropped."""


class _Read:
    """One read on its way."""

    __slots__ = ("command", "number", "rank", "began", "until", "answer", "given_up", "timeout_s")

    def __init__(self, command: "Command", number: int, rank: int) -> None:
        self.command = command
        self.number = number
        self.rank = rank
        self.began: float | None = None
        self.until = 0.0
        self.answer: Answer | None = None
        self.given_up = False
        self.timeout_s = 0.0


def run(
    ids: "Sequence[str]",
    ask: "Ask",
    where: "Where",
    *,
    utc: "Callable[[], str]",
    total_s: float = TOTAL_S,
    on_step: "Callable[[Step], None] | None" = None,
    stopped: "Callable[[], bool] | None" = None,
    monotonic: "Callable[[], float]" = time.monotonic,
    books: Books = BUILT_IN,
) -> Checked:
    """Runs the runbooks and waits until each has read its answers, at most `total_s`.

    Args:
        ids: modules of the catalogue (not `overview`), in any order.
        ask: called from up to four threads; a `GuardError` or anything else that it raises is a reason for
            "not checked".
        on_step: called from this thread, in order: each read's begin, then its end.
        stopped: asked several times a second; when true the run ends with `Stopped`.
    """
    return _Run(ids, ask, where, utc, total_s, on_step, stopped, monotonic, books).to_the_end()


class _Run:
    def __init__(
        self,
        ids: "Sequence[str]",
        ask: "Ask",
        where: "Where",
        utc: "Callable[[], str]",
        total_s: float,
        on_step: "Callable[[Step], None] | None",
        stopped: "Callable[[], bool] | None",
        monotonic: "Callable[[], float]",
        books: Books,
    ) -> None:
        self.books: list[Runbook] = [books.load(id) for id in ids]
        self.have = [Answers() for _ in self.books]
        self.wanted: list[list[tuple[str, _Read]]] = [[] for _ in self.books]
        self.rounds = [0] * len(self.books)
        self.ask, self.where, self.utc = ask, where.replace(beside=len(self.books) - 1), utc
        self.on_step, self.stopped, self.now = on_step, stopped, monotonic
        # A read that is ended at the deadline still has to come back, so the deadline lies before the end of all.
        self.grace_s = min(GRACE_S, total_s / 4)
        self.deadline = monotonic() + total_s - self.grace_s
        self.reads: dict[tuple[str, ...], _Read] = {}
        self.queue: list[_Read] = []
        self.told: list[Step] = []
        self.change = threading.Condition()
        self.working = 0

    def to_the_end(self) -> Checked:
        for index in range(len(self.books)):
            self._ask_more(index)
        while any(self.wanted):
            with self.change:
                self._start_threads()
                if not self.told:
                    self.change.wait(0.1)
            self._tell()
            if self.stopped is not None and self.stopped():
                raise Stopped
            self._give_up_late_ones()
            self._hand_out()
        self._tell()
        findings: list[Finding] = []
        for book, have in zip(self.books, self.have, strict=True):
            findings += self._read(book, have)
        answers = [read.answer for read in self.reads.values() if read.answer is not None]
        return Checked(findings, answers)

    def _read(self, book: "Runbook", have: Answers) -> "list[Finding]":
        try:
            return book.read(have, self.where)
        except Exception as error:  # one parser's bug must not take the other answers with it
            why = Words(
                f"its answer could not be read ({type(error).__name__})", f"无法解析结果（{type(error).__name__}）"
            )
            return [not_checked(book.ID, book.TITLE, why)]

    def _ask_more(self, index: int) -> None:
        """Queues what this runbook asks next, given what it knows. Nothing more: it is ready to read."""
        self.rounds[index] += 1
        if self.rounds[index] > MOST_ROUNDS:
            return
        try:
            commands = self.books[index].commands(self.have[index], self.where)
        except Exception:  # read() then says what is missing
            return
        for command in commands:
            read = self.reads.get(command.argv)
            if read is None:
                read = _Read(command, len(self.reads) + 1, index)
                self.reads[command.argv] = read
                with self.change:
                    self.queue.append(read)
                    self.queue.sort(key=lambda one: (one.rank, one.number))
            self.wanted[index].append((command.key, read))

    def _hand_out(self) -> None:
        for index, wanted in enumerate(self.wanted):
            if not wanted:
                continue
            still = []
            for key, read in wanted:
                if read.answer is None:
                    still.append((key, read))
                else:
                    self.have[index].add(key, read.answer)
            self.wanted[index] = still
            if not still:
                self._ask_more(index)

    def _give_up_late_ones(self) -> None:
        now = self.now()
        with self.change:
            for read in self.reads.values():
                if read.answer is not None:
                    continue
                if read.began is not None and now >= read.until:
                    read.given_up = True
                    self.working -= 1
                    took = int((now - read.began) * 1000)
                    read.answer = Answer(None, status="timed_out", reason="stuck in the kernel", at=self.utc())
                    self.told.append(Step(read.number, read.command.argv, read.answer, took))
                elif read.began is None and now >= self.deadline:
                    read.answer = Answer(None, status="cancelled", reason=LATE, recorded=True, at=self.utc())
                    self.queue.remove(read)

    def _start_threads(self) -> None:
        """Starts what fits beside the running reads, in rank order: one thread a read.

        A thread takes no second read by itself, so that the next one is chosen after this read's answer was seen:
        the second question of a first-ranked runbook goes before the first question of a later one.
        """
        while self.queue and self.working < AT_ONCE:
            now = self.now()
            if now >= self.deadline:
                return
            read = self.queue.pop(0)
            read.timeout_s = max(0.1, min(read.command.timeout_s, EACH_S, self.deadline - now))
            read.began, read.until = now, now + read.timeout_s + self.grace_s
            self.working += 1
            self.told.append(Step(read.number, read.command.argv))
            # A daemon: a thread whose read hangs in the kernel must not keep the program from ending.
            threading.Thread(target=self._work, args=(read,), daemon=True).start()

    def _work(self, read: _Read) -> None:
        try:
            answer = _as_answer(self.ask(read.command.argv, read.timeout_s), self.utc)
        except Exception as error:  # a broken guard is a reason, not an end of the other checks
            reason = str(getattr(error, "message", "")) or type(error).__name__
            answer = Answer(None, status="failed", recorded=False, reason=reason, at=self.utc())
        with self.change:
            if read.given_up:
                return  # another thread has taken this one's place
            read.answer = answer
            self.working -= 1
            took = int((self.now() - (read.began or 0)) * 1000)
            self.told.append(Step(read.number, read.command.argv, answer, took))
            self.change.notify_all()

    def _tell(self) -> None:
        with self.change:
            told, self.told = self.told, []
        if self.on_step is not None:
            for step in told:
                self.on_step(step)


def _as_answer(got: "Any", utc: "Callable[[], str]") -> Answer:
    return Answer(
        got.exit_code,
        got.stdout,
        got.stderr,
        got.status,
        got.execution,
        got.interference,
        got.recorded,
        got.reason,
        getattr(got, "at", "") or utc(),
    )
