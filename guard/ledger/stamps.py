"""Stamps: a person's approval of exactly one request, folded from the log. Touches the state folder only.

A stamp is its `approved` entry; it is consumed by the `started` entry that names it, written under the log's lock after
it was verified there once more. So of any number of processes that race for one use exactly one gets it, and a crash
leaves either no consumption or a run that reads as unknown, never a second use.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from guard.bound import (
    CHANGED,
    EXPIRED,
    LIVE,
    MAX_TTL_S,
    MAX_USES,
    MIN_TTL_S,
    MISSING,
    REVOKED,
    UNCLEAR,
    UNFORCED,
    UNSIGNED,
    USED,
    Refusal,
    Stamp,
)
from guard.errors import (
    ApprovalChanged,
    ApprovalExpired,
    ApprovalRevoked,
    ApprovalUnsigned,
    ApprovalUsed,
    NotApproved,
    UsageError,
)
from guard.ledger import index
from guard.ledger.approvals import age_s
from guard.ledger.entries import command_hmac
from guard.ledger.signed import fault_of
from guard.ledger.unbroken import broken_after
from guard.types import Level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from guard.bound import Binding
    from guard.ledger.formats import Entry
    from guard.ledger.state import StateFolder
    from guard.ports import Clock, Signatures
    from guard.types import Request

MOST_ANSWERS = 2000
"""The newest approvals that are looked at: more than people give in the 24 hours that a stamp can live."""

MOST_PARTS = 600
"""Bound parts listed in an entry, so that it fits a line; a binding has fewer (`guard.hands.binding`)."""

_ERRORS: dict[str, type[NotApproved]] = {
    EXPIRED: ApprovalExpired,
    USED: ApprovalUsed,
    REVOKED: ApprovalRevoked,
    CHANGED: ApprovalChanged,
    UNSIGNED: ApprovalUnsigned,
}


class Stamps:
    """The stamps of one state folder. Cheap to make; reads the log at each question."""

    def __init__(
        self,
        folder: StateFolder,
        *,
        clock: Clock,
        boot: str,
        redact: Callable[[str], str],
        small_log_bytes: int = index.SMALL_LOG_BYTES,
        signatures: Signatures | None = None,
    ) -> None:
        """Args: signatures: what an approval has to be signed by; None when it need not be."""
        self._folder = folder
        self._clock = clock
        self._boot = boot
        self._redact = redact
        self._small_log_bytes = small_log_bytes
        self._signatures = signatures

    def find(self, binding: Binding) -> Stamp | Refusal:
        """The live stamp that fits a request as it is now, or why there is none.

        Of several the one that ends first. What the answer says holds when it is given; `Ledger.begin` verifies again.

        Raises:
            StateError: the log cannot be read.
        """
        wanted = self._digest(binding)
        forced_only = binding.fields.get("level") == Level.R3.name
        command = str(binding.fields.get("command", ""))
        said = command_hmac(self._folder.key(), command)
        same, near = [], []
        for entry in self._approved():
            if entry.get("digest") == wanted:
                same.append(entry)
            elif entry.get("command_hmac") == said:
                near.append(entry)
        exact = self._stamps(same)
        live = [stamp for stamp in exact if stamp.state == LIVE]
        fitting = [stamp for stamp in live if stamp.forced or not forced_only]
        if fitting:
            return min(fitting, key=lambda stamp: stamp.seconds_left)
        if live:
            return Refusal(UNFORCED, "it was approved, but not with --force", live[0].id)
        doubtful = next((stamp for stamp in exact if stamp.state in (UNCLEAR, UNSIGNED)), None)
        if doubtful is not None:
            return _refusal_of(doubtful)
        for entry, stamp in zip(near, self._stamps(near), strict=True):
            if stamp.state == LIVE:
                differences = self._differences(entry, binding)
                return Refusal(CHANGED, f"changed since approval: {_some(differences)}", stamp.id, differences)
        if exact:
            return _refusal_of(exact[0])
        return Refusal(MISSING, "nobody approved it")

    def require(self, stamp_id: str, request: Request, binding: Binding) -> Stamp:
        """The stamp, if it is live and fits. Call with the log's lock held, right before its consumption is written.

        Raises:
            NotApproved: unknown, expired, used, revoked, or of something else. Nothing was consumed.
            StateError: the log cannot be read.
        """
        entry = self._entry(stamp_id)
        if entry is None:
            raise _not_approved(Refusal(MISSING, f"there is no stamp {ascii(stamp_id)[1:-1][:64]}"))
        (stamp,) = self._stamps([entry])
        if stamp.state != LIVE:
            raise _not_approved(_refusal_of(stamp))
        if binding.fields.get("command") != request.command or binding.fields.get("target") != request.target:
            raise ValueError("the binding is of another request")
        if entry.get("digest") != self._digest(binding):
            differences = self._differences(entry, binding)
            raise _not_approved(
                Refusal(CHANGED, f"changed since approval: {_some(differences)}", stamp.id, differences)
            )
        if binding.fields.get("level") == Level.R3.name and not stamp.forced:
            raise _not_approved(Refusal(UNFORCED, "it was approved, but not with --force", stamp.id))
        return stamp

    def show(self, stamp_id: str) -> Stamp | None:
        """One stamp; None when there is none with this id. Raises StateError."""
        entry = self._entry(stamp_id)
        return None if entry is None else self._stamps([entry])[0]

    def listed(self, *, every: bool = False) -> tuple[Stamp, ...]:
        """The live stamps, newest first, and those that only lack a signature; with `every`, those that are over too.

        Raises StateError.
        """
        stamps = self._stamps(list(self._approved()))
        return tuple(stamp for stamp in stamps if every or stamp.state in (LIVE, UNSIGNED))

    def uses_left(self, binding: Binding) -> int:
        """How many runs of exactly this are approved now. Raises StateError."""
        wanted = self._digest(binding)
        forced_only = binding.fields.get("level") == Level.R3.name
        same = self._stamps([entry for entry in self._approved() if entry.get("digest") == wanted])
        return sum(stamp.uses_left for stamp in same if stamp.state == LIVE and (stamp.forced or not forced_only))

    def bound_fields(self, binding: Binding) -> Entry:
        """What an `approved` entry keeps of a binding: keyed digests only, and names, so that no value is on disk."""
        parts = self._parts(binding)
        if len(parts) > MOST_PARTS:
            raise ValueError(f"a binding of {len(parts)} parts is longer than {MOST_PARTS}")
        return {
            "digest": self._digest(binding),
            "bound": [[self._redact(name), mark] for name, mark in parts],
            "not_bound": [self._redact(text) for text in binding.unbound],
            "ambient": [[name, self._redact(text)] for name, text in sorted(binding.shown.items())],
        }

    # ── from entries ─────────────────────────────────────────────────────────────────────────────────────────

    def _approved(self) -> Iterable[Mapping[str, Any]]:
        """The newest approvals, newest first."""
        found = index.recent(self._folder, ("approved",), most=MOST_ANSWERS, small_log_bytes=self._small_log_bytes)
        return (entry for entry in found if isinstance(entry.get("stamp"), str))

    def _entry(self, stamp_id: str) -> Mapping[str, Any] | None:
        about = index.about(self._folder, stamp_id, small_log_bytes=self._small_log_bytes)
        return next((entry for entry in about if entry["kind"] == "approved" and entry.get("stamp") == stamp_id), None)

    def _stamps(self, entries: Sequence[Mapping[str, Any]]) -> list[Stamp]:
        """The stamps of `approved` entries, with what became of them since."""
        ids = [str(entry["stamp"]) for entry in entries]
        about = index.about_each(self._folder, ids, small_log_bytes=self._small_log_bytes)
        stamps = [self._stamp(stamp, entry, about[stamp]) for stamp, entry in zip(ids, entries, strict=True)]
        # What used one up may be the very line that cannot be read.
        seqs = [int(entry["seq"]) for entry in entries]
        unclear = broken_after(
            self._folder, [seq for stamp, seq in zip(stamps, seqs, strict=True) if stamp.state == LIVE]
        )
        return [
            replace(stamp, state=UNCLEAR, seconds_left=0.0) if seq in unclear else self._as_signed(stamp, entry)
            for stamp, seq, entry in zip(stamps, seqs, entries, strict=True)
        ]

    def _as_signed(self, stamp: Stamp, entry: Mapping[str, Any]) -> Stamp:
        """The stamp as it counts where a signature is asked for; only a live one is looked at."""
        if self._signatures is None or stamp.state != LIVE:
            return stamp
        if fault := fault_of(entry, self._signatures):
            return replace(stamp, state=UNSIGNED, seconds_left=0.0, unsigned_because=fault)
        return replace(stamp, signer=self._signatures.signer)

    def _stamp(self, stamp_id: str, entry: Mapping[str, Any], about: Iterable[Mapping[str, Any]]) -> Stamp:
        used_by: list[str] = []
        revoked_at = ""
        for other in about:
            if other.get("stamp") != stamp_id:
                continue
            if other["kind"] == "started":
                used_by.append(str(other.get("execution")))
            elif other["kind"] == "revoked" and not revoked_at:
                revoked_at = str(other["at"])
        ttl_s, uses = _whole(entry, "ttl_s", 0, MAX_TTL_S), _whole(entry, "uses", 0, MAX_USES)
        issued_at, issued_boot_s = _text(entry, "issued_at"), entry.get("issued_boot_s")
        age = age_s(self._clock, self._boot, issued_at, _text(entry, "boot"), issued_boot_s)
        left = ttl_s - age if age >= 0 else 0.0  # a clock before the approval: nothing is known, so it is over
        if revoked_at:
            state = REVOKED
        elif len(used_by) >= uses:
            state = USED
        else:
            state = LIVE if left > 0 else EXPIRED
        return Stamp(
            id=stamp_id,
            state=state,
            request=_text(entry, "request"),
            issued_at=issued_at,
            seconds_left=max(0.0, left) if state == LIVE else 0.0,
            ttl_s=ttl_s,
            uses=uses,
            used_by=tuple(used_by),
            forced=entry.get("forced") is True,
            level=_text(entry, "level"),
            command=_text(entry, "command"),
            target=_text(entry, "target"),
            cwd=_text(entry, "cwd"),
            uid=_whole(entry, "uid", -1, 2**32),
            consent=_text(entry, "consent"),
            why=_text(entry, "why"),
            revoked_at=revoked_at,
        )

    # ── digests ──────────────────────────────────────────────────────────────────────────────────────────────

    def _digest(self, binding: Binding) -> str:
        """Keyed, so that a weak password in a command cannot be guessed from the log."""
        return hmac.new(self._folder.key(), b"stamp\0" + binding.digest.encode(), hashlib.sha256).hexdigest()

    def _parts(self, binding: Binding) -> list[tuple[str, str]]:
        key = self._folder.key()
        return [
            (name, hmac.new(key, name.encode("utf-8", "surrogatepass") + b"\0" + part, hashlib.sha256).hexdigest()[:32])
            for name, part in binding.parts.items()
        ]

    def _differences(self, entry: Mapping[str, Any], binding: Binding) -> tuple[str, ...]:
        """Names of what is bound in one and not, or otherwise, in the other."""
        bound = entry.get("bound")
        then = {(item[0], item[1]) for item in bound if _is_pair(item)} if isinstance(bound, list) else set()
        now = {(self._redact(name), mark) for name, mark in self._parts(binding)}
        order = [self._redact(name) for name, _ in self._parts(binding)]
        names = dict.fromkeys(name for name in order if any(name == one for one, _ in now ^ then))
        names.update(dict.fromkeys(name for name, _ in sorted(then - now)))
        return tuple(names) or ("the approval itself",)


def require_ttl_and_uses(ttl_s: int, uses: int) -> None:
    """Raises UsageError outside 1 s .. 24 h and 1 .. 100 uses."""
    if not MIN_TTL_S <= ttl_s <= MAX_TTL_S:
        raise UsageError(f"an approval lasts 1 s to 24 h, not {ttl_s} s", not_done="nothing was approved")
    if not 1 <= uses <= MAX_USES:
        raise UsageError(f"an approval has 1 to {MAX_USES} uses, not {uses}", not_done="nothing was approved")


def _refusal_of(stamp: Stamp) -> Refusal:
    if stamp.state == USED:
        by = stamp.used_by[-1] if stamp.used_by else "another run"
        return Refusal(USED, f"the approval was used by {by}", stamp.id)
    if stamp.state == REVOKED:
        return Refusal(REVOKED, f"the approval was revoked at {stamp.revoked_at}", stamp.id)
    if stamp.state == UNCLEAR:
        text = f"a line of the log after the approval {stamp.id} cannot be read, so whether it was used is not known"
        return Refusal(UNCLEAR, f"{text}: opsx audit verify", stamp.id)
    if stamp.state == UNSIGNED:
        return Refusal(UNSIGNED, f"the approval {stamp.id} does not count: {stamp.unsigned_because}", stamp.id)
    return Refusal(EXPIRED, f"the approval of {stamp.issued_at} has expired: it held {stamp.ttl_s} s", stamp.id)


def _not_approved(refusal: Refusal) -> NotApproved:
    error = _ERRORS.get(refusal.code, NotApproved)
    return error(refusal.text, hint="ask again: opsx exec -- CMD, then opsx approve a-…")


def _some(names: tuple[str, ...], most: int = 4) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _is_pair(item: object) -> bool:
    return isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item)


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _whole(entry: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """A number of an entry; `low` when it is none or outside, so that damage makes a stamp shorter, never longer."""
    value = entry.get(name)
    return value if type(value) is int and low <= value <= high else low
