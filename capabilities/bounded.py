"""JSON objects cut to a size, so that one answer never floods the reader: head and tail stay, what is left out is said.

Pure. The size is that of the answer on the wire, where an object stands twice: as structure and as the same in text.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = dict[str, Any]

ANSWER_BYTES = 40_000
"""The most that one answer takes on the wire. Hosts cut or refuse from about 25,000 tokens on (Claude Code), which
this stays under in every language; with the frame around it a message stays below 40 KiB."""

LEFT_OUT = "left_out"
"""The field that counts the list items which are not in the answer."""

_LADDER: tuple[tuple[int, int], ...] = (
    *((int(24_000 * 0.8**step), max(20, int(400 * 0.8**step))) for step in range(20)),
    (200, 10),
    (100, 5),
    (60, 2),
)
"""Characters of each text and items of each list, tried in this order until the answer fits."""

_NAMES_TO_KEEP = 64
"""Of an object with more fields than this (it is data, not one of our shapes) the rest is left out."""


def json_text(value: object) -> str:
    """One line of strict JSON. Lone surrogates, which are no text, become U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def wire_bytes(value: object) -> int:
    """How many bytes an object takes in an answer: once as structure, once as text inside a JSON string."""
    text = json_text(value)
    return len(text.encode()) + len(json_text(text).encode())


def fitted(value: JSON, *, budget_bytes: int = ANSWER_BYTES) -> JSON:
    """The object, or a copy with its texts and lists cut so that `wire_bytes` is at most the budget."""
    if wire_bytes(value) <= budget_bytes:
        return value
    for characters, items in _LADDER:
        smaller: JSON = _cut(value, characters, items)
        if wire_bytes(smaller) <= budget_bytes:
            return smaller
    return {LEFT_OUT: {"*": len(value)}}


def cut_text(text: str, characters: int) -> str:
    """The text, or its head and tail (two to one) around a line that says how much is missing."""
    if len(text) <= characters:
        return text
    marker = f"\n[… {len(text) - characters:,} characters left out …]\n"
    head = characters * 2 // 3
    return text[:head] + marker + text[len(text) - (characters - head) :]


def largest_page(make: Callable[[int], JSON], most: int, *, budget_bytes: int = ANSWER_BYTES) -> JSON:
    """The answer with the biggest page that fits: `make(size)` for `most`, then for less and less, at least for 1."""
    size = most
    while True:
        answer = make(size)
        if size <= 1 or wire_bytes(answer) <= budget_bytes:
            return answer
        size = size * 3 // 4


def _cut(value: Any, characters: int, items: int) -> Any:
    if isinstance(value, str):
        return cut_text(value, characters)
    if isinstance(value, list):
        return [_cut(one, characters, items) for one in value[:items]]
    if not isinstance(value, dict):
        return value
    kept = {name: _cut(one, characters, items) for name, one in list(value.items())[:_NAMES_TO_KEEP]}
    missing = {name: len(one) - items for name, one in value.items() if isinstance(one, list) and len(one) > items}
    if len(value) > _NAMES_TO_KEEP:
        missing["*"] = len(value) - _NAMES_TO_KEEP
    if missing:
        kept[LEFT_OUT] = missing
    return kept
