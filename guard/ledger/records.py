"""Folds log entries into executions. Pure, but for asking whether a run's owner is still alive.

A missing end is read, never written: the owner alive means running, the owner gone means unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from guard.types import RequestKind, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from guard.ledger.formats import Entry
    from guard.ports import Liveness

OPEN = ""
"""Status of an execution whose end is not in the log; `read_with` turns it into running or unknown."""

FINAL = frozenset((Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT, Status.CANCELLED))


@dataclass(frozen=True, slots=True)
class Execution:
    """One guarded run, as the log tells it."""

    id: str
    seq: int
    """Of its `started` entry; executions are ordered by it."""
    started_at: str
    """RFC 3339, UTC, `Z`, milliseconds."""
    boot: str = ""
    pid: int = 0
    pid_start: str = ""
    status: str = OPEN
    """succeeded · failed · timed_out · cancelled · running · unknown (or `OPEN` before `read_with`)."""
    level: str = ""
    """R0 … R3"""
    command: str = ""
    """Redacted."""
    kind: str = RequestKind.COMMAND
    """What `command` is, as in `guard.types.Request`."""
    command_hmac: str = ""
    target: str = ""
    cwd: str = ""
    actor: str = ""
    uid: int = -1
    """-1 when the entry does not say."""
    shell: str = ""
    client: str = ""
    call_id: str = ""
    session: str = ""
    why: str = ""
    profile: str = ""
    enforced: str = ""
    stamp: str = ""
    snapshot: str = ""
    effects: tuple[tuple[str, str], ...] = ()
    """Kind and object; the first 50."""
    effects_total: int = -1
    """How many there were; -1 when the entry does not say."""
    ended_at: str = ""
    exit_code: int | None = None
    duration_ms: int | None = None
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None
    truncated: bool = False
    output_file: str = ""
    interference: tuple[tuple[str, str], ...] | None = None
    notes: tuple[str, ...] = ()
    resolution: str = ""
    """What a person said about an unknown one: `done`, `not_done`, `looked`; "" when nobody did."""

    def read_with(self, liveness: Liveness) -> Execution:
        """The same with a missing end read as running (owner alive) or unknown (owner gone)."""
        if self.status != OPEN:
            return self
        alive = liveness.alive(self.boot, self.pid, self.pid_start)
        return replace(self, status=Status.RUNNING if alive else Status.UNKNOWN)


@dataclass(slots=True)
class Fold:
    """Executions by id, built entry by entry; unknown kinds change nothing."""

    executions: dict[str, Execution] = field(default_factory=dict)
    unreadable: int = 0
    """Lines that are not records; `opsx audit verify` says where."""

    def add_all(self, entries: Iterable[Mapping[str, Any]]) -> Fold:
        """Adds entries in log order and returns itself."""
        for entry in entries:
            self.add(entry)
        return self

    def add(self, entry: Mapping[str, Any]) -> None:
        """Adds the next entry."""
        kind = entry.get("kind")
        if kind == "unreadable":
            self.unreadable += 1
            return
        execution_id = entry.get("execution")
        if not isinstance(execution_id, str) or not execution_id.isascii():
            return
        known = self.executions.get(execution_id)
        if kind == "started" and known is None:
            self.executions[execution_id] = _started(execution_id, entry)
        elif known is not None:
            step = _STEPS.get(kind if isinstance(kind, str) else "")
            if step is not None:
                self.executions[execution_id] = step(known, entry)


def _started(execution_id: str, entry: Mapping[str, Any]) -> Execution:
    seq = entry.get("seq")
    return Execution(
        id=execution_id,
        seq=seq if type(seq) is int else 0,
        started_at=_text(entry, "began_at") or _text(entry, "at"),
        boot=_text(entry, "boot"),
        pid=_number(entry, "pid") or 0,
        pid_start=_text(entry, "pid_start"),
        level=_text(entry, "level"),
        command=_text(entry, "command"),
        kind=_text(entry, "request_kind") or RequestKind.COMMAND,
        command_hmac=_text(entry, "command_hmac"),
        target=_text(entry, "target"),
        cwd=_text(entry, "cwd"),
        actor=_text(entry, "actor"),
        uid=-1 if (uid := _number(entry, "uid")) is None else uid,
        shell=_text(entry, "shell"),
        client=_text(entry, "client"),
        call_id=_text(entry, "call_id"),
        session=_text(entry, "session"),
        why=_text(entry, "why"),
        profile=_text(entry, "profile"),
        enforced=_text(entry, "enforced"),
        stamp=_text(entry, "stamp"),
        snapshot=_text(entry, "snapshot"),
        effects=_pairs(entry, "effects") or (),
        effects_total=-1 if (total := _number(entry, "effects_total")) is None else total,
    )


def _ended(known: Execution, entry: Mapping[str, Any]) -> Execution:
    status = _text(entry, "status")
    if known.status in FINAL or status not in FINAL:
        return known  # the first end stands; a status of a newer version leaves it open rather than invented
    return replace(
        known,
        status=status,
        ended_at=_text(entry, "ended_at") or _text(entry, "at"),
        exit_code=_number(entry, "exit_code"),
        duration_ms=_number(entry, "duration_ms"),
        stdout_bytes=_number(entry, "stdout_bytes"),
        stderr_bytes=_number(entry, "stderr_bytes"),
        truncated=entry.get("truncated") is True,
        output_file=_text(entry, "output_file"),
        snapshot=_text(entry, "snapshot") or known.snapshot,
        enforced=_text(entry, "enforced") or known.enforced,
        interference=_pairs(entry, "interference"),
        notes=_texts(entry, "notes"),
    )


def _running(known: Execution, entry: Mapping[str, Any]) -> Execution:
    """It was handed to another process (a witness), which is the owner from now on, when the entry names one."""
    pid, start = _number(entry, "pid"), _text(entry, "pid_start")
    if pid is None or not start:
        return known
    return replace(known, pid=pid, pid_start=start, boot=_text(entry, "boot"))


def _resolved(known: Execution, entry: Mapping[str, Any]) -> Execution:
    return replace(known, resolution=_text(entry, "outcome"))


_STEPS = {"ended": _ended, "reconciled": _ended, "running": _running, "resolved": _resolved}


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _number(entry: Mapping[str, Any], name: str) -> int | None:
    value = entry.get(name)
    return value if type(value) is int else None


def _texts(entry: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = entry.get(name)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _pairs(entry: Entry | Mapping[str, Any], name: str) -> tuple[tuple[str, str], ...] | None:
    value = entry.get(name)
    if not isinstance(value, list):
        return None
    return tuple(
        (item[0], item[1])
        for item in value
        if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], str)
    )
