"""The same conversation without control codes: for pipes, plain terminals, screen readers and NO_COLOR.

One line in, rows out as they are over. What a person pastes comes in one piece, as on the other terminal. An approval
is asked by the given `Confirm`: the whole word and Enter.
"""

from __future__ import annotations

import os
import queue
import select
import signal
from typing import TYPE_CHECKING

from agent.repl import rows
from agent.repl.desk import Desk
from agent.repl.dock import CONSENT
from agent.repl.lines import text_of
from agent.repl.opening import greeting
from dialogue.confirm import ANSWERED, CANCELLED, Answer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import TextIO

    from agent.repl.dock import Waiting
    from agent.repl.lines import Line
    from agent.repl.world import Opened, World
    from dialogue.confirm import Confirm

PASTE_S = 0.05
"""Lines that follow within this time belong to one paste."""
LINE_BYTES = 1024 * 1024
NEWS_S = 1.0
"""How often it is looked for what came while a line is waited for."""
WAIT_S = 0.2
"""How often the wait for events looks up."""


class Plain:
    """One conversation on lines."""

    def __init__(
        self, world: World, opened: Opened, confirm: Confirm, stdin: TextIO, stdout: TextIO, *, first: str = ""
    ) -> None:
        """Args: first: what is done at once, as if it had been typed."""
        self._first = first
        self._confirm, self._in, self._out = confirm, stdin, stdout
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._buffer = b""
        self._left = False
        self._asking = False
        self.desk = Desk(world, opened, self, self._posted.put)

    # ── the desk's Screen ────────────────────────────────────────────────────────────────────────────────────────

    def changed(self) -> None:
        """Nothing is drawn between events."""

    def clear(self) -> None:
        """There is nothing to clear on lines."""

    def copy(self, text: str) -> None:
        self._write("no clipboard without a terminal; /export FILE writes the conversation\n")

    def compose(self, text: str) -> None:
        if text:
            self._write(f"not sent: {text}\n")

    def edit(self, text: str | None) -> None:
        """A command is not edited on lines: a no with a reason says what is wanted."""

    def remember(self, texts: tuple[str, ...]) -> None:
        """Lines have no history."""

    def leave(self) -> None:
        self._left = True

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self) -> int:
        """Talks until the input ends or the person leaves. Returns the last turn's exit code."""
        before = signal.signal(signal.SIGINT, self._interrupted)
        try:
            for row in () if self._first else greeting(self.desk.opened, self.desk.world.person):
                self._rows(rows.rows_of(row, self._columns()))
            if self._first:
                self.desk.submit(self._first)
                self._pump()
            while not self._left:
                text = self._line("› ")
                if text is None:
                    break
                self.desk.submit(text)
                self._pump()
        except KeyboardInterrupt:
            self._write("\n")
        finally:
            self.desk.close()
            signal.signal(signal.SIGINT, before)
        return self.desk.transcript.exit_code

    def _pump(self) -> None:
        """Takes what threads tell until nothing is at work any more."""
        while True:
            try:
                self._posted.get(timeout=WAIT_S)()
            except queue.Empty:
                pass
            self._show()
            if self.desk.dock.waiting:
                self._answer(self.desk.dock.waiting[0])
            elif not self.desk.busy() and self._posted.empty():
                self._show()
                return

    def _show(self) -> None:
        for piece in self.desk.pieces():
            self._rows(rows.rows_of(piece, self._columns()))

    def _answer(self, front: Waiting) -> None:
        """Asks one; what was settled meanwhile in another way is not asked."""
        self._asking = True
        try:
            if front.ask is not None:
                answer = self._confirm.ask(front.ask, timeout_s=max(1.0, front.ends_s - self.desk.now_s()))
            else:
                answer = self._words(front)
        except KeyboardInterrupt:
            answer = Answer(CANCELLED)
            self.desk.interrupt()
        finally:
            self._asking = False
        self.desk.settle(front.id, answer)
        self.desk.drop(front.id)

    def _words(self, front: Waiting) -> Answer:
        self._write(f"? {front.question}\n")
        self._write("".join(f"  {number}. {option}\n" for number, option in enumerate(front.options, 1)))
        typed = (self._line("answer (nothing: none) › ") or "").strip()
        if typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(front.options):
            typed = front.options[int(typed) - 1]
        return Answer(ANSWERED, CONSENT, reason=typed) if typed else Answer(CANCELLED)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self._asking or not self.desk.interrupt():
            raise KeyboardInterrupt

    # ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _line(self, prompt: str) -> str | None:
        """One line, or all lines of a paste; None at the end of input."""
        fd = self._in.fileno()
        terminal = os.isatty(fd)
        if terminal:
            self._write(prompt)
        while b"\n" not in self._buffer:
            while not select.select([fd], [], [], NEWS_S)[0]:
                self._news(prompt if terminal else "")
            data = os.read(fd, 65_536)
            if not data:
                rest, self._buffer = self._buffer, b""
                return rest.decode("utf-8", "replace") if rest else None
            self._buffer += data
        while terminal and len(self._buffer) < LINE_BYTES and select.select([fd], [], [], PASTE_S)[0]:
            data = os.read(fd, 65_536)
            if not data:
                break
            self._buffer += data
        if terminal:
            text, self._buffer = self._buffer.rstrip(b"\n"), b""
        else:
            text, _, self._buffer = self._buffer.partition(b"\n")
        return text.decode("utf-8", "replace")

    def _news(self, prompt: str) -> None:
        """Shows what came while a line is waited for: a change may be taken back meanwhile."""
        while not self._posted.empty():
            self._posted.get()()
        pieces = self.desk.pieces()
        if pieces and prompt:
            self._write("\n")
        for piece in pieces:
            self._rows(rows.rows_of(piece, self._columns()))
        if pieces:
            self._write(prompt)

    def _rows(self, lines: list[Line]) -> None:
        self._write("".join(text_of(one).rstrip() + "\n" for one in lines))

    def _write(self, text: str) -> None:
        self._out.write(text.encode("utf-8", "replace").decode("utf-8"))
        self._out.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._out.fileno()).columns or 80
        except (OSError, ValueError):
            return 80
