"""The dead men that wait now, and how each goes on: for every shell to show. Nothing here prints or asks.

A shell looks when something was carried out; a thread then tells what remains at some stages and how it ended, also
while the shell does other things. The seconds are told from the deadline on record, so that all shells count alike.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from acting import deadman
from guard.errors import StateError
from guard.ledger import claims

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from acting.deadman import Armed
    from execution import Guard

STAGES_S = (60, 30, 10)
"""What remains when it is told again: often enough to act, seldom enough to read."""
TICK_S = 0.5
RESULT_S = 60.0
"""How long the end of taking it back is waited for, so that it can be told with its outcome."""
OVERDUE_S = 15.0
"""So long after the deadline nothing has been heard of it: something killed it."""
TAIL = 2_000
"""Entries of the log that are looked through for those that wait; a day's, and they wait for an hour at most."""
WAITING, LOST = "waiting", "lost"
_ENDS = {
    claims.CONFIRMED: "is confirmed and stays",
    claims.STOOD_DOWN: "never began",
    LOST: "is not watched any more: look, and take it back if you cannot come in (opsx rollback)",
}


class Told(NamedTuple):
    """One thing that a person should know about a change that waits for a confirmation."""

    execution: str
    deadline_at: str
    """RFC 3339."""
    state: str
    """`waiting` · `confirmed` · `fired` · `stood-down` (`guard.ledger.claims`) · `lost`"""
    seconds_left: int
    text: str
    """In words, with what to do."""


def waiting(guard: Guard) -> tuple[Armed, ...]:
    """Those that wait, the next due first. Raises StateError."""
    ids = [str(one.get("execution")) for one in guard.ledger.audit(TAIL) if one.get("kind") == deadman.ARMED]
    found = [armed for one in dict.fromkeys(ids) if (armed := of(one, guard)) is not None]
    return tuple(sorted(found, key=lambda armed: armed.deadline_at))


def of(execution: str, guard: Guard) -> Armed | None:
    """The dead man of this execution while it waits, else None. Raises StateError."""
    armed = deadman.armed_for(execution, guard)
    if armed is None or deadman.ended_as(execution, guard) or -deadman.left_s(armed, guard) > OVERDUE_S:
        return None
    return armed


def words(armed: Armed, state: str, guard: Guard, result: str = "") -> str:
    """How it stands, for a person.

    Args:
        result: how taking it back ended; "" while that is not known.
    """
    if state == WAITING:
        return f"{armed.execution} is {deadman.waiting_words(armed, guard)}"
    if state == claims.FIRED:
        if not result:
            return f"nobody confirmed {armed.execution} in time: it is being taken back"
        if result == "succeeded":
            return f"{armed.execution} is taken back: nobody confirmed it in time"
        return f"{armed.execution} could not be taken back whole: opsx show {armed.execution}"
    return f"{armed.execution} {_ENDS[state]}"


def in_short(armed: Sequence[Armed], guard: Guard) -> str:
    """The next that is due, and in how many seconds, for a status line; "" when none waits."""
    if not armed:
        return ""
    more = f" (and {len(armed) - 1} more)" if len(armed) > 1 else ""
    left = deadman.seconds_left(armed[0], guard)
    return f"back in {left} s{more}: opsx confirm {armed[0].execution} over a NEW connection"


def as_object(execution: str, guard: Guard) -> dict[str, object] | None:
    """A dead man for programs: state, deadline, seconds left and how to confirm; None for a run without one."""
    armed = deadman.armed_for(execution, guard)
    if armed is None:
        return None
    ended = deadman.ended_as(execution, guard)
    state = ended or (WAITING if of(execution, guard) else LOST)
    return {
        "state": state,
        "deadline_at": armed.deadline_at,
        "seconds_left": deadman.seconds_left(armed, guard) if state == WAITING else 0,
        "confirm": f"opsx confirm {execution}" if state == WAITING else None,
    }


class Watch:
    """Follows the dead men of one shell. Safe from any thread."""

    def __init__(self, guard: Guard, tell: Callable[[Told], None], *, tick_s: float = TICK_S) -> None:
        """Args: tell: called from a thread of the watch's own, once for each stage and end."""
        self._guard, self._tell, self._tick_s = guard, tell, tick_s
        self._lock = threading.Lock()
        self._armed: dict[str, Armed] = {}
        self._seen: set[str] = set()
        self._closed = threading.Event()
        self._running = False

    def look(self, execution: str | None) -> None:
        """Follows this run's dead man, if it has one that waits. Costs one look at the record."""
        if not execution or not self._guard.connection or execution in self._seen:
            return
        with contextlib.suppress(StateError):
            self._follow(of(execution, self._guard))

    def look_at_all(self) -> None:
        """Follows all that wait, whoever made them: a shell that is opened later tells of them too."""
        with contextlib.suppress(StateError):
            for armed in waiting(self._guard):
                self._follow(armed)

    def now(self) -> tuple[Armed, ...]:
        """Those that wait, the next due first."""
        with self._lock:
            return tuple(sorted(self._armed.values(), key=lambda armed: armed.deadline_at))

    def close(self) -> None:
        """Tells nothing any more. The dead men go on."""
        self._closed.set()

    def _follow(self, armed: Armed | None) -> None:
        if armed is None:
            return
        with self._lock:
            if armed.execution in self._seen or self._closed.is_set():
                return
            self._seen.add(armed.execution)
            self._armed[armed.execution] = armed
            begins, self._running = not self._running, True
        if begins:
            threading.Thread(target=self._run, name="countdown", daemon=True).start()

    def _run(self) -> None:
        told: dict[str, int] = {}
        while not self._closed.wait(self._tick_s if told else 0):
            armed = self.now()
            with self._lock:
                if not self._armed:
                    self._running = False
                    return
            for one in armed:
                with contextlib.suppress(StateError):
                    self._step(one, told)

    def _step(self, armed: Armed, told: dict[str, int]) -> None:
        ended = deadman.ended_as(armed.execution, self._guard)
        left_s = deadman.left_s(armed, self._guard)
        if not ended and -left_s > OVERDUE_S:
            ended = LOST
        if ended:
            self._ended(armed, ended)
            return
        stage = sum(left_s <= stage for stage in STAGES_S)
        if armed.execution not in told or stage > told[armed.execution]:
            told[armed.execution] = stage
            self._say(armed, WAITING, words(armed, WAITING, self._guard))

    def _ended(self, armed: Armed, state: str) -> None:
        if state == claims.FIRED:
            self._say(armed, state, words(armed, state, self._guard))
        with self._lock:
            self._armed.pop(armed.execution, None)
        result = deadman.result_of(armed.execution, self._guard) if state == claims.FIRED else ""
        until_s = time.monotonic() + RESULT_S
        while state == claims.FIRED and self._goes_on(armed, result) and time.monotonic() < until_s:
            if self._closed.wait(self._tick_s):
                return
            result = deadman.result_of(armed.execution, self._guard)
        if state != claims.FIRED or result:
            self._say(armed, state, words(armed, state, self._guard, result))

    def _goes_on(self, armed: Armed, result: str) -> bool:
        """Whether it is still being taken back; what failed is tried again."""
        return not result or (result == "failed" and deadman.is_alive(armed))

    def _say(self, armed: Armed, state: str, text: str) -> None:
        if not self._closed.is_set():
            left = deadman.seconds_left(armed, self._guard) if state == WAITING else 0
            self._tell(Told(armed.execution, armed.deadline_at, state, left, text))
