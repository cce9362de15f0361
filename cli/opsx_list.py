"""`opsx list`: where things stand: what waits, what is approved, what goes on, what nobody knows, what was saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import execution
from capabilities import countdown
from capabilities.ops import list_tool
from cli import surroundings
from cli.opsx_approve import stamp_row
from cli.opsx_records import execution_row, pending_row
from cli.opsx_snapshot import snapshot_row
from cli.report import line, safe, write
from guard.errors import StateError, UsageError
from guard.types import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.options import Parsed
    from execution import Guard

MOST = 20
"""Rows of each part; the verb for that part shows all."""
MOST_SNAPSHOTS = 5


def main(parsed: Parsed) -> int:
    """Prints the parts that are not empty."""
    if parsed.words:
        raise UsageError(f"opsx list takes no {repr(parsed.words[0])[:60]}", hint=parsed.help_line())
    guard = execution.open_guard(surroundings.policy(), outputs_folder=None)
    if parsed.flag("json"):
        line(list_tool(guard).run({}))
        return 0
    parts = [(title, rows) for title, rows in _parts(guard) if rows]
    for title, rows in parts:
        write(f"{title}:\n" + "".join(f"  {row.strip()}\n" for row in rows[:MOST]))
        if len(rows) > MOST:
            write(f"  and {len(rows) - MOST} more\n")
    if not parts:
        write("nothing waits, nothing is approved, nothing runs, nothing was saved\n", to_stderr=True)
    return 0


def _parts(guard: Guard) -> Iterator[tuple[str, list[str]]]:
    ledger = guard.ledger
    frozen = guard.policy.frozen or ledger.stop()
    yield "everything above R0 is stopped (opsx thaw)", [safe(frozen)] if frozen else []
    dead_men = [countdown.in_short([armed], guard) for armed in countdown.waiting(guard)]
    yield "is taken back by itself unless it is confirmed", dead_men
    yield "waits for an answer (opsx approve ID)", [pending_row(kept) for kept in ledger.pending()]
    yield "approved (opsx revoke ID takes it back)", [stamp_row(stamp) for stamp in ledger.stamps.listed()]
    for status, title in (
        (Status.RUNNING, "goes on (opsx tail ID, opsx cancel ID)"),
        (Status.UNKNOWN, "nobody knows how it ended (opsx resolve ID)"),
    ):
        runs = ledger.executions(status=status, limit=MOST + 1).executions
        yield title, [execution_row(run) for run in runs if not run.resolution and run.level != "R0"]
    try:
        newest = ledger.snapshots.listed()[:MOST_SNAPSHOTS]
    except StateError as error:
        yield "saved", [f"cannot be listed: {safe(error.message)}"]
        return
    yield "saved last (opsx snapshot list, opsx rollback ID)", [snapshot_row(one) for one in newest]
