"""`ops_approve`, `ops_revoke`, `ops_resolve`: what a person answers; a tool asks for it and never answers it itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capabilities.ops import ID, NoSuchRecord, answer_schema
from capabilities.registry import JSON, Tool, hints_of, parameters
from capabilities.shapes import stamp_object
from guard.bound import RESOLUTIONS
from guard.errors import UsageError
from guard.types import Level, Status

if TYPE_CHECKING:
    import execution
    from capabilities.call import Call


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
    """`ops_resolve`: proposes, with evidence, how an unknown run ended. A person decides."""

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
        flag = "--done" if outcome == "done" else "--not-done"
        return {"format": 1, "status": "proposed", "id": id, "next": f"for the person: opsx resolve {id} {flag}"}

    return Tool(
        "ops_resolve",
        "Proposes, with the evidence you found by reading, how a run with status `unknown` ended. It is recorded as a "
        "proposal; a person decides.",
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
