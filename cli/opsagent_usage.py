"""`opsagent usage`: what replies of models have cost here, by day and brain."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from agent import usage
from cli.options import Option, Verb
from cli.report import line, safe, write
from guard.clock import SystemClock
from guard.errors import UsageError
from guard.ledger.state import StateFolder

if TYPE_CHECKING:
    from cli.options import Parsed

VERB = Verb(
    "usage",
    "cli.opsagent_usage",
    "what models' replies have cost here: tokens, time and, where a price is configured, money",
    usage="[options]",
    options=(
        Option("since", "from a day on (2026-12-01) or for the last days (7d); default 30d", value="TIME"),
        Option("json", "print one JSON object"),
    ),
    text="""
Days are those of UTC. A cost is told for brains whose entry has price_in or price_out (docs/brains.md), in their
currency, at the price that was configured when the reply came.""",
    codes="0 done · 2 usage · 7 state damaged or unreadable",
)

DEFAULT_DAYS = 30
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DAYS = re.compile(r"(\d{1,4})d")


def main(parsed: Parsed) -> int:
    """Prints the sums."""
    if parsed.words:
        raise UsageError(f"opsagent usage takes no {repr(parsed.words[0])[:60]}", hint=parsed.help_line())
    since = since_of(parsed.value("since", f"{DEFAULT_DAYS}d"), today=SystemClock().utc()[:10])
    found = usage.read(StateFolder.open_own(), since=since)
    days, whole = usage.by_day(found.spent), usage.total(found.spent)
    if parsed.flag("json"):
        rows = [{"day": one.day, "brain": one.brain, **_figures(one)} for one in days]
        line({"format": 1, "since": since, "days": rows, "total": _figures(whole), "unread": found.unread})
        return 0
    if not days:
        write(f"no model was asked since {since}\n")
    else:
        table: list[tuple[str, ...]] = [("day", "brain", "replies", "in", "cached", "out", "time", "cost")]
        table += [_cells(one) for one in (*days, whole)]
        widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
        for row in table:
            cells = [
                cell.ljust(width) if at < 2 else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            write("  ".join(cells).rstrip() + "\n")
        if whole.cost is not None and whole.unpriced:
            write(f"opsagent: {whole.unpriced} replies have no price and are not in the cost\n", to_stderr=True)
    if found.unread:
        write(f"opsagent: {found.unread} lines could not be read and are not counted\n", to_stderr=True)
    return 0


def since_of(text: str, *, today: str) -> str:
    """The first day that counts. Raises UsageError."""
    if days := _DAYS.fullmatch(text):
        first = datetime.fromisoformat(today).replace(tzinfo=UTC) - timedelta(days=int(days[1]))
        return first.strftime("%Y-%m-%d")
    try:
        if _DAY.fullmatch(text):
            return datetime.fromisoformat(text).strftime("%Y-%m-%d")
    except ValueError:
        pass
    raise UsageError(
        f"--since takes a day such as 2026-12-01 or 7d, not {repr(text)[1:-1][:40]!r}", hint="opsagent usage --help"
    )


def _figures(one: usage.Sum) -> dict[str, Any]:
    return {
        "replies": one.replies,
        "input_tokens": one.input,
        "cached_tokens": one.cached,
        "output_tokens": one.output,
        "took_ms": one.took_ms,
        "cost": one.cost,
        "unpriced": one.unpriced,
    }


def _cells(one: usage.Sum) -> tuple[str, ...]:
    cost = "-" if one.cost is None else f"{one.cost:.4f}"
    took = f"{one.took_ms / 1000:,.1f} s"
    return (
        one.day or "all",
        safe(one.brain),
        f"{one.replies:,}",
        f"{one.input:,}",
        f"{one.cached:,}",
        f"{one.output:,}",
        took,
        cost,
    )
