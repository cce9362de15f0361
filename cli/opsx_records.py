"""`opsx executions`, `show`, `pending`, `audit`: what was asked and run, read from the log."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import execution
from capabilities.going_back import LOOKED_AT, taken_back, titled
from capabilities.shapes import execution_object, request_object
from cli.json_text import json_line
from cli.report import as_typed, command_row, line, safe, write
from guard.errors import GuardError, StateDamaged, UsageError
from guard.filechange import title_of
from guard.redact import Redactor
from guard.render import visible
from guard.types import Actor, RequestKind, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cli.options import Parsed
    from guard.ledger.approvals import KeptRequest
    from guard.ledger.null import NullLedger
    from guard.ledger.records import Execution
    from guard.ledger.shown import Shown
    from guard.ledger.store import Ledger

STATUSES = (Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT, Status.CANCELLED, Status.UNKNOWN, Status.RUNNING)
_AGO_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class NoSuchRecord(UsageError):
    """There is no record with that id."""

    code = "usage.record"


def main(parsed: Parsed) -> int:
    """Dispatches to the verb."""
    verbs = {"executions": executions, "show": show, "pending": pending, "audit": audit}
    return verbs[parsed.verb.name](parsed)


def executions(parsed: Parsed) -> int:
    """Lists executions, newest first; an unresolved `unknown` stands out and says what to do."""
    _no_words(parsed)
    status = parsed.value("status")
    if status and status not in STATUSES:
        raise UsageError(f"there is no status {status!r}", hint=f"one of {', '.join(STATUSES)}")
    limit = parsed.whole_number("limit", 20, low=1, high=1000)
    folds = not parsed.flag("json") and not parsed.flag("all")
    listing = execution.open_store(Redactor()).executions(
        status=status or None,
        since=since(parsed.value("since"), parsed) if parsed.value("since") else None,
        limit=LOOKED_AT if folds else limit,
    )
    if parsed.flag("json"):
        line(
            {
                "format": 1,
                "executions": [execution_object(run) for run in listing.executions],
                "notes": list(listing.notes),
            }
        )
        return 0
    shown = [run for run in listing.executions if not (folds and _is_runbooks_read(run))][:limit]
    back = taken_back(listing.executions)
    for run in shown:
        write(execution_row(run, back.get(run.id, "")) + "\n")
    if folds and (folded := sum(map(_is_runbooks_read, listing.executions))):
        reads = "1 read" if folded == 1 else f"{folded} reads"
        write(f"opsx: and {reads} of runbooks: {as_typed('opsx executions --all')}\n", to_stderr=True)
    elif not listing.executions:
        write("nothing was run yet\n" if not status else f"nothing with status {status}\n", to_stderr=True)
    for note in listing.notes:
        write(f"opsx: {safe(note)}\n", to_stderr=True)
    _say_what_waits(shown)
    return 0


def _is_runbooks_read(run: Execution) -> bool:
    """A look that a question took, as there are a dozen for each: nothing that somebody did."""
    return run.actor == Actor.RUNBOOK and run.level == "R0" and run.status == Status.SUCCEEDED


def _say_what_waits(runs: Iterable[Execution]) -> None:
    """Says that something is taken back soon unless it is confirmed."""
    if all(run.level == "R0" for run in runs):
        return
    from capabilities import countdown

    guard = execution.open_guard()
    for armed in countdown.waiting(guard):
        write(f"opsx: {safe(countdown.words(armed, countdown.WAITING, guard))}\n", to_stderr=True)


def since(text: str, parsed: Parsed) -> str:
    """A time as the log writes it, from RFC 3339 or from an age such as `15m`, `2h`, `3d`."""
    from datetime import UTC, datetime

    from guard.clock import utc_text

    age = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if age:
        return utc_text(int((time.time() - int(age[1]) * _AGO_S[age[2]]) * 1000))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a time", hint="write 15m, 2h, 3d, or 2026-12-01T04:00:00Z") from None
    # A time without a zone is the local one: that is the clock its writer looked at.
    return utc_text(int(moment.astimezone(UTC).timestamp() * 1000))


def execution_row(run: Execution, taken_back_by: str = "") -> str:
    """One run in one line: an unresolved `unknown` begins with a mark.

    Args:
        taken_back_by: `e-…` of the rollback that took it back; "" for none.
    """
    mark = "!" if run.status == Status.UNKNOWN else " "
    code = "" if run.exit_code is None else f" {run.exit_code}"
    # What no person and no agent asked for, and is no read, is what came due by itself.
    actor = "by time" if run.actor == Actor.RUNBOOK and run.level != "R0" else run.actor
    before = f"{mark} {run.id:14} {run.started_at[:19]}Z  {run.level:2} {run.status + code:14} {actor:7} "
    before += f"(taken back by {taken_back_by}) " if taken_back_by else ""
    return command_row(before, titled(run.command, run.kind), 90)


def show(parsed: Parsed) -> int:
    """Everything about one id."""
    if len(parsed.words) != 1:
        raise UsageError("name one id", hint="opsx executions lists them; opsx show e-…")
    record_id = parsed.words[0]
    if not re.fullmatch(r"[a-z0-9-]{1,64}", record_id):
        raise UsageError(f"{repr(record_id)[:80]} is not an id", hint="ids look like e-7k2m4p9qrst or a-7k2m4p")
    shown = execution.open_store(Redactor()).show(record_id)
    if not shown.entries and shown.request is None:
        raise NoSuchRecord(f"there is no record of {record_id}", not_done="nothing was shown", hint="opsx executions")
    change = _change_of(shown.request) if shown.request else None
    if parsed.flag("json"):
        line(
            {
                "format": 1,
                "id": shown.id,
                "execution": execution_object(shown.execution) if shown.execution else None,
                "request": request_object(shown.request, Redactor().text) if shown.request else None,
                **({"dead_man": watched} if (watched := _watched(shown)) else {}),
                **({} if change is None else {"change": change.split("\n")}),
                "entries": list(shown.entries),
            }
        )
        return 0
    if shown.execution:
        _show_fields(_for_people(execution_object(shown.execution)))
        if watched := _watched(shown):
            _show_fields({f"dead man: {name}": value for name, value in watched.items()})
        if shown.execution.status == Status.UNKNOWN:
            write(
                "\nIt was a read and its end is not on record; it blocks nothing.\n"
                if shown.execution.level == "R0"
                else "\nIt began and its end is not on record: look at what it was to change before anything else.\n"
                f"Then: opsx resolve {shown.execution.id} --done | --not-done\n"
            )
    elif shown.request:
        _show_fields(request_object(shown.request, Redactor().text))
        if change is not None:
            write(f"\n{visible(change)}\n")
    elif asked := next((entry for entry in shown.entries if entry.get("kind") == "requested"), None):
        _show_fields(_answered_request(asked, shown.entries))
    write("\nentries:\n")
    for entry in shown.entries:
        write(f"  {_entry_line(entry)}\n")
    return 0


_FOR_PROGRAMS = ("seq", "boot", "pid", "pid_start", "command_hmac", "effects_total", "format")


def _for_people(row: Mapping[str, Any]) -> dict[str, Any]:
    """An execution without what only programs compare (`--json` has it), effects in words, and its way back."""
    told = {name: value for name, value in row.items() if name not in _FOR_PROGRAMS}
    told["effects"] = ", ".join(
        " ".join(map(str, effect.values() if isinstance(effect, dict) else effect))
        for effect in row.get("effects") or ()
    )
    if row.get("snapshot") and row.get("status") != Status.RUNNING:
        told["way back"] = as_typed(f"opsx rollback {row.get('execution') or row.get('id')}")
    return told


def _watched(shown: Shown) -> dict[str, object] | None:
    """How it stands with the dead man of a run; None for a run without one."""
    if shown.execution is None or all(entry.get("kind") != "deadman_armed" for entry in shown.entries):
        return None
    from capabilities import countdown

    return countdown.as_object(shown.id, execution.open_guard())


def _change_of(kept: KeptRequest) -> str | None:
    """A file change that waits, as its approval shows it; why it cannot be shown; None for a command."""
    if kept.kind != RequestKind.FILE_CHANGE:
        return None
    from acting import edit
    from capabilities.edit_words import change_words
    from cli import surroundings

    guard = execution.open_guard(surroundings.policy(), outputs_folder=None)
    try:
        change = edit.of_kept(kept.request(), guard.ledger.content(kept), guard)
    except GuardError as error:
        return f"its difference cannot be shown: {guard.redactor.text(error.message)}"
    return change_words(change, guard.redactor)[0]


def _answered_request(asked: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A request that waits no more: what was asked, by whom, and what became of it."""
    names = ("request", "command", "target", "cwd", "level", "actor", "client", "why", "reasons", "effects", "at")
    row = {name: asked.get(name) for name in names} | {"kind": asked.get("request_kind")}
    for entry in entries:
        if entry.get("kind") in ("denied", "approved", "withdrawn") and entry.get("request") == asked.get("request"):
            row["answer"] = entry["kind"]
            row["answered_at"] = entry.get("at")
            row["answer_reason"] = entry.get("reason")
            row["stamp"] = entry.get("stamp")
    return row


