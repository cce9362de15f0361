"""Words and what is expanded in them: quotes, `$x`, `${…}`, `$((…))`, `$(…)`, read by bash's own rules.

The grammar's nodes say where expansions are; the bytes between them are read here once more, and an expansion character
that no node covers makes the word opaque.
"""

from guard.judge.shell.syntax import Assign, Expansion, Nested, Node, Opaque, Script, Simple, Word
from guard.judge.shell.words import CLOSE, COMMA, OPEN, SAFE, ansi_c, braces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 40
"""Nesting beyond this is opaque: far deeper than people write, far from Python's own recursion limit."""

NUMBER = Word((0, 0), None, (Expansion("arith", "", True),))
"""The value of a name that arithmetic assigns: some number."""

_EXPANSIONS = frozenset(
    ("simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion")
)
_NAME_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_NAMES = bytes(sorted(_NAME_BYTES))
_SPECIAL = (b"@", b"*", b"#", b"?", b"-", b"$", b"!")
_PATTERNS = ("#", "%", "^", ",")
"""Operators of `${…}` whose operand is a pattern: single quotes keep their meaning in it."""
_AFTER_DOLLAR = _NAME_BYTES | frozenset(b"({[!@*#?-$")
HOLE = "\x10"
"""Stands for an expansion, with one character behind it that says which, while braces are read."""
_HOLE_BASE, _MOST_HOLES = 0x4E00, 5_000
BLANKS = b" \t\n"


