"""What each kind of log entry holds, built from the guard's values. Pure. The fields are described in docs/formats.md.

Every text that is not ours (commands, paths, words of a model, names of clients) goes through the redactor;
the exact command is bound by an HMAC instead.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from guard.types import Actor, Level, RequestKind, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from guard.bound import Consent
    from guard.ledger.formats import Entry
    from guard.types import Assessment, Outcome, Request

LIST_LIMIT = 50
"""Effects, rules, refused operations and notes beyond this many are counted, not listed."""

TEXT_LIMIT = 4096
"""Characters kept of a text that is not a command (a command is kept whole)."""

LISTED_TEXT_LIMIT = 1024
"""Characters kept of a text in a list, so that the longest lists fit a line however much escaping they need."""


def command_hmac(key: bytes, command: str) -> str:
    """HMAC-SHA-256 of the command's exact bytes, 64 hex digits: equal commands are found without keeping them."""
    return hmac.new(key, command.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


class Owner:
    """The process that a started entry names, so that a reader can tell a running one from a lost one."""

    __slots__ = ("pid", "start")

    def __init__(self, pid: int, start: str) -> None:
        self.pid = pid
        self.start = start
        """As `Liveness.start_of` gave it."""


class Entries:
    """Builds entries for one state folder: redacts with its redactor, binds commands with its key."""

    def __init__(self, redact: Callable[[str], str], key: bytes) -> None:
        self._redact = redact
        self._key = key

    def started(
        self,
        execution: str,
        request: Request,
        assessment: Assessment,
        *,
        profile: str,
        enforced: str,
        stamp: str,
        owner: Owner,
        began_at: str,
        snapshot: str = "",
    ) -> Entry:
        """`started`: from here on it may have run. For R0 the effects are left out: a read has none that last."""
        entry: Entry = {
            "kind": "started",
            "execution": execution,
            **self._asked(request),
            **self._judged(assessment),
            "profile": profile,
            "enforced": enforced,
            "stamp": stamp or None,
            "pid": owner.pid,
            "pid_start": owner.start,
            "began_at": began_at,
        }
        if snapshot:
            entry["snapshot"] = snapshot
        if assessment.level > Level.R0:
            entry.update(self._effects(assessment))
        return entry

    def ended(self, execution: str, request: Request | None, outcome: Outcome, *, ended_at: str) -> Entry:
        """`ended`, or `running` when it goes on without us (the outcome says which)."""
        interference = outcome.interference
        return {
            "kind": "running" if outcome.status == Status.RUNNING else "ended",
            **(self._common(request) if request else {}),
            "execution": execution,
            "status": outcome.status,
            "ended_at": None if outcome.status == Status.RUNNING else ended_at,
            "exit_code": outcome.exit_code,
            "duration_ms": outcome.duration_ms,
            "stdout_bytes": outcome.stdout.size_bytes,
            "stderr_bytes": outcome.stderr.size_bytes,
            "truncated": outcome.stdout.truncated or outcome.stderr.truncated,
            "output_file": self._text(outcome.output_file or "") or None,
            "snapshot": outcome.snapshot,
            "enforced": outcome.enforced,
            "interference": None
            if interference is None
            else [[item.operation, self._text(item.path, LISTED_TEXT_LIMIT)] for item in interference[:LIST_LIMIT]],
            "interference_total": None if interference is None else len(interference),
            "notes": self._texts(outcome.notes),
        }

    def requested(self, request_id: str, request: Request, assessment: Assessment, *, expires_at: str) -> Entry:
        """`requested`: kept so that a person can approve it."""
        return {
            "kind": "requested",
            "request": request_id,
            **self._asked(request),
            **self._judged(assessment),
            **self._effects(assessment),
            "expires_at": expires_at,
        }

    def approved(self, stamp: str, request: Request, assessment: Assessment, consent: Consent, terms: Entry) -> Entry:
        """`approved`: a person said yes. The entry's actor is that person; who asked is `asked_by`.

        Args:
            terms: what else is known about the stamp, redacted already (`Stamps.bound_fields`, length, uses …).
        """
        return {
            "kind": "approved",
            "stamp": stamp,
            **self._asked(request),
            **self._judged(assessment),
            **self._effects(assessment),
            "asked_by": request.actor,
            **self.answered(consent),
            **terms,
        }

    def denied(self, request_id: str, request: Request, effects: Sequence[tuple[str, str]], reason: str) -> Entry:
        """`denied`: a person said no."""
        return {
            "kind": "denied",
            "request": request_id or None,
            **self._asked(request),
            "asked_by": request.actor,
            "actor": Actor.PERSON,
            "effects": [list(effect) for effect in effects[:LIST_LIMIT]],
            "effects_total": len(effects),
            "reason": self._text(reason),
        }

    def effects_of(self, assessment: Assessment) -> tuple[tuple[str, str], ...]:
        """Effects as the log has them: redacted, so that they can be compared with recorded ones."""
        return tuple((effect.kind, self._text(effect.object, LISTED_TEXT_LIMIT)) for effect in assessment.effects)

    def short(self, text: str) -> str:
        """A text of somebody else's as it is kept: redacted, on one line, at most 1,024 characters."""
        return self._text(" ".join(text.split()), LISTED_TEXT_LIMIT)

    def answered(self, consent: Consent) -> Entry:
        """The facts about a person's answer; the common fields are those of the shell that asked the person."""
        return {
            "shell": consent.shell,
            "client": self._text(consent.client) or None,
            "call_id": self._text(consent.call_id) or None,
            "session": consent.session or None,
            "actor": Actor.PERSON,
            "consent": consent.how,
            "rendered_sha256": consent.rendered_sha256,
            "loginuid": consent.loginuid,
            "tty": self._text(consent.tty) or None,
            "ssh": self._text(consent.ssh) or None,
        }

    def noted(self, kind: str, fields: Entry) -> Entry:
        """Any other kind; texts are redacted, also within lists and objects."""
        return {"kind": kind, **{name: self._value(value) for name, value in fields.items()}}

    def _common(self, request: Request) -> Entry:
        return {
            "shell": request.shell,
            "client": self._text(request.client) or None,
            "call_id": self._text(request.call_id) or None,
            "session": request.session or None,
            "actor": request.actor,
        }

    def _asked(self, request: Request) -> Entry:
        is_command = request.kind == RequestKind.COMMAND
        return {
            **self._common(request),
            **({} if is_command else {"request_kind": request.kind}),
            "target": request.target,
            "cwd": self._text(request.cwd),
            "command": self._redact(request.command),
            "command_bytes": len(request.command.encode("utf-8", "surrogatepass")),
            "command_hmac": command_hmac(self._key, request.command),
            "why": self._text(request.why),
        }

    def _judged(self, assessment: Assessment) -> Entry:
        decision = assessment.decision
        return {
            "level": assessment.level.name,
            "decision": decision.verdict,
            "decision_code": decision.code,
            "forceable": decision.forceable,
        }

    def _effects(self, assessment: Assessment) -> Entry:
        effects, reasons = assessment.effects, assessment.reasons
        return {
            "effects": [[effect.kind, self._text(effect.object, LISTED_TEXT_LIMIT)] for effect in effects[:LIST_LIMIT]],
            "effects_total": len(effects),
            "rules": sorted({reason.rule for reason in reasons})[:LIST_LIMIT],
        }

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, (list, tuple)):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {self._text(str(name)): self._value(item) for name, item in value.items()}
        return value

    def _texts(self, texts: Sequence[str]) -> list[str]:
        return [self._text(text, LISTED_TEXT_LIMIT) for text in texts[:LIST_LIMIT]]

    def _text(self, text: str, limit: int = TEXT_LIMIT) -> str:
        shown = self._redact(text)
        return shown if len(shown) <= limit else shown[: limit - 1] + "…"
