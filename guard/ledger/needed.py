"""Which entries of the log are still needed, however old: what somebody may have to decide, run or take back by them.

Reads the log through its index. Touches the state folder only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guard.errors import StateDamaged
from guard.ledger import index, signed
from guard.ledger.retention import Needed
from guard.ledger.stamps import MOST_ANSWERS
from guard.types import Level, Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from guard.ledger.stamps import Stamps
    from guard.ledger.state import StateFolder
    from guard.ports import Liveness

MOST_OPEN = 20_000
"""Runs without an end: beyond this many, nothing of the log goes."""

_NAMES = ("execution", "snapshot", "of")
"""Fields of an entry about a snapshot that name what belongs to it."""


def needed_of(
    folder: StateFolder,
    liveness: Liveness,
    *,
    stamps: Stamps,
    waiting: Iterable[str],
    snapshots: Iterable[str],
    small_log_bytes: int,
) -> Needed:
    """What has to stay readable.

    Runs that go on, runs above R0 whose end nobody knows or has told, approvals that hold (with the runs that used
    them), waiting requests, kept snapshots (with their runs and rollbacks), the stop or the signer that holds now,
    and denials that no approval has ended.

    Args:
        waiting: ids of requests. snapshots: ids of those that are there.
    Raises: StateError.
    """
    ids = set(waiting)
    for status in (Status.RUNNING, Status.UNKNOWN):
        runs, _ = index.newest(
            folder, liveness, status=status, since=None, limit=MOST_OPEN, small_log_bytes=small_log_bytes
        )
        if len(runs) == MOST_OPEN:
            raise StateDamaged(
                f"{MOST_OPEN:,} runs and more have no end on record",
                not_done="nothing was removed",
                hint="opsx executions",
            )
        ids.update(
            run.id for run in runs if status == Status.RUNNING or (run.level != Level.R0.name and not run.resolution)
        )
    for stamp in stamps.listed():
        ids |= {stamp.id, *stamp.used_by}
    saved = index.about_each(folder, snapshots, small_log_bytes=small_log_bytes)
    for snapshot, entries in saved.items():
        ids.add(snapshot)
        ids.update(value for entry in entries for name in _NAMES if isinstance(value := entry.get(name), str))
    return Needed(frozenset(ids), frozenset(_standing(folder, small_log_bytes)))


def _standing(folder: StateFolder, small_log_bytes: int) -> Iterable[int]:
    """Numbers of the entries that say what holds now."""

    def last(*kinds: str, most: int = 1) -> list[dict[str, Any]]:
        return index.recent(folder, kinds, most=most, small_log_bytes=small_log_bytes)

    yield from (entry["seq"] for entry in last("frozen", "thawed") if entry["kind"] == "frozen")
    yield from (entry["seq"] for entry in last(signed.KIND))
    ended: set[object] = set()
    for entry in last("denied", "approved", most=MOST_ANSWERS):
        said = (entry.get("command_hmac"), entry.get("target"))
        if entry["kind"] == "approved":
            ended.add(said)
        elif said not in ended:
            yield entry["seq"]
