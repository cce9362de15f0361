"""Reasoning that an API wants back beside the calls it came with, for as long as this process lives.

It is kept in memory only: no session file and no other brain gets it. After a restart a conversation goes on without.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from agent.messages import ToolCall

T = TypeVar("T")

MOST = 32
"""Replies whose reasoning is kept; older ones are past what APIs ask for, the calls of the turn that goes on."""


class Recall(Generic[T]):
    """What came with the calls of the last replies."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, T] = OrderedDict()

    def keep(self, calls: tuple[ToolCall, ...], what: T) -> None:
        """Keeps it with these calls; nothing without any."""
        if calls:
            self._kept[calls[0].id] = what
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)

    def of(self, calls: tuple[ToolCall, ...]) -> T | None:
        """What came with these calls."""
        return self._kept.get(calls[0].id) if calls else None
