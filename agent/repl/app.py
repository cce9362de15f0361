"""The conversation on a terminal: inline, with the terminal's own scrollback above and the live part below.

Draws at most `FRAMES` times a second however fast things come in; keys are handled between two frames.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.widgets import SearchToolbar

from agent.repl import composer, dock, dock_rows, keys, rows
from agent.repl.desk import Desk
from agent.repl.inline import InlineApplication, fragments, style, style_class, terminal_output
from agent.repl.lending import lent
from agent.repl.lines import cut, line
from agent.repl.opening import greeting
from agent.repl.status import status_line
from guard import render

if TYPE_CHECKING:
    from collections.abc import Callable

    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

    from agent.repl.lines import Line
    from agent.repl.world import Opened, World

FRAME_S = 0.04
"""Between two drawings: 25 a second, which reads as steady and leaves the rest of the time to keys."""
TICK_S = 1.0
"""How often the times on the screen go on."""
SWITCH_S = 0.001
"""How long a working thread may keep the interpreter from a key (Python's own is 5 ms)."""
LEAVE_S = 2.0
"""How long a second Ctrl-C means leaving."""
MENU_ROWS = 8
_TERMINAL_GONE = (errno.EIO, errno.ENXIO, errno.EBADF, errno.EPIPE)
"""What reading and writing say when a terminal was taken away."""
COMPOSER_ROWS = 10
OPENED_LINES = 2_000
"""Lines of an output that Ctrl-O writes; all of it is in the record."""


class Repl:
    """One conversation on one terminal."""

    def __init__(
        self,
        world: World,
        opened: Opened,
        *,
        keyboard: Input | None = None,
        output: Output | None = None,
        now_s: Callable[[], float] = time.monotonic,
        copy: Callable[[str], str] = lambda text: "",
        first: str = "",
    ) -> None:
        """
        Args:
            first: what is done at once, as if it had been typed.
            copy: takes a text to the clipboard and returns what has to be written to the terminal for it, or "".
        """
        self._now_s, self._copy, self._first = now_s, copy, first
        self._loop: asyncio.AbstractEventLoop | None = None
        self._frame: asyncio.TimerHandle | None = None
        self._pending: list[Line] = []
        self._posted: list[Callable[[], None]] = []
        self._waking = False
        self._lock = threading.Lock()
        self._hint, self._hint_until_s = "", 0.0
        self._leaving = False
        self._kept = ""
        """What was written when the editing of a command began."""
        self.desk = Desk(world, opened, self, self._post, now_s)
        self.composer = composer.composer(self.desk.talk, self.desk.submit)
        self.app = InlineApplication(
            layout=self._layout(),
            key_bindings=keys.bindings(self),
            style=style(),
            include_default_pygments_style=False,
            output=output or terminal_output(sys.stdout),
            input=keyboard,
            erase_when_done=True,
            enable_page_navigation_bindings=False,
        )
        self.app.ttimeoutlen = 0.05
        self.app.timeoutlen = 0.3

    # ── the desk's Screen ────────────────────────────────────────────────────────────────────────────────────────

    def changed(self) -> None:
        if self._loop is not None and self._frame is None and not self._leaving:
            self._frame = self._loop.call_later(FRAME_S, self._draw)

    def clear(self) -> None:
        self.app.clear()

    def copy(self, text: str) -> None:
        sequence = self._copy(text)
        if sequence:
            self.app.output.write_raw(sequence)
            self.app.output.flush()

    def compose(self, text: str) -> None:
        written = self.composer.text
        self._write(f"{text}\n{written}" if written else text)

    def edit(self, text: str | None) -> None:
        if text is None:
            text, self._kept = self._kept, ""
        elif not self.desk.editing or not self._kept:
            self._kept = self.composer.text
        self._write(text)

    def _write(self, text: str) -> None:
        self.composer.text = text
        self.composer.cursor_position = len(text)

    def remember(self, texts: tuple[str, ...]) -> None:
        history = self.composer.history
        said = [*texts, *history.get_strings()]
        self.composer.history = InMemoryHistory(said)
        self.composer.reset(self.composer.document)

    def leave(self) -> None:
        if not self._leaving:
            self._leave(0)

    # ── keys.Actions ─────────────────────────────────────────────────────────────────────────────────────────────

    def stop_or_leave(self) -> None:
        """Ctrl-C: clears what is written, else stops what is at work, else asks, else leaves."""
        if self.desk.editing:
            self.desk.stop_editing()
        elif self.composer.text:
            self.composer.reset()
        elif self._now_s() < self._hint_until_s:
            self._leave(0)
        else:
            stopped = self.desk.interrupt()
            self._say_hint("stopping; Ctrl-C again leaves" if stopped else "Ctrl-C again leaves")

    def open_output(self) -> None:
        """Writes the last tool's whole output into the transcript."""
        tools = [tool for tool in self.desk.transcript.tools if tool.output.strip()]
        if not tools:
            self._say_hint("there is no output to open")
            return
        tool = tools[-1]
        lines = tool.output.rstrip("\n").split("\n")
        shown, hidden = lines[:OPENED_LINES], len(lines) - OPENED_LINES
        columns = self._columns()
        head = f"{tool.name}  {rows.what_of(tool.name, tool.arguments)}"
        self._pending.append(cut(line(render.visible_line(head), "tool"), columns))
        self._pending += rows.output_rows("\n".join(shown), columns, diff=rows.is_difference(tool))
        if hidden > 0:
            self._pending.append(line(f"  └ {hidden:,} more lines: /show {tool.execution}", "dim"))
        self.changed()

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self) -> int:
        """Talks until the person leaves. Returns the exit code; the conversation is closed then."""
        before = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        try:
            return asyncio.run(self._main())
        finally:
            sys.setswitchinterval(before)
            try:
                sys.stdout.flush()
            except OSError:  # the terminal is gone; Python would complain once more at its end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    async def _main(self) -> int:
        self._loop = loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._fault)
        if (signatures := self.desk.world.guard.ledger.answers.signatures) is not None:
            signatures.lending = lambda: lent(self.app, loop)
        for number in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(number, self._signalled, number)
        ticking = asyncio.ensure_future(self._tick())
        for row in () if self._first else greeting(self.desk.opened, self.desk.world.person):
            self._pending += rows.rows_of(row, self._columns())
        self.changed()
        self.desk.begin(self._first)
        self._take_posted()
        try:
            code = await self.app.run_async(set_exception_handler=False)
        except (EOFError, OSError):  # the terminal is gone
            code = 129
        finally:
            self._leaving = True
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ticking
        if self.desk.working:
            with contextlib.suppress(OSError):
                self.app.output.write("· ending what is at work, on record …\r\n")
                self.app.output.flush()
        # The loop goes on meanwhile, so that what the threads still tell is taken.
        await loop.run_in_executor(None, self.desk.close)
        return code

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            if self.desk.working or self.desk.dock.waiting or self._hint or self.desk.watch.now():
                self.changed()

    def _post(self, run: Callable[[], None]) -> None:
        """From any thread. One wake-up of the loop is for all that has come until it looks."""
        with self._lock:
            self._posted.append(run)
            wake, self._waking = not self._waking, True
        if wake and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody looks any more
                self._loop.call_soon_threadsafe(self._take_posted)

    def _take_posted(self) -> None:
        with self._lock:
            batch, self._posted, self._waking = self._posted, [], False
        for run in batch:
            try:
                run()
            except Exception as error:  # a fault of ours must not end the conversation
                self.desk.broke(error)

    def _signalled(self, number: int) -> None:
        self._leave(128 + number)

    def _leave(self, code: int) -> None:
        """Ends the screen; what is at work is ended on record behind it."""
        self._draw()
        self._leaving = True
        if not self.app.is_done and self.app.is_running:
            self.app.exit(result=code)

    def _fault(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """A fault in a callback: the terminal is gone, or it is ours and is said; the conversation goes on."""
        error = context.get("exception")
        if isinstance(error, EOFError) or (isinstance(error, OSError) and error.errno in _TERMINAL_GONE):
            self._leaving = True
            if self.app.is_running and not self.app.is_done:
                self.app.exit(exception=EOFError())
        elif isinstance(error, Exception):
            self.desk.broke(error)

    # ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _draw(self) -> None:
        """One frame: what is over goes above, the rest is drawn anew."""
        self._frame = None
        if self._leaving:
            return
        size = self.app.output.get_size()
        self.desk.dock = dock.resized(self.desk.dock, size.columns, size.rows)
        lines, self._pending = self._pending, []
        for piece in self.desk.pieces():
            lines += rows.rows_of(piece, size.columns)
        quiet_s = self.desk.dock.quiet_until_s - self._now_s()
        if self.desk.dock.waiting and quiet_s > 0 and self._loop is not None:
            self._loop.call_later(quiet_s, self.changed)
        if lines:
            self.app.write_above(lines)
        else:
            self.app._redraw()

    def _say_hint(self, text: str) -> None:
        self._hint, self._hint_until_s = text, self._now_s() + LEAVE_S
        self.changed()

    def _columns(self) -> int:
        return self.app.output.get_size().columns

    def _layout(self) -> Layout:
        asked = Condition(self.desk.ask_is_open)
        search = SearchToolbar(text_if_not_searching="")
        writing = Window(
            BufferControl(
                self.composer,
                input_processors=[BeforeInput(self._prompt)],
                search_buffer_control=search.control,
                preview_search=True,
            ),
            height=self._composer_height,
            wrap_lines=True,
            dont_extend_height=True,
        )

        def part(text: Callable[[], list[Line]]) -> Window:
            drawn: dict[int, list[Line]] = {}

            def once() -> list[Line]:
                """The lines of this frame; the layout asks for them several times."""
                frame = self.app.render_counter
                if frame not in drawn:
                    drawn.clear()
                    drawn[frame] = text()
                return drawn[frame]

            return Window(
                FormattedTextControl(lambda: _joined(once())), dont_extend_height=True, height=lambda: len(once())
            )

        body = HSplit(
            [
                ConditionalContainer(part(self._live), ~asked),
                ConditionalContainer(part(self._dock), asked),
                ConditionalContainer(part(self._queued), ~asked),
                ConditionalContainer(writing, ~asked),
                search,
                part(self._status),
            ]
        )
        menu = Float(CompletionsMenu(max_height=MENU_ROWS, scroll_offset=1), xcursor=True, ycursor=True)
        return Layout(FloatContainer(body, [menu]), focused_element=writing)

    def _composer_height(self) -> Dimension:
        """As high as what is written, within reason; with room for a menu while there is one."""
        size = self.app.output.get_size()
        rows_needed = sum(
            max(1, -(-(render.width(one.expandtabs(4)) + 2) // size.columns)) for one in self.composer.text.split("\n")
        )
        most = max(1, min(COMPOSER_ROWS, size.rows // 2))
        least = min(MENU_ROWS + 1, size.rows - 2) if self.composer.complete_state else 1
        return Dimension(min=min(least, most), preferred=max(least, min(most, rows_needed)))

    def _prompt(self) -> StyleAndTextTuples:
        if self.desk.editing:
            return [(style_class("confirm"), "edit, then Enter (esc: back) › ")]
        return [(style_class("dock.key"), "› ")]

    def _live(self) -> list[Line]:
        size = self.app.output.get_size()
        return rows.live_rows(self.desk.transcript.rows, size.columns, max(0, min(12, size.rows - 6)))

    def _dock(self) -> list[Line]:
        return dock_rows.rows_of(self.desk.dock, self._now_s())

    def _queued(self) -> list[Line]:
        columns = self._columns()
        shown = [
            cut(line(f"queued: {render.visible_line(text.strip())}", "queued"), columns)
            for text in self.desk.queued[:3]
        ]
        if len(self.desk.queued) > 3:
            shown.append(line(f"and {len(self.desk.queued) - 3} more", "queued"))
        return shown

    def _status(self) -> list[Line]:
        if self._now_s() >= self._hint_until_s:
            self._hint = ""
        written = self.composer.text if self.desk.ask_is_open() else ""
        return [status_line(self.desk.status(self._hint, written=written), self._columns())]


def _joined(lines: list[Line]) -> StyleAndTextTuples:
    """Lines without the last line feed, as a window wants them."""
    text = fragments(lines)
    return text[:-1] if text else text
