"""What a word can stand for: the literal values that the text itself gives to the variables in it."""

from guard.judge.shell.syntax import Expansion, Word
from guard.judge.variables import KNOWN_ENVIRONMENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from guard.judge.engine import Judge

MAX_ALTERNATIVES = 16
"""A command is judged for each combination of literal values that its variables can have, up to this many."""
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
        values = values_of(judge, word) if word.value is None else None
        if values is None:
            for version in versions:
                version.append(word)
            continue
        grown: list[list[Word]] = []
        for value in values:
            if word.splits:
                pieces = [
                    Word(word.span, piece, (), word.quoted, False, any(char in piece for char in "*?["))
                    for piece in value.split()
                ]
            else:
                pieces = [Word(word.span, value, (), True)]
            grown.extend([*version, *pieces] for version in versions)
        if len(grown) > MAX_ALTERNATIVES:
            for version in versions:
                version.append(word)
        else:
            versions = grown
    return [version for version in versions if version]
