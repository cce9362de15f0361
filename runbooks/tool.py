"""`runbook`: one runbook by its name, or the ones that a question asks for, as a tool for models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capabilities.registry import JSON, BadArguments, Tool, hints_of, parameters
from capabilities.run import read_only_runner
from guard.types import Level
from runbooks.catalogue import OVERVIEW, RANKED
from runbooks.look import look, this_machine
from runbooks.report import report_json
from runbooks.wording import answer_text

if TYPE_CHECKING:
    import execution
    from capabilities.call import Call

NAME = "runbook"


def runbook_tool(guard: execution.Guard, call: Call) -> Tool:
    """`runbook{id | question}`: looks and reports; changes nothing."""

    def run(arguments: JSON) -> JSON:
        if len(arguments) != 1:
            raise BadArguments(
                "runbook takes either id or question",
                not_done="nothing was looked at",
                hint=f"id is one of {', '.join((OVERVIEW, *RANKED))}",
            )
        where = this_machine()
        report = look(
            arguments.get("question", ""),
            read_only_runner(
                guard,
                cwd="/",
                shell=call.shell,
                session=call.session,
                cancel=call.cancel,
                client=call.client,
                call_id=call.call_id,
            ),
            where,
            utc=guard.clock.utc,
            id=arguments.get("id", ""),
            brain=NAME,
            stopped=call.stopped,
        )
        return report_json(report, answer_text(report, now_s=where.now_s))

    return Tool(
        NAME,
        "Checks this machine the way an operator would and reports figures and findings, worst first, with what could "
        "not be checked. Give a runbook's `id`, or a `question` in English or Chinese.",
        parameters(
            {},
            {
                "id": {"enum": [OVERVIEW, *RANKED]},
                "question": {"type": "string", "minLength": 1, "maxLength": 4000},
            },
        ),
        hints_of(Level.R0),
        run,
        {"type": "object", "required": ["format"]},
    )