class WordReader:
    """Reads words of one text. What a substitution runs is read by `statements`, which the whole reader brings."""

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
            if node.type in _EXPANSIONS:
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
            if child.type in _EXPANSIONS:
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
                    size = _char_size(following)
                    buffer.append(source[at + 1 : at + 1 + size].decode("utf-8", "replace"))
                    at += 1 + size
            elif char == 0x24:  # dollar
                following = source[at + 1] if at + 1 < end else 0
                if not in_double and following == 0x27:
                    stop = _ansi_end(source, at + 2, end)
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
                elif following in _AFTER_DOLLAR:
                    stop = _plain_variable(source, at, end)
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
                if parts and not buffer and isinstance(parts[-1], Expansion) and source[at - 1] in _NAMES:
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
                size = _char_size(char)
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
                    rest = (*map(_unmark, (part for part in parts if isinstance(part, str))),)
                    return [
                        Word(span, None, (*rest, Expansion("opaque", "", True, tuple(opaque))), quoted, True, globs)
                    ]
                return [Word(span, None, tuple(more), quoted, splits, globs) for more in words]
            return [Word(span, None, tuple(parts), quoted, splits, globs)]
        value = "".join(part for part in parts if isinstance(part, str))
        if brace:
            spread = braces(value)
            if spread is None:
                return [Word(span, None, (_unmark(value), Expansion("glob", "", False)), quoted, True, globs)]
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

    def expansion(self, node: "Any", quoted: bool) -> Expansion:
        kind = node.type
        first, last = self._begin(node), node.end_byte
        if kind == "simple_expansion":
            name = self.source[first + 1 : last]
            if name.translate(None, _NAMES) and name not in _SPECIAL:
                strange = Opaque((first, last), "shell.unread", "the grammar sees a variable where bash does not")
                return Expansion("opaque", "", quoted, (strange,))
            return Expansion("var", name.decode(), quoted)
        if self.depth > MAX_DEPTH:
            deep = Opaque((first, last), "shell.deep", "nested too deeply to be read")
            return Expansion("opaque", "", quoted, (deep,))
        self.depth += 1
        try:
            if kind == "command_substitution" or kind == "process_substitution":
                return self._substitution(node, kind, quoted)
            if kind == "arithmetic_expansion":
                head = 3 if self.source[first : first + 3] == b"$((" else 2
                return self._arithmetic(node, (first, last), head, head - 1, False)
            return self._parameter(node, quoted)
        finally:
            self.depth -= 1

    def _substitution(self, node: "Any", kind: str, quoted: bool) -> Expansion:
        first, last = self._begin(node), node.end_byte
        children = node.children
        items: list[Node] = []
        if self.source[first] == 0x60 and b"\\" in self.source[first:last]:
            # Inside backticks bash takes `\$`, `\``, `\\` (and `\"` within double quotes) apart before it
            # reads the text.
            body = self.source[first + 1 : last - 1]
            if last - first < 2 or self.source[last - 1] != 0x60:
                items.append(Opaque((first, last), "shell.backtick", "a substitution that does not end"))
            nested = self.nested(_unescaped(body, quoted))
            for name, given in nested.values.items():
                self.values.setdefault(name, []).extend([None] * len(given))
            self.wild = self.wild or nested.wild
            self.data_evaluated = self.data_evaluated or nested.evaluates
            items.append(Nested((first, last), nested.items))
            return Expansion("command", "", quoted, tuple(items))
        if len(children) < 2 or children[-1].type not in (")", "`"):
            items.append(Opaque((first, last), "shell.unread", "a substitution that does not end"))
            inner = children[1:]
        else:
            inner = children[1:-1]
        head = children[0].end_byte if children else first
        items.extend(self.statements(inner, head, inner[-1].end_byte if inner else head))
        if inner and len(children) >= 2:
            self._gap(inner[-1].end_byte, children[-1].start_byte, items)
        elif len(children) >= 2:
            self._gap(head, children[-1].start_byte, items)
        return Expansion("command" if kind == "command_substitution" else "process", "", quoted, tuple(items))

    def _arithmetic(self, node: "Any", span: "tuple[int, int]", head: int, tail: int, assigns: bool) -> Expansion:
        runs: list[Node] = []
        covered: list[tuple[int, int]] = []
        names: list[str] = []
        stack = list(node.children) or [node]
        while stack:
            child = stack.pop()
            kind = child.type
            if kind in _EXPANSIONS:
                inner = self.expansion(child, True)
                runs.extend(inner.runs)
                covered.append((child.start_byte, child.end_byte))
                if inner.kind in ("command", "process"):
                    self.data_evaluated = True
                elif inner.name:
                    if inner.name not in "?#$!":
                        names.append(inner.name)
                elif inner.kind == "param" and not self.source.startswith(b"${#", child.start_byte):
                    names.append(self._named(child))
                elif inner.kind == "indirect":
                    self.data_evaluated = True
            elif kind == "variable_name" or kind == "word":
                names.append(self._text(child))
            elif kind == "subscript":
                self.data_evaluated = True
                stack.extend(child.children)
            elif kind == "ERROR":
                runs.append(Opaque((child.start_byte, child.end_byte), "shell.syntax", "an error in arithmetic"))
                stack.extend(child.children)
            else:
                stack.extend(child.children)
        if names:
            text = self.source[span[0] + head : span[1] - tail].decode("utf-8", "replace")
            for name in assigned(text):
                self._set(name, NUMBER)
            self.arith_names.update(names)
        self._residue(span[0] + head, span[1] - tail, covered, runs)
        return Expansion("arith", "", True, tuple(runs))

    def _parameter(self, node: "Any", quoted: bool) -> Expansion:
        first, last = self._begin(node), node.end_byte
        runs: list[Node] = []
        covered: list[tuple[int, int]] = []
        strings: list[tuple[int, int]] = []
        name, kind = "", "param"
        stack = list(reversed(node.children))
        after_name = ""
        while stack:
            child = stack.pop()
            what = child.type
            if what in _EXPANSIONS:
                inner = self.expansion(child, True)
                runs.extend(inner.runs)
                covered.append((child.start_byte, child.end_byte))
            elif what == "raw_string":
                strings.append((child.start_byte, child.end_byte))
            elif what in ("variable_name", "special_variable_name") and not name:
                name = self._text(child)
            elif what == "subscript":
                for part in child.children:
                    if part.type == "variable_name" and not name:
                        name = self._text(part)
                    elif part.is_named and self._text(part) not in ("@", "*") and not self._text(part).isdigit():
                        self.data_evaluated = True
                    stack.append(part)
            elif what == "ERROR":
                runs.append(Opaque((child.start_byte, child.end_byte), "shell.syntax", "an error in an expansion"))
            elif not child.is_named and what.strip() not in ("${", "}", "[", "]"):
                if not name and what == "!":
                    kind = "indirect"
                    self.data_evaluated = True
                elif not after_name:
                    after_name = what
                    if what in (":=", "="):
                        self._set(name, None)
                        self.arrays.add(name)
                        runs.append(Simple((first, last), (Assign((first, last), name, None),), ()))
                    elif what == ":":
                        self.data_evaluated = True
            else:
                stack.extend(reversed(child.children))
        text = self.source[first:last]
        if b"@P" in text or b"@A" in text or b"@E" in text:
            runs.append(Opaque((first, last), "shell.transform", "bash evaluates the value as a prompt or code"))
        if b"'" in text or b"\\" in text:
            self._quotes(first, last, quoted and after_name[:1] not in _PATTERNS, strings, covered, runs)
        else:
            self._residue(first + 2, last - 1, covered, runs)
        if after_name or kind == "indirect" or b"[" in text:
            name = ""
        return Expansion(kind, name, quoted, tuple(runs))

    def _named(self, node: "Any") -> str:
        """The variable of a `${…}`; "?" when the grammar does not tell it, which is the name of no variable."""
        for child in node.children:
            if child.type in ("variable_name", "special_variable_name"):
                return self._text(child)
        return "?"

    def _quotes(
        self,
        first: int,
        last: int,
        quoted: bool,
        strings: "list[tuple[int, int]]",
        covered: "list[tuple[int, int]]",
        runs: "list[Node]",
    ) -> None:
        """Looks for what runs in a `${…}` with quotes or backslashes in it.

        Inside double quotes and here-documents a single quote is an ordinary character there, except after `#` and its
        kin, and `$'…'` is taken apart before bash reads the operand (bash(1), QUOTING and shopt extquote).
        """
        inside = self.source[first + 2 : last - 1]
        text = inside.decode("utf-8", "replace")
        if "$" in text or "`" in text:
            self.code.append(text.replace("\\$", "$").replace("\\`", "`"))
        if not quoted:
            self._residue(first + 2, last - 1, covered + strings, runs)
            return
        before = len(runs)
        self._residue(first + 2, last - 1, covered, runs)
        if '$"' in text or "$\\" in text:
            # Bash takes quotes and backslashes out of the operand and then looks for substitutions in what is left.
            runs.append(Opaque((first, last), "shell.unread", "a dollar sign before what bash takes away"))
        if "$'" in text and "\\" in text:
            text = ansi_c(text) or text
            if _runs(text.encode("utf-8", "replace")):
                runs.append(Opaque((first, last), "shell.unread", "escapes in an operand, which is read after them"))
        if len(runs) > before:
            runs.append(Nested((first, last), self.again(text)))

    def _residue(self, start: int, end: int, covered: "list[tuple[int, int]]", runs: "list[Node]") -> None:
        """Looks for expansion characters in the bytes that no expansion node covers."""
        at = start
        for first, last in [*sorted(covered), (end, end)]:
            piece = self.source[at:first]
            at = max(at, last)
            if b"<(" in piece or b">(" in piece:
                runs.append(
                    Opaque((first - len(piece), first), "shell.unread", "a substitution that the grammar does not see")
                )
                continue
            if b"$" not in piece and b"`" not in piece:
                continue
            index = 0
            while index < len(piece):
                char = piece[index]
                if char == 0x5C:
                    index += 2
                    continue
                if char == 0x24:
                    stop = _plain_variable(piece, index, len(piece))
                    if stop:
                        index = stop
                        continue
                if (
                    char == 0x60
                    or (char == 0x24 and index + 1 < len(piece) and piece[index + 1] in _AFTER_DOLLAR)
                    or (char == 0x24 and index + 1 == len(piece) and first < end)
                ):
                    where = first - len(piece) + index
                    runs.append(
                        Opaque((where, where + 1), "shell.unread", "an expansion that the grammar does not see")
                    )
                    break
                index += 1

    def _begin(self, node: "Any") -> int:
        first: int = node.start_byte
        while self.source[first] in BLANKS:
            first += 1
        return first

    def _text(self, node: "Any") -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def identifiers(text: str) -> "list[tuple[str, int, int]]":
    """The names in an arithmetic text, with where they begin and end."""
    found: list[tuple[str, int, int]] = []
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        if char.isalnum() or char == "_":
            start = at
            while at < end and (text[at].isalnum() or text[at] == "_"):
                at += 1
            if not char.isdigit():
                found.append((text[start:at], start, at))
        else:
            at += 1
    return found


