"""What the server answers: values, and their JSON form for scripts in files."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class Gate:
    """Where a reply stops in its middle until the test lets it go on."""

    def __init__(self, after: int) -> None:
        self.after = after
        """So many events (or pieces) are sent before it stops."""
        self._reached = threading.Event()
        self._open = threading.Event()

    def wait_until_reached(self) -> None:
        """For the test: what stands before the gate has been sent."""
        assert self._reached.wait(30), "the server did not get to its gate"

    def open(self) -> None:
        """For the test: go on."""
        self._open.set()

    def pass_through(self) -> None:
        """For the server."""
        self._reached.set()
        self._open.wait(60)


@dataclass(frozen=True)
class Call:
    """One use of a tool. A text as arguments is sent as it stands, JSON or not."""

    name: str
    arguments: Any = field(default_factory=dict)
    id: str | None = None

    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Delivery:
    """How an answer goes over the line."""

    gate: Gate | None = None
    cut_after: int | None = None
    """The connection ends after so many events, without the end of the answer."""
    cut: str = "fin"
    """`fin` closes it, `rst` resets it."""
    packed: bool = False
    """Compressed with gzip, although nobody asked for it."""
    headers: Mapping[str, str] = field(default_factory=dict)


PLAIN = Delivery()


@dataclass(frozen=True)
class Say:
    """A well-formed reply."""

    text: str = ""
    calls: Sequence[Call] = ()
    split: int | Sequence[str] = 16
    """Characters in one delta, or the deltas of the text themselves."""
    stop: str | None = None
    """None: what fits."""
    reasoning: str = ""
    model: str | None = None
    """None: the one that was asked for."""
    tokens: tuple[int, int, int] = (100, 20, 0)
    """Input, output, and what of the input came from the cache."""
    delivery: Delivery = PLAIN

    def deltas(self) -> list[str]:
        if not isinstance(self.split, int):
            return list(self.split)
        return pieces(self.text, self.split)


@dataclass(frozen=True)
class Fail:
    """An answer with an error status. A dict goes out as JSON."""

    status: int
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Events:
    """A stream of exactly these events: JSON values, or texts as they stand."""

    items: Sequence[Any]
    delivery: Delivery = PLAIN


@dataclass(frozen=True)
class Raw:
    """Exactly these bytes, in these pieces."""

    pieces: Sequence[bytes]
    type: str = "text/event-stream"
    delivery: Delivery = PLAIN


Reply = Say | Fail | Events | Raw


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def read_script(path: Path) -> tuple[Reply, ...]:
    """The replies of a file: `{"replies": [{"text", "calls": [{"name", "arguments"}], "status", "error", …}]}`."""
    return tuple(_reply(row) for row in json.loads(path.read_text("utf-8"))["replies"])


def _reply(row: dict[str, Any]) -> Reply:
    if "status" in row:
        return Fail(
            row["status"], row.get("body", {"error": {"message": row.get("error", "")}}), row.get("headers", {})
        )
    delivery = Delivery(cut_after=row.get("cut_after"), cut=row.get("cut", "fin"), packed=row.get("packed", False))
    if "events" in row:
        return Events(row["events"], delivery)
    calls = [Call(call["name"], call.get("arguments", {}), call.get("id")) for call in row.get("calls", [])]
    named = {name: row[name] for name in ("split", "stop", "reasoning", "model") if name in row}
    return Say(row.get("text", ""), calls, delivery=delivery, **named)
