"""The permission dock as a state machine: keys and time in, answers out. Pure; the terminal is somebody else's.

What was typed or pasted before an ask was drawn, and until 0.4 s without a key have passed after that, belongs to the
composer. Nothing is default. A yes is the whole word and Enter (for what cannot be undone the object as shown), and
only once all of the text has been on the screen: Enter alone, Esc, a paste and the end of input never approve.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dialogue.confirm import ANSWERED, APPROVED, CANCELLED, COMMAND, DENIED, EXPIRED, UNANSWERED, Answer, Ask, ask_of
from dialogue.screen import MARKED, question_of, screen_of

if TYPE_CHECKING:
    from dialogue.events import AskOpened

QUIET_S = 0.4
"""Keys within this time of the drawing, or of another such key, were meant for something else."""
MOST_RUNS = 100
"""As `opsx approve --uses`."""
MOST_TYPED = 4_000
FIXED_ROWS = 4
"""Rows beside the text that is asked about and the choices: title, place in the text, answer, status."""
LEAST_BODY = 3
LEAST_COLUMNS = 40
"""`screen_of` makes no narrower rows: in a smaller window they are cut, and what is cut is not approved."""
CONSENT = "tty"

_RUNS = re.compile(r"yes ([1-9][0-9]{0,2})")

TEXT, ENTER, ESCAPE, BACKSPACE, ERASE = "text", "enter", "escape", "backspace", "erase"
UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END = "up", "down", "page-up", "page-down", "home", "end"
PASTE, INTERRUPT, END_OF_INPUT, OTHER = "paste", "interrupt", "end-of-input", "other"


@dataclass(frozen=True, slots=True)
class Key:
    """One key, or one whole paste."""

    name: str
    text: str = ""
    """What `text` and `paste` bring."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One ask in the queue."""

    id: str
    ask: Ask | None
    """None for a question that clarifies."""
    question: str = ""
    options: tuple[str, ...] = ()
    ends_s: float = 0.0
    """When an answer no longer counts, by the clock of `now_s`; 0: nobody said."""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """All requests that one answer is for: one, or those of a plan; () for a question."""
        return () if self.ask is None else (self.ask, *self.ask.also)


@dataclass(frozen=True, slots=True)
class Dock:
    """What is asked, and how far the person is with it."""

    waiting: tuple[Waiting, ...] = ()
    columns: int = 80
    lines: int = 24
    quiet_until_s: float = 0.0
    typed: str = ""
    said: str = ""
    """About the last key: why it was no answer."""
    top: int = 0
    """First row of the text that is on the screen."""
    reached: int = 0
    """The row behind the last one that has been on the screen; what was jumped over counts as passed."""
    marks_left: frozenset[int] | None = None
    """Marked rows that have not been on the screen yet; None until it was drawn."""
    read: bool = False
    """All that has to be read before a yes has been on the screen."""
    given: int = 0
    """How many of the objects that have to be typed for a plan have been typed."""
    number: int = 1
    """Which of all asks since the queue was last empty is in front."""


@dataclass(frozen=True, slots=True)
class Forward:
    """The key belongs to the composer."""


@dataclass(frozen=True, slots=True)
class Settle:
    """The front ask is answered."""

    id: str
    answer: Answer
    stop: bool = False
    """The turn is to end too."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The person wants to change the command of the front ask."""

    id: str
    command: str


Act = Forward | Settle | Edit | None


def waiting_of(event: AskOpened, now_s: float) -> Waiting:
    """The dock's entry for an ask event."""
    ends_s = now_s + event.timeout_s if event.timeout_s else 0.0
    if event.kind == "question":
        options = event.ask.get("options")
        texts = tuple(str(one) for one in options) if isinstance(options, list | tuple) else ()
        return Waiting(event.id, None, str(event.ask.get("question", "")), texts, ends_s)
    return Waiting(event.id, ask_of(event.ask), ends_s=ends_s)


def opened(dock: Dock, one: Waiting, now_s: float) -> Dock:
    """The dock with one more ask at the end of the queue."""
    if any(other.id == one.id for other in dock.waiting):
        return dock
    after = replace(dock, waiting=(*dock.waiting, one))
    return after if dock.waiting else _drawn(replace(after, number=1), now_s)


