"""The shell as a small typed tree. Every node has `span`: byte offsets [start, end) into the text it was read from.

Nothing here is ever dropped: what could not be read is an `Opaque` node, and a judge that meets one answers at
least R2. Nodes are plain `__slots__` classes because building them is on the hot path.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.types import Span


class Expansion:
    """A part of a word that bash replaces before the command sees it."""

    __slots__ = ("kind", "name", "quoted", "runs")

    def __init__(self, kind: str, name: str, quoted: bool, runs: "tuple[Node, ...]" = ()) -> None:
        self.kind = kind
        """`var` (plain `$x`) · `param` (`${x…}`) · `command` · `process` · `arith` · `glob`."""
        self.name = name
        """The variable's name for `var` and `param`, else ""."""
        self.quoted = quoted
        """Inside double quotes: neither split into words nor globbed."""
        self.runs = runs
        """What bash executes to work the value out."""


NO_PATTERNS: "dict[int, str | None]" = {}


class Word:
    """One word of a command, with what the text tells about the value that the program will get."""

    __slots__ = ("span", "value", "parts", "quoted", "splits", "globs", "appended", "patterns")

    def __init__(
        self,
        span: "Span",
        value: "str | None",
        parts: "tuple[str | Expansion, ...]" = (),
        quoted: bool = False,
        splits: bool = False,
        globs: bool = False,
        appended: bool = False,
        patterns: "dict[int, str | None]" = NO_PATTERNS,
    ) -> None:
        self.span = span
        self.value = value
        """The exact value when the text alone fixes it, else None."""
        self.parts = parts
        """Literal pieces and expansions, in order; empty when `value` says it all."""
        self.quoted = quoted
        """Some part of it is quoted or escaped (so it is no reserved word, alias or option of the shell's own)."""
        self.splits = splits
        """Can become any number of words."""
        self.globs = globs
        """Holds an unquoted glob character; `value` then is the pattern."""
        self.appended = appended
        """Not in the text: operands that a wrapper adds, such as xargs input."""
        self.patterns = patterns
        """Index of a literal piece (0 for `value`) → the piece as a pattern, where quotes make that another text: what
        is quoted has a backslash before it. None: that cannot be told."""

    @property
    def prefix(self) -> str:
        """The literal beginning that is certain, "" when there is none."""
        if self.value is not None and not self.globs:
            return self.value
        if self.value is not None:
            for at, char in enumerate(self.value):
                if char in "*?[{":
                    return self.value[:at]
        first = self.parts[0] if self.parts else ""
        return first if isinstance(first, str) else ""

    @property
    def shape(self) -> str:
        """The value with every unknown piece written as `*`: good for matching names, not for running."""
        if self.value is not None:
            return self.value
        return "".join(part if isinstance(part, str) else "*" for part in self.parts) or "*"


class Assign:
    """`name=value` before a command, alone, or after export and its kin."""

    __slots__ = ("span", "name", "value", "subscript", "appends", "elements")

    def __init__(
        self,
        span: "Span",
        name: str,
        value: "Word | None",
        subscript: "Word | None" = None,
        appends: bool = False,
        elements: "tuple[Word, ...]" = (),
    ) -> None:
        self.span = span
        self.name = name
        self.value = value
        """None for an array or when nothing is assigned."""
        self.subscript = subscript
        self.appends = appends
        self.elements = elements
        """The words of an array literal."""


class Redirect:
    """`> file`, `2>&1`, `<<E`, `<<< word`."""

    __slots__ = ("span", "op", "fd", "target", "body", "body_literal")

    def __init__(
        self,
        span: "Span",
        op: str,
        fd: str,
        target: "Word | None",
        body: "Word | None" = None,
        body_literal: bool = False,
    ) -> None:
        self.span = span
        self.op = op
        """`<` `>` `>>` `>|` `&>` `&>>` `<&` `>&` `<>` `<<` `<<-` `<<<`."""
        self.fd = fd
        self.target = target
        self.body = body
        """Here-document or here-string as a word (its expansions run)."""
        self.body_literal = body_literal


class Node:
    """Base of everything that bash executes."""

    __slots__ = ("span", "redirects")
    span: "Span"
    redirects: "tuple[Redirect, ...]"


