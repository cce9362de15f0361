"""Asks that commands of the person open: through the same dock as those of the brain. Safe from any thread."""

from __future__ import annotations

import dataclasses
import itertools
import queue
from typing import TYPE_CHECKING

from dialogue.confirm import ANSWERED, CANCELLED, EXPIRED, UNANSWERED, Answer
from dialogue.events import AskOpened, AskSettled

if TYPE_CHECKING:
    from collections.abc import Callable

    from dialogue.confirm import Ask
    from dialogue.events import Event

QUESTION_S = 900.0
"""How long a command waits for words."""


class LocalAsks:
    """`dialogue.confirm.Confirm` for commands. Their ids begin with `d-`, those of conversations with `q-`."""

    def __init__(self, tell: Callable[[Event], None], *, person: bool) -> None:
        """
        Args:
            tell: shows the events; called in the asking thread.
            person: whether somebody is there who may answer.
        """
        self._tell, self._person = tell, person
        self._numbers = itertools.count(1)
        self._open: dict[str, queue.SimpleQueue[Answer]] = {}
        self._closed = False

    def ask(self, ask: Ask, *, timeout_s: float) -> Answer:
        """Shows an ask and waits for its answer."""
        if not self._person:
            return Answer(UNANSWERED, reason="nobody may approve here")
        return self._waited("approval", dataclasses.asdict(ask), timeout_s)

    def question(self, question: str, options: tuple[str, ...]) -> str:
        """Words of the person; "" without an answer."""
        answer = self._waited("question", {"question": question, "options": list(options)}, QUESTION_S)
        return answer.reason if answer.outcome == ANSWERED else ""

    def settle(self, id: str, answer: Answer) -> bool:
        """Gives an answer to one of these asks; False when the id is none of them."""
        waiting = self._open.pop(id, None)
        if waiting is not None:
            waiting.put(answer)
        return waiting is not None

    def cancel_all(self) -> None:
        """Settles whatever is open as cancelled."""
        for id in list(self._open):
            self.settle(id, Answer(CANCELLED))

    def close(self) -> None:
        """Nothing is asked from here on."""
        self._closed = True
        self.cancel_all()

    def _waited(self, kind: str, asked: dict[str, object], timeout_s: float) -> Answer:
        id = f"d-{next(self._numbers)}"
        waiting = self._open[id] = queue.SimpleQueue()
        self._tell(AskOpened(id, asked, kind, timeout_s))
        if self._closed:
            self.settle(id, Answer(CANCELLED))
        try:
            answer = waiting.get(timeout=timeout_s)
        except queue.Empty:
            answer = Answer(EXPIRED) if self._open.pop(id, None) is not None else waiting.get()
        self._tell(AskSettled(id, answer.outcome))
        return answer