def assigned(text: str) -> "list[str]":
    """The names that an arithmetic text gives a value: what is assigned to is a number afterwards."""
    if "=" not in text and "++" not in text and "--" not in text:
        return []
    names: list[str] = []
    for name, start, end in identifiers(text):
        after = text[end:].lstrip()
        if (
            (after[:1] == "=" and after[1:2] != "=")
            or (after[1:2] == "=" and after[:1] in "+-*/%&^|")
            or after[:3] in ("<<=", ">>=")
            or after[:2] in ("++", "--")
            or text[:start].rstrip().endswith(("++", "--"))
        ):
            names.append(name)
    return names


def _runs(text: bytes) -> bool:
    """Whether bash finds a substitution in this text when it stands in double quotes."""
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        if char == 0x5C:
            at += 1
        elif char == 0x60 or (char == 0x24 and text[at + 1 : at + 2] in (b"(", b"{", b"[")):
            stop = _plain_variable(text, at, end) if char == 0x24 else 0
            if not stop:
                return True
            at = stop - 1
        at += 1
    return False


def _plain_variable(source: bytes, at: int, end: int) -> int:
    """Where `$name`, `$1`, `$?` or `${name}` at this place ends; 0 when it is anything that could run something."""
    if at + 1 >= end:
        return 0
    following = source[at + 1]
    if following == 0x7B:
        stop = at + 2
        while stop < end and source[stop] in _NAME_BYTES:
            stop += 1
        return stop + 1 if stop < end and source[stop] == 0x7D and stop > at + 2 else 0
    if following in b"0123456789@*#?$!-":
        return at + 2
    stop = at + 1
    while stop < end and source[stop] in _NAME_BYTES:
        stop += 1
    return stop if stop > at + 1 else 0


def _unmark(text: str) -> str:
    return text.replace(OPEN, "{").replace(COMMA, ",").replace(CLOSE, "}")


def _unescaped(body: bytes, quoted: bool) -> bytes:
    """The inside of backticks as bash reads it."""
    out = bytearray()
    at = 0
    while at < len(body):
        if body[at] == 0x5C and at + 1 < len(body) and (body[at + 1] in b"$`\\" or (quoted and body[at + 1] == 0x22)):
            at += 1
        out.append(body[at])
        at += 1
    return bytes(out)


def _char_size(byte: int) -> int:
    return 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4


def _ansi_end(source: bytes, at: int, end: int) -> int:
    while at < end:
        if source[at] == 0x5C:
            at += 2
        elif source[at] == 0x27:
            return at
        else:
            at += 1
    return end
