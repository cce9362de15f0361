"""Which change is meant when nobody names one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import execution
from acting.rollback_request import asked
from guard.errors import GuardError, UsageError
from guard.types import Status

if TYPE_CHECKING:
    from guard.ledger.records import Execution

LOOKED_AT = 1_000
"""So many of the newest runs are looked at, reads among them."""


def newest_change(guard: execution.Guard) -> Execution | None:
    """The newest run of which something can be taken back now; a rollback is none. Changes nothing.

    Raises: StateError, when the record cannot be read.
    """
    for run in guard.ledger.executions(limit=LOOKED_AT).executions:
        if run.snapshot and run.status != Status.RUNNING and asked(run.command) is None and _goes_back(run.id, guard):
            return run
    return None


def nothing_named(guard: execution.Guard) -> UsageError:
    """For a rollback of nothing in particular: the hint names the newest change. Raises: StateError."""
    newest = newest_change(guard)
    hint = "opsx executions; opsx snapshot list"
    if newest is not None:
        command = " ".join(newest.command.split())
        hint = f"opsx rollback {newest.id} takes back the newest change: {command[:100]}"
    return UsageError("name one execution or snapshot", not_done="nothing was changed", hint=hint)


def _goes_back(id: str, guard: execution.Guard) -> bool:
    try:
        return execution.plan_rollback(id, guard).does_something
    except GuardError:
        return False  # damaged, busy, or its paths cannot be looked at: another one is offered
