"""From what was asked to what a person is shown: puts the `Ask` for a request together.

Asks nobody and approves nothing; `cli.opsx_approve` and `capabilities.asking` do. Every way of asking shows this one.
"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from acting import deadman
from capabilities.sensitive import sensitive_parts
from capabilities.subjects import subject_of
from dialogue.confirm import FILE_CHANGE, RESOLVE, Ask
from dialogue.screen import marked_spans, typeable
from guard.ledger.answers import ToApprove
from guard.ledger.entries import command_hmac
from guard.saved import STATE_KINDS
from guard.types import Actor, Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from capabilities.subjects import Wanted
    from execution import Guard
    from guard.bound import Binding
    from guard.ledger.records import Execution
    from guard.types import Assessment, Request

MOST_SHOWN = 60
"""Reasons, effects and gaps beyond this many are counted."""
_FINGERPRINT = 16


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request, judged and bound as everything is now, and what a person is asked about it."""

    wanted: Wanted
    assessment: Assessment
    binding: Binding
    ask: Ask
    unknown: tuple[str, ...]
    """Runs whose end is not known and that touch the same; shown, and resolved by the yes."""

    def to_approve(self) -> ToApprove:
        """What the ledger is given after a yes."""
        return ToApprove(
            self.wanted.request,
            self.assessment,
            self.binding,
            self.wanted.id,
            forced=self.assessment.level == Level.R3,
            resolves=self.unknown,
        )


def prepared(wanted: Wanted, guard: Guard, *, force: bool, holds: str, expires_at: str = "") -> Prepared:
    """Judges and binds a request, and puts together what a person is asked about it.

    Args:
        force: what cannot be undone may be asked for.
        holds: how long the approval holds, in words.
        expires_at: when an answer no longer counts; "" where whoever asks keeps the time.
    Raises:
        NotPermitted: it cannot be approved, or only with `--force`.
        NotApproved: it does not wait any more. ApprovalChanged: what it is about is something else by now.
        UsageError: it needs no approval. CannotRun: it could not be bound.
    """
    request = wanted.request
    subject = subject_of(wanted, guard, force=force)
    assessment, binding, shown = subject.assessment, subject.binding, subject.shown
    unknown = guard.ledger.answers.unresolved(request, assessment)
    remarks = _remarks(wanted, assessment, unknown, guard)
    key = guard.ledger.answers.folder.key()
    redact = guard.redactor.text
    ask = Ask(
        id=wanted.id,
        target=request.target,
        host=os.uname().nodename,
        user=user_name(),
        cwd=redact(request.cwd),
        command=shown,
        level=assessment.level.name,
        reasons=_counted([redact(reason.text) for reason in assessment.reasons if reason.level == assessment.level]),
        effects=_counted([redact(f"{effect.kind} {effect.object}".strip()) for effect in assessment.effects]),
        reversible=assessment.reversible,
        snapshot_plan=_counted([redact(text) for text in subject.saved]),
        not_bound=_counted([redact(text) for text in binding.unbound]),
        must_type=_object_of(assessment, redact=redact) if assessment.level == Level.R3 else "",
        why=redact(request.why),
        expires_at=expires_at,
        ambient=tuple(redact(f"{name} {text}") for name, text in binding.shown.items()),
        remarks=tuple(redact(text) for text in remarks),
        asked_by=_asker(request),
        holds=holds,
        fingerprint=command_hmac(key, request.command)[:_FINGERPRINT] if subject.is_hidden else "",
        details=tuple(redact(text) for text in subject.details),
        saved_paths=subject.saved_paths,
        not_saved=_counted([redact(text) for text in subject.not_saved]),
        kind=subject.kind,
        resolves=tuple(run.id for run, _ in unknown),
        sensitive=sensitive_parts(assessment),
        digest=binding.digest,
        marked=_marked(request.command, shown, assessment) if subject.kind != FILE_CHANGE else (),
    )
    return Prepared(wanted, assessment, binding, ask, tuple(run.id for run, _ in unknown))


def holds_words(ttl_s: int, uses: int = 1) -> str:
    """How long an approval holds, and for how many runs."""
    minutes, seconds = divmod(ttl_s, 60)
    length = f"{ttl_s} s" if seconds else f"{minutes} min"
    return f"one run within {length}" if uses == 1 else f"{uses} runs within {length}"


