"""What a person sees before a yes: one or several asks as text for a terminal. Pure.

Where it happens comes first, then all of the command, then what is known about it; the asker's own words come last and
apart. Everything that is not ours goes through the renderer, so that what is there is what is seen. Every row of the
command stands behind a margin, so that no part of it can pass for a line of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialogue.confirm import ROLLBACK
from guard import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dialogue.confirm import Ask

COLUMNS = 80
MARGIN = "  | "
MARKED = "  ! "
"""The margin of rows that hold what gives the request its level; only where the command is too long for one look."""
LONG = 10
"""A command of more rows than this says first where to look."""
MOST_MARKS = 8
LABEL = 11
"""Columns of the labels on the left."""

LEVELS = {
    "R0": "reads only, but cannot be held to that here",
    "R1": "small and reversible",
    "R2": "high risk, sensitive, or not understood",
    "R3": "IRREVERSIBLE",
}
REVERSIBLE = {
    "yes": "yes, what is saved first{count}: opsx rollback",
    "partial": "partly, only what is saved first{count}: opsx rollback",
    "no": "only what is saved first{count}: opsx rollback",
}
BUT_SAVED = "IRREVERSIBLE but for what is saved first"


def screen_of(asks: Sequence[Ask], columns: int = COLUMNS) -> str:
    """Everything that is asked for, without the question; ends with a line feed."""
    columns = max(40, columns)
    rows: list[str] = []
    if len(asks) > 1:
        rows += render.wrap(f"{len(asks)} requests, in this order; one answer for all of them", columns)
    for number, ask in enumerate(asks, 1):
        if len(asks) > 1:
            rows += ["", f"── {number} of {len(asks)} ".ljust(columns, "─")]
        rows += _rows(ask, columns)
    return "\n".join(rows) + "\n"


def question_of(asks: Sequence[Ask]) -> tuple[str, tuple[str, ...]]:
    """The question, and what has to be typed, in this order, each with Enter.

    An irreversible request wants its object as shown; several of them want each theirs.
    """
    destroying = [ask for ask in asks if ask.must_type]
    if not destroying:
        return "Type yes and Enter to approve; anything else is no: ", ("yes",)
    undone = "Only what is saved first can be put back.\n" if all(map(_saves, destroying)) else "Cannot be undone. "
    return (
        f"{undone}Type what it destroys, as shown; anything else is no.",
        tuple(ask.must_type for ask in destroying),
    )


def typeable(name: str) -> bool:
    """Whether a person can type a name as it is shown: nothing in it is shown as a marker, and it is not endless."""
    return bool(name.strip()) and len(name) <= 200 and name == name.strip() and render.visible_line(name) == name


def _rows(ask: Ask, columns: int) -> Iterator[str]:
    one = render.visible_line
    yield from _field("on", f"{one(ask.host)} (target {one(ask.target)}), as {one(ask.user)}", columns)
    for text in ask.ambient:
        yield from _field("points at", one(text), columns)
    yield from _field("folder", one(ask.cwd), columns)
    rows = command_rows(ask, columns)
    if len(rows) > LONG:
        yield from _fields("look at", _marks(ask), columns)
    yield ""
    yield from (margin + row for margin, row in rows)
    yield ""
    if ask.fingerprint:
        yield from _field(
            "hidden", f"secrets in it are not shown; the exact bytes have the fingerprint {ask.fingerprint}", columns
        )
    meaning = BUT_SAVED if ask.level == "R3" and _saves(ask) else LEVELS.get(ask.level, "")
    yield from _field("level", f"{ask.level}: {meaning}", columns)
    yield from _fields("why", ask.reasons, columns)
    if not (ask.kind == ROLLBACK and ask.details):  # they say the same, with the differences
        yield from _fields("does", ask.effects, columns)
    for text in ask.details:
        for row in render.wrap(one(text), columns - 4):
            yield "    " + row
    yield from _field("undo", _undo_of(ask), columns)
    yield from _fields("saved first", ask.snapshot_plan, columns)
    yield from _fields("NOT saved", ask.not_saved, columns)
    yield from _fields("not bound", ask.not_bound, columns)
    yield from _fields("NOTE", ask.remarks, columns)
    if ask.must_type:
        yield from _field("destroys", one(ask.must_type), columns)
    if ask.holds:
        yield from _field("approval", one(ask.holds), columns)
    if ask.asked_by:
        yield from _field("asked by", one(ask.asked_by) + (f", request {one(ask.id)}" if ask.id else ""), columns)
    if ask.why:
        yield ""
        yield from render.wrap("What the asker says about it (not checked):", columns)
        for row in render.wrap(render.visible(ask.why), columns - len(MARGIN)):
            yield "  > " + row


def command_rows(ask: Ask, columns: int) -> list[tuple[str, str]]:
    """The command in rows, each with its margin: MARKED where a long one holds what gives it its level."""
    lines = render.visible(ask.command).split("\n")
    wrapped = [(number, row) for number, line in enumerate(lines) for row in render.wrap(line, columns - len(MARGIN))]
    marked: set[int] = set()
    if len(wrapped) > LONG:
        for start, end in ask.marked:
            first = render.visible(ask.command[:start]).count("\n")
            marked.update(range(first, render.visible(ask.command[:end]).count("\n") + 1))
    return [(MARKED if number in marked else MARGIN, row) for number, row in wrapped]


def _marks(ask: Ask) -> Iterator[str]:
    """`line 55 of 60: rm -rf /srv/data` for each line of the command that is marked."""
    lines = ask.command.split("\n")
    numbers = sorted({ask.command.count("\n", 0, start) for start, _ in ask.marked})
    for number in numbers[:MOST_MARKS]:
        yield f"line {number + 1} of {len(lines)}: {lines[number].strip()}"
    if len(numbers) > MOST_MARKS:
        yield f"and {len(numbers) - MOST_MARKS} more lines with {MARKED.strip()}"


def marked_spans(command: str, spans: Iterable[tuple[int, int]], objects: Iterable[str]) -> tuple[tuple[int, int], ...]:
    """Where to look in a command: what its reasons speak of, and each place that names what it changes.

    Args:
        spans: bytes of the command, as reasons have them. A code that a program is fed has the program's span, which
            is why `objects` are looked for too.
        objects: what it writes or deletes.
    """
    data = command.encode("utf-8", "surrogatepass")
    found = set()
    for start, end in spans:
        before = data[:start].decode("utf-8", "replace")
        found.add((len(before), len(before) + len(data[start:end].decode("utf-8", "replace"))))
    for text in set(objects):
        at = command.find(text) if len(text) > 2 else -1
        while at >= 0:
            found.add((at, at + len(text)))
            at = command.find(text, at + len(text))
    return tuple(sorted(found))


def _saves(ask: Ask) -> bool:
    return bool(ask.snapshot_plan)


def _undo_of(ask: Ask) -> str:
    """What a rollback could do: never more than what is saved, never less."""
    if not _saves(ask):
        if ask.level == "R0":
            return "nothing to undo, if it only reads"
        return "by hand: nothing is saved first" if ask.level == "R1" else "no known way back"
    how = "partial" if ask.reversible == "yes" and ask.not_saved else ask.reversible
    count = "" if not ask.saved_paths else " (1 path)" if ask.saved_paths == 1 else f" ({ask.saved_paths} paths)"
    return REVERSIBLE.get(how, REVERSIBLE["no"]).format(count=count)


def _fields(label: str, texts: Iterable[str], columns: int) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield from _field(label if not number else "", render.visible_line(text), columns)


def _field(label: str, text: str, columns: int) -> Iterator[str]:
    """A label and already visible text, further rows indented."""
    for number, row in enumerate(render.wrap(text, columns - LABEL - 1)):
        yield render.pad("" if number else label, LABEL) + " " + row
