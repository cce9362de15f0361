"""The port through which a person is asked. Silence, a closed pipe, a late or malformed answer all mean no.

Whoever implements it shows *all* of an `Ask` (guard.render for everything that is not ours) and returns an
`Answer`; whoever calls it never interprets words.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Protocol

APPROVED = "approved"
DENIED = "denied"
EXPIRED = "expired"
CANCELLED = "cancelled"
UNANSWERED = "unanswered"
OUTCOMES = (APPROVED, DENIED, EXPIRED, CANCELLED, UNANSWERED)
ANSWERED = "answered"
"""Settles a question that clarifies (`AskOpened.kind` is `question`); no approval, like all but APPROVED."""

COMMAND, FILE_CHANGE, ROLLBACK, RESOLVE = "command", "file-change", "rollback", "resolve"
"""What is asked for: to run a command, to change one file, to take a change back, to settle how an unknown run ended;
nothing runs then. Of a file change `Ask.command` is the change in words, with its whole difference."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request for approval, complete: what is not in here was not approved."""

    id: str
    """`a-…`"""
    target: str
    host: str
    """The real host name of the target."""
    user: str
    cwd: str
    command: str
    level: str
    reasons: tuple[str, ...]
    effects: tuple[str, ...]
    reversible: str
    """`yes` · `partial` · `no`"""
    snapshot_plan: tuple[str, ...]
    not_bound: tuple[str, ...]
    """What the stamp cannot hold fast: include trees, URLs …"""
    must_type: str
    """For R3 the object that has to be typed as shown; "" otherwise."""
    why: str
    """The asker's words. Shown apart, after the facts."""
    expires_at: str
    """RFC 3339: from then on an answer no longer counts; "" where whoever asks keeps the time."""
    ambient: tuple[str, ...] = ()
    """What its client programs point at: `kubernetes context prod` …"""
    remarks: tuple[str, ...] = ()
    """What a person has to know beside it: an earlier denial, a run whose end is not known."""
    asked_by: str = ""
    """Who asks, through what."""
    holds: str = ""
    """How long the approval holds, and for how many runs."""
    fingerprint: str = ""
    """Set when secrets in `command` are not shown: names the exact bytes, so that no two commands look alike."""
    details: tuple[str, ...] = ()
    """What a rollback does, path by path."""
    saved_paths: int = 0
    """How many paths are saved first, all that is in folders included; 0 when it was not counted."""
    not_saved: tuple[str, ...] = ()
    """What it may change and has no way back: states of services, contents of secrets."""
    kind: str = COMMAND
    """`command` · `file-change` · `rollback` · `resolve`"""
    resolves: tuple[str, ...] = ()
    """Runs whose end is not on record (`e-…`), and of which a yes says that the person looked."""
    sensitive: tuple[str, ...] = ()
    """What in it must not be waved through, in words: not understood, credentials, other machines, rights."""
    digest: str = ""
    """SHA-256 of what is bound, not shown: two asks with the same words are for the same only if this is equal."""
    also: tuple[Ask, ...] = ()
    """Further requests in this order, for which the same answer counts: a plan. Whoever shows one shows all."""
    marked: tuple[tuple[int, int], ...] = ()
    """Spans of characters of `command`, in order: what gives it its level. A long text shows them first."""


def ask_of(asked: dict[str, Any]) -> Ask:
    """The ask in an `AskOpened` event: known fields only, lists as tuples, what is missing as empty."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Ask):
        value = asked.get(field.name, field.default if field.default is not dataclasses.MISSING else "")
        if field.name == "also":
            value = tuple(ask_of(one) for one in value if isinstance(one, dict))
        elif isinstance(value, list | tuple):
            value = tuple(tuple(one) if isinstance(one, list | tuple) else one for one in value)
        values[field.name] = value
    return Ask(**values)


@dataclass(frozen=True, slots=True)
class Answer:
    """How an ask was settled, and how we know."""

    outcome: str
    """One of OUTCOMES; anything but APPROVED is no."""
    consent: str = ""
    """How the person answered: `tty`, `rpc`, `acp`, `elicitation`, `host`."""
    rendered_sha256: str = ""
    """Hash of what was shown."""
    reason: str = ""
    """The person's words: with a denial, or as the answer to a question. With `unanswered`: why nobody was asked."""
    uses: int = 1
    """How many runs of exactly this request a yes is for."""
    withdrawn: bool = False
    """With `cancelled`: the person wants something else in its place, so the request waits no more. No denial."""


class Confirm(Protocol):
    """Asks a person to approve."""

    def ask(self, ask: Ask, *, timeout_s: float) -> Answer:
        """Shows the whole ask and waits. Never raises for a person who is not there: `UNANSWERED`."""
        ...


class NobodyThere:
    """A shell without a terminal and without a client: approval is not possible."""

    def ask(self, ask: Ask, *, timeout_s: float) -> Answer:
        """Answers `UNANSWERED` at once."""
        return Answer(UNANSWERED, reason="nobody can be asked here")
