"""awk's language, token by token: what a program writes, runs or reads beyond its input. Source: awk(1), gawk(1)."""

from guard.judge.levels import R2
from guard.judge.shell.syntax import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.program import Call

_REGEX_BEFORE = frozenset("(,{};!&|~=<>+-*%^?:\n") | {
    "print", "printf", "return", "in", "case", "getline", "do", "else",
}  # fmt: skip
"""Tokens behind which a slash begins a regular expression; elsewhere it divides."""
_KEPT = frozenset(("print", "printf", "return", "in", "case", "do", "else"))
"""Words that are no operands."""


def read_awk(call: "Call", text: str, word: Word) -> None:
    """Reads a program's tokens and notes what they do; a program that is not understood is opaque.

    Args:
        word: the word that it stands in, for the place of a reason.
    """
    if not _Program(call, text, word).read():
        call.opaque("an awk program that could not be read", word, "awk.unread")


class _Program:
    """A program that is being read; `at` is the place of the next character."""

    __slots__ = ("call", "text", "word", "span", "at", "end", "last", "printing", "depth", "string", "getline")

    def __init__(self, call: "Call", text: str, word: Word) -> None:
        self.call = call
        self.text = text
        self.word = word
        self.span = word.span if word.span != (0, 0) else call.span
        self.at = 0
        self.end = len(text)
        self.last = "\n"
        """The last token that counts: a character, `x` for an operand, or a word."""
        self.printing = False
        """Inside `print` or `printf`, where `>` names a file."""
        self.depth = 0
        """Parentheses open since then."""
        self.string: str | None = None
        """The last string's inside."""
        self.getline = False

    def read(self) -> bool:
        """Reads all of it; False when it is not understood."""
        text = self.text
        while self.at < self.end:
            at, char = self.at, text[self.at]
            if char in " \t\r":
                self.at = at + 1
            elif char == "\\" and text[at + 1 : at + 2] == "\n":
                self.at = at + 2
            elif char == "#":
                stop = text.find("\n", at)
                self.at = self.end if stop < 0 else stop
            elif char == '"':
                if not self.quoted():
                    return False
            elif char == "/" and self.last in _REGEX_BEFORE:
                if not self.regex():
                    return False
            elif char.isalpha() or char == "_":
                self.name()
            else:
                self.sign(char)
        return True

    def quoted(self) -> bool:
        start = self.at + 1
        stop = _until(self.text, start, '"')
        if stop >= self.end:
            return False
        self.string = self.text[start:stop]
        if self.string.startswith("/inet"):
            self.call.note(R2, "awk.network", "the program talks over the network", self.word, "gawk(1)")
        if self.getline and self.last == "<":
            self.call.reads(Word(self.word.span, self.string, (), True))
        self.last = "string"
        self.at = stop + 1
        return True

    def regex(self) -> bool:
        text, end = self.text, self.end
        stop = self.at + 1
        inside = False
        while stop < end and (text[stop] != "/" or inside):
            char = text[stop]
            if char == "\\":
                stop += 2
                continue
            if char == "\n":
                break
            if char in "[]":
                inside = char == "["
            stop += 1
        if text[stop : stop + 1] != "/":
            # Not closed outside brackets: read again without the bracket rule.
            stop = _until(text, self.at + 1, "/\n")
            if text[stop : stop + 1] != "/":
                return False
        self.last = "x"
        self.at = stop + 1
        return True

    def name(self) -> None:
        text, stop = self.text, self.at
        while stop < self.end and (text[stop].isalnum() or text[stop] == "_"):
            stop += 1
        name = text[self.at : stop]
        self.at = stop
        if name == "system":
            self.runs()
        elif name in ("print", "printf"):
            self.printing, self.depth = True, 0
        elif name == "getline":
            self.getline = True
            self.last = name
            return
        self.last = name if name in _KEPT else "x"

    def sign(self, char: str) -> None:
        if char == "@":
            self.call.note(R2, "awk.indirect", "loads an extension or calls a function by name", self.word, "gawk(1)")
        elif char == "|":
            if self.text[self.at + 1 : self.at + 2] == "|":
                self.at += 1
            else:
                self.pipe()
        elif char in "([{":
            self.depth += char == "("
            self.printing = self.printing and char != "{"
        elif char in ")]":
            self.depth -= char == ")"
            char = "x"
        elif char in ";\n}":
            self.printing = self.getline = False
            self.depth = 0 if char != ";" or self.depth <= 0 else self.depth
        elif char == ">" and self.printing and self.depth <= 0:
            self.redirection()
            return
        self.last = "x" if char.isdigit() or char == "." else char
        self.at += 1

    def redirection(self) -> None:
        """`print … > "file"`: only a string that stands alone is a file's name."""
        text = self.text
        stop = self.at + (2 if text[self.at + 1 : self.at + 2] == ">" else 1)
        while text[stop : stop + 1] in (" ", "\t"):
            stop += 1
        close = text.find('"', stop + 1) if text[stop : stop + 1] == '"' else -1
        tail = text[close + 1 :].lstrip(" \t") if close > 0 else "x"
        if close > 0 and (not tail or tail[0] in ";}\n)#"):
            self.call.writes(Word(self.word.span, text[stop + 1 : close], (), True))
        else:
            self.call.note(R2, "awk.write", "writes files whose names the text does not tell", self.word, "awk(1)")
        self.at = stop
        self.last = ">"

    def pipe(self) -> None:
        """`"cmd" | getline`, `print | "cmd"`, and `|&` of gawk: the strings beside it are commands."""
        self.call.note(R2, "awk.pipe", "the program runs another program", self.word, "awk(1)")
        if self.string is not None:
            self.call.judge.text(self.string, self.span)
        follower = self.text[self.at + 1 :].lstrip("& \t")
        close = follower.find('"', 1) if follower.startswith('"') else -1
        if close > 0:
            self.call.judge.text(follower[1:close], self.span)

    def runs(self) -> None:
        """`system(…)`, from behind the word on."""
        self.call.note(R2, "awk.system", "the program runs another program", self.word, "awk(1)")
        rest = self.text[self.at :].lstrip()
        if rest.startswith("("):
            rest = rest[1:].lstrip()
            if rest.startswith('"'):
                self.call.judge.text(rest[1 : _until(rest, 1, '"')], self.span)


def _until(text: str, at: int, marks: str) -> int:
    """The place of the first of these characters without a backslash before it; the text's end or behind it if none."""
    end = len(text)
    while at < end and text[at] not in marks:
        at += 2 if text[at] == "\\" else 1
    return at
