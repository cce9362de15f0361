"""Lines for a terminal: pieces of text with a style each, and how they are wrapped and cut. Pure.

A style is a name of `styles.STYLES`, so that tests, plain output and colours share the same lines. Text in a line is
already visible (`guard.render`): one cell of the terminal for one column of `render.width`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from guard import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Span = tuple[str, str]
"""Style and text; the style "" is the terminal's own."""
Line = tuple[Span, ...]

EMPTY: Line = ()

_WIDE = "\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe6f\uff00-\uffef\U0001f000-\U0003ffff"
_WORD = re.compile(f" +|[{_WIDE}]|[^ {_WIDE}]+")


def line(text: str, style: str = "") -> Line:
    """A line of one style."""
    return ((style, text),) if text else EMPTY


def text_of(spans: Iterable[Span]) -> str:
    """The words alone."""
    return "".join(text for _, text in spans)


def width(spans: Iterable[Span]) -> int:
    """Columns that a line takes."""
    return sum(render.width(text) for _, text in spans)


def cut(spans: Sequence[Span], columns: int) -> Line:
    """The line, cut to `columns` with the renderer's mark where something is missing."""
    if width(spans) <= columns:
        return tuple(spans)
    room = max(0, columns - render.width(render.CLIPPED))
    kept: list[Span] = []
    for style, text in spans:
        size = render.width(text)
        if size <= room:
            kept.append((style, text))
            room -= size
            continue
        end = fitting(text, room)
        if end:
            kept.append((style, text[:end]))
        kept.append((style, render.CLIPPED))
        return tuple(kept)
    return tuple(kept)


def fitting(text: str, columns: int) -> int:
    """How many characters of the text fit into `columns`; may be 0."""
    if text.isascii():
        return min(len(text), max(0, columns))
    used = 0
    for index, char in enumerate(text):
        used += render.width(char)
        if used > columns:
            return index
    return len(text)


def wrap(spans: Iterable[Span], columns: int, *, first: Line = EMPTY, rest: Line = EMPTY) -> list[Line]:
    """Rows of at most `columns` (at least 8 beside the margins), broken at blanks, or anywhere beside wide characters.

    Args:
        first: stands before the first row. rest: before all others.
    """
    rows: list[Line] = []
    margin, room = list(first), max(8, columns - width(first))
    row: list[Span] = []
    used = 0
    for style, word in _words(spans):
        blank = word.isspace()
        size = render.width(word)
        if used + size > room and blank:
            continue
        while used + size > room:
            if row and not all(text.isspace() for _, text in row):
                rows.append(tuple(margin + _stripped(row)))
            else:  # longer than a whole row
                end = max(1, fitting(word, room - used))
                rows.append((*margin, *row, (style, word[:end])))
                word = word[end:]
                size = render.width(word)
            margin, room = list(rest), max(8, columns - width(rest))
            row, used = [], 0
        if blank and not row and rows:
            continue
        if word:
            row.append((style, word))
            used += size
    if row or not rows:
        rows.append(tuple(margin + _stripped(row)))
    return [merged(one) for one in rows]


def merged(spans: Iterable[Span]) -> Line:
    """The same line with neighbours of one style joined."""
    out: list[Span] = []
    for style, text in spans:
        if out and out[-1][0] == style:
            out[-1] = (style, out[-1][1] + text)
        elif text:
            out.append((style, text))
    return tuple(out)


def _stripped(row: list[Span]) -> list[Span]:
    while row and row[-1][1].isspace():
        row = row[:-1]
    return row


def _words(spans: Iterable[Span]) -> Iterable[Span]:
    """Words and blank runs; a wide character is a word of its own, since its script has no blanks."""
    for style, text in spans:
        for found in _WORD.findall(text):
            yield style, found
