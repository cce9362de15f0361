"""What bash makes of a word's pattern: the one lister of this program. Looks at folders, opens no file.

The meaning is that of `bash --noprofile --norc -p` with LANG=C.UTF-8 and its options as they are without being told
(bash(1), "Pathname Expansion" and "Pattern Matching"). A pattern is text in which a backslash takes the meaning of the
character behind it, which is how the judge writes what was quoted. What cannot be told exactly is said to be so: a
listing that is not whole is no fact, and an empty one is not "nothing there".
"""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOTHING_THERE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP))
"""Nobody gets behind these, whatever their rights are (path_resolution(7))."""
MOST_SEEN = 400_000
"""Names of folders that are looked at for one pattern; a pattern such as `/*/*/*/*` would go on for minutes."""

_CLASSES: dict[str, Callable[[str], bool]] = {
    "alnum": str.isalnum,
    "alpha": str.isalpha,
    "ascii": str.isascii,
    "blank": lambda char: char in " \t",
    "cntrl": lambda char: char < " " or char == "\x7f",
    "digit": str.isdigit,
    "graph": lambda char: "!" <= char <= "~",
    "lower": str.islower,
    "print": lambda char: " " <= char <= "~",
    "punct": lambda char: "!" <= char <= "~" and not char.isalnum(),
    "space": lambda char: char in " \t\n\v\f\r",
    "upper": str.isupper,
    "word": lambda char: char.isalnum() or char == "_",
    "xdigit": lambda char: char in "0123456789abcdefABCDEF",
}
"""Of ASCII. Where a character beyond it is asked for, the locale's tables decide and nobody is believed."""
_SPECIAL = re.compile(r"([*?\[\]\\!^:=.-])")
_ESCAPES = re.compile(r"\\(.)", re.DOTALL)
_PIECES = re.compile(r"(/+)")


class Listing(NamedTuple):
    """What a pattern lists."""

    names: tuple[str, ...]
    """In the order of their bytes, as bash would hand them on: the text itself, quotes taken off, if nothing fits."""
    whole: bool
    """Whether these are exactly the names that bash would make of it."""
    matched: bool
    """Whether anything fits."""


UNTOLD = Listing((), False, False)


class Inexact(Exception):
    """The pattern says something that only bash, with the machine's locale, can tell."""


class _Set:
    """A bracket expression."""

    __slots__ = ("negated", "ranges", "classes")

    def __init__(self) -> None:
        self.negated = False
        self.ranges: list[tuple[str, str]] = []
        self.classes: list[Callable[[str], bool]] = []

    def holds(self, char: str, foreign: bool) -> bool:
        """Whether it stands for this character; `foreign`: what is answered for those that a locale has to tell."""
        found = any(first <= char <= last for first, last in self.ranges)
        if not found and self.classes:
            found = any(test(char) for test in self.classes) if char.isascii() else foreign
        return found != self.negated


STAR, ANY = object(), object()
_Token = object  # STAR, ANY, a character or a _Set


def escaped(text: str) -> str:
    """The pattern that means exactly this text."""
    return _SPECIAL.sub(r"\\\1", text)


def listing(pattern: str, most: int) -> Listing:
    """The names that bash would make of a pattern, relative ones against this process's folder.

    Args:
        pattern: as a word with backslashes for what is quoted; no braces, `~` or expansions.
        most: so many names are given at the most; with more of them the listing is not whole.
    Raises:
        OSError: a file system fails in a way that is no answer.
    """
    plain = _ESCAPES.sub(r"\1", pattern)
    try:
        parts = [(separator, _tokens(part)) for separator, part in _parts(pattern)]
    except Inexact:
        return Listing((plain,), False, False)
    if not any(_wild(tokens) for _, tokens in parts):
        return Listing((plain,), True, False)
    walk = _Walk(pattern, most)
    names = sorted(walk.names("", parts), key=os.fsencode)
    if not names:
        return Listing((plain,), walk.whole, False)
    return Listing(tuple(names[:most]), walk.whole and len(names) <= most, True)


def _parts(pattern: str) -> Iterator[tuple[str, str]]:
    """(slashes before it, name) for each part; the last name is "" when the pattern ends in a slash."""
    first, *rest = _PIECES.split(pattern)
    if first:
        yield "", first
    for at in range(0, len(rest), 2):
        yield rest[at], rest[at + 1]


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\":
            if at >= len(text):
                raise Inexact  # it takes the meaning of a slash, or of nothing
            found.append(text[at])
            at += 1
        elif char == "*":
            if not found or found[-1] is not STAR:
                found.append(STAR)
        elif char == "?":
            found.append(ANY)
        elif char == "[":
            one, at = _bracket(text, at)
            found.append(one)
        else:
            found.append(char)
    return found