def over(dock: Dock, id: str, now_s: float) -> Dock:
    """The dock without an ask that is settled, by this person or in another way."""
    if not any(one.id == id for one in dock.waiting):
        return dock
    front = dock.waiting[0].id == id
    left = tuple(one for one in dock.waiting if one.id != id)
    if not front:
        return replace(dock, waiting=left)
    return _drawn(replace(dock, waiting=left, number=dock.number + 1), now_s)


def resized(dock: Dock, columns: int, lines: int) -> Dock:
    """The dock in a window of another size; a size of 0 counts as 80 × 24. What was read stays read."""
    columns, lines = columns or 80, lines or 24
    if (columns, lines) == (dock.columns, dock.lines):
        return dock
    top = 0 if columns != dock.columns else dock.top
    return _seen(replace(dock, columns=columns, lines=lines, top=top, reached=0, marks_left=None))


def press(dock: Dock, key: Key, now_s: float) -> tuple[Dock, Act]:
    """What one key does to an open dock."""
    if not dock.waiting:
        return dock, Forward()
    front = dock.waiting[0]
    if now_s < dock.quiet_until_s and key.name not in (INTERRUPT, END_OF_INPUT):
        return replace(dock, quiet_until_s=now_s + QUIET_S), Forward()
    if front.ends_s and now_s >= front.ends_s:
        return _answered(dock, Answer(EXPIRED), now_s)
    match key.name:
        case "text":
            typed = (dock.typed + "".join(char for char in key.text if char.isprintable()))[:MOST_TYPED]
            return replace(dock, typed=typed, said=""), None
        case "paste":
            if front.ask is None:
                words = " ".join(key.text.split())
                return replace(dock, typed=(dock.typed + words)[:MOST_TYPED], said=""), None
            return replace(dock, typed="", said="a paste is no answer; it went to the line below"), Forward()
        case "backspace":
            return replace(dock, typed=dock.typed[:-1], said=""), None
        case "erase":
            return replace(dock, typed="", said=""), None
        case "enter":
            return _entered(dock, front, now_s)
        case "escape":
            if dock.typed:
                return replace(dock, typed="", said=""), None
            return _answered(dock, Answer(CANCELLED, reason="not now"), now_s)
        case "interrupt":
            return _answered(dock, Answer(CANCELLED), now_s, stop=True)
        case "end-of-input":
            return _answered(dock, Answer(UNANSWERED), now_s)
        case "up" | "down" | "page-up" | "page-down" | "home" | "end":
            return _scrolled(dock, key.name), None
        case _:
            return dock, None


def body_of(dock: Dock) -> tuple[str, ...]:
    """Every row of the text that the front ask is about."""
    if not dock.waiting:
        return ()
    front = dock.waiting[0]
    if front.ask is not None:
        return tuple(screen_of(front.asks, dock.columns).rstrip("\n").split("\n"))
    from guard import render

    rows = render.wrap(render.visible(front.question), dock.columns)
    for number, option in enumerate(front.options, 1):
        rows += render.wrap(f"  {number}. {render.visible_line(option)}", dock.columns)
    return tuple(rows)


def body_height(dock: Dock, rows: int) -> int:
    """How many rows of the text are on the screen at once."""
    choices = 1 if dock.columns >= 80 else 2 if dock.columns >= 60 else 4
    return min(rows, max(LEAST_BODY, dock.lines - FIXED_ROWS - choices))


def shown_sha256(asks: tuple[Ask, ...], columns: int) -> str:
    """Hash of what the person was shown, for the record."""
    text = screen_of(asks, columns) + question_of(asks)[0]
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _drawn(dock: Dock, now_s: float) -> Dock:
    """A new front: nothing typed, nothing read, and quiet first."""
    return _seen(
        replace(
            dock,
            quiet_until_s=now_s + QUIET_S,
            typed="",
            said="",
            top=0,
            reached=0,
            marks_left=None,
            read=False,
            given=0,
        )
    )


