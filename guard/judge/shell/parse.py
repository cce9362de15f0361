"""Text → `Script`: the shell grammar's tree turned into ours, with every byte accounted for.

The grammar is a good reader but not the shell: there are texts in which bash runs a substitution that the grammar
shows as plain text, without an error (docs/judging.md lists the kinds). So words are read a second time here, byte
by byte, by bash's own quoting rules, and an expansion character that no grammar node covers makes the word opaque,
as does any byte between nodes that is not a blank. Nothing raises and nothing is dropped.
"""

from guard.judge.shell.assigning import NAME_CHANGERS
from guard.judge.shell.grammar import COMPOUNDS, STATEMENTS, parser
from guard.judge.shell.redirecting import RedirectReader
from guard.judge.shell.scanning import BLANKS, MAX_DEPTH
from guard.judge.shell.syntax import (
    Assign,
    Function,
    Group,
    Node,
    Opaque,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Test,
    Word,
)
from guard.judge.shell.words import SAFE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_SEPARATORS = frozenset((";", "&", "\n", ";;", ";&", ";;&", "comment", "|", "|&", "!"))
_COMPARISONS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"))
_CLAUSES = frozenset(("do_group", "elif_clause", "else_clause", "case_item"))
_ASCII = bytes(byte if byte < 0x80 else 0x25 for byte in range(256))
"""The grammar's scanner looks code points up in a table of 256 entries and can crash on large ones, and it takes some
of them for blanks, which bash does not. So it is shown `%` for every byte above ASCII: an ordinary character of a word,
and none of a name. Texts are taken from the source itself."""
_BAD_CONTROLS = bytes([*range(0x01, 0x09), *range(0x0B, 0x20), 0x7F])
_CONTROL_TEXT = frozenset(
    [*map(chr, range(0x80, 0xA0)), *"\u061c\u200e\u200f\u2028\u2029\ufeff",
     *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))]
)  # fmt: skip


def hidden_control(text: str) -> "tuple[int, int] | None":
    """Span (bytes) of the first control or direction character that a reader of the text would not see."""
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw.translate(None, _BAD_CONTROLS)) != len(raw):
        at = next(index for index, byte in enumerate(raw) if byte in _BAD_CONTROLS or byte == 0)
        return at, at + 1
    if not text.isascii():
        for index, char in enumerate(text):
            if char in _CONTROL_TEXT or "\ud800" <= char <= "\udfff":
                start = len(text[:index].encode("utf-8", "surrogatepass"))
                return start, start + len(char.encode("utf-8", "surrogatepass"))
    return None


def parse(source: bytes, *, evaluated: bool = False) -> Script:
    """Reads a whole text (UTF-8, without NUL). Never raises; what cannot be read is an `Opaque` node.

    `evaluated`: the text is data that bash evaluates, and literals in it are not looked at once more.
    """
    root = parser().parse(source if source.isascii() else source.translate(_ASCII)).root_node
    reader = _Reader(source)
    items = reader.statements(root.children, 0, len(source))
    if root.has_error and not any(isinstance(item, Opaque) for item in items):
        items.append(Opaque((0, len(source)), "shell.syntax", "the shell grammar finds an error here"))
    if reader.strange_heredoc:
        items.append(Opaque((0, len(source)), "shell.heredoc", "a here-document whose end cannot be told for sure"))
    if b"$${" in source:
        # Bash finds the end of `"$${…"` as if `${` began there, and then expands it as `$$` and text.
        items.append(Opaque((0, len(source)), "shell.unread", "$${, which bash reads in two ways"))
    evaluates = reader.evaluates()
    if evaluates and not evaluated:
        reader.check_evaluation(items)
    functions = frozenset(reader.functions)
    return Script(tuple(items), reader.values, functions, reader.wild, evaluates, tuple(reader.code))