class Simple(Node):
    """A simple command: assignments, then words, of which the first names the program."""

    __slots__ = ("assigns", "words")

    def __init__(
        self,
        span: "Span",
        assigns: "tuple[Assign, ...]",
        words: "tuple[Word, ...]",
        redirects: "tuple[Redirect, ...]" = (),
    ) -> None:
        self.span = span
        self.assigns = assigns
        self.words = words
        self.redirects = redirects


class Declare(Node):
    """`export`, `declare`, `typeset`, `local`, `readonly`, `unset`: the shell's own words about variables."""

    __slots__ = ("keyword", "assigns", "words")

    def __init__(self, span: "Span", keyword: str, assigns: "tuple[Assign, ...]", words: "tuple[Word, ...]") -> None:
        self.span = span
        self.keyword = keyword
        self.assigns = assigns
        self.words = words
        self.redirects = ()


class Pipeline(Node):
    """`a | b | c`: each stage reads what the one before writes."""

    __slots__ = ("stages",)

    def __init__(self, span: "Span", stages: "tuple[Node, ...]", redirects: "tuple[Redirect, ...]" = ()) -> None:
        self.span = span
        self.stages = stages
        self.redirects = redirects


class Group(Node):
    """Commands under one head: list, subshell, braces, if, while, case, loop body."""

    __slots__ = ("kind", "items", "words", "name")

    def __init__(
        self,
        span: "Span",
        kind: str,
        items: "tuple[Node, ...]",
        words: "tuple[Word, ...]" = (),
        redirects: "tuple[Redirect, ...]" = (),
        name: str = "",
    ) -> None:
        self.span = span
        self.kind = kind
        """`list` (`&&`) · `or` (with a `||` in it) · `subshell` · `braces` · `if` · `while` · `case` · `for` ·
        `select` · `not` · `background`."""
        self.items = items
        self.words = words
        """Words that the head evaluates: the subject and patterns of case, the values of for."""
        self.redirects = redirects
        self.name = name
        """The variable of a for or select loop."""


class Function(Node):
    """`name() { … }`."""

    __slots__ = ("name", "body")

    def __init__(
        self, span: "Span", name: str, body: "tuple[Node, ...]", redirects: "tuple[Redirect, ...]" = ()
    ) -> None:
        self.span = span
        self.name = name
        self.body = body
        self.redirects = redirects


class Test(Node):
    """`[[ … ]]`, `[ … ]`, `(( … ))`: expressions; their words may hold substitutions."""

    __slots__ = ("kind", "words", "operators")

    def __init__(
        self,
        span: "Span",
        kind: str,
        words: "tuple[Word, ...]",
        operators: "tuple[str, ...]" = (),
        redirects: "tuple[Redirect, ...]" = (),
    ) -> None:
        self.span = span
        self.kind = kind
        """`[[` · `[` · `((`."""
        self.words = words
        self.operators = operators
        self.redirects = redirects


class Opaque(Node):
    """Bytes that this reader does not understand; `inside` holds what could be read within them."""

    __slots__ = ("rule", "text", "inside")

    def __init__(self, span: "Span", rule: str, text: str, inside: "tuple[Node, ...]" = ()) -> None:
        self.span = span
        self.rule = rule
        self.text = text
        self.inside = inside
        self.redirects = ()


class Nested(Node):
    """A text inside the text that had to be unescaped before it could be read; spans inside it mean nothing outside."""

    __slots__ = ("items",)

    def __init__(self, span: "Span", items: "tuple[Node, ...]") -> None:
        self.span = span
        self.items = items
        self.redirects = ()


class Script:
    """A whole text: what it runs, and what it does to variables."""

    __slots__ = ("items", "values", "functions", "wild", "evaluates", "code")

    def __init__(
        self,
        items: "tuple[Node, ...]",
        values: "dict[str, list[Word | None]]",
        functions: "frozenset[str]",
        wild: bool,
        evaluates: bool,
        code: "tuple[str, ...]" = (),
    ) -> None:
        self.items = items
        self.values = values
        """Every value that the text gives to a name, wherever it does so; None stands for an unknown one."""
        self.functions = functions
        self.wild = wild
        """Something may assign names that the text does not show, so no variable is known."""
        self.evaluates = evaluates
        """Bash evaluates data: arithmetic, subscripts or names fed by more than literals and counters."""
        self.code = code
        """Literals in it that bash would run something of if it evaluated them."""
