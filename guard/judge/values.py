"""What a word can stand for: the literal values that the text itself gives to the variables in it."""

from guard.judge.paths import escaped
from guard.judge.shell.syntax import Expansion, Word
from guard.judge.variables import KNOWN_ENVIRONMENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from guard.judge.engine import Judge

MAX_ALTERNATIVES = 16
"""A command is judged for each combination of literal values that its variables can have, up to this many."""
_GLOBS = frozenset("*?[")
_IN_BRACKETS = frozenset("]!^-:.=")
MAX_NESTING = 24
"""Commands inside commands (bash -c in ssh in sudo …), and variables inside variables, beyond this are opaque."""


def literal_of(judge: "Judge", word: Word) -> "str | None":
    """The word's one possible value, with literal variables put in; None when it is not known."""
    if word.value is not None:
        return None if word.globs else word.value
    values = values_of(judge, word)
    return values[0] if values is not None and len(values) == 1 else None


def values_of(judge: "Judge", word: Word) -> "list[str] | None":
    """All values that the text allows for a word (at most 16), or None."""
    if word.value is not None:
        return [word.value]
    results = [""]
    for part in word.parts:
        if isinstance(part, str):
            results = [value + part for value in results]
            continue
        options = _values_of_variable(judge, part.name) if part.kind in ("var", "param") and part.name else None
        if options is None:
            return None
        results = [value + option for value in results for option in options]
        if len(results) > MAX_ALTERNATIVES:
            return None
    return results


def spellings_of(judge: "Judge", word: Word) -> "list[tuple[str, str | None]] | None":
    """All values that the text allows for a word (at most 16), each with the pattern that it is for bash.

    In the pattern a backslash takes the meaning of what is quoted; None where the text does not tell it.
    """
    if word.value is not None:
        return [(word.value, word.patterns.get(0, word.value))]
    results: list[tuple[str, str | None]] = [("", None if -1 in word.patterns else "")]
    for at, part in enumerate(word.parts):
        if isinstance(part, str):
            options: list[tuple[str, str | None]] = [(part, word.patterns.get(at, part))]
        else:
            values = _values_of_variable(judge, part.name) if part.kind in ("var", "param") and part.name else None
            if values is None:
                return None
            before = "".join(piece for piece in word.parts[:at] if isinstance(piece, str)).rpartition("/")[2]
            options = [(one, _as_pattern(word, one, quoted=part.quoted, inside="[" in before)) for one in values]
        results = [
            (value + more, None if pattern is None or other is None else pattern + other)
            for value, pattern in results
            for more, other in options
        ]
        if len(results) > MAX_ALTERNATIVES:
            return None
    return results


def _as_pattern(word: Word, value: str, *, quoted: bool, inside: bool) -> "str | None":
    """What the value of a variable is in a pattern; `inside`: brackets may be open there."""
    if not quoted:
        # Versions of bash differ in what a backslash does there; what is quoted behind a bracket was read without it.
        return None if "\\" in value or (word.quoted and "[" in value) else value
    return None if inside and not _IN_BRACKETS.isdisjoint(value) else escaped(value)


def listed_of(judge: "Judge", word: Word) -> "tuple[Word, ...] | None":
    """What a loop lists, patterns too, where a word is exactly the loop's own variable; None for any other word.

    Unquoted it could still fall apart into other names, and a value that is given anywhere else could be another one.
    """
    if len(word.parts) != 1 or word.splits:
        return None
    part = word.parts[0]
    if isinstance(part, str) or part.kind not in ("var", "param") or part.name not in judge.loops:
        return None
    listed = judge.loops[part.name]
    script = judge.script
    if script is None or script.wild or len(script.values.get(part.name, ())) != len(listed):
        return None
    return listed


def _values_of_variable(judge: "Judge", name: str) -> "list[str] | None":
    """Every literal value that the text gives to a variable, or None when there can be others."""
    script = judge.script
    if script is None or script.wild:
        return None
    given = script.values.get(name)
    if given is None:
        known = KNOWN_ENVIRONMENT.get(name)
        if known is not None:
            return [known]
        return list(judge.cwds) if name == "PWD" and len(judge.cwds) == 1 else None
    values: list[str] = [] if name in judge.bound else [""]
    for word in given:
        if word is None:
            return None
        value = word.value
        if value is None:
            if len(given) > 1 or any(isinstance(part, Expansion) and part.name == name for part in word.parts):
                return None
            inner = _inner(judge, word, name)
            if inner is None:
                return None
            values.extend(inner)
        else:
            values.append(value)
    return values if 0 < len(values) <= MAX_ALTERNATIVES else None


def _inner(judge: "Judge", word: Word, name: str, hops: int = 0) -> "list[str] | None":
    if judge.depth >= MAX_NESTING:
        return None
    judge.depth += 1
    try:
        return values_of(judge, word)
    finally:
        judge.depth -= 1


def versions_of(judge: "Judge", words: "Sequence[Word]") -> "list[list[Word]]":
    """The command with literal variables put in: one version for each combination of values."""
    versions: list[list[Word]] = [[]]
    for word in words:
        spellings = spellings_of(judge, word) if word.value is None else None
        if spellings is None:
            for version in versions:
                version.append(word)
            continue
        grown: list[list[Word]] = []
        for value, pattern in spellings:
            if word.splits:
                pieces = _split(word, value, pattern)
            else:
                pieces = [Word(word.span, value, (), True, False, word.globs, patterns={0: pattern})]
            grown.extend([*version, *pieces] for version in versions)
        if len(grown) > MAX_ALTERNATIVES:
            for version in versions:
                version.append(word)
        else:
            versions = grown
    return [version for version in versions if version]


def _split(word: Word, value: str, pattern: "str | None") -> "list[Word]":
    """The words that an unquoted value falls into."""
    pieces = value.split()
    found = []
    for piece in pieces:
        # Which part of the pattern belongs to which word is told where there is one, or where nothing is quoted.
        own = pattern if len(pieces) == 1 else piece if pattern == value else None
        found.append(Word(word.span, piece, (), word.quoted, False, not _GLOBS.isdisjoint(piece), patterns={0: own}))
    return found
