"""Markdown that is still coming in, cut into blocks that are whole. Pure and incremental.

A block leaves as soon as nothing that follows can change it, and is never taken back: lines one by one, a table when it
is over (its columns depend on all rows). The rest waits. A line feed within a paragraph stays one: answers that list
things line by line mean it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADING, PARAGRAPH, ITEM, QUOTE, RULE, TABLE, BLANK = "heading", "paragraph", "item", "quote", "rule", "table", "blank"
CODE_OPEN, CODE, CODE_CLOSE = "code-open", "code", "code-close"

MOST_TABLE_ROWS = 400
"""A longer table leaves in parts, so that an endless one cannot hold back everything."""
MOST_LINE = 20_000
"""Characters of one line without an end; then it leaves as it is."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})\s*([^`\n]*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_ITEM = re.compile(r"(\s*)([-*+•]|\d{1,4}[.)])\s+(.*)$")
_RULE = re.compile(r" {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$")
_QUOTE = re.compile(r" {0,3}>\s?(.*)$")
_TABLE_LINE = re.compile(r"\s*\|.*\|\s*$")


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of Markdown."""

    kind: str
    text: str = ""
    """Its words without the marks of its kind; a table's lines as they came."""
    depth: int = 0
    """Level of a heading, columns of indentation of an item or a paragraph's line."""
    mark: str = ""
    """The mark of an item, the language of a code."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What is whole, what is not yet, and inside which fence the rest stands ("" for none)."""

    blocks: tuple[Block, ...]
    rest: str
    fence: str


def cut(text: str, fence: str = "", *, final: bool = False) -> Cut:
    """Cuts a text that begins at a block's start, or inside the code of `fence`.

    Args:
        final: nothing will follow, so that everything is whole.
    """
    return _Cutter(fence).cut(text, final=final)


class _Cutter:
    def __init__(self, fence: str) -> None:
        self.fence = fence
        self.blocks: list[Block] = []
        self.table: list[str] = []
        self.table_at = 0

    def cut(self, text: str, *, final: bool) -> Cut:
        at = 0
        while at < len(text):
            end = text.find("\n", at)
            if end < 0 and not final:
                break
            line = text[at:] if end < 0 else text[at:end]
            self._take(line.removesuffix("\r"), at)
            at = len(text) if end < 0 else end + 1
        if final:
            self._close()
            if self.fence:
                self.blocks.append(Block(CODE_CLOSE))
            return Cut(tuple(self.blocks), "", "")
        if not self.table and len(text) - at > MOST_LINE:
            self._take(text[at:], at)
            self._close()
            at = len(text)
        return Cut(tuple(self.blocks), text[self.table_at if self.table else at :], self.fence)

    def _take(self, line: str, at: int) -> None:
        if self.fence:
            found = _FENCE.match(line)
            if found and found[1].startswith(self.fence) and not found[2].strip():
                self.fence = ""
                self.blocks.append(Block(CODE_CLOSE))
            else:
                self.blocks.append(Block(CODE, line))
            return
        if _TABLE_LINE.match(line) and len(self.table) < MOST_TABLE_ROWS:
            if not self.table:
                self.table_at = at
            self.table.append(line)
            return
        self._close()
        if not line.strip():
            if not self.blocks or self.blocks[-1].kind != BLANK:
                self.blocks.append(Block(BLANK))
        elif found := _FENCE.match(line):
            self.fence = found[1]
            self.blocks.append(Block(CODE_OPEN, mark=found[2].strip()))
        elif found := _HEADING.match(line):
            self.blocks.append(Block(HEADING, found[2], len(found[1])))
        elif _RULE.match(line):
            self.blocks.append(Block(RULE))
        elif found := _ITEM.match(line):
            self.blocks.append(Block(ITEM, found[3], len(found[1].expandtabs(4)), found[2]))
        elif found := _QUOTE.match(line):
            self.blocks.append(Block(QUOTE, found[1]))
        else:
            words = line.expandtabs(4)
            self.blocks.append(Block(PARAGRAPH, words.strip(), len(words) - len(words.lstrip())))

    def _close(self) -> None:
        if self.table:
            self.blocks.append(Block(TABLE, "\n".join(self.table)))
            self.table = []
