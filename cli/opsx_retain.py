"""`opsx audit retain`: lets the oldest part of the log go, after a person saw what that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import execution
from cli import surroundings
from cli.ask import consented
from cli.keeping_config import LEAST_MB, MOST_DAYS, MOST_MB
from cli.opsx_approve import require_person
from cli.report import line, safe, write
from guard.errors import UsageError
from guard.keeping import FOREVER
from guard.ledger.retention import Limits
from guard.redact import Redactor

if TYPE_CHECKING:
    from cli.options import Parsed
    from guard.ledger.retention import RetentionPlan

MIB = 1 << 20
NOT_DONE = "nothing was removed"


def main(parsed: Parsed) -> int:
    """Shows what would go under the limits of the configuration or of the options, asks, and lets it go."""
    keeping = surroundings.policy().keeping or FOREVER
    limits = Limits(
        parsed.whole_number("keep-days", keeping.keep_days, low=1, high=MOST_DAYS),
        parsed.whole_number("keep-mb", keeping.keep_mb, low=LEAST_MB, high=MOST_MB) * MIB,
    )
    if not limits.are_set:
        raise UsageError(
            "nothing says how long the log stays",
            not_done=NOT_DONE,
            hint="opsx audit retain --keep-days 365, or [log] keep_days in the configuration",
        )
    only_shown = parsed.flag("plan")
    if not only_shown:
        require_person(NOT_DONE)
    retention = execution.open_store(Redactor(), keeping).retention
    plan = retention.plan(limits)
    if parsed.flag("json"):
        line(_object(plan))
    else:
        write(_words(plan))
    if only_shown or not (plan.segments or plan.unfinished):
        return 0
    if not consented("let this go? It cannot be brought back."):
        write(f"opsx: {NOT_DONE}\n", to_stderr=True)
        return 3
    retention.apply(plan)
    write("opsx: done; opsx audit verify proves the rest\n", to_stderr=True)
    return 0


def _words(plan: RetentionPlan) -> str:
    if not (plan.segments or plan.unfinished):
        return "nothing is over the limits\n"
    rows = []
    if plan.unfinished:
        rows.append(f"{len(plan.unfinished)} segments that a checkpoint let go before are still there")
    if plan.segments:
        first, last = plan.segments[0], plan.segments[-1]
        rows.append(
            f"{len(plan.segments)} segments, {plan.size_bytes / MIB:,.0f} MiB: "
            f"entries {first.first_seq:,} to {last.last_seq:,}, the last of {safe(last.last_at)}"
        )
        rows.append(f"{len(plan.carried):,} of them are still needed and are carried on")
    return "".join(f"{row}\n" for row in rows)


def _object(plan: RetentionPlan) -> dict[str, object]:
    return {
        "format": 1,
        "segments": [one.segment for one in plan.segments],
        "entries": plan.entries,
        "bytes": plan.size_bytes,
        "through_seq": plan.segments[-1].last_seq if plan.segments else None,
        "through_at": plan.segments[-1].last_at if plan.segments else None,
        "carried": len(plan.carried),
        "unfinished": list(plan.unfinished),
    }
