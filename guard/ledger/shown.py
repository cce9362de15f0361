"""What the ledger answers when it is asked for runs. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guard.ledger.approvals import KeptRequest
    from guard.ledger.formats import Entry
    from guard.ledger.records import Execution

EXECUTIONS_LIMIT = 1000
"""The most that one listing returns."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Executions, newest first."""

    executions: tuple[Execution, ...]
    notes: tuple[str, ...] = ()
    """Sentences for people: lines that cannot be read."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Everything that the log holds about one id."""

    id: str
    execution: Execution | None
    """Set for `e-…`."""
    request: KeptRequest | None
    """Set for `a-…` while it waits."""
    entries: tuple[Entry, ...]
    """Oldest first."""


def unreadable_notes(unreadable: int) -> tuple[str, ...]:
    """What a listing says about lines of the log that are no records."""
    if not unreadable:
        return ()
    lines = "1 line" if unreadable == 1 else f"{unreadable} lines"
    return (f"{lines} of the log cannot be read and may be executions: opsx audit verify",)
