"""Matches phrases against a question: words for English, parts of text for Chinese. Pure; no regular expressions.

Compiling a few hundred regular expressions costs more than the rest of the program's start.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

GAP_WORDS = 6
GAP_CHARACTERS = 12
_WHAT_IS = frozenset(("whats", "whos", "hows", "wheres", "whens", "theres"))
NAMED_NUMBERS = ("137",)
"""Numbers that phrases may name: the exit code of what SIGKILL ended."""
_KEPT_PLURAL = ("ss", "us", "is")


def is_han(character: str) -> bool:
    """A Chinese character (CJK unified ideographs and extension A)."""
    return "\u3400" <= character <= "\u9fff"


def stem(word: str) -> str:
    """The word without its plural `s`."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(_KEPT_PLURAL):
        return word[:-1]
    return word


class Question:
    """A question, read once: its language, its words and its text without blanks between Chinese and Latin."""

    __slots__ = ("text", "lang", "words", "shown", "_original")

    def __init__(self, text: str) -> None:
        lower = text.lower().replace("\u2019", "'").replace("i/o", "io")
        self.text = " ".join(lower.split())
        self.lang = "zh" if any(map(is_han, text)) else "en"
        self.words: list[str] = []
        """Stems; `<path>` for a path, `<n>` for a number, `.` where a clause ends."""
        self.shown: list[str] = []
        """The word as written, for each of `words`."""
        self._original = text
        self._split(lower)

    @property
    def names(self) -> "list[str]":
        """The Latin words as written, in lower case, each once."""
        marks = (".", "<path>", "<n>", *NAMED_NUMBERS)
        return list(dict.fromkeys(s for w, s in zip(self.words, self.shown, strict=True) if w not in marks))

    @property
    def numbers(self) -> "list[int]":
        """The whole numbers of up to nine digits, each once."""
        digits = (shown for shown in self.shown if shown.isascii() and shown.isdigit() and len(shown) < 10)
        return list(dict.fromkeys(map(int, digits)))

    @property
    def paths(self) -> "list[str]":
        """The absolute paths, each once, as written. A slash within a word (and/or, http://x) begins none."""
        text, found = self._original, []
        at = text.find("/")
        while at >= 0:
            path = _path_of(text[at:])[0]
            before = text[at - 1 : at]
            if (
                not (before.isascii() and before != "" and (before.isalnum() or before in "/.:~-"))
                and path[1:2].isalnum()
            ):
                found.append(path)
            at = text.find("/", at + max(1, len(path)))
        return list(dict.fromkeys(found))

    def _split(self, lower: str) -> None:
        for piece in lower.split():
            if piece.startswith("/") and len(piece) > 1 and piece[1].isalnum():
                path, rest = _path_of(piece)
                self.words.append("<path>")
                self.shown.append(path)
                piece = rest
            word = ""
            for character in piece + " ":
                if character.isalnum() and not is_han(character):
                    word += character
                elif character == "'":
                    continue  # can't, what's: one word so far
                else:
                    self._add(word)
                    word = ""
                    if character in ",;!?，。；：！？、":
                        self._add_stop()
            if piece[-1:] in (".", ":"):  # within a word they belong to it: resolv.conf, 10.0.0.1:80
                self._add_stop()

    def _add(self, word: str) -> None:
        if word in _WHAT_IS:
            self._add(word[:-1])
            self._add("is")
        elif word:
            self.words.append("<n>" if word.isdigit() and word not in NAMED_NUMBERS else stem(word))
            self.shown.append(word)

    def _add_stop(self) -> None:
        if self.words and self.words[-1] != ".":
            self.words.append(".")
            self.shown.append(".")


def _path_of(piece: str) -> "tuple[str, str]":
    """The path at the start of a word, and what follows it."""
    end = 0
    while end < len(piece) and (piece[end] in "/._-" or (piece[end].isalnum() and not is_han(piece[end]))):
        end += 1
    path = piece[:end].rstrip(".,")
    return path, piece[len(path) :]


class EnglishPhrase:
    """Words in order; see `runbooks.phrases` for the notation."""

    __slots__ = ("parts", "friends", "first")

    def __init__(self, source: str) -> None:
        first, *friends = source.split(" !")
        self.parts = _parts(first)
        # One of these must be in the text at all, which most often is not so: the quick way to "no".
        self.first = (
            None if any(one.endswith("*") or one == "<n>" for one in self.parts[0]) else frozenset(self.parts[0])
        )
        self.friends = [_parts(friend) for friend in friends]

    def found_in(self, question: Question) -> "str | None":
        """The words that match, as written, or None."""
        words = question.words
        if self.first is not None and self.first.isdisjoint(words):
            return None
        hidden: set[int] = set()
        for friend in self.friends:
            for span in _spans(friend, words):
                hidden.update(range(*span))
        for start, end in _spans(self.parts, words):
            if not hidden.intersection(range(start, end)):
                return " ".join(shown for shown in question.shown[start:end] if shown != ".")
        return None


