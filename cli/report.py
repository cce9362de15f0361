"""How errors leave a launcher: three parts on stderr, or as one JSON object where a program reads."""

import os
import sys

from cli.json_text import json_line
from guard.errors import GuardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


LEAST_COMMAND = 30
"""Columns of a command that say something of it."""


def write(text: str, *, to_stderr: bool = False) -> None:
    """Writes all of it. A reader that has gone away (`| head`) is no error: the rest is dropped.

    Raises:
        OSError: the output cannot be written for another reason (a full disk).
    """
    stream = sys.stderr if to_stderr else sys.stdout
    try:
        stream.write(text.encode("utf-8", "replace").decode("utf-8"))
        stream.flush()
    except BrokenPipeError:
        # Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def write_help(page: str, *, to_stderr: bool = False) -> None:
    """Writes a help page, fitted to the terminal where there is one. Raises OSError as `write` does."""
    from cli.options import fitted

    try:
        page = fitted(page, os.get_terminal_size(2 if to_stderr else 1).columns)
    except OSError:
        pass  # a file or a pipe: as it stands in docs/cli.md
    write(page, to_stderr=to_stderr)


def command_row(before: str, command: str, longest: int) -> str:
    """A row of a list that ends with a command, safe to show: cut to the terminal, on which it takes a second line only
    where the first has too little room for the command; to `longest` characters where there is no terminal."""
    from guard.render import clip

    try:
        columns = os.get_terminal_size(1).columns
        room = columns - len(before)
        longest = room if room >= LEAST_COMMAND else max(LEAST_COMMAND, room + columns)
    except OSError:
        pass
    return before + clip(safe(command.replace("\n", " ")), longest)


def line(value: "Any") -> None:
    """One JSON object on stdout."""
    write(json_line(value) + "\n")


def safe(text: str) -> str:
    """Foreign text for a terminal: redacted and with everything invisible made visible."""
    if text.isascii() and text.isprintable() and len(text) < 8:
        return text
    from guard import redact, render

    return render.visible(redact.Redactor().text(text))


def as_typed(step: str) -> str:
    """A next step such as `opsx approve a-…` as typed here: with the launcher's path if it is not on PATH."""
    program, blank, rest = step.partition(" ")
    if program not in ("opsx", "opsagent"):
        return step
    ours = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), program)
    if not os.path.isfile(ours):
        return step  # installed as a package: its scripts are where the person's other programs are
    for folder in os.environ.get("PATH", "").split(":"):
        if folder and os.path.realpath(os.path.join(folder, program)) == ours:
            return step
    try:
        here = os.getcwd() == os.path.dirname(ours)
    except OSError:
        here = False
    return f"{f'./{program}' if here else ours}{blank}{rest}"


def cannot_write(failure: OSError) -> GuardError:
    """What a launcher says when its own output, or something that it needed, failed under it."""
    try:
        # Python would try once more at exit, and complain in its own words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass
    return GuardError(
        f"{failure.strerror or failure}" + (f": {failure.filename}" if failure.filename else ""),
        not_done="the output here is not complete; what was run is in the record: opsx executions",
        hint="see whether the place that it is written to is full or closed",
    )


def internal(failure: BaseException) -> GuardError:
    """A fault of our own as an error in three parts: its kind and the line of ours that raised it."""
    place, frame = "", failure.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        place = f"{os.path.basename(code.co_filename)}:{frame.tb_lineno} in {code.co_name}"
        frame = frame.tb_next
    return GuardError(
        f"a fault in opsagent itself: {type(failure).__name__}: {str(failure)[:300]} ({place})",
        not_done="whether anything was run is in the record: opsx executions",
        hint="please report it with the line above",
    )


def error(failure: GuardError, *, as_json: bool) -> int:
    """Shows an error and returns its exit code."""
    if as_json:
        parts = {name: safe(text) if text else "" for name, text in failure.as_json().items()}
        line({"format": 1, "error": parts})
    else:
        lines = [f"error[{failure.code}]: {safe(failure.message)}", failure.not_done]
        if failure.hint:
            lines.append(f"hint: {safe(as_typed(failure.hint))}")
        write("\n".join(lines) + "\n", to_stderr=True)
    return failure.exit_code
