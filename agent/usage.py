"""What replies of models have cost: tokens, time and money, one line each in the state folder.

Its own file and not the sessions': a conversation that is deleted was paid for all the same. No words of anybody are in
it. A folder that cannot be written costs the record, never the reply.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guard.ledger.formats import FORMAT, Malformed, decoded, encoded
from guard.ledger.state import read_up_to, state_error_of, write_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent.providers.base import Tokens
    from guard.ledger.state import StateFolder

FOLDER = "usage"
MOST_BYTES = 64 * 1024 * 1024
"""Of one month: about 300,000 replies. What is beyond is counted as not read."""
PER = 1_000_000
"""Prices are per so many tokens."""


@dataclass(frozen=True, slots=True)
class Spent:
    """One reply of one model."""

    at: str
    """When it was complete; RFC 3339, UTC, milliseconds."""
    brain: str
    model: str
    session: str
    input: int = 0
    output: int = 0
    cached: int = 0
    took_ms: int = 0
    cost: float | None = None
    """In the currency of the configured prices; None where none is configured."""

    def as_json(self) -> dict[str, Any]:
        """The record as docs/formats.md describes it."""
        return {
            "format": FORMAT,
            "at": self.at,
            "brain": self.brain,
            "model": self.model,
            "session": self.session,
            "input_tokens": self.input,
            "output_tokens": self.output,
            "cached_tokens": self.cached,
            "took_ms": self.took_ms,
            "cost": self.cost,
        }


def cost_of(
    tokens: Tokens, price_in: float | None, price_out: float | None, price_cached: float | None = None
) -> float | None:
    """What a reply costs at these prices per million tokens; None when neither price is known.

    Args:
        price_cached: of input that the API had in its cache; None: the same as other input.
    """
    if price_in is None and price_out is None:
        return None
    price = price_in or 0.0
    cached = min(tokens.cached, tokens.input)
    in_full = (tokens.input - cached) * price + cached * (price if price_cached is None else price_cached)
    return (in_full + tokens.output * (price_out or 0.0)) / PER


def record(spent: Spent, folder: StateFolder) -> None:
    """Adds one line, whole or not at all as other processes see it.

    Raises:
        StateError: the folder cannot be written.
    """
    name = f"{spent.at[:7]}.jsonl"
    try:
        with folder.folder(FOLDER, create=True) as place:
            fd = folder.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, dir_fd=place)
            try:
                write_all(fd, encoded(spent.as_json()))
            finally:
                os.close(fd)
    except OSError as error:
        raise state_error_of(error, f"{FOLDER}/{name}") from error


@dataclass(frozen=True, slots=True)
class Found:
    """What was read."""

    spent: tuple[Spent, ...]
    """Oldest month first; within a month as written."""
    unread: int = 0
    """Lines that are no records of ours, and files that are too long."""


def read(folder: StateFolder, *, since: str = "") -> Found:
    """Every record from `since` (a time or its beginning, such as a date) on.

    Raises:
        StateError: the folder cannot be read.
    """
    found: list[Spent] = []
    unread = 0
    try:
        with folder.folder(FOLDER) as place:
            for name in sorted(os.listdir(place)):
                month, dot, ending = name.partition(".")
                if dot + ending != ".jsonl" or len(month) != 7 or month < since[:7]:
                    continue
                fd = folder.open_file(name, os.O_RDONLY, dir_fd=place)
                try:
                    data = read_up_to(fd, MOST_BYTES + 1)
                finally:
                    os.close(fd)
                if len(data) > MOST_BYTES:
                    unread += 1
                    data = data[: data.rindex(b"\n", 0, MOST_BYTES) + 1] if b"\n" in data[:MOST_BYTES] else b""
                for line in data.splitlines(keepends=True):
                    one = _spent_of(line)
                    if one is None:
                        unread += 1
                    elif one.at >= since:
                        found.append(one)
    except FileNotFoundError:
        return Found(())
    except OSError as error:
        raise state_error_of(error, FOLDER) from error
    return Found(tuple(found), unread)


_TEXTS = ("at", "brain", "model", "session")
_NUMBERS = {"input": "input_tokens", "output": "output_tokens", "cached": "cached_tokens", "took_ms": "took_ms"}


def _spent_of(line: bytes) -> Spent | None:
    try:
        row = decoded(line)
    except Malformed:
        return None
    texts: dict[str, Any] = {name: row.get(name) for name in _TEXTS}
    numbers: dict[str, Any] = {name: row.get(field) for name, field in _NUMBERS.items()}
    cost = row.get("cost")
    if (
        row.get("format") != FORMAT
        or not all(isinstance(text, str) and len(text) <= 1_024 for text in texts.values())
        or not all(
            isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers.values()
        )
        or not (cost is None or (isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost >= 0))
    ):
        return None
    return Spent(**texts, **numbers, cost=None if cost is None else float(cost))


@dataclass(frozen=True, slots=True)
class Sum:
    """Replies of one day and one brain, added up."""

    day: str
    """A date, UTC."""
    brain: str
    replies: int
    input: int
    output: int
    cached: int
    took_ms: int
    cost: float | None
    """None when no reply had a price."""
    unpriced: int
    """Replies that are not in `cost`."""


def by_day(spent: Iterable[Spent]) -> tuple[Sum, ...]:
    """Sums for each day and brain, oldest first."""
    groups: dict[tuple[str, str], list[Spent]] = {}
    for one in spent:
        groups.setdefault((one.at[:10], one.brain), []).append(one)
    return tuple(_sum(day, brain, ones) for (day, brain), ones in sorted(groups.items()))


def total(spent: Iterable[Spent]) -> Sum:
    """All of it as one sum; `day` and `brain` are empty."""
    return _sum("", "", list(spent))


def _sum(day: str, brain: str, ones: list[Spent]) -> Sum:
    costs = list(_costs(ones))
    return Sum(
        day,
        brain,
        len(ones),
        sum(one.input for one in ones),
        sum(one.output for one in ones),
        sum(one.cached for one in ones),
        sum(one.took_ms for one in ones),
        sum(costs) if costs else None,
        len(ones) - len(costs),
    )


def _costs(ones: Iterable[Spent]) -> Iterator[float]:
    for one in ones:
        if one.cost is not None:
            yield one.cost
