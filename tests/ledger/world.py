"""Fakes and shorthand for the ledger's tests: a clock that stands, ids that count, owners that die on command."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from guard.bound import Binding, Consent
from guard.clock import utc_text
from guard.ledger.answers import ToApprove
from guard.ledger.state import StateFolder
from guard.ledger.store import Ledger
from guard.types import Assessment, Captured, Decision, Effect, Level, Outcome, Reason, Request, Status, Verdict

START_MS = 1_796_100_000_000
CONSENT = Consent("tty", "5" * 64, session="c-9", loginuid=1000, tty="/dev/pts/3", ssh="192.0.2.7 5022 192.0.2.1 22")
BOOT = "6f1c2a00-0000-4000-8000-000000000001"


class FixedClock:
    """Stands until it is moved; wall clock and boot clock move apart when a test says so."""

    def __init__(self, utc_ms: int = START_MS, boot_s: float = 1000.0) -> None:
        self.utc_ms = utc_ms
        self.seconds = boot_s

    def utc(self) -> str:
        return utc_text(self.utc_ms)

    def boot_s(self) -> float:
        return self.seconds

    def pass_s(self, seconds: float) -> None:
        self.utc_ms += int(seconds * 1000)
        self.seconds += seconds


class CountingIds:
    """`e-1`, `e-2`, `a-3` …"""

    def __init__(self, start: int = 0) -> None:
        self.count = start

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}-{self.count}"


class FakeLiveness:
    """Everything that started in `boot` is alive until `dead` says otherwise."""

    def __init__(self, boot: str = BOOT) -> None:
        self.boot = boot
        self.dead = False

    def boot_id(self) -> str:
        return self.boot

    def start_of(self, pid: int) -> str:
        return f"start-{pid}"

    def alive(self, boot: str, pid: int, start: str) -> bool:
        return not self.dead and boot == self.boot and start == f"start-{pid}"


class Judged(Assessment):
    """An assessment with the fields that the ledger reads."""

    __slots__ = ("command", "level", "decision", "effects", "reasons")

    def __init__(self, command, level, effects=(), verdict=None, forceable=False):
        self.command = command
        self.level = level
        self.effects = tuple(effects)
        self.reasons = (Reason("files.test", "because", (0, 1), level),)
        default = Verdict.RUN if level == Level.R0 else Verdict.NEEDS_STAMP
        self.decision = Decision(verdict or default, "level", "it changes something", forceable)


def asked(command="df -h", **changes):
    return Request(
        command,
        **{"cwd": "/srv/www", "actor": "agent", "shell": "opsx", "client": "codex 1.2", "call_id": "t1", **changes},
    )


def read_of(command="df -h"):
    return Judged(command, Level.R0)


def change_of(command="systemctl restart nginx", level=Level.R2):
    return Judged(command, level, [Effect("service", "nginx")])


def done(status=Status.SUCCEEDED, exit_code=0, **fields):
    return Outcome(status, exit_code=exit_code, stdout=Captured("ok\n", 3), duration_ms=12, enforced="strict", **fields)


def bound(command="systemctl restart nginx", level="R2", *, target="local", **fields) -> Binding:
    """A binding of a request of `asked`; further fields by keyword (`file_x="…"` is the field `file x`)."""
    named = {name.replace("_", " "): value for name, value in fields.items()}
    return Binding({"command": command, "target": target, "level": level, **named})


def approved(ledger, request=None, judged=None, binding=None, *, forced=False, request_id="", resolves=(), **terms):
    """A stamp for a request, given by a person on a terminal."""
    request = request or asked("systemctl restart nginx")
    judged = judged or change_of(request.command)
    binding = binding or bound(request.command, judged.level.name, target=request.target)
    item = ToApprove(request, judged, binding, request_id, forced, tuple(resolves))
    (stamp,) = ledger.answers.approve([item], CONSENT, **terms)
    return stamp


def unchanged(text: str) -> str:
    return text


def state_folder(tmp_path) -> StateFolder:
    return StateFolder.open(str(tmp_path / "state"))


def ledger_in(path, *, clock=None, ids=None, redact=unchanged, liveness=None, **more) -> Ledger:
    return Ledger(
        StateFolder.open(str(path)),
        clock=clock or FixedClock(),
        ids=ids or CountingIds(),
        redact=redact,
        liveness=liveness or FakeLiveness(),
        **more,
    )


def interpreter_for_others() -> str:
    """A Python that another uid may execute: this one, unless it lies in a private home."""
    real = Path(sys.executable).resolve()
    if all(folder.stat().st_mode & 0o001 for folder in (real, *real.parents)):
        return sys.executable
    return "/usr/bin/python3"


def segment(path, number=1):
    return os.path.join(path, "log", f"{number:06d}.jsonl")