def _seen(dock: Dock) -> Dock:
    """Notes which rows are on the screen now."""
    rows = body_of(dock)
    bottom = dock.top + body_height(dock, len(rows))
    marks = dock.marks_left
    if marks is None:
        marks = frozenset(number for number, row in enumerate(rows) if row.startswith(MARKED))
    marks = frozenset(number for number in marks if not dock.top <= number < bottom)
    reached = max(dock.reached, bottom)
    return replace(dock, reached=reached, marks_left=marks, read=dock.read or (reached >= len(rows) and not marks))


def _scrolled(dock: Dock, name: str) -> Dock:
    rows = len(body_of(dock))
    height = body_height(dock, rows)
    step = {UP: -1, DOWN: 1, PAGE_UP: 1 - height, PAGE_DOWN: height - 1, HOME: -rows, END: rows}[name]
    top = max(0, min(dock.top + (step or 1), rows - height))
    return _seen(replace(dock, top=top, said=""))


def _entered(dock: Dock, front: Waiting, now_s: float) -> tuple[Dock, Act]:
    typed = dock.typed.strip()
    again = replace(dock, typed="")
    if not typed:
        return replace(again, said="Enter alone is no answer"), None
    if front.ask is None:
        if typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(front.options):
            typed = front.options[int(typed) - 1]
        return _answered(dock, Answer(ANSWERED, CONSENT, reason=typed), now_s)
    ask = front.ask
    if typed == "no" or typed.startswith("no "):
        return _answered(dock, _answer(dock, DENIED, reason=typed[3:].strip()), now_s)
    if typed == "edit":
        if ask.kind != COMMAND:
            return replace(again, said="only a command is edited here: no, with what you want instead"), None
        if ask.also:
            return replace(again, said="a plan is not edited here: no, with what you want instead"), None
        if ask.fingerprint:
            return replace(again, said="a secret in it is not shown here, so it cannot be edited here"), None
        return again, Edit(front.id, ask.command)
    wanted = to_type(front)
    runs = _runs(typed, ask) if not wanted else 1 if dock.typed == wanted[dock.given] else None
    if runs is None:
        words = "what it destroys, as shown" if wanted else "yes, no or edit" if is_editable(ask) else "yes or no"
        return replace(again, said=f"that is no answer: type {words}, then Enter"), None
    if dock.columns < LEAST_COLUMNS:
        return replace(again, said=f"too narrow to show it whole: {LEAST_COLUMNS} columns are needed"), None
    if not dock.read:
        where = "the marked rows (!)" if dock.reached >= len(body_of(dock)) else "all of it"
        return replace(again, said=f"read {where} first: PgDn, PgUp"), None
    if dock.given + 1 < len(wanted):
        return replace(again, given=dock.given + 1, said=""), None
    return _answered(dock, _answer(dock, APPROVED, uses=runs), now_s)


def is_editable(ask: Ask) -> bool:
    """Whether `edit` is an answer: one command, all of it shown."""
    return ask.kind == COMMAND and not ask.also and not ask.fingerprint


def to_type(front: Waiting) -> tuple[str, ...]:
    """What has to be typed one after the other: the object of each request that cannot be undone; () for a yes."""
    return tuple(one.must_type for one in front.asks if one.must_type)


def _runs(typed: str, ask: Ask) -> int | None:
    """How many runs the words approve, of what a yes is enough for; None when they approve nothing."""
    if typed == "yes":
        return 1
    found = _RUNS.fullmatch(typed)
    several = ask.kind == COMMAND and not ask.also
    return int(found[1]) if found and int(found[1]) <= MOST_RUNS and several else None


def _answer(dock: Dock, outcome: str, *, reason: str = "", uses: int = 1) -> Answer:
    return Answer(outcome, CONSENT, shown_sha256(dock.waiting[0].asks, dock.columns), reason=reason, uses=uses)


def _answered(dock: Dock, answer: Answer, now_s: float, *, stop: bool = False) -> tuple[Dock, Act]:
    id = dock.waiting[0].id
    return over(dock, id, now_s), Settle(id, answer, stop)
