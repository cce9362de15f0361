"""Asking the person of a conversation through its events: `AskOpened` out, `respond` in. Silence is no.

An ask is made by a tool in a thread of its own and waits there; whoever reads the events shows it and settles it, from
the same thread or another. An interrupt, the end of its time, and anything that is no answer all mean no.
"""

from __future__ import annotations

import dataclasses
import itertools
import queue
import time
from typing import TYPE_CHECKING, Any

from capabilities.asking import ELSEWHERE
from dialogue.confirm import ANSWERED, CANCELLED, EXPIRED, OUTCOMES, RESOLVE, UNANSWERED, Answer
from dialogue.events import AskOpened, AskSettled

if TYPE_CHECKING:
    from collections.abc import Callable

    from dialogue.confirm import Ask
    from dialogue.events import Event

LOOK_S = 1.0
"""How often it is looked whether an open request was answered in another shell."""
MOST_OPEN = 3
"""Asks of one conversation that are open at once: a person reads one after the other."""


class Asks:
    """`dialogue.confirm.Confirm` over a conversation's events."""

    def __init__(
        self,
        tell: Callable[[Event], None],
        *,
        stopped: Callable[[], bool],
        elsewhere: Callable[[str], Answer | None],
    ) -> None:
        """
        Args:
            tell: gets the events, from the asking thread.
            stopped: whether the turn is to end.
            elsewhere: what was said to a request (`a-…`) in another shell, None while it waits.
        """
        self._tell = tell
        self._stopped = stopped
        self._elsewhere = elsewhere
        self._numbers = itertools.count(1)
        self._open: dict[str, queue.SimpleQueue[Answer]] = {}

    def ask(self, ask: Ask, *, timeout_s: float) -> Answer:
        """Asks for an approval and waits for its end."""
        request = ask.id if ask.kind != RESOLVE else ""
        return self._settled("approval", dataclasses.asdict(ask), timeout_s, OUTCOMES, request)

    def question(self, question: str, options: list[str], *, timeout_s: float) -> Answer:
        """Asks for words, which approve nothing: an Answer with outcome ANSWERED, or why there is none."""
        asked = {"question": question, "options": options}
        return self._settled("question", asked, timeout_s, (ANSWERED, *OUTCOMES[1:]))

    def respond(self, id: str, answer: Answer) -> None:
        """Settles an open ask, once. Late and unknown ids change nothing; safe from any thread."""
        waiting = self._open.pop(id, None)
        if waiting is not None:
            # Only the log says what was answered elsewhere.
            waiting.put(Answer(UNANSWERED) if answer.consent == ELSEWHERE else answer)

    def cancel_all(self) -> None:
        """Settles whatever is open as cancelled; safe in a signal handler."""
        for id in list(self._open):
            self.respond(id, Answer(CANCELLED))

    def _settled(
        self, kind: str, asked: dict[str, Any], timeout_s: float, outcomes: tuple[str, ...], request: str = ""
    ) -> Answer:
        if len(self._open) >= MOST_OPEN:
            return Answer(UNANSWERED, reason=f"{MOST_OPEN} questions are open already")
        id = f"q-{next(self._numbers)}"
        waiting = self._open[id] = queue.SimpleQueue()
        self._tell(AskOpened(id, asked, kind, timeout_s))
        if self._stopped():  # set before this ask was there to be cancelled
            self.respond(id, Answer(CANCELLED))
        answer = self._waited(id, waiting, timeout_s, request)
        if answer.outcome not in outcomes:
            answer = Answer(UNANSWERED, answer.consent, answer.rendered_sha256)
        self._tell(AskSettled(id, answer.outcome))
        return answer

    def _waited(self, id: str, waiting: queue.SimpleQueue[Answer], timeout_s: float, request: str) -> Answer:
        """The answer from here, or from another shell, or that the time is over."""
        until_s = time.monotonic() + timeout_s
        while True:
            left_s = until_s - time.monotonic()
            try:
                return waiting.get(timeout=max(0.0, min(left_s, LOOK_S) if request else left_s))
            except queue.Empty:
                said = Answer(EXPIRED) if left_s <= 0 else self._elsewhere(request) if request else None
                # Whoever takes it out of the open ones decides: an answer that came just now still counts.
                if said is not None:
                    return said if self._open.pop(id, None) is not None else waiting.get()
