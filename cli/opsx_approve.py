"""`opsx approve`, `deny`, `stamps`, `revoke`, `freeze`, `thaw`, `resolve`: what a person says, and takes back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import core
import execution
from capabilities.questions import holds_words, prepared
from capabilities.shapes import stamp_object
from capabilities.subjects import Wanted
from cli import plans, surroundings
from cli.ask import TerminalConfirm, facts_of_terminal
from cli.command_text import command_of
from cli.opsx_exec import snapshot_options
from cli.report import as_typed, command_row, line, safe, write
from dialogue.confirm import APPROVED, CANCELLED, DENIED, EXPIRED, UNANSWERED
from guard.bound import (
    DEFAULT_TTL_S,
    MAX_USES,
    NOT_FROZEN,
    STOPPED_UNRECORDED,
    Consent,
    SnapshotOptions,
    ttl_of,
)
from guard.errors import ApprovalChanged, NotPermitted, StateError, UsageError
from guard.filechange import is_file_change, title_of
from guard.types import LOCAL, Actor, Request, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from capabilities.questions import Prepared
    from cli.options import Parsed
    from execution import Guard
    from guard.bound import Stamp

_REQUEST_ID = re.compile(r"a-[a-z0-9-]{1,62}")

_NOT_APPROVED = {
    DENIED: "denied",
    CANCELLED: "not approved",
    EXPIRED: "not approved: the question was open for too long",
    UNANSWERED: "not approved: nobody answered",
}


def main(parsed: Parsed) -> int:
    """Dispatches to the verb."""
    verbs: dict[str, Callable[[Parsed], int]] = {
        "approve": approve,
        "deny": deny,
        "stamps": stamps,
        "revoke": revoke,
        "freeze": freeze,
        "thaw": thaw,
        "resolve": resolve,
    }
    return verbs[parsed.verb.name](parsed)


def approve(parsed: Parsed) -> int:
    """Shows everything, asks, and issues one stamp for each request. Runs nothing."""
    require_person("nothing was approved")
    ttl_s, uses = _terms(parsed)
    guard = _guard()
    wanted = _wanted(parsed, guard)
    holds = holds_words(ttl_s, uses)
    force = parsed.flag("force")
    shown = [prepared(one, guard, force=force, holds=holds) for one in wanted]
    answer = TerminalConfirm().ask_all([one.ask for one in shown])
    if answer.outcome != APPROVED:
        return _not_approved(answer.outcome, shown, guard, as_json=parsed.flag("json"))
    # The person may have taken a while: what is approved is what was shown, or nothing.
    now = [prepared(one, guard, force=force, holds=holds) for one in wanted]
    for before, after in zip(shown, now, strict=True):
        if before.binding.digest != after.binding.digest or not set(after.unknown) <= set(before.unknown):
            raise ApprovalChanged(
                f"something changed while it was shown: {_first_change(before, after)}",
                not_done="nothing was approved",
                hint="ask again",
            )
    consent = Consent(answer.consent, answer.rendered_sha256, **facts_of_terminal())  # type: ignore[arg-type]
    answers = guard.ledger.answers
    if answers.signer and not parsed.flag("json"):
        write(f"opsx: now sign it as {safe(answers.signer)}\n", to_stderr=True)
    issued = answers.approve([one.to_approve() for one in now], consent, ttl_s=ttl_s, uses=uses)
    if parsed.flag("json"):
        line({"format": 1, "outcome": APPROVED, "stamps": [stamp_object(stamp) for stamp in issued]})
        return 0
    for stamp in issued:
        write(f"{stamp.id}\n")
    ids = " ".join(stamp.id for stamp in issued)
    write(f"opsx: approved: {holds}; {as_typed(f'opsx revoke {ids}')} takes it back\n", to_stderr=True)
    if not parsed.value("plan"):
        again = "the same again runs it" if len(issued) == 1 else "the same again runs each"
        by = "opsx write or edit" if all(is_file_change(one.request) for one in wanted) else "opsx exec"
        write(f"opsx: nothing ran yet: {again} ({by}, or whoever asked)\n", to_stderr=True)
    return 0


def deny(parsed: Parsed) -> int:
    """A person's no to waiting requests; remembered when the same is asked again."""
    require_person("nothing was denied")
    if not parsed.words:
        raise UsageError("name a request", hint="opsx pending lists them; opsx deny a-…")
    guard = _guard()
    kept = [_kept(word, guard, "nothing was denied") for word in parsed.words]
    for one in kept:
        guard.ledger.answers.deny(one.request(), request_id=one.id, reason=parsed.value("reason"))
    if parsed.flag("json"):
        line({"format": 1, "outcome": DENIED, "requests": [one.id for one in kept]})
    else:
        write("".join(f"{one.id} denied\n" for one in kept))
    return 0


