"""On which line of a TOML text each setting stands. Pure.

The standard reader does not tell. Statements (a table's header, or a key with its value) are found by reading ever more
lines until they are one: so quotes, comments and values of several lines are exactly what the reader says they are.
"""

from __future__ import annotations

import tomllib
from typing import Any

Place = tuple[str, ...]
"""`("brains", "local", "model")`"""

MOST_LINES = 2_000
"""A value of more lines than this is not followed; its lines are passed over one by one."""
_CLOSERS = ("]", "}", '"""', "'''")


def lines_of(text: str) -> dict[Place, int]:
    """The first line, counted from 1, of each table and each setting; arrays of tables count as one table."""
    found: dict[Place, int] = {}
    table: Place = ()
    rows = text.split("\n")
    at = 0
    while at < len(rows):
        statement, length = _statement(rows, at)
        if statement is not None:
            header = rows[at].lstrip().startswith("[")
            places = list(_places(statement))
            if header:
                table = max(places, key=len, default=())
                found.setdefault(table, at + 1)
            else:
                for place in places:
                    found.setdefault((*table, *place), at + 1)
        at += length
    return found


def _statement(rows: list[str], at: int) -> tuple[dict[str, Any] | None, int]:
    """The statement that begins on a line, and how many lines it takes; None for one that is never whole."""
    if not rows[at].strip() or rows[at].lstrip().startswith("#"):
        return None, 1
    for length in range(1, min(MOST_LINES, len(rows) - at) + 1):
        if length > 1 and not any(closer in rows[at + length - 1] for closer in _CLOSERS):
            continue
        try:
            return tomllib.loads("\n".join(rows[at : at + length])), length
        except tomllib.TOMLDecodeError:
            pass
    return None, 1


def _places(table: dict[str, Any], above: Place = ()) -> list[Place]:
    found: list[Place] = []
    for key, value in table.items():
        place = (*above, key)
        found.append(place)
        inner = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        if isinstance(inner, dict):
            found += _places(inner, place)
    return found
