"""`opsx write` and `opsx edit`: one file changed through the same walk as a command, from a terminal or a script."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import core
import execution
from capabilities.edit_words import change_words
from capabilities.edits import change_object, replaced
from capabilities.patching import patched
from cli import surroundings
from cli.opsx_exec import CODES, remarks
from cli.report import line, write
from guard.errors import CannotEdit, UsageError
from guard.filechange import MOST_BYTES
from guard.filechange import MOST_LINES as ALL_LINES
from guard.render import visible
from guard.types import Request, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.options import Parsed
    from execution import FileChanged, Guard


def main(parsed: Parsed) -> int:
    """Changes the file, if that was approved; else keeps the request. Shows the difference either way."""
    core.require_target(parsed.value("target", "local"))
    path, content = (_write if parsed.verb.name == "write" else _edit)(parsed)
    request = Request(
        "",
        cwd=surroundings.cwd(parsed.value("cwd")),
        actor=surroundings.actor(),
        why=parsed.value("why"),
    )
    guard = execution.open_guard(
        surroundings.policy(read_only=parsed.flag("read-only")),
        outputs_folder=surroundings.outputs_folder(),
        noted=surroundings.enforcement(),
    )
    changed = execution.change_file(request, path, content(guard), guard, tells=parsed.verb.name == "edit")
    if parsed.flag("json"):
        line(change_object(changed, guard, most=ALL_LINES))
    else:
        _in_words(changed, guard)
    return CODES[changed.ran.outcome.status]


_Content = tuple[str, "Callable[[Guard], Callable[[bytes], bytes]]"]
"""The path, and what makes the new content of the present one."""


def _write(parsed: Parsed) -> _Content:
    path, given = _path(parsed)
    if given is None:
        raise UsageError(
            "no content was named",
            not_done="nothing was changed",
            hint="opsx write PATH -f FILE, or - for standard input",
        )
    return path, lambda guard: lambda present: given


def _edit(parsed: Parsed) -> _Content:
    path, given = _path(parsed)
    both = [name in parsed.values for name in ("old", "new")]
    if any(both) and given is not None:
        raise UsageError(
            "--old and --new, or a difference: one of the two",
            not_done="nothing was changed",
            hint=parsed.help_line(),
        )
    if given is not None:
        return path, lambda guard: lambda present: patched(present, given)
    if not all(both) or not parsed.value("old"):
        raise UsageError(
            "say what is replaced, and by what",
            not_done="nothing was changed",
            hint="opsx edit PATH --old TEXT --new TEXT, or a unified difference: -f FILE, or - for standard input",
        )
    old, new = (parsed.value(name).encode("utf-8", "surrogateescape") for name in ("old", "new"))
    return path, lambda guard: lambda present: replaced(present, old, new, guard.redactor)


def _path(parsed: Parsed) -> tuple[str, bytes | None]:
    """The one path, and the bytes of `-f FILE` or standard input; None when neither is named."""
    words, source = list(parsed.words), parsed.value("file")
    if words[1:] == ["-"] and not parsed.ended:
        if source:
            raise UsageError("-f FILE and - exclude each other", hint=parsed.help_line())
        words, source = words[:1], "-"
    if len(words) != 1 or not words[0]:
        raise UsageError("name one file", not_done="nothing was changed", hint=parsed.help_line())
    return words[0], _bytes_of(source) if source else None


def _bytes_of(source: str) -> bytes:
    try:
        with open(0 if source == "-" else source, "rb", closefd=source != "-") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"cannot read {repr(source)[:200]}: {error.strerror}", not_done="nothing was changed"
        ) from None
    if len(data) > MOST_BYTES:
        raise CannotEdit(f"{source} has more than {MOST_BYTES:,} bytes", not_done="nothing was changed")
    return data


def _in_words(changed: FileChanged, guard: Guard) -> None:
    if changed.edit is not None:
        words, _ = change_words(changed.edit, guard.redactor)
        write(visible(words) + os.linesep)
    remarks(changed.ran, not_done="nothing was changed")
    if changed.ran.outcome.status == Status.NEEDS_STAMP and changed.ran.outcome.request_id:
        write("opsx: once it is approved, the same again does it\n", to_stderr=True)
