"""A yes on the terminal, for what a person started: the whole word and Enter, never a key that was pressed too early.

The question comes after all of the text was shown, page by page. Enter alone, Esc, a paste and the end of input are no.
"""

from __future__ import annotations

import os
import shutil
import sys
import termios
import time

from cli.report import write
from guard import render

IGNORED_S = 0.4
"""Keys within this time of the question are dropped: they were meant for something else."""

_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
# With bracketed paste (xterm's control sequences) a pasted "yes" arrives between marks and is not the word.


def consented(question: str) -> bool:
    """Asks and waits. True only for the typed word `yes`."""
    write(f"\n{question} Type yes and Enter; anything else changes nothing: {_PASTE_ON}", to_stderr=True)
    try:
        time.sleep(IGNORED_S)
        termios.tcflush(0, termios.TCIFLUSH)
        return _line() == b"yes\n"
    finally:
        write(_PASTE_OFF, to_stderr=True)


def paged(text: str) -> None:
    """Writes a text, waiting for Enter after each page, where a person looks on; else all at once."""
    if not (sys.stdout.isatty() and os.isatty(0)):
        write(text)
        return
    size = shutil.get_terminal_size((80, 24))
    columns, left = max(8, size.columns or 80), _rows(size.lines)
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        rows = max(1, -(-render.width(line.rstrip("\n")) // columns))
        if rows > left and number:
            write(f"-- {len(lines) - number} more lines: Enter --", to_stderr=True)
            if not _line().endswith(b"\n"):
                write("\n", to_stderr=True)
                raise KeyboardInterrupt
            left = _rows(size.lines)
        write(line)
        left -= rows


def _rows(lines: int) -> int:
    """Rows of one page. A window of size 0×0 counts as 24×80."""
    return max(4, (lines or 24) - 2)


def _line() -> bytes:
    """One line as the terminal hands it over, byte by byte so that nothing behind it is taken."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            break
        line += byte
    return line
