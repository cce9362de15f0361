"""Small readers over the characters of a text, by the rules that bash reads them. None knows a tree."""

from guard.judge.shell.syntax import Expansion, Word
from guard.judge.shell.words import CLOSE, COMMA, OPEN

MAX_DEPTH = 40
"""Nesting beyond this is opaque: far deeper than people write, far from Python's own recursion limit."""

NUMBER = Word((0, 0), None, (Expansion("arith", "", True),))
"""The value of a name that arithmetic assigns: some number."""

EXPANSIONS = frozenset(
    ("simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion")
)
NAME_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
NAMES = bytes(sorted(NAME_BYTES))
AFTER_DOLLAR = NAME_BYTES | frozenset(b"({[!@*#?-$")
BLANKS = b" \t\n"


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


def runs_something(text: bytes) -> bool:
    """Whether bash finds a substitution in this text when it stands in double quotes."""
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        if char == 0x5C:
            at += 1
        elif char == 0x60 or (char == 0x24 and text[at + 1 : at + 2] in (b"(", b"{", b"[")):
            stop = plain_variable(text, at, end) if char == 0x24 else 0
            if not stop:
                return True
            at = stop - 1
        at += 1
    return False


def folder_of_tilde(text: bytes) -> "tuple[int, str] | None":
    """How long a prefix such as `~+` at the beginning of a word is, and the variable that it stands for.

    "" for an entry of the stack of folders. None where `~` is something else: a home, or a name.
    """
    prefix = text.partition(b"/")[0]
    if prefix == b"~+":
        return 2, "PWD"
    if prefix == b"~-":
        return 2, "OLDPWD"
    if prefix[1:].lstrip(b"+-").isdigit() and len(prefix.lstrip(b"~+-")) >= len(prefix) - 2:
        return len(prefix), ""
    return None


def plain_variable(source: bytes, at: int, end: int) -> int:
    """Where `$name`, `$1`, `$?` or `${name}` at this place ends; 0 when it is anything that could run something."""
    if at + 1 >= end:
        return 0
    following = source[at + 1]
    if following == 0x7B:
        stop = at + 2
        while stop < end and source[stop] in NAME_BYTES:
            stop += 1
        return stop + 1 if stop < end and source[stop] == 0x7D and stop > at + 2 else 0
    if following in b"0123456789@*#?$!-":
        return at + 2
    stop = at + 1
    while stop < end and source[stop] in NAME_BYTES:
        stop += 1
    return stop if stop > at + 1 else 0


def unmark(text: str) -> str:
    return text.replace(OPEN, "{").replace(COMMA, ",").replace(CLOSE, "}")


def unescaped(body: bytes, quoted: bool) -> bytes:
    """The inside of backticks as bash reads it."""
    out = bytearray()
    at = 0
    while at < len(body):
        if body[at] == 0x5C and at + 1 < len(body) and (body[at + 1] in b"$`\\" or (quoted and body[at + 1] == 0x22)):
            at += 1
        out.append(body[at])
        at += 1
    return bytes(out)


def char_size(byte: int) -> int:
    return 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4


def ansi_end(source: bytes, at: int, end: int) -> int:
    while at < end:
        if source[at] == 0x5C:
            at += 2
        elif source[at] == 0x27:
            return at
        else:
            at += 1
    return end
