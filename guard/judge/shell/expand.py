"""Words: quotes, escapes, braces and where expansions stand in them, read by bash's own rules.

The grammar's nodes say where expansions are; the bytes between them are read here once more, and an expansion character
that no node covers makes the word opaque. What an expansion is `substitutions` reads.
"""

from guard.judge.shell.quoting import Quoting
from guard.judge.shell.scanning import BLANKS, EXPANSIONS, folder_of_tilde, unmark
from guard.judge.shell.syntax import Expansion, Node, Opaque, Script, Word
from guard.judge.shell.words import SAFE, braces

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
        if not text.translate(None, SAFE) and (text[:1] != b"~" or folder_of_tilde(text) is None):
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
        """The words that these bytes make; `nodes` and the rest are told at `Quoting`."""
        scan = Quoting(self.source, start, end, nodes, pattern=pattern, heredoc=heredoc, whole=whole)
        scan.read(self.expansion)
        parts = scan.parts
        if scan.opaque:
            parts.append(Expansion("opaque", "", True, tuple(scan.opaque)))
        known = True
        for part in parts:
            if not isinstance(part, str):
                known = False
            elif "$(" in part or "`" in part or "${" in part:
                self.code.append(part)
        span, quoted, globs = (start, end), scan.quoted, scan.globs
        if not known:
            if scan.brace:
                return self._braced(scan)
            return [Word(span, None, tuple(parts), quoted, scan.splits, globs, patterns=scan.patterns)]
        value = "".join(part for part in parts if isinstance(part, str))
        if scan.brace:
            spread = braces(value)
            if spread is None:
                return [Word(span, None, (unmark(value), Expansion("glob", "", False)), quoted, True, globs)]
            if globs and scan.patterns:
                return self._with_patterns(scan, spread)
            return [Word(span, item, (), quoted, False, globs) for item in spread if item or quoted]
        return [Word(span, value, (), quoted, False, globs, patterns=scan.patterns)]

    def _with_patterns(self, scan: Quoting, spread: "list[str]") -> "list[Word]":
        """The words of braces in which something is quoted that a pattern would take for more than itself."""
        patterns: list[str] | None = braces(scan.patterns[0] or "") if 0 in scan.patterns else None
        if patterns is None or len(patterns) != len(spread):
            return [Word((scan.start, scan.end), item, (), True, False, True, patterns={0: None}) for item in spread]
        pairs = zip(spread, patterns, strict=True)
        return [Word((scan.start, scan.end), item, (), True, False, True, patterns={0: more}) for item, more in pairs]

    def _braced(self, scan: Quoting) -> "list[Word]":
        """The words of a text with braces and expansions."""
        span, quoted, globs = (scan.start, scan.end), scan.quoted, scan.globs
        words = self._spread(scan.parts, scan.open_name)
        if words is not None:
            # Which piece is where after that is not followed up.
            patterns: dict[int, str | None] = {-1: None} if scan.patterns else {}
            return [Word(span, None, tuple(more), quoted, scan.splits, globs, patterns=patterns) for more in words]
        where = (scan.start, min(scan.start + 2, scan.end))
        scan.opaque.append(Opaque(where, "shell.unread", "a name or number of words that braces make"))
        rest = (*map(unmark, (part for part in scan.parts if isinstance(part, str))),)
        return [Word(span, None, (*rest, Expansion("opaque", "", True, tuple(scan.opaque))), quoted, True, globs)]

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
