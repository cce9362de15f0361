"""A prompt_toolkit application that lives below what was written before, and writes above itself.

What goes into the scrollback is appended and never touched again. The live part (rows at work, dock, composer, status)
is erased, the new lines are written in its place, and it is drawn anew below them, in one write to the terminal. The
terminal is asked nothing (no cursor position reports), so that a slow line or a pipe in between cannot stall us.

Leans on four private fields of prompt_toolkit's renderer, because its own ways switch bracketed paste off and on for
each line that is written, and a paste that falls in between would come as keys. tests/repl/test_repl_inline.py knows.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import Style

from agent.repl.styles import STYLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TextIO

    from prompt_toolkit.formatted_text import StyleAndTextTuples

    from agent.repl.lines import Line


_SAVE_CURSOR, _RESTORE_CURSOR = "\x1b7", "\x1b8"
# DECSC and DECRC, which every terminal since the VT100 has.


def style() -> Style:
    """The styles of lines for prompt_toolkit."""
    return Style.from_dict({name.replace(".", "-"): look for name, look in STYLES.items()})


def fragments(lines: Iterable[Line]) -> StyleAndTextTuples:
    """Lines as prompt_toolkit's formatted text, each ended by a line feed."""
    out: StyleAndTextTuples = []
    for one in lines:
        out += [(style_class(name), text) for name, text in one]
        out.append(("", "\n"))
    return out


def style_class(name: str) -> str:
    """prompt_toolkit's way to name a style of ours; it reads a dot as nesting, so dots become dashes."""
    return f"class:{name.replace('.', '-')}" if name else ""


def reflows(environ: Mapping[str, str]) -> bool:
    """Whether the terminal breaks long rows anew when it gets narrower; xterm and screen cut them instead."""
    return not environ.get("XTERM_VERSION") and not (environ.get("STY") and not environ.get("TMUX"))


def terminal_output(stream: TextIO) -> Vt100_Output:
    """The terminal behind a stream, never asked where its cursor is. A size of 0 × 0 counts as 80 × 24."""

    def size() -> Size:
        try:
            found = os.get_terminal_size(stream.fileno())
        except OSError:
            return Size(rows=24, columns=80)
        return Size(rows=found.lines or 24, columns=found.columns or 80)

    return Vt100_Output(stream, size, term=os.environ.get("TERM"), enable_bell=False, enable_cpr=False)


class InlineApplication(Application[int]):
    """See the module."""

    def write_above(self, lines: Iterable[Line]) -> None:
        """Writes lines into the scrollback. Call it in the event loop's thread."""
        text = fragments(lines)
        if not text:
            return
        self._lift()
        print_formatted_text(self.output, text, self._merged_style, self.style_transformation, self.color_depth)
        self._redraw()

    @property
    def _height(self) -> int:
        """Rows of the live part as it was drawn last."""
        screen = self.renderer._last_screen
        return screen.height if screen is not None else 0

    def clear(self) -> None:
        """An empty screen; the scrollback stays."""
        self.output.erase_screen()
        self.output.cursor_goto(0, 0)
        self._forget()
        self._redraw()

    def _lift(self) -> None:
        """Puts the cursor where the live part begins and erases from there; flushes nothing."""
        renderer, output = self.renderer, self.output
        output.write_raw("\r")
        output.cursor_up(renderer._cursor_pos.y)
        output.reset_attributes()
        # Row by row: tmux keeps a whole screen that is erased from its first cell on in its history.
        # Back by the terminal's own memory: in a window that became lower the way down may be shorter than it was.
        output.write_raw(_SAVE_CURSOR)
        for _ in range(min(self._height, output.get_size().rows)):
            output.erase_end_of_line()
            output.cursor_down(1)
        output.write_raw(_RESTORE_CURSOR)
        output.erase_down()
        output.enable_autowrap()
        self._forget()

    def _forget(self) -> None:
        """The renderer starts from nothing at the cursor, with bracketed paste left on."""
        renderer = self.renderer
        renderer._cursor_pos = Point(x=0, y=0)
        renderer._last_screen = None
        renderer._last_size = None
        renderer._last_style = None

    def _on_resize(self) -> None:
        """The terminal has broken the rows of the live part anew: find its first row again before erasing.

        No blanks are written at the end of a row unless they have a background, which no row above the cursor has.
        """
        renderer = self.renderer
        screen, columns = renderer._last_screen, self.output.get_size().columns
        if screen is not None and renderer._last_size is not None and columns and reflows(os.environ):
            at = renderer._cursor_pos
            rows = 0
            for number in range(at.y):
                row = screen.data_buffer[number]
                used = max((x + 1 for x, char in row.items() if char.char.strip()), default=1)
                rows += max(1, -(-used // columns))
            renderer._cursor_pos = Point(x=at.x % columns, y=rows + at.x // columns)
        self._lift()
        self._redraw()
