"""Whether two commands touch the same things, from their effects. Pure.

Effects are (kind, object) as the log keeps them: redacted, at most 50. What cannot be known overlaps with everything:
an unread script may have touched whatever comes next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    Effects = tuple[tuple[str, str], ...]

LASTING_NOTHING = frozenset(("read", "secret-read", "privilege"))
"""Kinds that leave nothing behind, so that doing them twice is no danger."""

_PATHS = frozenset(("write", "delete"))
UNKNOWN = (("opaque", "?"),)


def changing(effects: Iterable[tuple[str, str]], *, total: int | None = None) -> Effects:
    """The effects that last; `UNKNOWN` when there are none (it is above R0 for a reason) or not all are listed."""
    effects = tuple(effects)
    lasting = tuple(effect for effect in effects if effect[0] not in LASTING_NOTHING)
    if not lasting or (total is not None and total > len(effects)):
        return (*lasting, *UNKNOWN)
    return lasting


def overlapping(one: Effects, other: Effects) -> str:
    """The object that both touch, "?" when that cannot be told apart, "" when nothing overlaps."""
    for kind, name in one:
        for other_kind, other_name in other:
            if _is_open(kind, name) or _is_open(other_kind, other_name):
                return name if _is_open(other_kind, other_name) and not _is_open(kind, name) else other_name or "?"
            if kind in _PATHS and other_kind in _PATHS:
                if name == other_name or _is_below(name, other_name) or _is_below(other_name, name):
                    return name
            elif kind == other_kind and (name == other_name or not name or not other_name):
                return name or other_name or kind
    return ""


def same(one: Effects, other: Effects) -> bool:
    """Whether they share an effect on one object that both name. What is not named is nothing that they share."""
    return bool(_named(one) & _named(other))


def _named(effects: Effects) -> set[tuple[str, str]]:
    named = set()
    for kind, name in effects:
        # To be root is in every other command; a privilege is the same when it is about one file.
        is_shared = kind not in ("read", "opaque") and (kind != "privilege" or name.startswith(("/", "~")))
        if is_shared and name.strip("*?./ "):
            named.add((kind, name))
    return named


def _is_open(kind: str, name: str) -> bool:
    return kind == "opaque" or name == "?"


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/") if folder else True
