"""Where a state goes back to when several changes of it waited for a confirmation that did not come. Reads only.

What a change left that nobody confirmed is never "the state before" a later one: with the later one's snapshot it would
come back, after it was taken back. The oldest such change's snapshot has what was there before all of them.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from acting import deadman
from guard.errors import GuardError
from guard.ledger import claims
from guard.types import Status

if TYPE_CHECKING:
    from acting.world import Guard


class _Change(NamedTuple):
    """A change with a dead man, as the log has it."""

    execution: str
    snapshot: str
    saved_at: int
    """Where in the entries its snapshot stands."""
    back_at: int | None
    """Where it says that all of it is back."""
    labels: frozenset[str]
    """Of the states in its snapshot."""


def states(execution: str, guard: Guard) -> tuple[tuple[str, str], ...]:
    """(label, snapshot) of the states of a change that go back further than its own snapshot. Raises StateError.

    An earlier change counts where it was not confirmed, did not wait any more, and was not yet taken back whole when
    this one's states were saved. One that still waits has its own deadline for what it left.
    """
    earlier: list[_Change] = []
    origins: dict[str, dict[str, str]] = {}
    for change in _changes(guard):
        origin = origins[change.execution] = {}
        for elder in earlier:
            if elder.back_at is not None and elder.back_at < change.saved_at:
                continue
            for label in change.labels & elder.labels:
                origin.setdefault(label, origins[elder.execution].get(label, elder.snapshot))
        if change.execution == execution:
            return tuple(sorted(origin.items()))
        if _is_refused(change.execution, guard):
            earlier.append(change)
    return ()


def _changes(guard: Guard) -> list[_Change]:
    """Those that the last entries tell of, in the order in which they were armed."""
    armed: dict[str, str] = {}
    saved: dict[str, int] = {}
    back: dict[str, int] = {}
    for at, entry in enumerate(guard.ledger.audit(deadman.LATER)):
        execution, snapshot = str(entry.get("execution")), str(entry.get("snapshot"))
        if entry.get("kind") == "snapshot":
            saved[snapshot] = at
        if entry.get("kind") == deadman.ARMED:
            armed.setdefault(execution, snapshot)
        if entry.get("kind") == deadman.FIRED and entry.get("result") == Status.SUCCEEDED:
            back[execution] = at
    found = []
    for execution, snapshot in armed.items():
        labels: frozenset[str] = frozenset()
        # One whose snapshot is lost has nothing to give.
        with contextlib.suppress(GuardError):
            labels = frozenset(guard.ledger.snapshots.load(snapshot).states)
        found.append(_Change(execution, snapshot, saved.get(snapshot, -1), back.get(execution), labels))
    return found


def _is_refused(execution: str, guard: Guard) -> bool:
    """Whether nobody confirmed it, and nobody can any more."""
    ended = deadman.ended_as(execution, guard)
    if ended:
        return ended == claims.FIRED
    armed = deadman.armed_for(execution, guard)
    return armed is not None and (deadman.left_s(armed, guard) <= 0 or not deadman.is_alive(armed))
