"""`ops_approve`, `ops_revoke`, `ops_resolve`: what a person answers; a tool asks for it and never answers it itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import core
import execution
from capabilities.asking import ASK_TIMEOUT_S, answered, consent_of, later, settle
from capabilities.ops import COMMAND, ID, NoSuchRecord, answer_schema
from capabilities.questions import resolution
from capabilities.registry import JSON, BadArguments, Tool, hints_of, parameters
from capabilities.shapes import stamp_object
from capabilities.subjects import Wanted, require_approvable
from dialogue.confirm import APPROVED, DENIED
from guard.bound import DEFAULT_TTL_S, MIN_TTL_S, RESOLUTIONS
from guard.errors import NotPermitted, UsageError
from guard.filechange import is_file_change
from guard.types import Level, Status

if TYPE_CHECKING:
    from capabilities.asking import Settled
    from capabilities.call import Call


def approve_tool(guard: execution.Guard, call: Call, *, host_counts: bool = False) -> Tool:
    """`ops_approve`: asks the person in the caller's own way where there is one, else says where they answer.

    Args:
        host_counts: the host's own prompt on this call may be the answer (`capabilities.consent.HostConfirm`).
    """

    def run(arguments: JSON) -> JSON:
        wanted = _wanted(guard, call, arguments)
        again = "the same call again" if is_file_change(wanted.request) else "ops_exec with exactly this command"
        settled = settle(wanted, guard, call, ttl_s=int(arguments.get("ttl_s", DEFAULT_TTL_S)))
        if settled.stamp is None:
            return not_approved(settled)
        return {
            "format": 1,
            "status": APPROVED,
            "request": wanted.id,
            "stamp": stamp_object(settled.stamp),
            "next": again,
        }

    return Tool(
        "ops_approve",
        _HOST_COUNTS if host_counts else _ASKS,
        parameters(
            {},
            {
                "request": ID,
                "command": COMMAND,
                "ttl_s": {"type": "integer", "minimum": MIN_TTL_S, "maximum": DEFAULT_TTL_S},
                "force": {"type": "boolean", "description": "no effect: for R3 the person types what it destroys"},
                "why": {"type": "string", "maxLength": 2000},
            },
        ),
        # Where the host's prompt is the approval, the host has to prompt; elsewhere nothing here runs anything.
        hints_of(Level.R3 if host_counts else Level.R1),
        run,
        answer_schema("status"),
    )


_ASKS = (
    "Asks the person to approve a request (a-…) or a command. Only their own answer counts; what you pass is shown "
    "to them and approves nothing. Where they cannot be asked here, `next` is the line for them."
)
_HOST_COUNTS = (
    "Approves a command if the person allows this very call; pass `command` exactly (and `request` if you have it), "
    "so that they see it. Some commands are never approved this way: then `next` is the line for the person."
)


def not_approved(settled: Settled) -> JSON:
    """The answer when there is no yes: what the person said, or where they can say it."""
    if settled.outcome == DENIED:
        return {"format": 1, "status": DENIED, "request": settled.request, "next": f"{settled.because}: leave it"}
    if settled.withdrawn:
        ended = {"format": 1, "status": settled.outcome, "request": settled.request, "because": settled.because}
        return {**ended, "next": None}
    return {
        "format": 1,
        "status": settled.outcome if settled.was_asked else Status.NEEDS_STAMP,
        "request": settled.request,
        "because": settled.because,
        "next": f"opsx approve {settled.request}" + (" --force" if settled.is_irreversible else ""),
    }


def _wanted(guard: execution.Guard, call: Call, arguments: JSON) -> Wanted:
    """The kept request that is meant; a command is kept first, so that it can be answered anywhere."""
    command = arguments.get("command")
    if "request" in arguments:
        kept = guard.ledger.request(arguments["request"])
        if kept is None:
            raise NoSuchRecord(
                f"{arguments['request']} does not wait", not_done="nothing was asked", hint="ops_list shows requests"
            )
        # A host that was started anew comes with a new session; it is the same program in the same folder.
        if kept.session != call.session and (kept.shell, kept.client, kept.cwd) != (call.shell, call.client, call.cwd):
            raise NotPermitted(
                f"{kept.id} was asked by another client",
                not_done="nothing was asked",
                hint=f"the person answers it with: opsx approve {kept.id}",
            )
        if command not in (None, kept.command):
            raise BadArguments(
                f"{kept.id} is for another command", not_done="nothing was asked", hint="pass one of the two"
            )
        return Wanted.of_kept(kept)
    if command is None:
        raise BadArguments(
            "ops_approve takes a request or a command", not_done="nothing was asked", hint="ops_list shows requests"
        )
    from acting import approving

    request = call.request(command, why=arguments.get("why", ""))
    core.require_command(request.command)
    execution.require_cwd(request.cwd)
    assessment = execution.assess(request, guard)
    require_approvable(assessment, force=True)
    environment = approving.environment_to_keep(assessment, guard)
    kept = guard.ledger.request(guard.ledger.keep_request(request, assessment, environment=environment))
    if kept is None:
        raise NoSuchRecord("the request is gone already", not_done="nothing was asked", hint="ask again")
    return Wanted.of_kept(kept)


def revoke_tool(guard: execution.Guard, call: Call) -> Tool:
    """`ops_revoke`: takes an approval back. Anybody may: it only takes away."""

    def run(arguments: JSON) -> JSON:
        stamp = guard.ledger.answers.revoke(arguments["stamp"], actor=call.actor)
        return {"format": 1, "status": stamp.state, "stamp": stamp_object(stamp)}

    return Tool(
        "ops_revoke",
        "Takes an approval (t-…) back, so that it can no longer be used. Nothing that ran is undone.",
        parameters({"stamp": ID}),
        hints_of(Level.R1),
        run,
        answer_schema("status"),
    )


def resolve_tool(guard: execution.Guard, call: Call) -> Tool:
    """`ops_resolve`: proposes, with evidence, how an unknown run ended. A person decides, here if they can be asked."""

    def run(arguments: JSON) -> JSON:
        id, outcome = arguments["id"], arguments["outcome"]
        found = guard.ledger.show(id).execution
        if found is None:
            raise NoSuchRecord(
                f"there is no execution {id}", not_done="nothing was proposed", hint="ops_executions lists runs"
            )
        if found.status != Status.UNKNOWN or found.resolution:
            raise UsageError(
                f"{id} is {found.resolution or found.status}: there is nothing to resolve",
                not_done="nothing was proposed",
                hint='ops_executions{"status": "unknown"}',
            )
        text = f"proposed for {id}: {outcome}; evidence: {arguments['evidence']}"
        guard.ledger.record(
            "notice",
            execution=id,
            text=text,
            actor=call.actor,
            shell=call.shell,
            client=call.client,
            session=call.session,
        )
        answer = None
        if call.confirm is not None:
            expires_at = later(guard.clock.utc(), ASK_TIMEOUT_S)
            ask = resolution(found, outcome, arguments["evidence"], guard, expires_at=expires_at)
            answer = answered(ask, call)
        if answer is not None and answer.outcome == APPROVED:
            evidence = f"{arguments['evidence']} (proposed by {call.actor}, confirmed by the person)"
            guard.ledger.answers.resolve(id, outcome, evidence=evidence, consent=consent_of(answer, call))
            return {"format": 1, "status": "resolved", "id": id, "outcome": outcome, "next": None}
        if answer is not None and answer.outcome == DENIED:
            return {"format": 1, "status": DENIED, "id": id, "next": "the person does not think so: look again"}
        flag = "--done" if outcome == "done" else "--not-done"
        return {"format": 1, "status": "proposed", "id": id, "next": f"for the person: opsx resolve {id} {flag}"}

    return Tool(
        "ops_resolve",
        "Proposes, with evidence you found by reading, how a run with status `unknown` ended. A person decides.",
        parameters(
            {
                "id": ID,
                "outcome": {"enum": [one for one in RESOLUTIONS if one != "looked"]},
                "evidence": {"type": "string", "minLength": 10, "maxLength": 4000},
            }
        ),
        hints_of(Level.R1),
        run,
        answer_schema("status"),
    )
