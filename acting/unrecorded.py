"""Taking a change back while the records are sick: full, locked by a process that stands still, or not there.

A person who is locked out needs the way in more than the record. So what can be read is waited for, what cannot be
written is done all the same, and what was done is said to the system's log at once and put on record when that works.
"""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING, TypeVar

from acting import deadman, world
from guard.errors import GuardError, SnapshotImpossible, StateError, StateUnwritable
from guard.hands.restore import DONE
from guard.ledger import claims
from guard.types import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from acting.world import Guard
    from guard.saved import RollbackPlan

    Found = TypeVar("Found")

SICK = (StateError, SnapshotImpossible, OSError, sqlite3.Error)
"""What says that the records are in the way, and not the change."""
LATEST_S = 3600.0
"""So long the records are waited for: to be read, and then to take the word of what was done."""


def readable(execution: str) -> Guard:
    """The guard, once the record of an execution can be read. Raises StateError: not within `LATEST_S`.

    A folder that is not there is waited for and never made: it may be on its way.
    """

    def look() -> Guard:
        from guard.ledger.location import state_path

        if not os.path.isdir(state_path()):
            raise StateUnwritable(f"{state_path()} is not there")
        guard = world.open_guard()
        if deadman.armed_for(execution, guard) is None:
            raise StateUnwritable(f"there is no record of {execution}")
        return guard

    return patiently(look, deadman.TICK_S)


def patiently(what: Callable[[], Found], pause_s: float) -> Found:
    """What it gives, once the records are not in the way any more. Raises what they were in the way by, in the end."""
    until_s = time.monotonic() + LATEST_S
    while True:
        try:
            return what()
        except SICK as error:
            if time.monotonic() > until_s:
                if isinstance(error, GuardError):
                    raise
                raise StateUnwritable(f"the records cannot be used: {error}") from error
            time.sleep(pause_s)


def claim_fired(execution: str, guard: Guard) -> bool:
    """Whether it is ours to take it back. Where nobody can write who was first, nobody can confirm it either."""
    folder = guard.ledger.answers.folder
    for attempt in range(deadman.TRIES):
        if attempt:
            time.sleep(deadman.TICK_S)
        try:
            return claims.claim(folder, execution, claims.FIRED)
        except SICK:
            continue
    return patiently(lambda: claims.outcome_of(folder, execution), deadman.TICK_S) in ("", claims.FIRED)


def take_back(plan: RollbackPlan, execution: str, snapshot: str, why: str, guard: Guard) -> int:
    """Carries a plan out that cannot be recorded, nor saved first what is there now; then says so until it is heard."""
    from acting import rollback

    wrong = [result for result in rollback.carry_out_unrecorded(plan, guard) if result.result != DONE]
    whole = not (wrong or plan.in_the_way or plan.cannot_return)
    status = Status.SUCCEEDED if whole else Status.FAILED
    text = f"taken back without a record and with no way back, for the records could not be used: {why}"
    told = deadman.server_told(snapshot, guard)
    say(f"{execution}: {status}; {text}")

    def record() -> None:
        guard.ledger.record(
            deadman.FIRED,
            execution=execution,
            snapshot=snapshot,
            result=status,
            unrecorded=True,
            text="; ".join(part for part in (text, told) if part),
        )

    try:
        patiently(lambda: claims.claim(guard.ledger.answers.folder, execution, claims.FIRED), deadman.AGAIN_S)
        patiently(record, deadman.AGAIN_S)
    except StateError as error:
        say(f"{execution}: it could not be put on record: {error.message}")
    return 0 if whole else 1


def say(text: str) -> None:
    """To the system's log, which needs no records of ours. Never raises."""
    import syslog

    syslog.openlog("opsagent", 0, syslog.LOG_AUTHPRIV)
    syslog.syslog(syslog.LOG_WARNING, f"dead man of {text}")
