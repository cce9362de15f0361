"""What a text does to names: assignments, declarations, builtins that assign, and where bash evaluates data."""

from guard.judge.shell.scanning import BLANKS, NUMBER, assigned, identifiers
from guard.judge.shell.substitutions import ExpansionReader
from guard.judge.shell.syntax import Assign, Declare, Expansion, Group, Nested, Node, Opaque, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_READERS = frozenset(("read", "mapfile", "readarray", "getopts", "printf", "wait", "unset", "let", "local"))
_HIDDEN_ASSIGNERS = frozenset(("eval", "source", ".", "trap", "fc"))
_DECLARERS = frozenset(("declare", "typeset", "readonly", "export", "local"))
_TESTERS = frozenset(("test", "["))
_BEFORE_BUILTINS = frozenset(("command", "builtin", "time", "!", "coproc"))
NAME_CHANGERS = _READERS | _HIDDEN_ASSIGNERS | _DECLARERS | _TESTERS | _BEFORE_BUILTINS
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
_MOST_CODE, _LONGEST_CODE = 16, 4_096


def _may_be_list(word: Word) -> bool:
    """Whether a value can be a text in parentheses, which `declare` reads as a list."""
    if word.value is not None:
        return word.value.startswith("(") and any(char in word.value for char in "$`[<>")
    first = word.parts[0] if word.parts else ""
    return not isinstance(first, str) or first.startswith("(") or not first


def _is_number(word: Word) -> bool:
    """Whether the value is what arithmetic worked out, as in `i=$((i + 1))`."""
    return bool(word.parts) and all(isinstance(part, Expansion) and part.kind == "arith" for part in word.parts)


class AssignmentReader(ExpansionReader):
    """Reads what assigns and what evaluates."""

    __slots__ = ()

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

    def builtin_assigns(self, words: "list[Word]") -> None:
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
            self.tested(rest)
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

    def tested(self, words: "list[Word]") -> None:
        """`test` and `[` take a name with a subscript after `-v`; an operand that is not told may be that operator."""
        values = [word.value for word in words]
        if "-v" in values or "-R" in values or None in values[:-1]:
            named = "-v" in values or "-R" in values
            for value in values:
                if value is None:
                    self.data_evaluated = self.data_evaluated or named or len(values) == 2
                else:
                    self.subscript_text(value)

    def declaration(self, node: "Any", span: "tuple[int, int]") -> Node:
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
        extra = self.between(node)
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

    def arithmetic_word(self, word: Word) -> None:
        for part in word.parts:
            if isinstance(part, str):
                self.arithmetic_text(part)
            elif part.kind in ("var", "param") and part.name:
                if part.name not in "?#$!":
                    self.arith_names.add(part.name)
            elif part.kind != "arith":
                self.data_evaluated = True

    def between(self, node: "Any") -> "Node | None":
        raise NotImplementedError