def _bracket(text: str, start: int) -> tuple[_Token, int]:
    """The bracket expression behind a `[`, and where it ends; a `[` that nothing closes means itself."""
    found, at = _Set(), start
    if text[at : at + 1] in ("!", "^"):
        found.negated, at = True, at + 1
    first = True
    while True:
        if at >= len(text):
            if "]" in text[start:] or "[" in text[start:] or "\\" in text[start:]:
                raise Inexact
            return "[", start
        char = text[at]
        at += 1
        if char == "]" and not first:
            return found, at
        first = False
        if char == "[" and text[at : at + 1] in (":", "=", "."):
            close = text.find(":]", at + 1)
            test = _CLASSES.get(text[at + 1 : close]) if text[at] == ":" and close > 0 else None
            if test is None:
                raise Inexact
            found.classes.append(test)
            at = close + 2
            if text[at : at + 1] == "-" and text[at + 1 : at + 2] != "]":
                raise Inexact
            continue
        if char == "\\":
            char, at = text[at : at + 1], at + 1
        last = char
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("]", ""):
            last, at = text[at + 1], at + 2
            if last == "[" and text[at : at + 1] in (":", "=", "."):
                raise Inexact
            if last == "\\":
                last, at = text[at : at + 1], at + 1
        if not char or not last:
            raise Inexact
        if char <= last:
            found.ranges.append((char, last))


def _wild(tokens: list[_Token]) -> bool:
    return any(not isinstance(token, str) for token in tokens)


def _text(tokens: list[_Token]) -> str:
    return "".join(token for token in tokens if isinstance(token, str))


class _Walk:
    """Goes down the folders that a pattern meets."""

    def __init__(self, pattern: str, most: int) -> None:
        self.whole = True
        self._ascii = pattern.isascii()
        self._most = most
        self._left = MOST_SEEN
        self._given = 0

    def names(self, start: str, parts: list[tuple[str, list[_Token]]]) -> Iterator[str]:
        """Every name that fits, below a beginning that is known."""
        known = start
        after = 0
        for separator, tokens in parts:
            known += separator
            after += 1
            if _wild(tokens):
                break
            known += _text(tokens)
        else:
            if self._is_there(known):
                self._given += 1
                yield known
            return
        # Bash writes one slash behind what a pattern gave, however many the text has.
        rest = [("/", more) for _, more in parts[after:]]
        for name in self._fitting(known, tokens):
            if rest:
                yield from self.names(known + name, rest)
            else:
                self._given += 1
                yield known + name
            if self._given > self._most:
                return

    def _is_there(self, path: str) -> bool:
        try:
            os.lstat(path)
        except OSError as error:
            return self._without(error)
        return True

    def _fitting(self, folder: str, tokens: list[_Token]) -> list[str]:
        if tokens[0] == "." and len(tokens) > 1 and (_fits(tokens[1:], "", True) or _fits(tokens[1:], ".", True)):
            self.whole = False  # `.` and `..` belong to it or not, by the version of bash (globskipdots, 5.2)
        found = []
        try:
            with os.scandir(folder or ".") as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0:
                        self.whole = False
                        break
                    if self._meets(tokens, entry.name):
                        found.append(entry.name)
        except OSError as error:
            self._without(error)
        return found

    def _meets(self, tokens: list[_Token], name: str) -> bool:
        if name[0] == "." and tokens[0] != ".":
            return False
        if not name.isascii() and _is_bytes(name):
            # Bash compares byte by byte where a name is no text.
            name = os.fsencode(name).decode("latin-1")
            if not self._ascii:
                self.whole = False
        found = _fits(tokens, name, True)
        if not name.isascii() and found != _fits(tokens, name, False):
            self.whole = False
            return True
        return found

    def _without(self, error: OSError) -> bool:
        """What cannot be looked at because it is not there lists nothing; anything else is not told."""
        if error.errno not in NOTHING_THERE:
            self.whole = False
        return False


def _is_bytes(name: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in name)


def _fits(tokens: list[_Token], name: str, foreign: bool) -> bool:
    """Whether the tokens make up the whole name."""
    star = mark = -1
    t = n = 0
    while n < len(name):
        token = tokens[t] if t < len(tokens) else None
        if token is STAR:
            star, mark = t, n
            t += 1
        elif token is ANY or (token.holds(name[n], foreign) if isinstance(token, _Set) else token == name[n]):
            t, n = t + 1, n + 1
        elif star >= 0:
            mark += 1
            t, n = star + 1, mark
        else:
            return False
    return all(token is STAR for token in tokens[t:])
