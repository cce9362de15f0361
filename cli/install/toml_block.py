"""A block of tables at the end of a TOML text, between two marks, so that the rest of the text stays as it is. Pure."""

from __future__ import annotations

import tomllib
from typing import Any

BEGIN = "# opsagent begin: written by `opsagent install`, taken out by `opsagent install … --remove`"
END = "# opsagent end"


class NotToml(ValueError):
    """The text is not TOML, or the block cannot be put into it or taken out of it."""


def value_of(text: str) -> dict[str, Any]:
    """What the text says. Raises NotToml."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotToml(f"it is not TOML: {error}") from None


def with_block(text: str, block: str) -> str:
    """The text with the block at its end. `text` holds no block yet.

    Raises:
        NotToml: the block says something that the text says already, in a form that two tables cannot share.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    whole = text + gap + newline.join([BEGIN, *block.strip("\n").split("\n"), END, ""])
    value_of(text)
    try:
        tomllib.loads(whole)
    except ValueError as error:
        raise NotToml(f"it has such entries already ({error})") from None
    return whole


def without_block(text: str, *, ours: frozenset[str]) -> str:
    """The text without the block, and without the empty line before it.

    Args:
        ours: the headers that the block may hold, such as `[mcp_servers.opsagent]`.
    Raises:
        NotToml: somebody put a table of their own between the marks, or the second mark is gone.
    """
    rows = text.splitlines(keepends=True)
    marks = [at for at, row in enumerate(rows) if row.strip() == BEGIN]
    if not marks:
        return text
    first = marks[0]
    last = next((at for at in range(first, len(rows)) if rows[at].strip() == END), None)
    if last is None:
        raise NotToml(f"the line {END!r} is gone; take out by hand what follows {BEGIN!r}")
    for row in rows[first + 1 : last]:
        if row.lstrip().startswith("[") and row.strip() not in ours and _is_header(row):
            raise NotToml(f"{row.strip()} stands between the marks; move it elsewhere first")
    before = rows[:first]
    if before and not before[-1].strip():
        before.pop()
    return "".join(before + rows[last + 1 :])


def _is_header(row: str) -> bool:
    try:
        return bool(tomllib.loads(row))
    except ValueError:
        return False
