"""Plan items for paths whose content does not matter: what they are called and what they ask for. Pure."""

from __future__ import annotations

from dataclasses import dataclass

PARTS = ("meta", "times", "flags")
"""What is kept of a path: owner, mode and attributes; these and times; these and the inode flags of chattr(1)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a plan item asks for."""

    times: bool
    flags: bool
    tree: bool
    """Everything below it as well."""
    links: bool
    """What links below it lead to counts, too; folders behind them do not."""
    pattern: bool
    """Its object is a pattern, as bash expands it."""
    exact: bool
    """Its object is a real path; a link at its end is not followed."""


def wanted_of(kind: str) -> Wanted | None:
    """What the kind of a plan item asks for, such as `meta`, `meta-tree`, `times-glob`, `flags-tree-glob`, `meta-path`.

    None for the kinds that keep contents, states and outputs.
    """
    part, *more = kind.split("-")
    if part not in PARTS or not {"tree", "links", "glob", "path"}.issuperset(more):
        return None
    return Wanted(part == "times", part == "flags", "tree" in more, "links" in more, "glob" in more, "path" in more)


_LETTERS = (
    ("s", 0x1), ("u", 0x2), ("c", 0x4), ("S", 0x8), ("i", 0x10), ("a", 0x20), ("d", 0x40), ("A", 0x80), ("m", 0x400),
    ("j", 0x4000), ("t", 0x8000), ("D", 0x10000), ("T", 0x20000), ("C", 0x800000), ("P", 0x20000000),
    ("F", 0x40000000),
)  # fmt: skip
"""chattr(1) and linux/fs.h."""

SETTABLE_FLAGS = sum(bit for _, bit in _LETTERS)
"""The flags that chattr(1) can set; the others are the file system's own."""


def flag_letters(flags: int) -> str:
    """Inode flags as lsattr(1) writes them; `-` for none."""
    return "".join(letter for letter, bit in _LETTERS if flags > 0 and flags & bit) or "-"
