"""The shape of a row about one program's habit, and the pieces that such rows are made of. Pure."""

from __future__ import annotations

from guard.redaction.lazy import Gates, Pattern

VALUE = r"(?:\"([^\"\n]{1,512})\"|'([^'\n]{1,512})'|([^\s\"';|&<>][^\s\"';|<>]{0,511}))"
GAP = r"[^\n|;]{0,300}?[ \t]"
_I = 2  # re.IGNORECASE, spelled so that this table needs no `re`


class Habit:
    """One row of the table. `guess` rows also want a value that does not read like a plain lower-case word."""

    __slots__ = ("gates", "pattern", "guess", "cookies")

    def __init__(self, gates: str, source: str, guess: bool = False, flags: int = _I) -> None:
        self.gates = Gates(gates)
        self.pattern = Pattern(source, flags)
        self.guess = guess
        self.cookies = "~cookie:" in gates
