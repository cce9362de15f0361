"""Blocks of Markdown as lines of a width. Pure. The words are a model's: everything invisible in them is shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent.repl import blocks as kinds
from agent.repl.lines import EMPTY, Line, Span, cut, line, merged, text_of, width, wrap
from guard import render

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.repl.blocks import Block

_INLINE = re.compile(
    r"(?P<code>`+)(?P<in_code>.+?)(?P=code)(?!`)"
    r"|\*\*(?P<bold>\S(?:.*?\S)?)\*\*"
    r"|(?<![\w*])\*(?P<em>[^\s*](?:[^*]*[^\s*])?)\*(?![\w*])"
    r"|\[(?P<label>[^\]]+)\]\((?P<url>[^)\s]+)\)"
)
_ALIGNMENT = re.compile(r":?-+:?")
CODE_MARGIN: Line = (("md.edge", "  │ "),)
LEAST_COLUMN = 6
"""A column of a table is not made narrower than this."""
MOST_INLINE = 4_000
"""Characters of one block that are searched for marks; looking for pairs in an endless line is not worth its time."""
_GAP = " │ "


def rendered(blocks: Iterable[Block], columns: int) -> list[Line]:
    """All rows of the blocks."""
    rows: list[Line] = []
    for block in blocks:
        rows += _rows(block, columns)
    return rows


def inline(text: str, style: str = "") -> list[Span]:
    """Code, strong and emphasised words and links of one line; an unpaired mark stands as it came."""
    text = _visible(text)
    if len(text) > MOST_INLINE:
        return [(style, text)]
    spans: list[Span] = []
    at = 0
    for found in _INLINE.finditer(text):
        spans.append((style, text[at : found.start()]))
        at = found.end()
        if found["code"]:
            spans.append(("md.code", found["in_code"].strip() or found["in_code"]))
        elif found["bold"]:
            spans.append(("md.strong", found["bold"]))
        elif found["em"]:
            spans.append(("md.em", found["em"]))
        else:
            spans.append(("md.link", found["label"]))
            if found["url"] != found["label"]:
                spans.append((style, f" ({found['url']})"))
    spans.append((style, text[at:]))
    return [span for span in spans if span[1]]


def _rows(block: Block, columns: int) -> list[Line]:
    match block.kind:
        case kinds.BLANK:
            return [EMPTY]
        case kinds.HEADING:
            mark = "#" * block.depth + " "
            style = "md.heading"
            return wrap(
                inline(block.text, style),
                columns,
                first=line(mark, "md.mark"),
                rest=line(" " * len(mark)),
            )
        case kinds.ITEM:
            indent = " " * min(block.depth, columns // 3)
            mark = ("•" if block.mark in "-*+•" else block.mark) + " "
            first: Line = (("", indent), ("md.mark", mark)) if indent else (("md.mark", mark),)
            return wrap(inline(block.text), columns, first=first, rest=line(indent + " " * render.width(mark)))
        case kinds.QUOTE:
            edge = line("▌ ", "md.edge")
            return wrap(inline(block.text, "md.quote"), columns, first=edge, rest=edge)
        case kinds.RULE:
            return [line("─" * min(columns, 40), "md.mark")]
        case kinds.TABLE:
            return _table(block.text.split("\n"), columns)
        case kinds.CODE_OPEN:
            return [line(f"  ┌ {_visible(block.mark)}".rstrip(), "md.edge")]
        case kinds.CODE_CLOSE:
            return [line("  └", "md.edge")]
        case kinds.CODE:
            return code_rows(block.text, columns, CODE_MARGIN, "md.code-block")
        case _:
            margin = line(" " * min(block.depth, columns // 3))
            return wrap(inline(block.text), columns, first=margin, rest=margin)


def code_rows(text: str, columns: int, margin: Line, style: str) -> list[Line]:
    """One line of code or output, broken only where the row is full; every row behind the margin."""
    shown = render.visible(text.expandtabs(8).rstrip(" "), blank_run=0, keep="")
    room = columns - width(margin)
    return [(*margin, (style, row)) if row else margin for row in render.wrap(shown, room)]


def _visible(text: str) -> str:
    return render.visible(text.expandtabs(4).strip(), keep="")


def _cells(row: str) -> list[str]:
    inside = row.strip().removeprefix("|").removesuffix("|")
    return [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", inside)]


def _table(rows: list[str], columns: int) -> list[Line]:
    cells = [_cells(row) for row in rows]
    rights: list[bool] = []
    headed = len(cells) > 1 and all(_ALIGNMENT.fullmatch(cell) for cell in cells[1])
    if headed:
        rights = [cell.endswith(":") and not cell.startswith(":") for cell in cells[1]]
        del cells[1]
    count = max(map(len, cells))
    rights += [False] * (count - len(rights))
    filled = [row + [""] * (count - len(row)) for row in cells]
    table = [
        [inline(cell, "md.strong" if headed and not number else "") for cell in row]
        for number, row in enumerate(filled)
    ]
    widths = [max(1, *(width(row[column]) for row in table)) for column in range(count)]
    room = columns - len(_GAP) * (count - 1)
    if room < count * LEAST_COLUMN:
        return [one for row in rows for one in code_rows(row, columns, EMPTY, "")]
    while sum(widths) > room:
        widest = max(range(count), key=widths.__getitem__)
        widths[widest] -= 1
    out: list[Line] = []
    for number, row in enumerate(table):
        out += _table_row(row, widths, rights)
        if headed and not number:
            out.append(line("─┼─".join("─" * one for one in widths), "md.edge"))
    return out


def _table_row(row: list[list[Span]], widths: list[int], rights: list[bool]) -> list[Line]:
    """One row, as many lines high as its highest cell."""
    wrapped = [_cell(spans, size) for spans, size in zip(row, widths, strict=True)]
    lines: list[Line] = []
    for number in range(max(map(len, wrapped))):
        spans: list[Span] = []
        for column, (cell, size) in enumerate(zip(wrapped, widths, strict=True)):
            if column:
                spans.append(("md.edge", _GAP))
            part = cell[number] if number < len(cell) else EMPTY
            fill = " " * max(0, size - width(part))
            spans += [("", fill), *part] if rights[column] else [*part, ("", fill)]
        while spans and not spans[-1][1].strip():
            spans.pop()
        lines.append(merged(spans))
    return lines


def _cell(spans: list[Span], size: int) -> list[Line]:
    if width(spans) <= size:
        return [tuple(spans)]
    return [cut(row, size) for row in wrap(spans, size)] if size >= 8 else _narrow(spans, size)


def _narrow(spans: list[Span], size: int) -> list[Line]:
    """Cells narrower than `wrap` makes rows: broken by width alone."""
    from agent.repl.lines import fitting

    text, style = text_of(spans), spans[0][0] if spans else ""
    rows: list[Line] = []
    while text:
        end = max(1, fitting(text, size))
        rows.append(line(text[:end].strip(" "), style))
        text = text[end:].lstrip(" ")
    return rows or [EMPTY]
