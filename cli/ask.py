"""Asks a person on the terminal that is standard input and standard error. Nothing but the whole right word is a yes.

What was typed before the question is thrown away and keys are ignored for 0.4 s; Enter alone, Esc, a paste and the end
of input are no. Text that does not fit the window is paged, and the question comes after the last page.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import sys
import termios
import time
from typing import TYPE_CHECKING

from cli.report import write
from dialogue.confirm import APPROVED, CANCELLED, DENIED, EXPIRED, UNANSWERED, Answer
from dialogue.screen import question_of, screen_of
from guard import render

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dialogue.confirm import Ask

CONSENT = "tty"
IGNORED_S = 0.4
"""Keys within this time of a question are dropped: they were meant for something else."""
TIMEOUT_S = 900.0
"""How long a question stays open: as long as an approval holds."""
LINE_BYTES = 8192
"""More is no answer to any question."""

_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
# With bracketed paste (xterm's control sequences) a pasted text comes behind an escape, and an escape is no.

_QUIET_S = 0.1


class TerminalConfirm:
    """The port `dialogue.confirm.Confirm` on the terminal. The caller has made sure that a person is there."""

    def ask(self, ask: Ask, *, timeout_s: float = TIMEOUT_S) -> Answer:
        """Shows one ask and waits."""
        return self.ask_all((ask, *ask.also), timeout_s=timeout_s)

    def ask_all(self, asks: Sequence[Ask], *, timeout_s: float = TIMEOUT_S) -> Answer:
        """Shows several on one screen; one answer for all. DENIED only for a typed `no`; all else that is no yes
        is CANCELLED (a key, a wrong word), EXPIRED (time) or UNANSWERED (the terminal is gone)."""
        columns, lines = window()
        text = screen_of(asks, columns)
        question, words = question_of(asks)
        sha256 = hashlib.sha256((text + question).encode("utf-8", "surrogatepass")).hexdigest()
        try:
            with _keys():
                outcome = self._answered(text, question, words, columns, lines, time.monotonic() + timeout_s)
        except (OSError, termios.error):
            outcome = UNANSWERED
        return Answer(outcome, CONSENT, sha256)

    def _answered(
        self, text: str, question: str, words: tuple[str, ...], columns: int, lines: int, deadline: float
    ) -> str:
        if (stopped := _paged(text, columns, lines, deadline)) is not None:
            return stopped
        write(f"\n{question}" if words == ("yes",) else f"\n{question}\n", to_stderr=True)
        for number, word in enumerate(words):
            prompt = "" if words == ("yes",) else f"{number + 1} of {len(words)}: " if len(words) > 1 else "> "
            typed = _line(prompt, deadline, opening=number == 0)
            if not isinstance(typed, str):
                return typed.outcome
            if typed != word:
                return DENIED if typed == "no" else CANCELLED
        return APPROVED


class _Stopped:
    """Input that ended without a line: why."""

    def __init__(self, outcome: str) -> None:
        self.outcome = outcome


def consented(question: str) -> bool:
    """Asks about something that a person started here. True only for the typed word `yes`."""
    try:
        with _keys():
            write(f"\n{question} Type yes and Enter; anything else changes nothing: ", to_stderr=True)
            return _line("", time.monotonic() + TIMEOUT_S) == "yes"
    except (OSError, termios.error):
        return False


def paged(text: str) -> None:
    """Writes a text on standard output, waiting for Enter after each page, where a person looks on; else all at once.

    Raises:
        KeyboardInterrupt: the person stopped reading.
    """
    if not (sys.stdout.isatty() and os.isatty(0)):
        write(text)
        return
    with _keys():
        if _paged(text, *window(), time.monotonic() + TIMEOUT_S, to_stderr=False) is not None:
            write("not read to its end, so nothing was changed\n", to_stderr=True)
            raise KeyboardInterrupt


def window() -> tuple[int, int]:
    """Columns and lines of the terminal; 0×0, or none, counts as 80×24."""
    try:
        size = os.get_terminal_size(2)
    except OSError:
        return 80, 24
    return size.columns or 80, size.lines or 24


@contextlib.contextmanager
def _keys() -> Iterator[None]:
    """Keys come one by one and unechoed for the length of a `with` block; the terminal is as before afterwards."""
    before = termios.tcgetattr(0)
    changed = termios.tcgetattr(0)
    changed[3] &= ~(termios.ICANON | termios.ECHO)
    changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
    try:
        termios.tcsetattr(0, termios.TCSAFLUSH, changed)  # FLUSH: what was typed before is gone
        write(_PASTE_ON, to_stderr=True)
        yield
    except KeyboardInterrupt:
        write("\n", to_stderr=True)  # what comes next is not said behind the question
        raise
    finally:
        with contextlib.suppress(OSError, termios.error):
            write(_PASTE_OFF, to_stderr=True)
            termios.tcsetattr(0, termios.TCSAFLUSH, before)


def _paged(text: str, columns: int, lines: int, deadline: float, *, to_stderr: bool = True) -> str | None:
    """Writes the text, waiting for Enter after each page; an outcome when the person stopped reading."""
    rows = max(4, lines - 2)
    left = rows
    all_lines = text.splitlines(keepends=True)
    for number, line in enumerate(all_lines):
        # Not their width through that of a row: a wide character goes to the next row whole.
        needed = _rows_of(line.rstrip("\n"), columns)
        if needed > left and number:
            typed = _line(f"-- {len(all_lines) - number} more lines; Enter goes on, Esc is no -- ", deadline)
            if not isinstance(typed, str):
                return typed.outcome
            if typed:
                return CANCELLED
            left = rows
        write(line, to_stderr=to_stderr)
        left -= needed
    return None


def _rows_of(line: str, columns: int) -> int:
    """How many rows a terminal breaks a line into."""
    rows, used = 1, 0
    for char in line:
        wide = render.width(char)
        if used + wide > columns:
            rows, used = rows + 1, 0
        used += wide
    return rows


def _line(prompt: str, deadline: float, *, opening: bool = True) -> str | _Stopped:
    """One typed line without its end. Esc (so also a paste), Ctrl-D and the end of input stop at once."""
    if prompt:
        write(prompt, to_stderr=True)
    if opening:
        time.sleep(IGNORED_S)
        termios.tcflush(0, termios.TCIFLUSH)
    line = bytearray()
    while True:
        byte = _byte(deadline)
        if not isinstance(byte, bytes):
            return _end_of_line(byte)
        if byte in (b"\r", b"\n"):
            write("\n", to_stderr=True)
            try:
                return line.decode("utf-8")
            except UnicodeDecodeError:
                return _Stopped(CANCELLED)
        if byte in (b"\x7f", b"\b"):
            if line:
                _rub_out(line)
        elif byte == b"\x15":
            while line:
                _rub_out(line)
        elif byte == b"\x04" or byte < b" " or len(line) >= LINE_BYTES:
            _drain()
            return _end_of_line(_Stopped(CANCELLED))
        else:
            line += byte
            _echo(line)


def _end_of_line(stopped: _Stopped) -> _Stopped:
    write("\n", to_stderr=True)
    return stopped


def _byte(deadline: float) -> bytes | _Stopped:
    left = deadline - time.monotonic()
    if left <= 0 or not select.select([0], [], [], left)[0]:
        return _Stopped(EXPIRED)
    try:
        byte = os.read(0, 1)
    except OSError:
        byte = b""
    return byte or _Stopped(UNANSWERED)


def _echo(line: bytearray) -> None:
    """Shows the character that has just become whole, if any."""
    start = len(line) - 1
    while start > 0 and line[start] & 0xC0 == 0x80:
        start -= 1
    with contextlib.suppress(UnicodeDecodeError):
        write(render.visible_line(line[start:].decode("utf-8")), to_stderr=True)


def _rub_out(line: bytearray) -> None:
    start = len(line) - 1
    while start > 0 and line[start] & 0xC0 == 0x80:
        start -= 1
    shown = render.width(render.visible_line(line[start:].decode("utf-8", "replace")))
    del line[start:]
    write("\b \b" * shown, to_stderr=True)


def _drain() -> None:
    """Takes the rest of a paste, so that it does not reach the shell as commands."""
    end = time.monotonic() + 2.0
    while time.monotonic() < end and select.select([0], [], [], _QUIET_S)[0]:
        try:
            if not os.read(0, 65_536):
                return
        except OSError:
            return


def facts_of_terminal() -> dict[str, object]:
    """What is known about who answers here: audit login id, terminal, SSH connection; for `guard.bound.Consent`."""
    loginuid: int | None = None
    with contextlib.suppress(OSError, ValueError), open("/proc/self/loginuid", encoding="ascii") as file:
        number = int(file.read())
        loginuid = None if number == 2**32 - 1 else number
    tty = ""
    with contextlib.suppress(OSError):
        tty = os.ttyname(sys.stdin.fileno())
    return {"loginuid": loginuid, "tty": tty, "ssh": os.environ.get("SSH_CONNECTION", "")}
