"""A unified difference of one file (`diff -u`, `git diff`), put into the file exactly or not at all. Pure.

No fuzz: every line that the difference keeps or removes has to be in the file as it says. A passage that has moved is
found where it stands once and only once. Form: POSIX diff(1), "Diff -u Output Format", and what git writes around it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from guard.errors import CannotEdit

_HEAD = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_MORE_THAN_CONTENT = (
    *(b"rename from ", b"copy from ", b"deleted file mode ", b"new file mode ", b"old mode "),
    *(b"GIT binary patch", b"Binary files "),
)
"""What git's difference says beside lines: names, modes and bytes that a change of one file's lines cannot carry."""
_NOTHING = "nothing was changed"


@dataclass(frozen=True, slots=True)
class _Hunk:
    """One passage: its lines as they are and as they shall be, each with its end."""

    row: int
    """Of its `@@` line in the difference, from 1."""
    at: int
    """Index of the first line that it says it stands at."""
    old: list[bytes]
    new: list[bytes]


def patched(present: bytes, difference: bytes) -> bytes:
    """A file's content with a difference put in.

    In a file whose lines all end in CRLF, a difference without any CR stands for one with them.

    Raises:
        CannotEdit: it is no unified difference of one file, or does not fit the file.
    """
    lines = _lines(present)
    hunks = _hunks(difference)
    if lines and all(line.endswith(b"\r\n") for line in lines) and b"\r" not in difference:
        hunks = [_Hunk(one.row, one.at, _with_cr(one.old), _with_cr(one.new)) for one in hunks]
    made: list[bytes] = []
    done = moved = 0
    for hunk in hunks:
        at = _place(lines, hunk, done, moved)
        moved = at - hunk.at
        made += lines[done:at]
        made += hunk.new
        done = at + len(hunk.old)
    made += lines[done:]
    if any(not line.endswith(b"\n") for line in made[:-1]):
        raise CannotEdit("the difference would add lines behind a last line that has no end", not_done=_NOTHING)
    return b"".join(made)


def _place(lines: list[bytes], hunk: _Hunk, least: int, moved: int) -> int:
    """Where a passage stands: where it says, as far as those before it had moved, else in its only place."""
    size = len(hunk.old)
    said = hunk.at + moved
    if least <= said <= len(lines) - size and lines[said : said + size] == hunk.old:
        return said
    if not size:
        raise CannotEdit(
            f"the passage on line {hunk.row} of the difference keeps no line, and the file has no line {hunk.at}",
            not_done=_NOTHING,
        )
    first = hunk.old[0]
    places = [
        at for at in range(least, len(lines) - size + 1) if lines[at] == first and lines[at : at + size] == hunk.old
    ]
    if len(places) == 1:
        return places[0]
    how = f"is in the file {len(places)} times" if places else "is not in the file"
    raise CannotEdit(
        f"the passage on line {hunk.row} of the difference {how} (it says line {hunk.at + 1})",
        not_done=_NOTHING,
        hint="make the difference again, from the file as it is",
    )


def _hunks(difference: bytes) -> list[_Hunk]:
    rows = _lines(difference)
    hunks: list[_Hunk] = []
    files = number = 0
    while number < len(rows):
        row = rows[number]
        number += 1
        head = _HEAD.match(row)
        if head is not None:
            hunk, number = _hunk(rows, number, head)
            hunks.append(hunk)
        elif row.startswith(b"--- ") and rows[number : number + 1] and rows[number].startswith(b"+++ "):
            files += 1
            if rows[number].split(b"\t")[0].rstrip() == b"+++ /dev/null":
                raise CannotEdit("the difference removes the file, which is not done here", not_done=_NOTHING)
            number += 1
        elif row.startswith(_MORE_THAN_CONTENT):
            what = row.decode("ascii", "replace").strip()[:60]
            raise CannotEdit(f"the difference says more than lines: {what}", not_done=_NOTHING)
        elif row.startswith(b"@@"):
            raise CannotEdit(f"line {number} of the difference is no @@ line of one file", not_done=_NOTHING)
        elif hunks and row[:1] in (b"+", b"-") and row.rstrip() != b"--":  # `-- ` begins the signature of a mail
            raise CannotEdit(
                f"line {number} of the difference belongs to no passage: its @@ line counts fewer", not_done=_NOTHING
            )
        if files > 1:
            raise CannotEdit("the difference is about more than one file", not_done=_NOTHING)
    if not hunks:
        raise CannotEdit(
            "this is no unified difference: it has no @@ line", not_done=_NOTHING, hint="diff -u OLD NEW makes one"
        )
    return hunks


def _hunk(rows: list[bytes], number: int, head: re.Match[bytes]) -> tuple[_Hunk, int]:
    """The passage behind an `@@` line, and the number of the row behind it."""
    begun = number
    wanted = [1 if head[group] is None else int(head[group]) for group in (2, 4)]
    sides: tuple[list[bytes], list[bytes]] = ([], [])
    while [len(side) for side in sides] != wanted:
        row = rows[number] if number < len(rows) else b""
        # An editor that strips blanks at line ends leaves an empty line where an empty line is kept.
        mark, text = (row[:1], row[1:]) if row.strip(b"\r\n") else (b" ", row)
        on = {b" ": (0, 1), b"-": (0,), b"+": (1,)}.get(mark, ())
        if not row or not on or any(len(sides[side]) == wanted[side] for side in on):
            raise CannotEdit(
                f"line {number + 1} of the difference does not fit its @@ line {begun}: was it changed by hand?",
                not_done=_NOTHING,
            )
        number += 1
        if number < len(rows) and rows[number].startswith(b"\\"):  # `\ No newline at end of file`, in any language
            text = text.removesuffix(b"\n")
            number += 1
        for side in on:
            sides[side].append(text)
    # Of no lines the number is that of the line before them.
    at = int(head[1]) - (1 if wanted[0] else 0)
    if at < 0:
        raise CannotEdit(f"the @@ line {begun} of the difference begins before the file", not_done=_NOTHING)
    return _Hunk(begun, at, *sides), number


def _with_cr(lines: list[bytes]) -> list[bytes]:
    return [line[:-1] + b"\r\n" if line.endswith(b"\n") else line for line in lines]


def _lines(data: bytes) -> list[bytes]:
    """Lines with their ends; LF alone ends one."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