def stamps(parsed: Parsed) -> int:
    """The approvals that are live; with --all also those that are over."""
    _no_words(parsed)
    found = _guard().ledger.stamps.listed(every=parsed.flag("all"))
    if parsed.flag("json"):
        line({"format": 1, "stamps": [stamp_object(stamp) for stamp in found]})
        return 0
    write("".join(stamp_row(stamp) + "\n" for stamp in found))
    if not found:
        write("no approval is live\n" if not parsed.flag("all") else "nothing was approved yet\n", to_stderr=True)
    return 0


def revoke(parsed: Parsed) -> int:
    """Takes approvals back. Anybody may: it only takes away."""
    if not parsed.words:
        raise UsageError("name a stamp", hint="opsx stamps lists them; opsx revoke t-…")
    answers = _guard().ledger.answers
    taken = [answers.revoke(word, actor=surroundings.actor()) for word in parsed.words]
    if parsed.flag("json"):
        line({"format": 1, "stamps": [stamp_object(stamp) for stamp in taken]})
    else:
        write("".join(f"{stamp.id} revoked\n" for stamp in taken))
    return 0


def freeze(parsed: Parsed) -> int:
    """Stops everything above R0 in every shell at once. Anybody may. Words are the reason: who stops is in a hurry."""
    reason = " ".join(text for text in (parsed.value("reason"), *parsed.words) if text)
    try:
        note = _guard().ledger.answers.freeze(reason, actor=surroundings.actor())
    except StateError as error:
        if error.not_done not in (NOT_FROZEN, STOPPED_UNRECORDED):
            error.not_done = NOT_FROZEN  # not even the place for the note could be opened
        raise
    if parsed.flag("json"):
        line({"format": 1, "frozen": note})
    else:
        write(f"everything above R0 is stopped: {safe(note)}\n")
        write("opsx: runs that have begun go on; to end the stop: opsx thaw\n", to_stderr=True)
    return 0


def thaw(parsed: Parsed) -> int:
    """Ends the stop. Only a person may."""
    _no_words(parsed)
    require_person("the stop holds")
    was_frozen = _guard().ledger.answers.thaw()
    if parsed.flag("json"):
        line({"format": 1, "frozen": "", "was_frozen": was_frozen})
    else:
        write("changes may run again, each with its approval\n" if was_frozen else "nothing was stopped\n")
    return 0


def resolve(parsed: Parsed) -> int:
    """Records how a run ended whose end is not on record. Only a person may say so."""
    done, not_done = parsed.flag("done"), parsed.flag("not-done")
    if len(parsed.words) != 1 or done == not_done:
        raise UsageError("name one execution and how it ended", hint="opsx resolve e-… --done | --not-done")
    require_person("nothing was recorded")
    outcome = "done" if done else "not_done"
    _guard().ledger.answers.resolve(parsed.words[0], outcome, evidence=parsed.value("evidence"))
    if parsed.flag("json"):
        line({"format": 1, "execution": parsed.words[0], "outcome": outcome})
    else:
        write(f"{parsed.words[0]} is recorded as {'done' if done else 'not done'}\n")
    return 0


def require_person(not_done: str) -> None:
    """Raises NotPermitted unless a person is at the terminal. No option changes that."""
    if surroundings.actor() != Actor.PERSON:
        raise NotPermitted(
            "only a person at a terminal may do this, and an agent's command is none",
            not_done=not_done,
            hint="run it yourself, in a terminal of your own",
        )


# ── what is wanted ───────────────────────────────────────────────────────────────────────────────────────────────


def _wanted(parsed: Parsed, guard: Guard) -> list[Wanted]:
    """Kept requests by id, a plan file, or a command of this folder."""
    options = snapshot_options(parsed)
    if parsed.value("plan"):
        if parsed.words or parsed.value("file"):
            raise UsageError("--plan names all of it; leave the rest out", hint=parsed.help_line())
        return _plan(parsed, guard, options)
    if not parsed.words and not parsed.value("file"):
        raise _nothing_named(guard)
    ids = [word for word in parsed.words if _REQUEST_ID.fullmatch(word)]
    if ids and not parsed.ended and not parsed.value("file"):
        if len(ids) != len(parsed.words) or options != SnapshotOptions():
            raise UsageError("ids of requests stand alone: what they ask for is on record", hint=parsed.help_line())
        return [Wanted.of_kept(_kept(one, guard, "nothing was approved")) for one in dict.fromkeys(ids)]
    request = _request(command_of(parsed), surroundings.cwd(parsed.value("cwd")), parsed.value("why"), parsed)
    return [Wanted(request, options)]


