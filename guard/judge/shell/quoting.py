"""One word's bytes, by bash's quoting rules: what of it is literal, where expansions stand, and whether it splits.

The grammar says where expansions are; a character of one that no node covers makes the word opaque. Nothing is expanded
here: what an expansion is the reader tells that asks.
"""

from guard.judge.shell.scanning import (
    AFTER_DOLLAR,
    BLANKS,
    NAMES,
    ansi_end,
    char_size,
    folder_of_tilde,
    plain_variable,
)
from guard.judge.shell.syntax import Expansion, Node, Opaque
from guard.judge.shell.words import CLOSE, COMMA, OPEN, ansi_c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BACKSLASH, DOLLAR, BACKTICK, QUOTE, DOUBLE = 0x5C, 0x24, 0x60, 0x27, 0x22
_STARS = b"*?["
_BRACES = b"{,}"
_BREAKS = b" \t\n;&|<>()"
_IN_PATTERNS = b"|()<> \t"
_MEANS_MORE = frozenset("*?[]\\!^-:.=")
_ENDS_DOUBLE = b'$`"\\'
_SPECIAL = frozenset(bytes((BACKSLASH, DOLLAR, BACKTICK, QUOTE, DOUBLE)) + _STARS + _BRACES + _BREAKS)


class Quoting:
    """The reading of one word. Every field below is told once `read` is back."""

    __slots__ = (
        "source", "start", "at", "end", "nodes", "next_node", "pattern", "heredoc", "whole",
        "parts", "buffer", "quoted", "splits", "globs", "brace", "open_name", "loose_dollar", "opaque", "in_double",
        "marks", "patterns", "in_brackets",
    )  # fmt: skip

    def __init__(
        self, source: bytes, start: int, end: int, nodes: "list[Any]", *,
        pattern: bool = False, heredoc: bool = False, whole: bool = False,
    ) -> None:  # fmt: skip
        self.source = source
        self.start = self.at = start
        self.end = end
        self.nodes = nodes
        """The expansions that the grammar saw in it, in order."""
        self.next_node = 0
        self.pattern = pattern
        """Parentheses, bars and angle brackets are allowed (case patterns, `[[ ]]`)."""
        self.heredoc = heredoc
        """The rules of an unquoted here-document."""
        self.whole = whole
        """No brace expansion, splitting or globbing (assignments)."""
        self.parts: list[str | Expansion] = []
        self.buffer: list[str] = []
        self.quoted = self.splits = self.globs = False
        self.brace = False
        """An unquoted opening brace occurs; braces and their commas stand marked in the parts."""
        self.open_name = -1
        """Index of a plain variable that an opening brace follows directly: `$x{a,b}`."""
        self.loose_dollar = False
        """A dollar sign that bash leaves alone, outside of quotes."""
        self.opaque: list[Node] = []
        self.in_double = heredoc
        self.marks: list[int] = []
        """Which pieces of the buffer are quoted and would mean more in a pattern."""
        self.patterns: dict[int, str | None] = {}
        """`Word.patterns`."""
        self.in_brackets = False
        """A bracket expression may be open behind the parts so far."""

    def read(self, expansion: "Callable[[Any, bool], Expansion]") -> None:
        """Reads to the end; `expansion` tells what a node is, given whether it stands in double quotes."""
        source, end, nodes = self.source, self.end, self.nodes
        count = len(nodes)
        if source[self.at : self.at + 1] == b"~" and not self.heredoc:
            self._tilde()
        while self.at < end:
            at = self.at
            if self.next_node < count and nodes[self.next_node].start_byte <= at:
                self._node(nodes[self.next_node], expansion)
                continue
            char = source[at]
            if char == BACKSLASH:
                self._backslash()
            elif char == DOLLAR:
                self._dollar()
            elif char == BACKTICK:
                self._fault(at, "a substitution that the grammar does not see")
                self.at = at + 1
            elif self.in_double:
                if char == DOUBLE and not self.heredoc:
                    self.in_double = False
                    self.at = at + 1
                else:
                    self._plain(_ENDS_DOUBLE)
            elif char not in _SPECIAL:
                self._plain(_SPECIAL)
            elif char == QUOTE:
                self._single(at)
            elif char == DOUBLE:
                self.in_double = self.quoted = True
                self.at = at + 1
            else:
                self._special(char)
        if self.in_double and not self.heredoc:
            self._fault(self.start, "a quote that does not end")
        if self.next_node < count:
            self._fault(self.start, "the grammar and bash's quoting disagree here")
        self._flush()
        if self.brace and self.loose_dollar:
            # `{a,$}x`: braces come first in bash, so the words are `ax` and the value of x.
            self._fault(self.start, "a dollar sign that braces can give a name to")

    def _fault(self, where: int, text: str) -> None:
        self.opaque.append(Opaque((where, min(where + 2, self.end)), "shell.unread", text))

    def _flush(self) -> None:
        if self.buffer:
            text = "".join(self.buffer)
            if self.marks:
                self.patterns[len(self.parts)] = self._as_pattern()
                self.marks = []
            elif "/" in text:
                self.in_brackets = "[" in text.rpartition("/")[2]
            elif "[" in text:
                self.in_brackets = True
            self.parts.append(text)
            self.buffer = []

    def _as_pattern(self) -> str:
        """The buffer with a backslash before each quoted character that a pattern would take for more than itself."""
        out: list[str] = []
        inside = self.in_brackets
        for at, piece in enumerate(self.buffer):
            marked = at in self.marks
            for char in piece:
                if char == "/":
                    inside = False
                elif marked and (char in "*?[\\" or (inside and char in "]!^-:.=")):
                    out.append("\\")
                elif char == "[":
                    inside = True
                out.append(char)
        self.in_brackets = inside
        return "".join(out)

    def _literal(self, text: str) -> None:
        """Quoted text."""
        if not _MEANS_MORE.isdisjoint(text):
            self.marks.append(len(self.buffer))
        self.buffer.append(text)

    def _node(self, node: "Any", expansion: "Callable[[Any, bool], Expansion]") -> None:
        self.next_node += 1
        start: int = node.start_byte
        if start < self.at:
            self._fault(start, "the grammar and bash's quoting disagree here")
            return
        # Inside double quotes the grammar counts blanks before an expansion as part of it.
        while self.source[self.at] in BLANKS:
            self.buffer.append(chr(self.source[self.at]))
            self.at += 1
        self._flush()
        part = expansion(node, self.in_double)
        self.parts.append(part)
        if not self.in_double and not self.whole and part.kind not in ("process", "arith"):
            self.splits = True
        self.at = node.end_byte

    def _backslash(self) -> None:
        source, at = self.source, self.at
        if at + 1 >= self.end:
            self.buffer.append("\\")
            self.at = at + 1
            return
        following = source[at + 1]
        if following == 0x0A:
            self.at = at + 2
        elif (self.in_double and following not in _ENDS_DOUBLE) or (self.heredoc and following == DOUBLE):
            self._literal("\\")
            self.at = at + 1
        else:
            self.quoted = True
            stop = at + 1 + char_size(following)
            self._literal(source[at + 1 : stop].decode("utf-8", "replace"))
            self.at = stop

    def _tilde(self) -> None:
        """`~+`, `~-` and `~2`: folders that the shell itself knows (bash(1), "Tilde Expansion")."""
        known = folder_of_tilde(self.source[self.at : self.end])
        if known is not None:
            self.parts.append(Expansion("var" if known[1] else "param", known[1], True))
            self.at += known[0]

    def _dollar(self) -> None:
        source, at, end = self.source, self.at, self.end
        following = source[at + 1] if at + 1 < end else 0
        if following == QUOTE and not self.in_double:
            stop = ansi_end(source, at + 2, end)
            value = ansi_c(source[at + 2 : stop].decode("utf-8", "replace")) if stop < end else None
            if value is None:
                self._fault(at, "a quoted string that is not plain text")
                self.at = min(stop + 1, end)
                return
            self._literal(value)
            self.quoted = True
            self.at = stop + 1
        elif following == DOUBLE and not self.in_double:
            self._fault(at, "text that bash translates before it uses it")
            self.at = at + 1
        elif following in AFTER_DOLLAR:
            stop = plain_variable(source, at, end)
            if not stop:
                self._fault(at, "an expansion that the grammar does not see")
                self.at = at + 1
                return
            # A plain variable runs nothing, whether the grammar saw it or not.
            self._flush()
            name = source[at + 1 : stop].strip(b"{}").decode()
            self.parts.append(Expansion("var", name, self.in_double))
            if not self.in_double and not self.whole and name not in ("$", "?", "#", "!"):
                self.splits = True
            self.at = stop
        else:
            self.loose_dollar = self.loose_dollar or not self.in_double
            self.buffer.append("$")
            self.at = at + 1

    def _plain(self, ends: "bytes | frozenset[int]") -> None:
        """A run of ordinary characters, at least one, up to one of `ends` or the next expansion."""
        source, at, end = self.source, self.at, self.end
        if self.next_node < len(self.nodes):
            end = min(end, self.nodes[self.next_node].start_byte)
        stop = at + 1
        while stop < end and source[stop] not in ends:
            stop += 1
        text = source[at:stop].decode("utf-8", "replace")
        if self.in_double:
            self._literal(text)
        else:
            self.buffer.append(text)
        self.at = stop

    def _special(self, char: int) -> None:
        """Outside of quotes: a character that can mean more than itself."""
        at = self.at
        self.at = at + 1
        if char in _STARS:
            self.globs = not self.whole
            self.buffer.append(chr(char))
        elif char == 0x7B and not self.whole:
            behind_name = self.parts and not self.buffer and self.source[at - 1] in NAMES
            if behind_name and isinstance(self.parts[-1], Expansion):
                self.open_name = len(self.parts) - 1
            self.brace = True
            self.buffer.append(OPEN)
        elif char == 0x2C and self.brace:
            self.buffer.append(COMMA)
        elif char == 0x7D and self.brace:
            self.buffer.append(CLOSE)
        elif char in _BREAKS and not (self.pattern and char in _IN_PATTERNS):
            if char == 0x28 and self.globs:
                self._fault(at, "a pattern that is not known here")
            else:
                self._fault(at, "the grammar and bash's quoting disagree here")
        else:
            self.buffer.append(chr(char))

    def _single(self, at: int) -> None:
        stop = self.source.find(b"'", at + 1, self.end)
        if stop < 0:
            self._fault(at, "a quote that does not end")
            stop = self.end
        self._literal(self.source[at + 1 : stop].decode("utf-8", "replace"))
        self.quoted = True
        self.at = stop + 1
