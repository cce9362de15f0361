"""Which change is meant when nobody names one, and which were taken back already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import execution
from acting import rollback_request
from acting.rollback_request import asked
from guard.errors import GuardError, UsageError
from guard.filechange import title_of
from guard.types import RequestKind, Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from guard.ledger.records import Execution

LOOKED_AT = 1_000
"""So many of the newest runs are looked at, reads among them."""
_SHOWN = 100


def newest_change(guard: execution.Guard) -> Execution | None:
    """The newest run that saved something and is not back yet; a rollback is none. Changes nothing.

    What stands in its way (somebody changed the same since, a damaged snapshot) is for the rollback to say: an older
    one in its place would be another change than the one that was meant.

    Raises: StateError, when the record cannot be read.
    """
    runs = guard.ledger.executions(limit=LOOKED_AT).executions
    back = taken_back(runs)
    for run in runs:
        if not run.snapshot or run.status == Status.RUNNING or run.id in back or asked(run.command) is not None:
            continue
        if _differs(run.id, guard):
            return run
    return None


def nothing_named(guard: execution.Guard) -> UsageError:
    """For a rollback of nothing in particular: the hint names the newest change. Raises: StateError."""
    newest = newest_change(guard)
    hint = "opsx executions; opsx snapshot list"
    if newest is not None:
        hint = f"opsx rollback {newest.id} takes back the newest change: {in_short(newest)}"
    return UsageError("name one execution or snapshot", not_done="nothing was changed", hint=hint)


def titled(command: str, kind: str) -> str:
    """What was asked for, as a list shows it to a person: file changes and rollbacks in words. Not made visible."""
    return title_of(command) if kind == RequestKind.FILE_CHANGE else rollback_request.title_of(command)


def in_short(run: Execution) -> str:
    """What a run did, on one line of at most 100 characters. Redacted, since the record is; not made visible."""
    return " ".join(titled(run.command, run.kind).split())[:_SHOWN]


def taken_back(runs: Iterable[Execution]) -> dict[str, str]:
    """Which of these runs a later rollback took back: run by rollback, both `e-…`.

    A rollback that failed took nothing back for certain and does not count, and one that was taken back itself counts
    no more. Pure.

    Args:
        runs: newest first, as the record lists them.
    """
    ordered = list(runs)
    by_snapshot = {run.snapshot: run.id for run in ordered if run.snapshot}
    back: dict[str, str] = {}
    for run in ordered:
        wanted = asked(run.command) if run.status == Status.SUCCEEDED and run.id not in back else None
        if wanted is not None:
            back.setdefault(by_snapshot.get(wanted.of, wanted.of), run.id)
    return back


def _differs(id: str, guard: execution.Guard) -> bool:
    try:
        plan = execution.plan_rollback(id, guard)
    except GuardError:
        return True  # damaged, busy, or its paths cannot be looked at: its rollback says which
    return bool(plan.does_something or plan.in_the_way or plan.cannot_return)
