"""What is expanded in a word: `$x`, `${…}`, `$((…))`, `$(…)`, `<(…)`, and what it runs."""

from guard.judge.shell.expand import WordReader
from guard.judge.shell.scanning import (
    AFTER_DOLLAR,
    EXPANSIONS,
    MAX_DEPTH,
    NAMES,
    NUMBER,
    assigned,
    plain_variable,
    runs_something,
    unescaped,
)
from guard.judge.shell.syntax import Assign, Expansion, Nested, Node, Opaque, Simple
from guard.judge.shell.words import ansi_c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SPECIAL = (b"@", b"*", b"#", b"?", b"-", b"$", b"!")
_PATTERNS = ("#", "%", "^", ",")
"""Operators of `${…}` whose operand is a pattern: single quotes keep their meaning in it."""


class ExpansionReader(WordReader):
    """Reads expansions too. What a substitution runs is read by `statements`, which the whole reader brings."""

    __slots__ = ()

    def expansion(self, node: "Any", quoted: bool) -> Expansion:
        kind = node.type
        first, last = self._begin(node), node.end_byte
        if kind == "simple_expansion":
            name = self.source[first + 1 : last]
            if name.translate(None, NAMES) and name not in _SPECIAL:
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
            nested = self.nested(unescaped(body, quoted))
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
            if kind in EXPANSIONS:
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
            if what in EXPANSIONS:
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
            if runs_something(text.encode("utf-8", "replace")):
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
                    stop = plain_variable(piece, index, len(piece))
                    if stop:
                        index = stop
                        continue
                if (
                    char == 0x60
                    or (char == 0x24 and index + 1 < len(piece) and piece[index + 1] in AFTER_DOLLAR)
                    or (char == 0x24 and index + 1 == len(piece) and first < end)
                ):
                    where = first - len(piece) + index
                    runs.append(
                        Opaque((where, where + 1), "shell.unread", "an expansion that the grammar does not see")
                    )
                    break
                index += 1
