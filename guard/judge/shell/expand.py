"""Words: quotes, escapes, braces and where expansions stand in them, read by bash's own rules.

The grammar's nodes say where expansions are; the bytes between them are read here once more, and an expansion character
that no node covers makes the word opaque. What an expansion is `substitutions` reads.
"""

from guard.judge.shell.scanning import (
    AFTER_DOLLAR,
    BLANKS,
    EXPANSIONS,
    NAMES,
    ansi_end,
    char_size,
    plain_variable,
    unmark,
)
from guard.judge.shell.syntax import Expansion, Node, Opaque, Script, Word
from guard.judge.shell.words import CLOSE, COMMA, OPEN, SAFE, ansi_c, braces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOLE = "\x10"
"""Stands for an expansion, with one character behind it that says which, while braces are read."""
_HOLE_BASE, _MOST_HOLES = 0x4E00, 5_000


class WordReader:
    """Reads words of one text. What is expanded in them, and what that runs, the readers built on this one bring."""

    __slots__ = (
        "source",
        "depth",
        "values",
        "functions",
        "wild",
        "arith_names",
        "data_evaluated",
        "code",
        "strange_heredoc",
        "arrays",
        "lists",
    )

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.depth = 0
        self.values: dict[str, list[Word | None]] = {}
        self.functions: set[str] = set()
        self.wild = False
        self.arith_names: set[str] = set()
        self.data_evaluated = False
        self.code: list[str] = []
        """Literals that look like code: bash would run it if it evaluated them."""
        self.strange_heredoc = False
        self.arrays: set[str] = set()
        """Names that are arrays somewhere in the text."""
        self.lists: list[tuple[str, Word, bool]] = []
        """Values that `declare` reads again when they are strings in parentheses: (name, value, for sure)."""

    def statements(self, children: "list[Any]", start: int, end: int) -> "list[Node]":
        raise NotImplementedError

    def nested(self, source: bytes) -> Script:
        raise NotImplementedError

    def expansion(self, node: "Any", quoted: bool) -> Expansion:
        raise NotImplementedError

    def again(self, text: str) -> "tuple[Node, ...]":
        """What runs when bash expands this text as if it stood in double quotes."""
        raise NotImplementedError

    def _gap(self, start: int, end: int, items: "list[Node]") -> None:
        text = self.source[start:end].replace(b"\\\n", b"").translate(None, BLANKS)
        if text:
            items.append(Opaque((start, end), "shell.unread", "the grammar does not account for these bytes"))

    def _set(self, name: str, value: "Word | None") -> None:
        self.values.setdefault(name, []).append(value)

    def words(self, group: "list[Any]", *, pattern: bool = False) -> "list[Word]":
        """The word or (after brace expansion) words that neighbouring grammar nodes make up."""
        first, last = group[0].start_byte, group[-1].end_byte
        text = self.source[first:last]
        if not text.translate(None, SAFE):
            return [Word((first, last), text.decode("utf-8", "replace"))]
        return self._scan(first, last, self._expansions_of(group), pattern=pattern)

    def _expansions_of(self, nodes: "list[Any]") -> "list[Any]":
        found: list[Any] = []
        for node in nodes:
            if node.type in EXPANSIONS:
                found.append(node)
            else:
                found.extend(self._expansion_nodes(node))
        return found

    def _expansion_nodes(self, node: "Any") -> "list[Any]":
        found: list[Any] = []
        if not node.child_count:
            return found
        stack = list(reversed(node.children))
        while stack:
            child = stack.pop()
            if child.type in EXPANSIONS:
                found.append(child)
            elif child.child_count:
                stack.extend(reversed(child.children))
        return found

    def _scan(
        self, start: int, end: int, nodes: "list[Any]", *,
        pattern: bool = False, heredoc: bool = False, whole: bool = False,
    ) -> "list[Word]":  # fmt: skip
        """Reads a word's bytes by bash's quoting rules; `nodes` are the expansions that the grammar saw in it.

        `pattern`: parentheses, bars and angle brackets are allowed (case patterns, `[[ ]]`). `whole`: no brace
        expansion, splitting or globbing (assignments). `heredoc`: the rules of an unquoted here-document.
        """
        source, span = self.source, (start, end)
        parts: list[str | Expansion] = []
        buffer: list[str] = []
        quoted = splits = globs = brace = known = loose_dollar = False
        open_name = -1
        opaque: list[Node] = []
        in_double = heredoc
        at, next_node = start, 0
        count = len(nodes)

        def fault(where: int, text: str) -> None:
            opaque.append(Opaque((where, min(where + 2, end)), "shell.unread", text))

        while at < end:
            if next_node < count and nodes[next_node].start_byte <= at:
                node = nodes[next_node]
                next_node += 1
                if node.start_byte < at:
                    fault(node.start_byte, "the grammar and bash's quoting disagree here")
                    continue
                # Inside double quotes the grammar counts blanks before an expansion as part of it.
                while source[at] in BLANKS:
                    buffer.append(chr(source[at]))
                    at += 1
                if buffer:
                    parts.append("".join(buffer))
                    buffer = []
                expansion = self.expansion(node, in_double)
                parts.append(expansion)
                if not in_double and expansion.kind not in ("process", "arith") and not whole:
                    splits = True
                at = node.end_byte
                continue
            char = source[at]
            if char == 0x5C:  # backslash
                if at + 1 >= end:
                    buffer.append("\\")
                    at += 1
                    continue
                following = source[at + 1]
                if following == 0x0A:
                    at += 2
                elif (in_double and following not in b'$`"\\') or (heredoc and following == 0x22):
                    buffer.append("\\")
                    at += 1
                else:
                    quoted = True
                    size = char_size(following)
                    buffer.append(source[at + 1 : at + 1 + size].decode("utf-8", "replace"))
                    at += 1 + size
            elif char == 0x24:  # dollar
                following = source[at + 1] if at + 1 < end else 0
                if not in_double and following == 0x27:
                    stop = ansi_end(source, at + 2, end)
                    value = ansi_c(source[at + 2 : stop].decode("utf-8", "replace")) if stop < end else None
                    if value is None:
                        fault(at, "a quoted string that is not plain text")
                        at = min(stop + 1, end)
                        continue
                    buffer.append(value)
                    quoted = True
                    at = stop + 1
                elif not in_double and following == 0x22:
                    fault(at, "text that bash translates before it uses it")
                    at += 1
                elif following in AFTER_DOLLAR:
                    stop = plain_variable(source, at, end)
                    if not stop:
                        fault(at, "an expansion that the grammar does not see")
                        at += 1
                        continue
                    # A plain variable runs nothing, whether the grammar saw it or not.
                    if buffer:
                        parts.append("".join(buffer))
                        buffer = []
                    name = source[at + 1 : stop].strip(b"{}").decode()
                    parts.append(Expansion("var", name, in_double))
                    splits = splits or (not in_double and not whole and name not in ("$", "?", "#", "!"))
                    at = stop
                else:
                    loose_dollar = loose_dollar or not in_double
                    buffer.append("$")
                    at += 1
            elif char == 0x60:  # backtick
                fault(at, "a substitution that the grammar does not see")
                at += 1
            elif in_double:
                if char == 0x22 and not heredoc:
                    in_double = False
                    at += 1
                else:
                    stop = at + 1
                    while (
                        stop < end
                        and source[stop] not in b'$`"\\'
                        and not (next_node < count and nodes[next_node].start_byte == stop)
                    ):
                        stop += 1
                    buffer.append(source[at:stop].decode("utf-8", "replace"))
                    at = stop
            elif char == 0x27:
                stop = source.find(b"'", at + 1, end)
                if stop < 0:
                    fault(at, "a quote that does not end")
                    stop = end
                buffer.append(source[at + 1 : stop].decode("utf-8", "replace"))
                quoted = True
                at = stop + 1
            elif char == 0x22:
                in_double = quoted = True
                at += 1
            elif char in b"*?[":
                globs = not whole
                buffer.append(chr(char))
                at += 1
            elif char == 0x7B and not whole:
                if parts and not buffer and isinstance(parts[-1], Expansion) and source[at - 1] in NAMES:
                    open_name = len(parts) - 1
                brace = True
                buffer.append(OPEN)
                at += 1
            elif char == 0x2C and brace:
                buffer.append(COMMA)
                at += 1
            elif char == 0x7D and brace:
                buffer.append(CLOSE)
                at += 1
            elif char in b" \t\n;&|<>()" and not (pattern and char in b"|()<> \t") and not heredoc:
                if char == 0x28 and globs:
                    fault(at, "a pattern that is not known here")
                else:
                    fault(at, "the grammar and bash's quoting disagree here")
                at += 1
            else:
                size = char_size(char)
                buffer.append(source[at : at + size].decode("utf-8", "replace"))
                at += size
        if in_double and not heredoc:
            fault(start, "a quote that does not end")
        if next_node < count:
            fault(start, "the grammar and bash's quoting disagree here")
        if buffer:
            parts.append("".join(buffer))
        if brace and loose_dollar:
            # `{a,$}x`: braces come first in bash, so the words are `ax` and the value of x.
            fault(start, "a dollar sign that braces can give a name to")
        if opaque:
            parts.append(Expansion("opaque", "", True, tuple(opaque)))
        known = True
        for part in parts:
            if not isinstance(part, str):
                known = False
            elif "$(" in part or "`" in part or "${" in part:
                self.code.append(part)
        if not known:
            if brace:
                words = self._spread(parts, open_name)
                if words is None:
                    fault(start, "a name or number of words that braces make")
                    rest = (*map(unmark, (part for part in parts if isinstance(part, str))),)
                    return [
                        Word(span, None, (*rest, Expansion("opaque", "", True, tuple(opaque))), quoted, True, globs)
                    ]
                return [Word(span, None, tuple(more), quoted, splits, globs) for more in words]
            return [Word(span, None, tuple(parts), quoted, splits, globs)]
        value = "".join(part for part in parts if isinstance(part, str))
        if brace:
            spread = braces(value)
            if spread is None:
                return [Word(span, None, (unmark(value), Expansion("glob", "", False)), quoted, True, globs)]
            return [Word(span, item, (), quoted, False, globs) for item in spread if item or quoted]
        return [Word(span, value, (), quoted, False, globs)]

    def _spread(self, parts: "list[str | Expansion]", open_name: int) -> "list[list[str | Expansion]] | None":
        """The words that braces make of a word with expansions in it; None when that cannot be told.

        Braces come first in bash: `{a,b}$x` is `a$x b$x`, and `$x{a,b}` are the values of xa and xb (`open_name` is the
        index of such a variable).
        """
        holes = [part for part in parts if isinstance(part, Expansion)]
        text, index = "", 0
        for part in parts:
            if isinstance(part, str):
                if HOLE in part:
                    return None
                text += part
            else:
                text += HOLE + chr(_HOLE_BASE + index)
                index += 1
        spread = braces(text)
        if spread is None or len(holes) > _MOST_HOLES:
            return None
        name = HOLE + chr(_HOLE_BASE + sum(isinstance(part, Expansion) for part in parts[:open_name]))
        words: list[list[str | Expansion]] = []
        for item in spread:
            if open_name >= 0:
                following = item.partition(name)[2][:1]
                if following and (following.isalnum() or following == "_"):
                    return None
            pieces = item.split(HOLE)
            word: list[str | Expansion] = [pieces[0]] if pieces[0] else []
            for piece in pieces[1:]:
                word.append(holes[ord(piece[0]) - _HOLE_BASE])
                if piece[1:]:
                    word.append(piece[1:])
            words.append(word)
        return words

    def _begin(self, node: "Any") -> int:
        first: int = node.start_byte
        while self.source[first] in BLANKS:
            first += 1
        return first

    def _text(self, node: "Any") -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")