def resolution(run: Execution, outcome: str, evidence: str, guard: Guard, *, expires_at: str) -> Ask:
    """What is asked of a person who is to say how an unknown run ended.

    Args:
        outcome: `done` · `not_done`, as the asker proposes.
        evidence: the asker's words.
    """
    redact = guard.redactor.text
    said = "done" if outcome == "done" else "not done"
    return Ask(
        id=run.id,
        target=run.target,
        host=os.uname().nodename,
        user=user_name(),
        cwd=redact(run.cwd),
        command=run.command,
        level=run.level,
        reasons=(f"it began {run.started_at} and nobody knows how it ended",),
        effects=_counted([redact(f"{kind} {object}".strip()) for kind, object in run.effects]),
        reversible="no",
        snapshot_plan=(),
        not_bound=(),
        must_type="",
        why=redact(evidence),
        expires_at=expires_at,
        remarks=(f"nothing is run: a yes records {run.id} as {said}; look at the machine before you say so",),
        kind=RESOLVE,
        resolves=(run.id,),
        digest=sha256(f"{run.id} {outcome}".encode()).hexdigest(),
    )


def _remarks(
    wanted: Wanted, assessment: Assessment, unknown: tuple[tuple[Execution, str], ...], guard: Guard
) -> list[str]:
    """What a person should know before answering, beside what the request itself says."""
    remarks = [
        f"{run.id} began {run.started_at} and nobody knows how it ended; both touch {shared}: look first. "
        "A yes says that you looked"
        for run, shared in unknown
    ]
    if (denial := guard.ledger.answers.denial_of(wanted.request, assessment)) is not None:
        times = f" ({denial.count} times by now)" if denial.count > 1 else ""
        remarks.append(f"you denied this at {denial.at}{times}" + (f": {denial.reason}" if denial.reason else ""))
    if wanted.request.read_before:
        remarks.append(f"proposed after reading: {wanted.request.read_before}")
    remarks += deadman.words(assessment, guard)
    if wanted.options.leave_out:
        remarks.append(f"not saved, by the asker's own wish: {', '.join(wanted.options.leave_out)}")
    return remarks


def _marked(command: str, shown: str, assessment: Assessment) -> tuple[tuple[int, int], ...]:
    """Where to look in the command as it is shown; with a secret hidden in it, spans of the real one say nothing."""
    changed = [effect.object for effect in assessment.effects if effect.kind in ("write", "delete")]
    worst = [reason.span for reason in assessment.reasons if reason.level == assessment.level]
    return marked_spans(shown, worst if shown == command else (), changed)


def _object_of(assessment: Assessment, *, redact: Callable[[str], str]) -> str:
    """What an R3 destroys, as the person has to type it: every path that it removes, else the first thing that it
    changes, else the state that it changes; the host's name when that cannot be typed as shown."""

    def may(text: str) -> bool:
        return text not in ("", "?") and typeable(text) and redact(text) == text

    removed = [effect.object for effect in assessment.effects if effect.kind == "delete"]
    together = " ".join(dict.fromkeys(removed))
    if all(map(may, removed)) and may(together):
        return together
    order = ("delete", "write")
    effects = sorted(assessment.effects, key=lambda effect: order.index(effect.kind) if effect.kind in order else 2)
    for effect in effects:
        if effect.kind not in ("read", "secret-read", "privilege") and may(effect.object):
            return effect.object
    # No effect has a name: what is saved first is what goes, as the firewall of `nft flush ruleset`.
    states = (item.object for item in assessment.snapshot_plan if item.kind in STATE_KINDS)
    return next(filter(may, states), os.uname().nodename)


def _asker(request: Request) -> str:
    through = f" through {request.shell}" if request.shell and request.actor != Actor.PERSON else ""
    return request.actor + (f" ({request.client})" if request.client else "") + through


def user_name() -> str:
    """Whom commands run as, for people."""
    uid = os.geteuid()
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _counted(texts: list[str]) -> tuple[str, ...]:
    texts = list(dict.fromkeys(texts))
    if len(texts) <= MOST_SHOWN:
        return tuple(texts)
    return (*texts[:MOST_SHOWN], f"and {len(texts) - MOST_SHOWN} more")