def _show_fields(row: Mapping[str, Any]) -> None:
    width = max(len(name) for name in row) + 2
    if row.get("kind") == RequestKind.FILE_CHANGE:
        row = {**row, "command": title_of(str(row["command"]))}
    for name, value in row.items():
        if value in (None, "", [], ()):
            continue
        text = value if isinstance(value, str) else json_line(value)
        write(f"{name:{width}}{safe(text)}\n")


def pending(parsed: Parsed) -> int:
    """The requests that wait for a person, oldest first."""
    _no_words(parsed)
    store = execution.open_store(Redactor())
    if parsed.flag("watch"):
        return _watch(store, as_json=parsed.flag("json"))
    waiting = store.pending()
    if parsed.flag("json"):
        line({"format": 1, "requests": [request_object(kept, Redactor().text) for kept in waiting]})
        return 0
    for kept in waiting:
        write(pending_row(kept) + "\n")
    if not waiting:
        write("nothing waits for approval\n", to_stderr=True)
    return 0


WATCH_S = 1.0
"""Between two looks at the folder of requests: soon enough for a person, and one readdir each."""


def _watch(store: Ledger | NullLedger, *, as_json: bool) -> int:
    """Prints each request once, as it comes; in JSON one object a line. Ends with Ctrl-C."""
    seen: set[str] = set()
    while True:
        for kept in store.pending():
            if kept.id not in seen:
                seen.add(kept.id)
                if as_json:
                    line({"format": 1, **request_object(kept, Redactor().text)})
                else:
                    write(pending_row(kept) + "\n")
        time.sleep(WATCH_S)


