"""What the log knows about the calls of a conversation, for results that were never recorded. Reads the log once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agent.sessions.repair import RunOnRecord
from guard.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.sessions.store import RunsOf
    from guard.ledger.shown import Listing

_NEWEST = 1000
"""How far back the log is asked: the runs of a session that broke off are among the last."""


class Log(Protocol):
    """What is needed of `guard.ledger.store.Ledger`."""

    def executions(self, *, status: str | None = None, since: str | None = None, limit: int = ...) -> Listing: ...


def runs_in(log: Log) -> RunsOf:
    """A look-up by conversation and call; it asks the log at its first use."""
    found: dict[tuple[str, str], list[RunOnRecord]] | None = None
    asked = False

    def runs_of(session: str, call_id: str) -> Sequence[RunOnRecord] | None:
        nonlocal found, asked
        if not asked:
            asked, found = True, _by_call(log)
        return None if found is None else found.get((session, call_id), [])

    return runs_of


def _by_call(log: Log) -> dict[tuple[str, str], list[RunOnRecord]] | None:
    try:
        listing = log.executions(limit=_NEWEST)
    except StateError:
        return None
    by_call: dict[tuple[str, str], list[RunOnRecord]] = {}
    for run in reversed(listing.executions):
        by_call.setdefault((run.session, run.call_id), []).append(RunOnRecord(run.id, run.status))
    return by_call
