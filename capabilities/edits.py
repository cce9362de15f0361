"""`write` and `edit`: changes of one file, taken through the same walk as commands.

A change that needs a person is kept with its content; once they approved it, the same call again carries it out. What a
file holds is never part of an answer but as a redacted difference, and of a file with credentials not even that.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import execution
from acting import edit as acting_edit
from capabilities.registry import JSON, Tool, hints_of, parameters
from capabilities.shapes import exec_object
from guard.errors import CannotEdit
from guard.filechange import MOST_BYTES, text_of
from guard.render import visible_line
from guard.types import Level, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from capabilities.call import Call
    from guard.redact import Redactor

MOST_LINES = 200
"""Lines of a difference in an answer."""
NEAREST = 3
MOST_PLACES = 10
"""Lines named in an error."""
_COMPARED_LINES = 4_000
_LINE_CHARS = 200
"""So many different lines, and the beginning of each: comparing takes time with the square of their length, and whoever
writes a file chooses its lines."""

_PATH: JSON = {
    "type": "string",
    "minLength": 1,
    "maxLength": 4096,
    "pattern": "^[^\\u0000]*$",
    "description": "absolute, or in the folder where commands run",
}
_ELSE = "Without a person's approval it is kept, as by ops_exec; once approved, make the same call again."
_OF_COMMANDS = (
    *("exit_code", "stdout", "stderr", "truncated", "undecodable_bytes", "output_file", "profile", "enforced"),
    *("interference", "unlimited", "masked"),
)
"""Fields of an answer about a command that say nothing about a file."""


def write_tool(guard: execution.Guard, call: Call) -> Tool:
    """`write`: the whole content of a file, new or not."""

    def run(arguments: JSON) -> JSON:
        content = _bytes_of(arguments["content"], "content")
        return _changed(guard, call, arguments["path"], lambda present: content, tells=False)

    return Tool(
        "write",
        f"Writes a whole text file (at most 4 MiB); owner and mode of a present one stay. {_ELSE}",
        parameters({"path": _PATH, "content": {"type": "string", "maxLength": MOST_BYTES}}),
        hints_of(Level.R3, idempotent=True),
        run,
        {"type": "object", "required": ["format", "status"]},
    )


def edit_tool(guard: execution.Guard, call: Call) -> Tool:
    """`edit`: one passage of a file replaced."""

    def run(arguments: JSON) -> JSON:
        old, new = _bytes_of(arguments["old"], "old"), _bytes_of(arguments["new"], "new")

        def content(present: bytes) -> bytes:
            return replaced(present, old, new, guard.redactor)

        return _changed(guard, call, arguments["path"], content, tells=True)

    return Tool(
        "edit",
        f"Replaces one passage of a text file; `old` has to occur exactly once, to the letter. {_ELSE}",
        parameters(
            {
                "path": _PATH,
                "old": {"type": "string", "minLength": 1, "maxLength": MOST_BYTES},
                "new": {"type": "string", "maxLength": MOST_BYTES},
            }
        ),
        hints_of(Level.R3),
        run,
        {"type": "object", "required": ["format", "status"]},
    )


def _changed(guard: execution.Guard, call: Call, path: str, content: Callable[[bytes], bytes], *, tells: bool) -> JSON:
    changed = execution.change_file(call.request(""), path, content, guard, tells=tells, on_begin=call.on_begin)
    found = change_object(changed, guard)
    if found["status"] in (Status.NEEDS_STAMP, Status.REFUSED) and found["request"]:
        asks = f'ops_approve{{"request": "{found["request"]}"}} asks the person, or they run: '
        how = asks if call.confirm is not None and found["status"] == Status.NEEDS_STAMP else ""
        found["next"] = f"{how}{found['next']}; then make the same call again"
    return found


def change_object(changed: execution.FileChanged, guard: execution.Guard, *, most: int = MOST_LINES) -> JSON:
    """What was judged and what became of it: the object of `opsx exec --json` without what only commands have, and with
    `path` and `difference` unless it was refused before the file was read. `most`: further lines are counted."""
    found = {name: value for name, value in exec_object(changed.ran).items() if name not in _OF_COMMANDS}
    edit = changed.edit
    if edit is not None:
        mask = guard.redactor.text
        found["path"] = mask(edit.change.path)
        found["difference"] = list(acting_edit.words_of(edit, mask, most=most))
    return found


def replaced(present: bytes, old: bytes, new: bytes, redactor: Redactor) -> bytes:
    """A file's content with one passage replaced.

    In a file whose lines all end in CRLF, LF in `old` and `new` stands for that; in others it does where `old` is found
    in no other way.

    Raises:
        CannotEdit: `old` does not occur, or more than once; the error tells where, or what comes nearest, redacted.
    """
    if old == new:
        raise CannotEdit("old and new are the same", not_done="nothing was changed")
    ended = present.count(b"\r\n")
    if ended and (ended == present.count(b"\n") or old not in present):
        as_crlf = _with_crlf(old)
        if as_crlf in present:
            old, new = as_crlf, _with_crlf(new)
    count = present.count(old)
    # Overlapping ones count as well: which of them is meant is not told.
    if count and present.find(old, present.find(old) + 1) < 0:
        return present.replace(old, new, 1)
    if count:
        raise CannotEdit(
            f"old occurs more than once: {_places(present, old)}",
            not_done="nothing was changed",
            hint="take in the lines around it, so that it is the only one",
        )
    raise CannotEdit(
        f"old does not occur in the file; {_nearest(present, old, redactor)}",
        not_done="nothing was changed",
        hint="read the file again: blanks, line ends and quotes count",
    )


def _with_crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _places(present: bytes, old: bytes) -> str:
    lines: list[str] = []
    at, count = present.find(old), 0
    while at >= 0:
        count += 1
        if len(lines) < MOST_PLACES:
            lines.append(str(present.count(b"\n", 0, at) + 1))
        at = present.find(old, at + 1)
    more = f" and {count - len(lines)} more" if count > len(lines) else ""
    return f"{count} times, on lines {', '.join(lines)}{more}"


def _nearest(present: bytes, old: bytes, redactor: Redactor) -> str:
    """The lines that are most like the first one of the passage. A line in which something is hidden is not compared:
    how much it is like a guess would tell."""
    try:
        present.decode("utf-8")
    except UnicodeDecodeError:
        return "it is not UTF-8, so what is not ASCII has other bytes in it"
    text = text_of(present)
    shown = set(redactor.text(text).split("\n"))
    wanted = next((line.strip() for line in text_of(old).split("\n") if line.strip()), "")[:_LINE_CHARS]
    numbered: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if len(numbered) == _COMPARED_LINES:
            break
        if line.strip() and line in shown and len(line) < 10 * _LINE_CHARS:
            numbered.setdefault(line.strip()[:_LINE_CHARS], number)
    found = difflib.get_close_matches(wanted, numbered, n=NEAREST, cutoff=0.5) if wanted else []
    if not found:
        return "no line comes near it"
    return "nearest: " + "; ".join(f"line {numbered[line]}: {visible_line(line)[:_LINE_CHARS]}" for line in found)


def _bytes_of(text: str, name: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise CannotEdit(
            f"{name} is no Unicode text at character {error.start + 1}", not_done="nothing was changed"
        ) from None
