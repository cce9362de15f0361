"""A guard with real hands and a state folder of the test's own, and file changes through it."""

from __future__ import annotations

import execution
from acting import edit
from guard.bound import Consent
from guard.clock import RandomIds, SystemClock
from guard.hands.liveness import ProcLiveness
from guard.hands.targets.local import LocalTarget
from guard.ledger.answers import ToApprove
from guard.ledger.store import open_ledger
from guard.redact import Redactor
from guard.types import Policy, Request

CONSENT = Consent(how="tty", rendered_sha256="0" * 64)


def guard_at(tmp_path, policy=None):
    redactor = Redactor()
    ledger = open_ledger(
        clock=SystemClock(),
        ids=RandomIds(),
        redact=redactor.text,
        liveness=ProcLiveness(),
        path=str(tmp_path / "state"),
    )
    return execution.Guard(LocalTarget(), ledger, redactor, SystemClock(), policy or Policy())


def changed(guard, work, path, content, **more):
    """What becomes of an agent's wish to have `content` in a file."""
    return execution.change_file(Request("", cwd=str(work)), path, lambda present: content, guard, **more)


def kept_one(guard):
    (kept,) = guard.ledger.pending()
    return kept


def approve(guard, work, path, content):
    """Asks for a change and lets a person say yes to it; returns the stamp."""
    request_id = changed(guard, work, path, content).ran.outcome.request_id
    kept = guard.ledger.request(request_id)
    wanted = edit.of_kept(kept.request(), guard.ledger.content(kept), guard)
    item = ToApprove(
        wanted.request, wanted.assessment, edit.binding_of(wanted, guard), kept.id, forced=wanted.assessment.level == 3
    )
    (stamp,) = guard.ledger.answers.approve([item], CONSENT)
    return stamp


def answered(guard, work, path, content, **more):
    """The outcome of a change that was asked for, approved, and asked for again."""
    approve(guard, work, path, content)
    return changed(guard, work, path, content, **more).ran.outcome


def kinds(guard):
    return [entry["kind"] for entry in guard.ledger.entries()]
