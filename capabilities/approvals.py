"""`ops_approve`, `ops_revoke`, `ops_resolve`: what a person answers; a tool asks for it and never answers it itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import core
import execution
from capabilities import consent
from capabilities.ops import COMMAND, ID, NoSuchRecord, answer_schema
from capabilities.registry import JSON, BadArguments, Tool, hints_of, parameters
from capabilities.rollback_shapes import foreseen_words
from capabilities.shapes import stamp_object
from dialogue.confirm import APPROVED, DENIED, Ask
from guard.bound import DEFAULT_TTL_S, MIN_TTL_S, NO_OPTIONS, RESOLUTIONS, Consent
from guard.errors import ApprovalChanged, NotPermitted, UsageError
from guard.types import Level, Status, Verdict

if TYPE_CHECKING:
    from capabilities.call import Call
    from guard.bound import Binding, SnapshotOptions
    from guard.types import Assessment, Request


class _Question:
    """One request, judged and bound as it is now."""

    def __init__(self, guard: execution.Guard, request: Request, id: str, options: SnapshotOptions) -> None:
        from acting import approving, rollback

        self.request = request
        self.id = id
        self.assessment: Assessment = execution.assess(request, guard)
        decision = self.assessment.decision
        if decision.verdict == Verdict.RUN:
            raise UsageError("this needs no approval", not_done="nothing was asked", hint="ops_exec runs it")
        if decision.verdict == Verdict.REFUSE and not decision.forceable:
            raise NotPermitted(decision.text, not_done="nothing was asked")
        self.plan = approving.plan_of(request, self.assessment, options)
        self.foreseen = rollback.foreseen(self.plan, guard)
        self.binding: Binding = approving.bind(request, self.assessment, guard, options)

    def ask(self) -> Ask:
        """Everything that is asked for."""
        assessment, request = self.assessment, self.request
        ambient = tuple(f"points at {name} {text}" for name, text in sorted(self.binding.shown.items()))
        effects = tuple(f"{effect.kind} {effect.object}".strip() for effect in assessment.effects)
        saved, not_saved = foreseen_words(self.foreseen)
        return Ask(
            id=self.id,
            target=request.target,
            host=os.uname().nodename,
            user=consent.user_name(),
            cwd=request.cwd,
            command=request.command,
            level=assessment.level.name,
            reasons=tuple(reason.text for reason in assessment.reasons),
            effects=(*ambient, *effects),
            reversible=assessment.reversible,
            snapshot_plan=saved,
            not_bound=self.binding.unbound,
            must_type="",
            why=request.why,
            expires_at="",
            saved_paths=self.foreseen.paths,
            not_saved=not_saved,
        )


def approve_tool(guard: execution.Guard, call: Call) -> Tool:
    """`ops_approve`: asks the person through the host's own form where that is possible, else says where to answer."""

    def run(arguments: JSON) -> JSON:
        question, options = _question(guard, call, arguments)
        ttl_s = int(arguments.get("ttl_s", DEFAULT_TTL_S))
        code = consent.new_code() if question.assessment.level > Level.R1 else ""
        text = consent.words(question.ask(), code, ttl_s=ttl_s, before=_denied(guard, question))
        kept_away = consent.askable(question.assessment.level, text)
        if guard.ledger.answers.unresolved(question.request, question.assessment):
            kept_away = "a run that touches the same things has no end on record; a person looks at it first"
        if kept_away or call.asker is None:
            return _elsewhere(question, kept_away or "this client cannot ask its user")
        state: JSON = {
            "code": code,
            "sha256": consent.sha256_of(text),
            "digest": question.binding.digest,
            "ttl_s": ttl_s,
        }
        response, state = call.asker(f"approve {question.id}", text, consent.form(code), state)
        answer = consent.answer_of(response, state["sha256"], state["code"])
        if answer.outcome == DENIED:
            guard.ledger.answers.deny(question.request, request_id=question.id, assessment=question.assessment)
            return {"format": 1, "status": DENIED, "request": question.id, "next": "the person said no: leave it"}
        if answer.outcome != APPROVED:
            return {**_elsewhere(question, "nobody answered"), "status": answer.outcome}
        # The person may have taken a while: what is approved is what was shown, or nothing.
        now = _Question(guard, question.request, question.id, options)
        if now.binding.digest != state["digest"]:
            raise ApprovalChanged(
                "something changed since it was shown", not_done="nothing was approved", hint="ops_approve asks again"
            )
        from guard.ledger.answers import ToApprove

        (stamp,) = guard.ledger.answers.approve(
            [ToApprove(now.request, now.assessment, now.binding, question.id)],
            Consent(
                consent.CONSENT,
                state["sha256"],
                shell=call.shell,
                client=call.client,
                session=call.session,
                call_id=call.call_id,
            ),
            ttl_s=state["ttl_s"],
        )
        return {
            "format": 1,
            "status": APPROVED,
            "request": question.id,
            "stamp": stamp_object(stamp),
            "next": "ops_exec with exactly this command",
        }

    return Tool(
        "ops_approve",
        "Asks the person to approve a request (a-…) or a command. Only their own answer counts; what you pass is shown "
        "to them and approves nothing. Where they cannot be asked here, `next` is the line for them.",
        parameters(
            {},
            {
                "request": ID,
                "command": COMMAND,
                "ttl_s": {"type": "integer", "minimum": MIN_TTL_S, "maximum": DEFAULT_TTL_S},
                "force": {"type": "boolean", "description": "no effect: R3 is approved on a terminal"},
                "why": {"type": "string", "maxLength": 2000},
            },
        ),
        hints_of(Level.R3),
        run,
        answer_schema("status"),
    )


def _question(guard: execution.Guard, call: Call, arguments: JSON) -> tuple[_Question, SnapshotOptions]:
    if ("request" in arguments) == ("command" in arguments):
        raise BadArguments(
            "ops_approve takes either request or command", not_done="nothing was asked", hint="ops_list shows requests"
        )
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
        return _Question(guard, kept.request(), kept.id, kept.options), kept.options
    request = call.request(arguments["command"], why=arguments.get("why", ""))
    core.require_command(request.command)
    execution.require_cwd(request.cwd)
    question = _Question(guard, request, "", NO_OPTIONS)
    from acting import approving

    environment = approving.environment_to_keep(question.assessment, guard)
    question.id = guard.ledger.keep_request(request, question.assessment, NO_OPTIONS, environment)
    return question, NO_OPTIONS


def _elsewhere(question: _Question, because: str) -> JSON:
    force = " --force" if question.assessment.level == Level.R3 else ""
    return {
        "format": 1,
        "status": Status.NEEDS_STAMP,
        "request": question.id,
        "because": because,
        "next": f"opsx approve {question.id}{force}",
    }


def _denied(guard: execution.Guard, question: _Question) -> tuple[str, ...]:
    denial = guard.ledger.answers.denial_of(question.request, question.assessment)
    if denial is None:
        return ()
    reason = f": {denial.reason}" if denial.reason else ""
    return (f"you denied this at {denial.at}{reason}",)


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
