"""The JSON objects of checks, runs and records, built once for the command line, the loop and MCP. On the hot path."""

from guard.types import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from execution import Ran
    from guard.bound import Stamp
    from guard.ledger.approvals import KeptRequest
    from guard.ledger.records import Execution
    from guard.types import Assessment, Outcome


_MARKS = frozenset("=:@%,'\"<\\$")
_STEMS = ("pass", "pwd", "secret", "token", "key", "cred", "auth", "cookie")
_LONGEST_WORD = 15
"""A shorter run of letters and digits is no secret by its form."""


def clean_for(assessment: "Assessment") -> "Callable[[str], str]":
    """What takes secrets out of texts about one command: what it redacts, and each secret of the command itself.

    A path or a user in an effect has lost the option that its secret was known by. Costs nothing for plain commands.
    """
    command = getattr(assessment, "command", "")
    said = [command, *(effect.object for effect in assessment.effects), *assessment.ambient.values()]
    if not any(_may_hold_secret(text) for text in said):
        return str
    from guard.redact import MASK, Redactor

    redactor = Redactor()
    pieces = redactor.pieces(command)

    def clean(text: str) -> str:
        for piece in pieces:
            if piece in text:
                text = text.replace(piece, MASK)
        return redactor.text(text)

    return clean


def _may_hold_secret(text: str) -> bool:
    """Whether a text can hold what any rule finds; wrong only towards yes."""
    if not _MARKS.isdisjoint(text) or "\n" in text or " -" in text:
        return True
    low = text.lower()
    if any(stem in low for stem in _STEMS):
        return True
    return any(len(word) > _LONGEST_WORD for word in low.replace("/", " ").replace("-", " ").replace(".", " ").split())


def check_object(assessment: "Assessment") -> "dict[str, Any]":
    """What was judged: the object of `opsx check --json`, redacted."""
    decision = assessment.decision
    clean = clean_for(assessment)
    return {
        "format": 1,
        "level": assessment.level.name,
        "decision": decision.verdict,
        "forceable": decision.forceable,
        "because": {"code": decision.code, "text": clean(decision.text)},
        "profile": assessment.profile,
        "reasons": [
            {
                "rule": reason.rule,
                "text": clean(reason.text),
                "span": list(reason.span),
                "level": reason.level.name,
                "source": reason.source,
            }
            for reason in assessment.reasons
        ],
        "effects": [{"kind": effect.kind, "object": clean(effect.object)} for effect in assessment.effects],
        "opaque": [{"text": clean(part.text), "span": list(part.span)} for part in assessment.opaque],
        "snapshot_plan": [{"kind": item.kind, "object": clean(item.object)} for item in assessment.snapshot_plan],
        "reversible": assessment.reversible,
        "ambient": {name: clean(text) for name, text in assessment.ambient.items()},
        "target": assessment.target,
    }


def exec_object(ran: "Ran") -> "dict[str, Any]":
    """What was judged and what became of it: the object of `opsx exec --json`."""
    outcome = ran.outcome
    interference = outcome.interference
    clean = clean_for(ran.assessment)
    judged = check_object(ran.assessment)
    if ran.back is not None:
        judged["snapshot_plan"] = [{"kind": item.kind, "object": clean(item.object)} for item in ran.back.saved]
        judged["reversible"] = ran.back.reversible
    return {
        **judged,
        "execution": outcome.execution,
        "status": outcome.status,
        "exit_code": outcome.exit_code,
        "stdout": outcome.stdout.text,
        "stderr": outcome.stderr.text,
        "truncated": outcome.stdout.truncated or outcome.stderr.truncated,
        "undecodable_bytes": outcome.stdout.undecodable_bytes + outcome.stderr.undecodable_bytes,
        "output_file": outcome.output_file,
        "snapshot": outcome.snapshot,
        "stamp": outcome.stamp,
        "request": outcome.request_id,
        "profile": outcome.profile,
        "enforced": outcome.enforced,
        "interference": None
        if interference is None
        else [{"operation": item.operation, "path": clean(item.path)} for item in interference],
        "unlimited": list(outcome.unlimited),
        "masked": list(outcome.masked),
        "recorded": outcome.recorded,
        "not_recorded_because": outcome.not_recorded_because or None,
        "duration_ms": outcome.duration_ms,
        "at": outcome.at,
        "notes": [clean(note) for note in outcome.notes],
        "next": next_step(outcome),
    }


def next_step(outcome: "Outcome") -> "str | None":
    """What a person can do now, as one command line, or None."""
    if outcome.request_id and outcome.status in (Status.NEEDS_STAMP, Status.REFUSED):
        return f"opsx approve {outcome.request_id}" + (" --force" if outcome.status == Status.REFUSED else "")
    if outcome.snapshot and outcome.execution:
        return f"opsx rollback {outcome.execution}"
    if outcome.output_file:
        return f"less {outcome.output_file}"
    return None


def execution_object(run: "Execution") -> "dict[str, Any]":
    """One execution as the log tells it: an object of `opsx executions --json`."""
    from dataclasses import asdict

    row = asdict(run)
    for empty in ("stamp", "snapshot", "output_file", "resolution", "ended_at", "call_id", "client", "session"):
        row[empty] = row[empty] or None
    row["effects"] = [{"kind": kind, "object": target} for kind, target in run.effects]
    if run.interference is not None:
        row["interference"] = [{"operation": name, "path": path} for name, path in run.interference]
    row["notes"] = list(run.notes)
    return row


def request_object(kept: "KeptRequest", redact: "Callable[[str], str]") -> "dict[str, Any]":
    """One waiting request: an object of `opsx pending --json`. Its command and its words are redacted."""
    from dataclasses import asdict

    row = asdict(kept)
    for name in ("command", "why", "read_before"):
        row[name] = redact(row[name])
    for name in ("snapshot_files", "snapshot_cmds", "no_snapshot_of"):
        row[name] = [redact(text) for text in row[name]]
    row["environment"] = {name: redact(text) for name, text in kept.environment.items()}
    row["expires_at"] = kept.expires_at()
    return row


def stamp_object(stamp: "Stamp") -> "dict[str, Any]":
    """One approval as the log tells it; its command is redacted."""
    return {
        "id": stamp.id,
        "state": stamp.state,
        "request": stamp.request or None,
        "issued_at": stamp.issued_at,
        "seconds_left": int(stamp.seconds_left),
        "uses": stamp.uses,
        "used_by": list(stamp.used_by),
        "forced": stamp.forced,
        "level": stamp.level,
        "command": stamp.command,
        "target": stamp.target,
        "cwd": stamp.cwd,
        "consent": stamp.consent,
        "signer": stamp.signer or None,
        "unsigned_because": stamp.unsigned_because or None,
    }
