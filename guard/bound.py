"""What a person's approval holds fast: the values that `hands` resolves, the ledger keeps and every shell shows. Pure.

A binding is the request as it is on this machine now. Its digest is what a stamp is made for; the fields are kept
apart so that a difference can be named.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LIVE, USED, EXPIRED, REVOKED, UNCLEAR = "live", "used", "expired", "revoked", "unclear"
UNSIGNED = "unsigned"
"""States of a stamp. Unclear: a later line of the log cannot be read, so it may have been used. Unsigned: the
configuration asks for a signature, and it has none that holds."""

MISSING, CHANGED, UNFORCED = "missing", "changed", "unforced"
"""Further reasons why there is no stamp for a request; a refusal's code is one of these or of the states above."""

NOT_FROZEN = "NOT frozen: changes can still run"
STOPPED_UNRECORDED = "the stop holds; only its record is missing"
"""What an error on the way to a stop says was not done."""

LOOKED = "looked"
"""Resolution of an unknown run by a person who looked and approved the next one all the same."""

RESOLUTIONS = ("done", "not_done", LOOKED)

DEFAULT_TTL_S = 900
MIN_TTL_S, MAX_TTL_S = 1, 24 * 3600
MAX_USES = 100


TTY = "tty"
"""A consent given at a terminal: the only place where an approval can be signed."""


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """What the asker adds to what is saved before a change; the same options are needed to ask, approve and run."""

    files: tuple[str, ...] = ()
    """`--snapshot-file`"""
    commands: tuple[str, ...] = ()
    """`--snapshot-cmd`, `NAME::CMD`"""
    leave_out: tuple[str, ...] = ()
    """`--no-snapshot-of`"""


NO_OPTIONS = SnapshotOptions()


@dataclass(frozen=True, slots=True)
class Binding:
    """A request as it is on this machine now."""

    fields: Mapping[str, object]
    """Name in words (`command`, `folder`, `file /srv/fix.sh` …) → JSON value; what is bound is what is in here."""
    unbound: tuple[str, ...] = ()
    """What cannot be held fast, in words; part of the digest, since a new such thing is a change too."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """The ambient target for people: name → text. Not part of the digest beyond what `fields` says."""

    @property
    def digest(self) -> str:
        """SHA-256 of the fields and of what is not bound, as canonical JSON; 64 hex digits."""
        return hashlib.sha256(canonical({"fields": dict(self.fields), "unbound": list(self.unbound)})).hexdigest()

    @property
    def parts(self) -> dict[str, bytes]:
        """Each field's canonical bytes, and those of the list of what is not bound."""
        parts = {name: canonical(value) for name, value in self.fields.items()}
        return {**parts, "what is not bound": canonical(list(self.unbound))}


@dataclass(frozen=True, slots=True)
class Consent:
    """Who approved, how, and of what: the facts about the answer."""

    how: str
    """`tty` · `rpc` · `acp` · `elicitation` · `host`"""
    rendered_sha256: str
    """SHA-256 of exactly the text that was shown."""
    shell: str = "opsx"
    client: str = ""
    session: str = ""
    call_id: str = ""
    loginuid: int | None = None
    """Who logged in, by the kernel's audit id; None where it does not say."""
    tty: str = ""
    ssh: str = ""
    """SSH_CONNECTION: client address and port, server address and port."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """A person's approval of exactly one request, with an end, as the log tells it."""

    id: str
    """`t-…`"""
    state: str
    """`live` · `used` · `expired` · `revoked` · `unclear` · `unsigned`"""
    request: str
    """`a-…` that it answers, "" for one that was made beforehand."""
    issued_at: str
    seconds_left: float
    """By boot clock within the boot of its making, else by the wall clock; 0 when it is over."""
    ttl_s: int
    uses: int
    used_by: tuple[str, ...]
    """Executions that consumed it, oldest first."""
    forced: bool
    """It may turn the refusal of an R3."""
    level: str
    command: str
    """Redacted."""
    target: str
    cwd: str
    uid: int
    consent: str
    why: str
    revoked_at: str = ""
    signer: str = ""
    """Whose signature holds, where one is asked for."""
    unsigned_because: str = ""

    @property
    def uses_left(self) -> int:
        return max(0, self.uses - len(self.used_by))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no stamp fits a request now. A value: nothing is wrong with the machine."""

    code: str
    """`missing` · `changed` · `expired` · `used` · `revoked` · `unforced` · `unclear` · `unsigned`"""
    text: str
    """One sentence without a full stop."""
    stamp: str = ""
    """The stamp that comes closest, "" when there is none."""
    differences: tuple[str, ...] = ()
    """With `changed`: names of the fields that differ."""


@dataclass(frozen=True, slots=True)
class Denial:
    """A person said no to this, or to the same effect on the same object."""

    at: str
    request: str
    count: int
    """How often, since it was last approved."""
    reason: str
    """The person's words, redacted."""


def canonical(value: object) -> bytes:
    """JSON with sorted keys and without blanks: equal values, equal bytes."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


def ttl_of(text: str) -> int:
    """Seconds from `900`, `900s`, `15m` or `2h`. Raises ValueError for anything else, and outside 1 s .. 24 h."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    number = text[:-1] if unit else text
    if not (number.isascii() and number.isdigit() and len(number) <= 6):
        raise ValueError(f"{text!r} is no length of time: write 900, 90s, 15m or 2h")
    seconds = int(number) * (unit or 1)
    if not MIN_TTL_S <= seconds <= MAX_TTL_S:
        raise ValueError(f"{text!r} is outside 1 s to 24 h")
    return seconds
