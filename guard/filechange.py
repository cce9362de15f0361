"""A change of one file as a request: what it is, the text that stands for it, and its difference for people. Pure.

The text is canonical JSON: a stamp, a denial and a record of a file change hold this text where those of a command hold
the command. The new content travels beside it and is named in it by its hash.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guard.types import RequestKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from guard.types import Request

MOST_BYTES = 4 * 1024 * 1024
"""The longest file that is changed in this way, before and after."""

MOST_LINES = 4_000
"""Lines of a difference that a person is shown; a longer one is a change that nobody reads, and judged as that."""

CONTEXT_LINES = 3
_COMPARISONS = 4_000_000
"""Of lines with lines, in all: difflib takes quadratic time."""
_Operation = tuple[str, int, int, int, int]
_HASH = re.compile(r"[0-9a-f]{64}")
_MODE = re.compile(r"[0-7]{4}")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file as it shall be."""

    path: str
    """Absolute, links followed; bytes that are not UTF-8 as lone surrogates (PEP 383)."""
    mode: int
    """Permission bits that it will have, 0..0o7777."""
    before: str
    """Mark of what it holds now: SHA-256, keyed where that is a secret; 64 hex digits, "" when there is no file."""
    after: str
    """SHA-256 of what it will hold, 64 hex digits."""
    asked: str = ""
    """The path as it was asked for, where a link leads from there to `path`; "" otherwise."""

    @property
    def text(self) -> str:
        """Canonical JSON, ASCII: equal changes, equal text."""
        fields: dict[str, object] = {"path": self.path, "mode": f"{self.mode:04o}", "before": self.before or None}
        fields["after"] = self.after
        if self.asked:
            fields["asked"] = self.asked
        return json.dumps(fields, ensure_ascii=True, separators=(",", ":"))


def parsed(text: str) -> FileChange | None:
    """The change that a text made by `FileChange.text` stands for; None for any other text."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or not fields.keys() <= {"path", "mode", "before", "after", "asked"}:
        return None
    path, mode, before, after = (fields.get(name) for name in ("path", "mode", "before", "after"))
    asked = fields.get("asked", "")
    if not (isinstance(path, str) and isinstance(mode, str) and isinstance(after, str) and isinstance(asked, str)):
        return None
    if not _MODE.fullmatch(mode) or not _HASH.fullmatch(after):
        return None
    if before is not None and not (isinstance(before, str) and _HASH.fullmatch(before)):
        return None
    change = FileChange(path, int(mode, 8), before or "", after, asked)
    return change if change.text == text else None


def title_of(text: str) -> str:
    """The text of a file change as a person reads it in a list; any other text as it is. Not made visible."""
    change = parsed(text)
    return text if change is None else f"{'change' if change.before else 'make'} the file {change.path}"


def is_file_change(request: Request) -> bool:
    """Whether a request changes one file; else it is a command."""
    return request.kind == RequestKind.FILE_CHANGE


def sha256_of(content: bytes) -> str:
    """64 hex digits."""
    return hashlib.sha256(content).hexdigest()


# ── the difference in lines ──────────────────────────────────────────────────────────────────────────────────────


def text_of(content: bytes) -> str:
    """The content as text, every byte kept: what is not UTF-8 becomes lone surrogates."""
    return content.decode("utf-8", "surrogateescape")


def difference(old: str, new: str) -> Iterator[str]:
    """The lines of a unified difference, without the two lines of names; nothing for equal texts.

    Lines end at LF alone, so that a CR stays visible. Takes time linear in the length but for the logarithm of a sort,
    whatever the texts are.
    """
    before, after = _lines(old), _lines(new)
    for group in _Told(before, after).get_grouped_opcodes(CONTEXT_LINES):
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from _marked(" ", before[old_from:old_to])
            else:
                yield from _marked("-", before[old_from:old_to])
                yield from _marked("+", after[new_from:new_to])


class _Told(difflib.SequenceMatcher[str]):
    """Groups operations that were found in bounded time.

    Lines that occur once on both sides, in the same order, hold the texts together (the patience method); only what
    lies between them is compared line by line, and what is too much for that is removed and added whole.
    """

    def __init__(self, before: list[str], after: list[str]) -> None:
        super().__init__(None, "", "")
        self._before, self._after = before, after
        self._left = _COMPARISONS
        self._found: list[_Operation] = []
        i = j = 0
        for at, there in (*_anchors(before, after), (len(before), len(after))):
            if at >= i and there >= j:
                self._between(i, at, j, there)
                i, j = at, there

    def get_opcodes(self) -> Any:
        """As found; one for each stretch."""
        return self._found

    def _between(self, i: int, i_end: int, j: int, j_end: int) -> None:
        before, after = self._before[i:i_end], self._after[j:j_end]
        head = _common(before, after)
        tail = _common(before[head:][::-1], after[head:][::-1])
        self._add("equal", i, i + head, j, j + head)
        i, j, i_stop, j_stop = i + head, j + head, i_end - tail, j_end - tail
        if (i_stop - i) * (j_stop - j) <= self._left and i < i_stop and j < j_stop:
            self._left -= (i_stop - i) * (j_stop - j)
            small = difflib.SequenceMatcher(None, self._before[i:i_stop], self._after[j:j_stop], autojunk=False)
            for tag, a, b, c, d in small.get_opcodes():
                self._add(tag, i + a, i + b, j + c, j + d)
        else:
            self._add("replace", i, i_stop, j, j_stop)
        self._add("equal", i_stop, i_end, j_stop, j_end)

    def _add(self, tag: str, i: int, i_end: int, j: int, j_end: int) -> None:
        if i == i_end and j == j_end:
            return
        if self._found and self._found[-1][0] == tag:
            last = self._found.pop()
            i, j = last[1], last[3]
        self._found.append((tag, i, i_end, j, j_end))


def _anchors(before: list[str], after: list[str]) -> list[tuple[int, int]]:
    """Places of lines that occur once on each side, as many as stand in the same order on both."""
    here, there = _single(before), _single(after)
    pairs = [(at, there[line]) for line, at in here.items() if line in there]
    ends: list[int] = []
    chain: list[tuple[int, int]] = []
    linked: list[int] = [-1] * len(pairs)
    tops: list[int] = []
    for number, (_, place) in enumerate(pairs):
        at = bisect_left(ends, place)
        linked[number] = tops[at - 1] if at else -1
        ends[at : at + 1] = [place]
        tops[at : at + 1] = [number]
    number = tops[-1] if tops else -1
    while number >= 0:
        chain.append(pairs[number])
        number = linked[number]
    return chain[::-1]


def _single(lines: list[str]) -> dict[str, int]:
    counted = Counter(lines)
    return {line: at for at, line in enumerate(lines) if counted[line] == 1}


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    ended = lines.pop() if lines[-1] == "" else None
    return lines if ended is not None else [*lines[:-1], lines[-1] + _NO_END]


_NO_END = "\n\\ no line end at the end of the file"


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _range(first: int, end: int) -> str:
    return f"{first + 1 if end > first else first},{end - first}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        text, end, _ = line.partition(_NO_END)
        yield mark + text
        if end:
            yield _NO_END[1:]
