"""Text → `Script`: the shell grammar's tree turned into ours, with every byte accounted for.

The grammar is a good reader but not the shell: there are texts in which bash runs a substitution that the grammar
shows as plain text, without an error (docs/judging.md lists the kinds). So words are read a second time here, byte
by byte, by bash's own quoting rules, and an expansion character that no grammar node covers makes the word opaque,
as does any byte between nodes that is not a blank. Nothing raises and nothing is dropped.
"""

from guard.judge.shell.expand import BLANKS, MAX_DEPTH, NUMBER, WordReader, assigned, identifiers
from guard.judge.shell.grammar import parser
from guard.judge.shell.syntax import (
    Assign,
    Declare,
    Expansion,
    Function,
    Group,
    Nested,
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
_READERS = frozenset(("read", "mapfile", "readarray", "getopts", "printf", "wait", "unset", "let", "local"))
_HIDDEN_ASSIGNERS = frozenset(("eval", "source", ".", "trap", "fc"))
_DECLARERS = frozenset(("declare", "typeset", "readonly", "export", "local"))
_TESTERS = frozenset(("test", "["))
_BEFORE_BUILTINS = frozenset(("command", "builtin", "time", "!", "coproc"))
_CARE = _READERS | _HIDDEN_ASSIGNERS | _DECLARERS | _TESTERS | _BEFORE_BUILTINS
"""Words of the shell's own that assign names or evaluate their operands, and words that can stand before them."""
_INTEGERS = frozenset(
    ("RANDOM", "SRANDOM", "OPTIND", "HISTCMD", "SECONDS", "LINENO", "BASHPID", "EPOCHSECONDS", "EPOCHREALTIME", "UID",
     "EUID", "PPID", "BASH_SUBSHELL")
)  # fmt: skip
"""Variables that bash itself makes integers: what is assigned to them is arithmetic."""
_ARRAYS = frozenset(
    ("DIRSTACK", "PIPESTATUS", "GROUPS", "FUNCNAME", "MAPFILE", "COPROC", "COMP_WORDS", "COMPREPLY",
     "BASH_ALIASES", "BASH_ARGC", "BASH_ARGV", "BASH_CMDS", "BASH_LINENO", "BASH_REMATCH", "BASH_SOURCE",
     "BASH_VERSINFO")
)  # fmt: skip
_COMPARISONS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"))
_MOST_CODE, _LONGEST_CODE = 16, 4_096
_CLAUSES = frozenset(("do_group", "elif_clause", "else_clause", "case_item"))
_KINDS = {
    "if_statement": "if",
    "while_statement": "while",
    "for_statement": "for",
    "c_style_for_statement": "for",
    "case_statement": "case",
    "subshell": "subshell",
    "compound_statement": "braces",
}
_AFTER_WORD = (b" ", b"\t", b"\n", b";", b"&", b"|", b"<", b">", b"(", b")")
"""What ends an unquoted word in bash (bash(1), metacharacter)."""


def _plain_tag(tag: str) -> bool:
    """Whether a here-document's end is a name, perhaps quoted as a whole: `E`, `'E'`, `"E"`, `\\E`."""
    if tag[:1] in ("'", '"') and tag[-1:] == tag[0] and len(tag) > 2:
        tag = tag[1:-1]
    elif tag[:1] == "\\":
        tag = tag[1:]
    return tag.isascii() and tag.replace("_", "a").replace("-", "a").replace(".", "a").isalnum()


_STATEMENTS = frozenset(
    (
        "command", "pipeline", "list", "redirected_statement", "function_definition", "negated_command",
        "test_command", "declaration_command", "unset_command", "variable_assignment", "variable_assignments",
        "ERROR", *_KINDS,
    )
)  # fmt: skip
_ASCII = bytes(byte if byte < 0x80 else 0x25 for byte in range(256))
"""The grammar's scanner looks code points up in a table of 256 entries and can crash on large ones, and it
takes some of
them for blanks, which bash does not. So it is shown `%` for every byte above ASCII: an ordinary character of
a word, and
none of a name. Texts are taken from the source itself."""
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
    return Script(tuple(items), reader.values, frozenset(reader.functions), reader.wild, evaluates)


def _may_be_list(word: Word) -> bool:
    """Whether a value can be a text in parentheses, which `declare` reads as a list."""
    if word.value is not None:
        return word.value.startswith("(") and any(char in word.value for char in "$`[<>")
    first = word.parts[0] if word.parts else ""
    return not isinstance(first, str) or first.startswith("(") or not first


def _is_number(word: Word) -> bool:
    """Whether the value is what arithmetic worked out, as in `i=$((i + 1))`."""
    return bool(word.parts) and all(isinstance(part, Expansion) and part.kind == "arith" for part in word.parts)


class _Reader(WordReader):
    """One pass over one text."""

    __slots__ = ()

    def nested(self, source: bytes) -> Script:
        return parse(source)

    def again(self, text: str) -> "tuple[Node, ...]":
        # A here-document has the rules of double quotes, but for the quote itself, which ends nothing in it.
        tag = "E"
        while tag in text:
            tag += "E"
        return parse(f": <<{tag}\n{text}\n{tag}\n".encode("utf-8", "replace"), evaluated=True).items

    def evaluates(self) -> bool:
        """Whether bash evaluates data here: arithmetic or subscripts fed by more than literals and counters."""
        if self.data_evaluated:
            return True
        for name in self.arith_names:
            if self.wild or not self._numeric(name):
                return True
        if not _INTEGERS.isdisjoint(self.values) and not all(
            self._numeric(name) for name in _INTEGERS if name in self.values
        ):
            return True
        for name, value, sure in self.lists:
            if (sure or self.wild or name in self.arrays or name in _ARRAYS) and _may_be_list(value):
                return True
        return False

    def _numeric(self, name: str) -> bool:
        """Whether all values that the text gives to a name are numbers."""
        given = self.values.get(name)
        if not given:
            return False
        for word in given:
            if word is NUMBER or (word is not None and _is_number(word)):
                continue
            if word is None or word.value is None or not (word.value.lstrip("-").isdigit() or not word.value):
                return False
        return True

    def check_evaluation(self, items: "list[Node]") -> None:
        """Opaque when bash evaluates data and the text itself holds data that would run something."""
        code = self.code
        suspicious = code or any(
            word is not None and word.value is not None and any(char in word.value for char in "$`[")
            for given in self.values.values()
            for word in given
        )
        if suspicious:
            whole = (0, len(self.source))
            inside = [Nested(whole, self.again(text)) for text in code[:_MOST_CODE] if len(text) <= _LONGEST_CODE]
            items.append(
                Opaque(
                    whole,
                    "shell.evaluated",
                    "bash evaluates data, and the text holds data that looks like code",
                    tuple(inside),
                )
            )

    def arithmetic_text(self, text: str) -> None:
        """Notes what bash looks up when it works out a literal text as arithmetic."""
        if not text or text.strip().lstrip("-+").isdigit():
            return
        if "[" in text or "$" in text or "`" in text:
            self.data_evaluated = True
        for name in assigned(text):
            self._set(name, NUMBER)
        self.arith_names.update(name for name, _, _ in identifiers(text))

    def subscript_text(self, text: str) -> None:
        """Notes the subscript of a name that is given as data (`test -v 'a[x]'`)."""
        inner = text.partition("[")[2].rstrip("]")
        if "[" in text and inner not in ("@", "*") and not inner.isdigit():
            self.data_evaluated = True

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
            return self._redirected(node)
        if kind == "test_command":
            return self._test(node, span)
        if kind == "declaration_command" or kind == "unset_command":
            return self._declaration(node, span)
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
        if kind in _KINDS:
            children = node.children
            if kind == "compound_statement" and children and children[0].type == "((":
                return Test(span, "((", (Word(span, None, (self._arithmetic(node, span, 2, 2, True),)),))
            return self._group(node, span, _KINDS[kind])
        if kind == "ERROR":
            return Opaque(span, "shell.syntax", "the shell grammar finds an error here", self._readable(node))
        return Opaque(span, "shell.unread", f"a construct that is not known here ({kind})")

    def _readable(self, node: "Any") -> "tuple[Node, ...]":
        found: list[Node] = []
        stack, seen = list(node.children), 0
        while stack and seen < 5_000:
            seen += 1
            child = stack.pop()
            if child.type in _STATEMENTS and child.type != "ERROR":
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
            extra = self._between(node)
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

    def _between(self, node: "Any") -> "Node | None":
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
            elif kind in _STATEMENTS:
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
            elif kind in _STATEMENTS:
                body.append(self.statement(child, kind))
            elif child.is_named and not name:
                name = self._text(child)
        self.functions.add(name)
        extra = self._between(node)
        if extra:
            body.append(extra)
        return Function(span, name, tuple(body), tuple(redirects))

    def _redirected(self, node: "Any") -> Node:
        body: Node | None = None
        redirects: list[Redirect] = []
        more: list[Word] = []
        after: list[tuple[str, Any]] = []
        for child in node.children:
            kind = child.type
            if kind == "file_redirect" or kind == "herestring_redirect":
                redirect, words = self.redirect(child)
                redirects.append(redirect)
                more.extend(words)
            elif kind == "heredoc_redirect":
                redirects.extend(self._heredoc(child, more, after))
            elif body is None and kind in _STATEMENTS and kind != "ERROR":
                body = self.statement(child, kind)
            else:
                after.append(("", child))
        span = (node.start_byte, node.end_byte)
        extra = self._between(node)
        if body is None:
            body = Simple(span, (), tuple(more), tuple(redirects))
        else:
            target: Node = body
            # `a && b > f`: the grammar hangs the redirection on the list, bash on the last command; for judging
            # it is enough that it is not lost. Extra operands belong to the last simple command.
            if isinstance(body, Simple):
                body.words += tuple(more)
                more = []
            target.redirects = (*target.redirects, *redirects)
        items: list[Node] = [body]
        if more:
            items.append(Opaque(span, "shell.unread", "words after a redirection of a compound command"))
        if extra:
            items.append(extra)
        stages: list[Node] = []
        for how, child in after:
            if how == "|":
                stages.extend(self.statements(child.children, child.start_byte, child.end_byte))
            elif child.type in _STATEMENTS:
                items.append(self.statement(child, child.type))
            elif child.is_named:
                items.append(Opaque((child.start_byte, child.end_byte), "shell.unread", "not understood here"))
        if stages:
            items[0] = Pipeline(span, (items[0], *stages))
        return items[0] if len(items) == 1 else Group(span, "list", tuple(items))

    def _heredoc(self, node: "Any", more: "list[Word]", after: "list[tuple[str, Any]]") -> "list[Redirect]":
        literal, fd, op = False, "", "<<"
        body: Word | None = None
        redirects: list[Redirect] = []
        end = node.start_byte
        for child in node.children:
            kind = child.type
            first = child.start_byte
            if first > end and self.source[end:first].translate(None, BLANKS):
                gap: list[Node] = []
                self._gap(end, first, gap)
                if gap and kind not in ("heredoc_body", "heredoc_end"):
                    body = Word((end, first), None, (Expansion("opaque", "", True, tuple(gap)),))
            end = child.end_byte
            if kind == "file_descriptor":
                fd = self._text(child)
            elif kind in ("<<", "<<-"):
                op = kind
            elif kind == "heredoc_start":
                tag = self._text(child)
                following = self.source[end : end + 1]
                if not _plain_tag(tag) or (following and following not in _AFTER_WORD):
                    # The grammar takes only the beginning of such a name, or cannot tell two of them apart, so it does
                    # not know where the document ends: what it takes for data may be commands.
                    self.strange_heredoc = True
                literal = any(char in tag for char in "'\"\\")
            elif kind == "heredoc_body":
                body = self._heredoc_body(child, literal)
            elif kind in ("file_redirect", "herestring_redirect"):
                redirect, words = self.redirect(child)
                redirects.append(redirect)
                more.extend(words)
            elif kind == "heredoc_redirect":
                redirects.extend(self._heredoc(child, more, after))
            elif kind == "pipeline":
                after.append(("|", child))
            elif kind in _STATEMENTS:
                after.append(("", child))
            elif kind == "heredoc_end":
                # The grammar takes `E; x` for the end of the document, which for bash is one more line of it.
                if self.source[end : end + 1] not in (b"", b"\n"):
                    self.strange_heredoc = True
            elif kind in ("&&", "||", "\n"):
                continue
            elif child.is_named:
                more.extend(self.words([child]))
        redirects.insert(0, Redirect((node.start_byte, end), op, fd, None, body, literal))
        return redirects

    def _heredoc_body(self, node: "Any", literal: bool) -> Word:
        span = (node.start_byte, node.end_byte)
        if literal:
            text = self.source[span[0] : span[1]].decode("utf-8", "replace")
            if "$(" in text or "`" in text:
                self.code.append(text)
            return Word(span, text, (), quoted=True)
        return self._scan(span[0], span[1], self._expansion_nodes(node), heredoc=True)[0]

    # -- commands ---------------------------------------------------------------------------------------------

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
                if not text.translate(None, SAFE):
                    made_words.append(Word((first, last), text.decode("utf-8", "replace")))
                    continue
            made_words.extend(self.words(group))
        made_words.extend(late)
        if made_words:
            for assign in assigns:
                # `x=a cat $x`: bash expands the words first, so the value meant here is one from before.
                self._set(assign.name, None)
            name = made_words[0].value
            if name in _CARE:
                self._builtin_assigns(made_words)
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

    def _builtin_assigns(self, words: "list[Word]") -> None:
        """What a command of the shell's own does to names, and which of its operands bash evaluates."""
        at, count = 0, len(words)
        if words[0].value == "coproc":
            self.wild = True
        while at < count - 1 and (words[at].value in _BEFORE_BUILTINS or (at and words[at].value in ("-p", "--"))):
            at += 1
        name, rest = words[at].value, words[at + 1 :]
        if name in _HIDDEN_ASSIGNERS:
            self.wild = True
        elif name in _DECLARERS:
            self._declared([], rest)
        elif name in _TESTERS:
            self._tested(rest)
        elif name == "let":
            for word in rest:
                if word.value is None:
                    self.wild = self.data_evaluated = True
                else:
                    self.arithmetic_text(word.value)
        elif name in _READERS:
            if name == "printf":
                first = rest[0] if rest else Word((0, 0), "")
                if first.value is not None and not first.value.startswith("-v"):
                    return
            listed = name in ("mapfile", "readarray")
            for word in rest:
                value = word.value
                if value is None:
                    self.wild = True
                    continue
                if value.startswith("-") and name in ("read", "wait"):
                    # `read -a x` and `-ax`, `wait -p x` and `-px`.
                    listed = listed or "a" in value
                    value = value.partition("a" if name == "read" else "p")[2]
                if value.startswith("-v"):
                    value = value[2:]
                if "[" in value:
                    self.data_evaluated = True
                target = value.split("=")[0].split("[")[0]
                self._set(target, None)
                if listed:
                    self.arrays.add(target)

    def _tested(self, words: "list[Word]") -> None:
        """`test` and `[` take a name with a subscript after `-v`; an operand that is not told may be that operator."""
        values = [word.value for word in words]
        if "-v" in values or "-R" in values or None in values[:-1]:
            named = "-v" in values or "-R" in values
            for value in values:
                if value is None:
                    self.data_evaluated = self.data_evaluated or named or len(values) == 2
                else:
                    self.subscript_text(value)

    def _declaration(self, node: "Any", span: "tuple[int, int]") -> Node:
        keyword, assigns, words, bad = "", list[Assign](), list[Word](), list[Node]()
        at, keyed = span[0], False
        for child in node.children:
            first, kind = child.start_byte, child.type
            if first > at and self.source[at:first].translate(None, BLANKS):
                self._gap(at, first, bad)
            at = child.end_byte
            if not keyword:
                keyword = self._text(child)
            elif kind == "variable_assignment":
                assigns.append(self.assignment(child, keyed))
            elif kind == "variable_name":
                words.append(Word((first, at), self._text(child)))
            else:
                words.extend(self.words([child]))
                keyed = keyed or ((words[-1].value or "").startswith("-") and "A" in (words[-1].value or ""))
        self._declared(assigns, words)
        made: Node = Declare(span, keyword, tuple(assigns), tuple(words))
        return Group(span, "list", (made, *bad)) if bad else made

    def _declared(self, assigns: "list[Assign]", words: "list[Word]") -> None:
        """Notes what `declare` and its kin do to names: attributes, lists in strings, subscripts."""
        letters, names = "", [assign.name for assign in assigns]
        given = [(assign.name, assign.value) for assign in assigns if assign.value is not None and not assign.elements]
        for word in words:
            value = word.value
            if value is None:
                head, equals, _ = word.prefix.partition("=")
                if not equals or "[" in head:
                    self.wild = self.data_evaluated = True
                    continue
                name, first = head.rstrip("+"), word.parts[0] if word.parts else ""
                tail = first.partition("=")[2] if isinstance(first, str) else ""
                parts = (tail, *word.parts[1:]) if tail else word.parts[1:]
                given.append((name, Word(word.span, None, parts, True)))
            elif value.startswith(("-", "+")) and "=" not in value:
                letters += value[1:]
                continue
            else:
                name, equals, tail = value.partition("=")
                if "[" in name:
                    self.data_evaluated = True
                name = name.split("[")[0].rstrip("+")
                if equals:
                    given.append((name, Word(word.span, tail, (), True)))
            names.append(name)
            self._set(name, None)
        if "n" in letters or "i" in letters:
            self.wild = self.data_evaluated = True
        sure = "a" in letters or "A" in letters
        if sure:
            self.arrays.update(names)
        self.lists.extend((name, value, sure) for name, value in given)

    def assignment(self, node: "Any", keyed: bool = False) -> Assign:
        """`name=value`. `keyed`: the array's subscripts are keys, not arithmetic."""
        name, subscript, value, appends = "", None, None, False
        elements: list[Word] = []
        subscripts = False
        span = (node.start_byte, node.end_byte)
        values: list[Any] = []
        for child in node.children:
            kind = child.type
            if kind == "variable_name" and not name:
                name = self._text(child)
            elif kind == "subscript" and not name:
                for part in child.children:
                    if part.type == "variable_name" and not name:
                        name = self._text(part)
                    elif part.is_named:
                        subscript = (self.words([part], pattern=True) or [Word(span, "")])[0]
                        if subscript.value is None or not subscript.value.isdigit():
                            self.data_evaluated = True
            elif kind in ("=", "+="):
                appends = kind == "+="
            elif kind == "array":
                self.arrays.add(name)
                for part in child.children:
                    if part.type in ("(", ")", "comment"):
                        continue
                    for word in self.words([part]):
                        elements.append(word)
                        shape = word.shape
                        if shape.startswith("[") and not shape[1:].partition("]")[0].isdigit():
                            subscripts = True
            else:
                values.append(child)
        extra = self._between(node)
        if values:
            value = self._scan(values[0].start_byte, values[-1].end_byte, self._expansions_of(values), whole=True)[0]
        elif not elements:
            value = Word(span, "")
        if extra:
            value = Word(span, None, (Expansion("opaque", "", True, (extra,)),))
        if elements or subscript is not None:
            self.arrays.add(name)
        unknown = appends or subscript is not None or bool(elements)
        self._set(name, None if unknown else value)
        if subscripts and not keyed:
            self.data_evaluated = True
        return Assign(span, name, value, subscript, appends, tuple(elements))

    def redirect(self, node: "Any") -> "tuple[Redirect, list[Word]]":
        """One redirection, and the words that the grammar wrongly hangs behind it."""
        op, fd = "", ""
        targets: list[list[Any]] = []
        bad: list[Node] = []
        last = -1
        span = (node.start_byte, node.end_byte)
        for child in node.children:
            kind = child.type
            if kind == "file_descriptor":
                fd = self._text(child)
            elif kind == "ERROR":
                bad.append(Opaque((child.start_byte, child.end_byte), "shell.syntax", "an error in a redirection"))
            elif not child.is_named and not op:
                op = kind
            elif last == child.start_byte and targets:
                targets[-1].append(child)
                last = child.end_byte
            else:
                targets.append([child])
                last = child.end_byte
        extra = self._between(node)
        if extra:
            bad.append(extra)
        words: list[Word] = []
        for group in targets:
            words.extend(self.words(group))
        target = words[0] if words else None
        if bad:
            runs = (*bad, *(run for part in (target.parts if target else ()) if not isinstance(part, str)
                            for run in part.runs))  # fmt: skip
            target = Word(span, None, (Expansion("opaque", "", True, runs),))
        if op == "<<<":
            return Redirect(span, op, fd, None, target, False), words[1:]
        return Redirect(span, op, fd, target), words[1:]

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
            elif name == "command" or name in _STATEMENTS:
                bad.append(self.statement(child, name))
            else:
                words.extend(self.words([child], pattern=True))
        if kind == "[":
            if operators or len(words) > 1:
                self._tested([*(Word(span, operator) for operator in operators if operator != "["), *words])
        elif not _COMPARISONS.isdisjoint(operators):
            for word in words:
                if hot and not any(first <= word.span[0] < last for first, last in hot):
                    continue
                if word.value is None:
                    self._arith_word(word)
                else:
                    self.arithmetic_text(word.value)
        made: Node = Test(span, kind, tuple(words), tuple(operators))
        return Group(span, "list", (made, *bad)) if bad else made

    def _arith_word(self, word: Word) -> None:
        for part in word.parts:
            if isinstance(part, str):
                self.arithmetic_text(part)
            elif part.kind in ("var", "param") and part.name:
                if part.name not in "?#$!":
                    self.arith_names.add(part.name)
            elif part.kind != "arith":
                self.data_evaluated = True