def parse_evaluated(text: str) -> Script:
    """Reads what bash runs when it expands a text as if it stood in double quotes."""
    # A here-document has the rules of double quotes, but for the quote itself, which ends nothing in it.
    tag = "E"
    while tag in text:
        tag += "E"
    return parse(f": <<{tag}\n{text}\n{tag}\n".encode("utf-8", "replace"), evaluated=True)


class _Reader(RedirectReader):
    """One pass over one text."""

    __slots__ = ()

    def nested(self, source: bytes) -> Script:
        return parse(source)

    def again(self, text: str) -> "tuple[Node, ...]":
        return parse_evaluated(text).items

    # -- statements -------------------------------------------------------------------------------------------

    def statements(self, children: "list[Any]", start: int, end: int) -> "list[Node]":
        """The statements among a node's children; anything that is neither statement nor separator is opaque."""
        items: list[Node] = []
        at, source = start, self.source
        for child in children:
            first, kind = child.start_byte, child.type
            if first > at and source[at:first].translate(None, BLANKS):
                self._gap(at, first, items)
            at = child.end_byte
            if kind in _SEPARATORS:
                if kind == "&" and items:
                    items[-1] = Group(items[-1].span, "background", (items[-1],))
                continue
            items.append(self.statement(child, kind))
        if end > at and source[at:end].translate(None, BLANKS):
            self._gap(at, end, items)
        return items

    def statement(self, node: "Any", kind: str) -> Node:
        if kind == "command":
            return self.command(node)
        if self.depth > MAX_DEPTH:
            return Opaque((node.start_byte, node.end_byte), "shell.deep", "nested too deeply to be read")
        self.depth += 1
        try:
            return self._compound(node, kind)
        finally:
            self.depth -= 1

    def _compound(self, node: "Any", kind: str) -> Node:
        span = (node.start_byte, node.end_byte)
        if kind == "pipeline":
            return self._pipeline(node, span)
        if kind == "list":
            return self._list(node, span)
        if kind == "redirected_statement":
            return self.redirected(node)
        if kind == "test_command":
            return self._test(node, span)
        if kind == "declaration_command" or kind == "unset_command":
            return self.declaration(node, span)
        if kind == "variable_assignment":
            return Simple(span, (self.assignment(node),), ())
        if kind == "variable_assignments":
            return Simple(span, tuple(self.assignment(child) for child in node.children), ())
        if kind == "negated_command":
            return Group(span, "not", tuple(self.statements(node.children, span[0], span[1])))
        if kind == "function_definition":
            return self._function(node, span)
        if kind == "file_redirect":
            redirect, more = self.redirect(node)
            return Simple(span, (), tuple(more), (redirect,))
        if kind in COMPOUNDS:
            children = node.children
            if kind == "compound_statement" and children and children[0].type == "((":
                return Test(span, "((", (Word(span, None, (self._arithmetic(node, span, 2, 2, True),)),))
            return self._group(node, span, COMPOUNDS[kind])
        if kind == "ERROR":
            return Opaque(span, "shell.syntax", "the shell grammar finds an error here", self._readable(node))
        return Opaque(span, "shell.unread", f"a construct that is not known here ({kind})")

    def _readable(self, node: "Any") -> "tuple[Node, ...]":
        found: list[Node] = []
        stack, seen = list(node.children), 0
        while stack and seen < 5_000:
            seen += 1
            child = stack.pop()
            if child.type in STATEMENTS and child.type != "ERROR":
                found.append(self.statement(child, child.type))
            else:
                stack.extend(child.children)
        return tuple(found)

    def _pipeline(self, node: "Any", span: "tuple[int, int]") -> Node:
        return Pipeline(span, tuple(self.statements(node.children, span[0], span[1])))

    def _list(self, node: "Any", span: "tuple[int, int]") -> Node:
        # `a && b && c …` nests to the left, once for each operator: walked with a loop, whatever the length.
        parts: list[Any] = []
        bad: list[Node] = []
        joint = "list"
        while True:
            children = node.children
            if not children:
                break
            extra = self.between(node)
            if extra:
                bad.append(extra)
            if any(child.type == "||" for child in children[1:]):
                joint = "or"
            parts.extend(child for child in reversed(children[1:]) if child.type not in ("&&", "||", "\n", "comment"))
            if children[0].type != "list":
                parts.append(children[0])
                break
            node = children[0]
        items = [self.statement(part, part.type) for part in reversed(parts)]
        return Group(span, joint, (*items, *bad))

    def between(self, node: "Any") -> "Node | None":
        """Opaque when bytes between the children of a node are neither blank nor a line continuation."""
        at, items = node.start_byte, list[Node]()
        for child in node.children:
            if child.start_byte > at:
                self._gap(at, child.start_byte, items)
            at = child.end_byte
        return items[0] if items else None

    def _group(self, node: "Any", span: "tuple[int, int]", kind: str) -> Node:
        items: list[Node] = []
        words: list[Word] = []
        name = ""
        self._collect(node, items, words)
        if kind == "for":
            head = node.children
            name = next((self._text(child) for child in head if child.type == "variable_name"), "")
            if node.type == "for_statement":
                if head[0].type == "select":
                    kind = "select"
                    self._set(name, None)
                elif not any(child.type == "in" for child in head):
                    self._set(name, None)
                for word in words:
                    self._set(name, word if not (word.globs or word.value is None) else None)
        return Group(span, kind, tuple(items), tuple(words), (), name)

    def _collect(self, node: "Any", items: "list[Node]", words: "list[Word]") -> None:
        at = node.start_byte
        source = self.source
        arith_for = node.type == "c_style_for_statement"
        pending: list[Any] = []
        for child in node.children:
            first, kind = child.start_byte, child.type
            if first > at and source[at:first].translate(None, BLANKS):
                self._gap(at, first, items)
            at = child.end_byte
            if kind in _CLAUSES:
                if self.depth > MAX_DEPTH:
                    items.append(Opaque((first, at), "shell.deep", "nested too deeply to be read"))
                    continue
                self.depth += 1
                self._collect(child, items, words)
                self.depth -= 1
            elif arith_for and kind != "comment" and (child.is_named and kind != "compound_statement"):
                words.append(Word((first, at), None, (self._arithmetic(child, (first, at), 0, 0, True),)))
            elif kind in STATEMENTS:
                if kind == "ERROR" and pending:
                    pending.clear()
                items.append(self.statement(child, kind))
            elif kind == "file_redirect":
                items.append(self.statement(child, kind))
            elif kind == "&":
                if items:
                    items[-1] = Group(items[-1].span, "background", (items[-1],))
            elif (child.is_named and kind not in ("comment", "variable_name")) or (
                kind == "variable_name" and node.type not in ("for_statement", "c_style_for_statement")
            ):
                words.extend(self.words([child], pattern=True))

    def _function(self, node: "Any", span: "tuple[int, int]") -> Node:
        name, body, redirects = "", list[Node](), list[Redirect]()
        for child in node.children:
            kind = child.type
            if kind in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                redirects.append(self.redirect(child)[0])
            elif kind in STATEMENTS:
                body.append(self.statement(child, kind))
            elif child.is_named and not name:
                name = self._text(child)
        self.functions.add(name)
        extra = self.between(node)
        if extra:
            body.append(extra)
        return Function(span, name, tuple(body), tuple(redirects))

    def command(self, node: "Any") -> Node:
        assigns: list[Assign] = []
        groups: list[list[Any]] = []
        redirects: list[Redirect] = []
        late: list[Word] = []
        bad: list[Node] = []
        source = self.source
        span = (node.start_byte, node.end_byte)
        at, joined = span[0], -1
        for child in node.children:
            first, kind = child.start_byte, child.type
            if first > at and source[at:first].translate(None, BLANKS):
                if joined == at and not source[at:first].replace(b"\\\n", b""):
                    joined = first
                blank = None if joined == first else self._escaped_blank(at, first)
                if blank is None:
                    self._gap(at, first, bad)
                else:
                    groups.append([blank])
            at = child.end_byte
            if kind == "variable_assignment":
                assigns.append(self.assignment(child))
            elif kind == "file_redirect" or kind == "herestring_redirect":
                redirect, words = self.redirect(child)
                redirects.append(redirect)
                late.extend(words)
            elif kind == "ERROR" or kind == "subshell" or kind == "heredoc_redirect":
                bad.append(Opaque((first, at), "shell.syntax", "the shell grammar finds an error here",
                                  self._readable(child)))  # fmt: skip
            else:
                if joined == first and groups:
                    groups[-1].append(child)
                else:
                    groups.append([child])
                joined = at
        made_words: list[Word] = []
        for group in groups:
            if len(group) == 1:
                only = group[0]
                if isinstance(only, Word):
                    made_words.append(only)
                    continue
                first, last = only.start_byte, only.end_byte
                text = source[first:last]
                if not text.translate(None, SAFE) and text[:1] != b"~":
                    made_words.append(Word((first, last), text.decode("utf-8", "replace")))
                    continue
            made_words.extend(self.words(group))
        made_words.extend(late)
        if made_words:
            for assign in assigns:
                # `x=a cat $x`: bash expands the words first, so the value meant here is one from before.
                self._set(assign.name, None)
            name = made_words[0].value
            if name in NAME_CHANGERS:
                self.builtin_assigns(made_words)
        made: Node = Simple(span, tuple(assigns), tuple(made_words), tuple(redirects))
        return Group(span, "list", (made, *bad)) if bad else made

    def _escaped_blank(self, start: int, end: int) -> "Word | None":
        """A lone escaped blank is a word of one blank, which the grammar leaves out; None for any other bytes."""
        text = self.source[start:end]
        stripped = text.strip(BLANKS)
        at = text.find(b"\\")
        if (
            stripped != b"\\"
            or at == 0
            or at + 2 >= len(text)
            or text[at + 1] not in b" \t"
            or text[at + 2] not in b" \t"
        ):
            return None
        return Word((start + at, start + at + 2), chr(text[at + 1]), (), True)

    def _test(self, node: "Any", span: "tuple[int, int]") -> Node:
        words: list[Word] = []
        operators: list[str] = []
        bad: list[Node] = []
        hot: list[tuple[int, int]] = []
        kind = "["
        stack = list(reversed(node.children))
        at = span[0]
        while stack:
            child = stack.pop()
            name = child.type
            if child.start_byte > at:
                self._gap(at, child.start_byte, bad)
            if name in ("binary_expression", "unary_expression", "parenthesized_expression", "postfix_expression",
                        "ternary_expression"):  # fmt: skip
                if any(self._text(part) in _COMPARISONS for part in child.children):
                    hot.append((child.start_byte, child.end_byte))
                stack.extend(reversed(child.children))
                continue
            at = max(at, child.end_byte)
            if name == "[[":
                kind = "[["
            elif name == "test_operator" or not child.is_named:
                operators.append(self._text(child))
            elif name == "command" or name in STATEMENTS:
                bad.append(self.statement(child, name))
            else:
                words.extend(self.words([child], pattern=True))
        if kind == "[":
            if operators or len(words) > 1:
                self.tested([*(Word(span, operator) for operator in operators if operator != "["), *words])
        elif not _COMPARISONS.isdisjoint(operators):
            for word in words:
                if hot and not any(first <= word.span[0] < last for first, last in hot):
                    continue
                if word.value is None:
                    self.arithmetic_word(word)
                else:
                    self.arithmetic_text(word.value)
        made: Node = Test(span, kind, tuple(words), tuple(operators))
        return Group(span, "list", (made, *bad)) if bad else made
