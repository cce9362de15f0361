"""The words that all families of states share: a read, what it said, the state, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from guard.lines import lines_of

State = dict[str, Any]
"""A state as JSON holds it. Two states are the same when they are equal; nothing in it changes by itself."""

NOT_INSTALLED: State = {"installed": False}
"""The program that a state belongs to is not on this machine."""


class Unreadable(ValueError):
    """What a read said is not what its program prints; the text says why."""


@dataclass(frozen=True, slots=True)
class Read:
    """One command that reads a part of a state. R0."""

    name: str
    command: str
    unmasked: bool = False
    """It answers from files that the sandbox masks, so it runs without one. Its output holds no secret."""
    good: frozenset[int] = frozenset((0,))
    """Exit codes of an answer."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one read said."""

    exit_code: int
    out: str
    err: str = ""

    def lines(self) -> list[str]:
        """As `guard.lines.lines_of`."""
        return lines_of(self.out)


@dataclass(frozen=True, slots=True)
class Inverse:
    """One command of a way back."""

    command: str
    """Shell text, built from words that are quoted one by one."""
    input: str = ""
    """What it gets on standard input."""


@dataclass(frozen=True, slots=True)
class WayBack:
    """What turns the state that is now into the one before."""

    commands: tuple[Inverse, ...] = ()
    lost: tuple[str, ...] = field(default=())
    """What stays different, as sentences."""


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of state."""

    name: str
    program: str
    """Without it there is no such state here."""
    reads: Callable[[str], tuple[Read, ...]]
    """From the key of an item ("" when it has none)."""
    parse: Callable[[str, Mapping[str, Said]], State]
    """From key and answers by name. Raises Unreadable."""
    way_back: Callable[[str, State, State], WayBack]
    """From key, the state before and the state now, which differ."""
    stays: str = ""
    """What of it never comes back, for who approves."""
    files_read: Callable[[str], Read | None] | None = None
    """The read that tells which files belong to an item of this key and are saved with it; None for none."""
    files: Callable[[Said], tuple[str, ...]] | None = None
    """Absolute paths from its answer."""
    folders_read: Callable[[tuple[str, ...]], Read | None] | None = None
    """The read that tells, from these paths, which folders are an item's own and are saved with all that is in them."""
    folders: Callable[[str, Said], tuple[str, ...]] | None = None
    """Absolute paths from key and answer."""
    proven: bool = True
    """Tried against the real thing; else only against its documented answers."""
    whole: Callable[[str, State], WayBack] | None = None
    """The way back from a state that cannot be read: key and the state before, put back as a whole."""
    in_order: bool = False
    """Each command of its way back presumes the ones before: after one that fails the rest is not run."""
