"""Asks a person through the caller's own way (`Call.confirm`), and makes the stamp of a yes. The one place that does.

What is approved is what was shown: after the answer everything is judged and bound once more, and a difference is an
error. Nothing here interprets words; whoever implements `dialogue.confirm.Confirm` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from capabilities.questions import holds_words, prepared
from dialogue.confirm import APPROVED, CANCELLED, DENIED, EXPIRED, OUTCOMES, UNANSWERED, Answer
from guard.bound import LIVE, Consent
from guard.clock import utc_text
from guard.errors import ApprovalChanged, StateError

if TYPE_CHECKING:
    from capabilities.call import Call
    from capabilities.questions import Prepared
    from capabilities.subjects import Wanted
    from dialogue.confirm import Ask
    from execution import Guard
    from guard.bound import Stamp

ASK_TIMEOUT_S = 300.0
"""How long a question may stay open: after that the facts are judged anew."""

ELSEWHERE = "elsewhere"
"""Consent of an Answer that only says: look into the log, somebody answered in another shell."""
NO_WAY_TO_ASK = "this client cannot ask its user"
WIRES = ("mcp", "rpc", "acp")
"""Shells that speak to another program: a person behind it can answer, but ssh-keygen cannot ask there."""
_BECAUSE = {
    DENIED: "the person said no",
    EXPIRED: "nobody answered in time",
    CANCELLED: "the question was closed without an answer",
    UNANSWERED: "nobody answered",
}


@dataclass(frozen=True, slots=True)
class Settled:
    """How one question ended."""

    request: str
    """`a-…`"""
    outcome: str
    """One of `dialogue.confirm.OUTCOMES`."""
    was_asked: bool
    """Whether it was put to anybody; False where the caller's way cannot ask this."""
    because: str
    """Why it was not approved; "" when it was."""
    is_irreversible: bool
    """Whether it can be approved only where the person types what it destroys."""
    stamp: Stamp | None
    """Set when it was approved."""
    withdrawn: bool = False
    """The person wants something else in its place: it waits no more."""


def settle(wanted: Wanted, guard: Guard, call: Call, *, ttl_s: int) -> Settled:
    """Shows a request to a person and issues its stamp, or records their no.

    Args:
        wanted: a kept request, in its asker's environment.
        ttl_s: how long the stamp holds.
    Raises:
        NotPermitted: nobody can approve it. UsageError: it needs no approval.
        ApprovalChanged: something changed while the person read; nothing was approved.
        AnswerNeeded: the answer comes with another call.
        StateError: it could not be recorded.
    """

    def judged_now() -> Prepared:
        return prepared(
            wanted, guard, force=True, holds=holds_words(ttl_s), expires_at=later(guard.clock.utc(), ASK_TIMEOUT_S)
        )

    shown = judged_now()
    is_irreversible = bool(shown.ask.must_type)
    if why_not := no_way_to_ask(guard, call):
        return Settled(wanted.id, UNANSWERED, False, why_not, is_irreversible, None)
    answer = answered(shown.ask, call)
    if answer.consent == ELSEWHERE:
        return _settled_elsewhere(wanted.id, guard, is_irreversible)
    if answer.outcome == DENIED:
        guard.ledger.answers.deny(
            wanted.request, request_id=wanted.id, assessment=shown.assessment, reason=answer.reason
        )
    if answer.outcome == CANCELLED and answer.withdrawn:
        guard.ledger.answers.withdraw(wanted.id, reason=answer.reason)
        return Settled(wanted.id, CANCELLED, True, because_of(answer), is_irreversible, None, withdrawn=True)
    if answer.outcome != APPROVED:
        was_asked = answer.outcome != UNANSWERED or not answer.reason
        because = answer.reason if not was_asked else because_of(answer)
        return Settled(wanted.id, answer.outcome, was_asked, because, is_irreversible, None)
    now = judged_now()
    if now.binding.digest != shown.binding.digest or not set(now.unknown) <= set(shown.unknown):
        raise ApprovalChanged(
            "something changed since it was shown", not_done="nothing was approved", hint="ask for it again"
        )
    (stamp,) = guard.ledger.answers.approve([now.to_approve()], consent_of(answer, call), ttl_s=ttl_s, uses=answer.uses)
    return Settled(wanted.id, APPROVED, True, "", is_irreversible, stamp)


def no_way_to_ask(guard: Guard, call: Call) -> str:
    """Why no approval can be given through this caller, "" when one can. Nobody is asked for what cannot count."""
    if call.confirm is None:
        return NO_WAY_TO_ASK
    if (signer := guard.ledger.answers.signer) and call.shell in WIRES:
        return f"an approval here needs a signature of {signer}, which is made on a terminal"
    return ""


def elsewhere(request_id: str, guard: Guard) -> Answer | None:
    """What somebody said to a kept request in another shell while it is being asked here; None while it still waits.

    For whoever implements `Confirm` and can look while it waits. Never raises.
    """
    try:
        if guard.ledger.request(request_id) is not None:
            return None
        settled = _settled_elsewhere(request_id, guard, False)
    except StateError:
        return None
    return Answer(settled.outcome, ELSEWHERE)


def _settled_elsewhere(request_id: str, guard: Guard, is_irreversible: bool) -> Settled:
    """How the log says that a request ended; nothing is recorded again."""
    stamp = next((one for one in guard.ledger.stamps.listed() if one.request == request_id and one.state == LIVE), None)
    if stamp is not None:
        return Settled(request_id, APPROVED, True, "", is_irreversible, stamp)
    kinds = [entry.get("kind") for entry in guard.ledger.show(request_id).entries]
    outcome = DENIED if "denied" in kinds else CANCELLED
    because = _BECAUSE[DENIED] if outcome == DENIED else "the request ended elsewhere"
    return Settled(request_id, outcome, True, because, is_irreversible, None)


def because_of(answer: Answer) -> str:
    """Why there is no yes: with a no the person's words behind it, else their words alone where there are any."""
    if not answer.reason:
        return _BECAUSE[answer.outcome]
    return f"{_BECAUSE[DENIED]}: {answer.reason}" if answer.outcome == DENIED else answer.reason


def answered(ask: Ask, call: Call) -> Answer:
    """What the person says; a caller that gave up in the meantime has asked nothing."""
    assert call.confirm is not None
    answer = call.confirm.ask(ask, timeout_s=ASK_TIMEOUT_S)
    if call.stopped():
        return Answer(CANCELLED, answer.consent, answer.rendered_sha256)
    if answer.outcome not in OUTCOMES or (answer.outcome == APPROVED and not answer.consent):
        return Answer(UNANSWERED, answer.consent, answer.rendered_sha256)
    return answer


def consent_of(answer: Answer, call: Call) -> Consent:
    """The facts about an answer, for the record."""
    return Consent(
        answer.consent,
        answer.rendered_sha256,
        shell=call.shell,
        client=call.client,
        session=call.session,
        call_id=call.call_id,
    )


def later(at: str, seconds: float) -> str:
    """A moment after `at` (RFC 3339, UTC), in the same form."""
    then = datetime.strptime(at, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return utc_text(int((then.timestamp() + seconds) * 1000))