class ChinesePhrase:
    """Parts of text in order; see `runbooks.phrases` for the notation."""

    __slots__ = ("parts", "friends")

    def __init__(self, source: str) -> None:
        first, *friends = source.split(" !")
        self.parts = [part.split("|") for part in first.split("…")]
        self.friends = friends

    def found_in(self, question: Question) -> "str | None":
        """The text that matches, or None."""
        text = question.text
        if question.lang != "zh":
            return None
        for friend in self.friends:
            text = text.replace(friend, "\n" * len(friend))
        for start, end in _occurrences(self.parts[0], text, 0, len(text)):
            reached: int | None = end
            for part in self.parts[1:]:
                assert reached is not None
                window = min(len(text), reached + GAP_CHARACTERS + max(map(len, part)))
                hits = _occurrences(part, text, reached, window)
                reached = min((stop for _, stop in hits), default=None)
                if reached is None:
                    break
            if reached is not None and "\n" not in text[start:reached]:
                return text[start:reached]
        return None


def phrase(source: str) -> "EnglishPhrase | ChinesePhrase":
    """A phrase of the right kind for its notation."""
    return ChinesePhrase(source) if any(map(is_han, source)) or "…" in source else EnglishPhrase(source)


def compiled(id: str, table: "Iterable[tuple[int, str]]") -> "list[tuple[int, list[EnglishPhrase | ChinesePhrase]]]":
    """A runbook's phrases, split once a process."""
    if id not in _COMPILED:
        _COMPILED[id] = [
            (weight, [phrase(one.strip()) for one in sources.split(";") if one.strip()]) for weight, sources in table
        ]
    return _COMPILED[id]


_COMPILED: "dict[str, list[tuple[int, list[EnglishPhrase | ChinesePhrase]]]]" = {}


def _parts(source: str) -> "list[list[str]]":
    """Alternatives by position; an empty list stands for a gap."""
    parts: list[list[str]] = []
    for word in source.split():
        if word == "..":
            parts.append([])
        else:
            parts.append([one if one.endswith("*") else stem(one) for one in word.split("|")])
    return parts


def _spans(parts: "list[list[str]]", words: "list[str]") -> "list[tuple[int, int]]":
    """Where the parts match, as [start, end) into words; the shortest match from each start."""
    found = []
    for start in range(len(words)):
        end = _match(parts, words, start)
        if end is not None:
            found.append((start, end))
    return found


def _match(parts: "list[list[str]]", words: "list[str]", at: int) -> "int | None":
    gap = 0
    for position, part in enumerate(parts):
        if not part:
            gap = GAP_WORDS
            continue
        if gap:
            for skip in range(gap + 1):
                end = _match(parts[position:], words, at + skip)
                if end is not None:
                    return end
                if at + skip < len(words) and words[at + skip] == ".":
                    break
            return None
        if at >= len(words) or not any(_same(one, words[at]) for one in part):
            return None
        at += 1
    return at


def _same(pattern: str, word: str) -> bool:
    if pattern == "<n>":
        return word in ("<n>", *NAMED_NUMBERS)
    return word.startswith(pattern[:-1]) if pattern.endswith("*") else word == pattern


def _occurrences(alternatives: "list[str]", text: str, start: int, end: int) -> "list[tuple[int, int]]":
    found = []
    for one in alternatives:
        at = _find(one, text, start, end)
        while at is not None:
            found.append(at)
            at = _find(one, text, at[0] + 1, end)
    return sorted(found)


def _find(one: str, text: str, start: int, end: int) -> "tuple[int, int] | None":
    """Where a part stands. A Latin part is found as a whole word only: `io` is not in `audio`."""
    if one == "<path>":
        at = text.find("/", start, end)
        if at < 0:
            return None
        path = _path_of(text[at:])[0]
        return (at, at + len(path)) if len(path) > 1 else None
    at = text.find(one, start, end)
    while at >= 0:
        stop = at + len(one)
        before, after = text[at - 1 : at], text[stop : stop + 1]
        if not (_joins(before, one[0]) or _joins(after, one[-1])):
            return at, stop
        at = text.find(one, at + 1, end)
    return None


def _joins(neighbour: str, edge: str) -> bool:
    """The part would be cut out of a longer Latin word."""
    latin = edge.isascii() and edge.isalnum()
    return latin and neighbour.isascii() and neighbour.isalnum()