def _nothing_named(guard: Guard) -> UsageError:
    """The hint names what waits, the newest first."""
    waiting = [kept.id for kept in reversed(guard.ledger.pending())]
    if not waiting:
        return UsageError(
            "no request and no command was named", not_done="nothing was approved", hint="opsx approve -- CMD"
        )
    more = f" · {len(waiting) - 3} more: opsx pending" if len(waiting) > 3 else ""
    waiting_words = " · ".join(f"opsx approve {id}" for id in waiting[:3])
    return UsageError("no request was named", not_done="nothing was approved", hint=f"{waiting_words}{more}")


def _request(command: str, cwd: str, why: str, parsed: Parsed) -> Request:
    return Request(command, target=parsed.value("target", LOCAL), cwd=cwd, actor=Actor.PERSON, why=why)


def _kept(request_id: str, guard: Guard, not_done: str) -> Any:
    kept = guard.ledger.request(request_id) if _REQUEST_ID.fullmatch(request_id) else None
    if kept is None:
        raise UsageError(
            f"{safe(request_id)[:80]} does not wait: there is no such request, it was answered, or its day is over",
            not_done=not_done,
            hint="opsx pending",
        )
    return kept


def _plan(parsed: Parsed, guard: Guard, options: SnapshotOptions) -> list[Wanted]:
    """The steps of a plan that need a yes; the others are named, since they run as they are."""
    not_done = "nothing was approved"
    steps = plans.read(
        parsed.value("plan"), cwd=surroundings.cwd(parsed.value("cwd")), why=parsed.value("why"), not_done=not_done
    )
    wanted = []
    for step in steps:
        request = _request(step.command, step.cwd, step.why, parsed)
        core.require_command(request.command)
        execution.require_cwd(request.cwd)
        if execution.assess(request, guard).decision.verdict == Verdict.RUN:
            shown = safe(guard.redactor.text(step.command))[:200]
            write(f"opsx: line {step.line} needs no approval: {shown}\n", to_stderr=True)
        else:
            wanted.append(Wanted(request, options))
    if not wanted:
        raise UsageError("no step of the plan needs an approval", not_done=not_done, hint="opsx exec --plan FILE")
    return wanted


def _terms(parsed: Parsed) -> tuple[int, int]:
    ttl_s = DEFAULT_TTL_S
    if parsed.value("ttl"):
        try:
            ttl_s = ttl_of(parsed.value("ttl"))
        except ValueError as error:
            raise UsageError(str(error), not_done="nothing was approved") from None
    return ttl_s, parsed.whole_number("uses", 1, low=1, high=MAX_USES)


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _first_change(before: Prepared, after: Prepared) -> str:
    old, new = before.binding.parts, after.binding.parts
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return safe(changed[0]) if changed else "another run has no end on record"


def _not_approved(outcome: str, shown: list[Prepared], guard: Guard, *, as_json: bool) -> int:
    """Only a typed `no` is a denial; anything else leaves the requests waiting."""
    if outcome == DENIED:
        for one in shown:
            guard.ledger.answers.deny(one.wanted.request, request_id=one.wanted.id, assessment=one.assessment)
    waiting = [one.wanted.id for one in shown if one.wanted.id and outcome != DENIED]
    if as_json:
        line({"format": 1, "outcome": outcome, "stamps": [], "waiting": waiting})
    else:
        write(f"opsx: {_NOT_APPROVED[outcome]}; nothing will run\n", to_stderr=True)
        if waiting:
            write(f"opsx: still waiting: {' '.join(waiting)} (opsx deny ID says no)\n", to_stderr=True)
    return 4 if outcome == DENIED else 3


def stamp_row(stamp: Stamp) -> str:
    """One approval in one line."""
    left = f"{int(stamp.seconds_left)} s left" if stamp.state == "live" else stamp.state
    uses = f"{len(stamp.used_by)}/{stamp.uses}"
    signed = f"  [{safe(stamp.unsigned_because)}]" if stamp.unsigned_because else ""
    # An approval does not say what kind it is; no command is a file change's canonical text but by intent.
    before = f"{stamp.id:14} {stamp.issued_at[:19]}Z  {stamp.level} {left:12} {uses:5} "
    return command_row(before, title_of(stamp.command), 80) + signed


def _guard() -> Guard:
    return execution.open_guard(surroundings.policy(), outputs_folder=surroundings.outputs_folder())


def _no_words(parsed: Parsed) -> None:
    if parsed.words:
        raise UsageError(f"opsx {parsed.verb.name} takes no {repr(parsed.words[0])[:60]}", hint=parsed.help_line())
