"""The permission dock as lines of a width. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.repl import dock as docks
from agent.repl.lines import Line, cut, line, width
from dialogue.confirm import COMMAND
from dialogue.screen import MARGIN, MARKED
from guard import render

if TYPE_CHECKING:
    from agent.repl.dock import Dock, Waiting

_CHOICES = "yes · yes N (N runs) · no · no REASON · edit, then Enter · esc: not now"
_CHOICES_ROLLBACK = "yes · no · no REASON, then Enter · esc: not now"
_CHOICES_R3 = "type what it destroys · no · no REASON · edit, then Enter · esc: not now"
_CHOICES_R3_PLAN = "type what each irreversible step destroys, in order · no · no REASON, then Enter · esc: not now"
_CHOICES_QUESTION = "type an answer or its number, then Enter · esc: no answer"
_QUIET = "(one moment: what is typed now was meant for something else)"
_QUESTION_APPROVES_NOTHING = "question: approves nothing"


def rows_of(dock: Dock, now_s: float) -> list[Line]:
    """All rows of the dock, none wider than its window; [] when nothing is asked."""
    if not dock.waiting:
        return []
    front, columns = dock.waiting[0], dock.columns
    frame = "dock.frame.danger" if is_danger(front) else "dock.frame"
    body = docks.body_of(dock)
    height = docks.body_height(dock, len(body))
    shown = body[dock.top : dock.top + height]
    rows = [_title(dock, front, frame, now_s)]
    rows += [cut(_body_row(row, frame), columns) for row in shown]
    rows.append(_place(dock, len(body), height, frame))
    rows += _choices(front, columns)
    prompt = _prompt(dock, front)
    if now_s < dock.quiet_until_s:
        return [*rows, line(_QUIET, "dim")]
    typed = render.visible_line(dock.typed)
    room = columns - width(line(prompt)) - 1
    while render.width(typed) > room:
        typed = typed[1:]
    rows.append((("dock.key", prompt), ("dock.typed", typed), ("status", " ")))
    return rows


def _prompt(dock: Dock, front: Waiting) -> str:
    wanted = len(docks.to_type(front))
    if wanted > 1:
        return f"{dock.given + 1} of {wanted}: "
    return "> " if wanted or front.ask is None else "approve? > "


def is_danger(one: Waiting) -> bool:
    """Whether the ask is drawn in red: it cannot be undone, or nothing is known that would undo it."""
    return any(ask.level == "R3" or (ask.level == "R2" and not ask.snapshot_plan) for ask in one.asks)


def _title(dock: Dock, front: Waiting, frame: str, now_s: float) -> Line:
    ask = front.ask
    if ask is None:
        words = _QUESTION_APPROVES_NOTHING
    else:
        kinds = {
            "file-change": "change this file?",
            "rollback": "take a change back?",
            "resolve": "settle a run?",
        }
        level = max(one.level for one in front.asks)
        words = f"{level}: {kinds.get(ask.kind, 'run this?')}"
        if ask.also:
            words = f"{level}: run these {len(front.asks)} in this order?"
    count = len(dock.waiting) - 1
    number = f"{dock.number} of {dock.number + count}" if count or dock.number > 1 else ""
    left = _left(front.ends_s - now_s) if front.ends_s else ""
    title = " · ".join(part for part in (words, number, left) if part)
    head = f"── {title} "
    return cut(line(head + "─" * max(0, dock.columns - render.width(head)), frame), dock.columns)


def _left(seconds: float) -> str:
    if seconds <= 0:
        return "expired"
    return f"{int(seconds) // 60} min left" if seconds >= 120 else f"{int(seconds) + 1} s left"


def _body_row(row: str, frame: str) -> Line:
    if row.startswith(MARKED):
        return (("danger", MARKED), ("dock.key", row[len(MARKED) :]))
    if row.startswith(MARGIN):
        return ((frame, MARGIN), ("dock.key", row[len(MARGIN) :]))
    if row.startswith(("NOTE ", "NOT saved", "destroys ")) or "no known way back" in row or "IRREVERSIBLE" in row:
        return line(row, "danger")
    if row.startswith("look at "):
        return line(row, "confirm")
    return line(row)


def _place(dock: Dock, rows: int, height: int, frame: str) -> Line:
    """The line below the text: what the last key was no answer for, else which part of the text is on the screen."""
    if dock.said:
        head = f"── ! {dock.said} "
        return cut(line(head + "─" * max(0, dock.columns - render.width(head)), "confirm"), dock.columns)
    if rows <= height:
        return line("─" * dock.columns, frame)
    first, last = dock.top + 1, dock.top + height
    more = "all read" if dock.read else "PgDn reads on; all of it has to be read before a yes"
    if not dock.read and dock.reached >= rows:
        more = "PgUp: marked rows (!) were not shown yet"
    head = f"── rows {first} to {last} of {rows} · {more} "
    return cut(line(head + "─" * max(0, dock.columns - render.width(head)), frame), dock.columns)


def _choices(front: Waiting, columns: int) -> list[Line]:
    """Each choice whole: they go on another row rather than being cut."""
    ask = front.ask
    if ask is None:
        text = _CHOICES_QUESTION
    elif docks.to_type(front):
        several = len(docks.to_type(front)) > 1
        text = _CHOICES_R3_PLAN if several else _CHOICES_R3
        if not docks.is_editable(ask):
            text = text.replace(" · edit", "")
    else:
        text = _CHOICES if ask.kind == COMMAND and not ask.also else _CHOICES_ROLLBACK
        if not docks.is_editable(ask):
            text = text.replace(" · edit", "")
    rows, row = [], ""
    for part in text.split(" · "):
        longer = f"{row} · {part}" if row else part
        if row and render.width(longer) > columns:
            rows.append(line(row, "dim"))
            row = part
        else:
            row = longer
    return [cut(one, columns) for one in (*rows, line(row, "dim"))]
