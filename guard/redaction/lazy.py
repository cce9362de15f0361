"""What lets unused rules cost nothing: expressions compiled at first use, and gates that say whether to try one."""

from __future__ import annotations

import re


class Pattern:
    """One rule's expression, compiled at its first use (all of them at once would cost 60 ms)."""

    __slots__ = ("source", "flags", "_compiled")

    def __init__(self, source: str, flags: int = 0) -> None:
        self.source = source
        self.flags = flags
        self._compiled: re.Pattern[str] | None = None

    @property
    def re(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self.source, self.flags)
        return self._compiled


_RUNS = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))


class Runs:
    """The runs of ASCII letters and digits in a text, listed once (3 ms for 200 kB) and then asked by every gate."""

    __slots__ = ("text", "low", "words", "lower", "heads")

    def __init__(self, text: str, low: str) -> None:
        self.text = text
        self.low = low
        runs = set(text.encode("ascii", "replace").translate(_RUNS).decode("ascii").split())
        self.words = runs
        self.lower = {run.lower() for run in runs if len(run) < 24}
        self.heads = {run[:4] for run in runs if len(run) >= 12}


class Gates:
    """Conditions of which one must hold before a rule is tried: `word`, `HEAD*` (four characters) or `~literal`."""

    __slots__ = ("words", "heads", "literals")

    def __init__(self, gates: str) -> None:
        parts = gates.split()
        self.words = frozenset(part for part in parts if part[0] != "~" and not (part[-1] == "*" and len(part) == 5))
        self.heads = frozenset(part[:4] for part in parts if part[0] != "~" and part[-1] == "*" and len(part) == 5)
        self.literals = tuple(part[1:].replace("·", " ") for part in parts if part[0] == "~")

    def hold(self, runs: Runs) -> bool:
        """Whether the rule can match this text, letters as they are."""
        if not self.words.isdisjoint(runs.words) or (self.heads and not self.heads.isdisjoint(runs.heads)):
            return True
        return any(literal in runs.text for literal in self.literals)

    def found(self, runs: Runs) -> list[str]:
        """The gates that occur in the text in lower case, to look for their lines."""
        found = [word for word in self.words if word in runs.lower]
        found += [literal for literal in self.literals if literal in runs.low]
        return found