def pending_row(kept: KeptRequest) -> str:
    """One waiting request in one line."""
    before = f"{kept.id:9} {kept.created_at[:19]}Z  {kept.level} {kept.actor:7} "
    return command_row(before, titled(kept.command, kept.kind), 90)


def audit(parsed: Parsed) -> int:
    """The end of the log, or the proof that it is whole."""
    if parsed.words == ["verify"]:
        return _verify(parsed)
    if parsed.words == ["export"]:
        return _export()
    if parsed.words == ["retain"]:
        from cli import opsx_retain

        return opsx_retain.main(parsed)
    _no_words(parsed)
    entries = execution.open_store(Redactor()).audit(parsed.whole_number("tail", 20, low=1, high=100_000))
    for entry in entries:
        write((json_line(dict(entry)) if parsed.flag("json") else _entry_line(entry)) + "\n")
    return 0


def _export() -> int:
    """The whole log as JSONL, oldest first, for another place to keep."""
    for entry in execution.open_store(Redactor()).entries():
        write(json_line(dict(entry)) + "\n")
    return 0


def _entry_line(entry: Mapping[str, Any]) -> str:
    about = " ".join(str(entry[name]) for name in ("execution", "request", "stamp", "snapshot") if entry.get(name))
    told = {**entry, "command": title_of(str(entry.get("command", "")))} if _is_file_change(entry) else entry
    rest = " ".join(str(told[name]) for name in ("status", "level", "actor", "command", "text") if told.get(name))
    line = f"{entry.get('seq', '?'):>6} {entry.get('at', '?')} {entry.get('kind', '?')} {about} {rest}"
    return safe(line.rstrip()[:400])


def _is_file_change(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("request_kind") == RequestKind.FILE_CHANGE)


def _verify(parsed: Parsed) -> int:
    store = execution.open_store(Redactor())
    sent = None
    if parsed.flag("journal"):
        from guard.hands.journal import heads_sent
        from guard.ledger.location import state_path

        sent = heads_sent(state_path())
    report = store.verify(sent)
    if parsed.flag("json"):
        from dataclasses import asdict

        line({"format": 1, "ok": report.ok, "first_bad_seq": report.first_bad_seq, **asdict(report)})
    else:
        for problem in report.problems:
            write(f"seq {problem.seq:,}, segment {problem.segment}: {problem.code}: {safe(problem.text)}\n")
        if report.problems_total > len(report.problems):
            write(f"and {report.problems_total - len(report.problems):,} more\n")
        if report.torn_bytes:
            write(f"the last line is incomplete ({report.torn_bytes} bytes): normal after a crash\n")
        if report.first_seq > 1:
            write(f"entries 1 to {report.first_seq - 1:,} went behind a checkpoint that anchors the rest\n")
        if sent is not None:
            write(f"held against {report.compared:,} of {len(sent):,} heads in the journal\n")
        write(f"{report.entries:,} entries: " + ("the chain is whole\n" if report.ok else "the log is damaged\n"))
    return 0 if report.ok else StateDamaged.exit_code


def _no_words(parsed: Parsed) -> None:
    if parsed.words:
        raise UsageError(
            f"{parsed.program} {parsed.verb.name} takes no {repr(parsed.words[0])[:60]}", hint=parsed.help_line()
        )
