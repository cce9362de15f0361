"""The tools of one conversation: which there are, and each call run in a thread of its own.

A tool's answer is an object of `capabilities`; here it becomes what the model reads (`agent.results`), what shells show
and what it means for the end of the turn. Bad arguments and broken tools are answers too: a model reads them and goes
on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from typing import TYPE_CHECKING, Any

import core
import execution
from agent.messages import Result, ToolCall
from agent.results import MOST_CHARACTERS, result_text
from agent.tools.ask_user import NAME as ASK_USER
from agent.tools.ask_user import ask_user_tool
from agent.using import MAY_HAVE_RUN, Used
from capabilities import approvals, edits, files, ops, probe, snapshots
from capabilities.bounded import json_text
from capabilities.call import Call
from capabilities.jobs import Cancelled, Jobs
from capabilities.ops import NoSuchRecord
from capabilities.plans import plan_tool
from capabilities.registry import BadArguments, Registry, UnknownTool, checked
from capabilities.run import bash_tool
from dialogue import events
from dialogue.confirm import APPROVED, DENIED, EXPIRED, UNANSWERED
from guard.errors import BadCommand, GuardError, NotPermitted, StateError, TooManyAsks, UnknownTarget
from guard.types import Status
from runbooks import tool as runbook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent.asking import Asks
    from capabilities.jobs import Job
    from capabilities.registry import JSON, Tool
    from dialogue.events import Event

CHANGES = {"ops_exec": "command", "ops_plan": "steps", "write": "path", "edit": "path", "ops_rollback": "id"}
"""Tools that change a machine, and the argument that says what."""
WANTED = {**CHANGES, "bash": "command", "read": "path"}
"""These, and reads that can need an approval."""
BEGINS = frozenset(("bash", "ops_exec", "ops_plan", "read", "write", "edit"))
"""Tools whose work begins with an execution; the others have begun when they are called."""
OUR_WORDS = frozenset(("ops_check", "ops_approve", "ops_resolve", ASK_USER))
"""Tools whose answers are opsagent's own words, or the person's. All others may hold what others wrote: output, files,
names of files, commands of other clients."""
JUDGED = frozenset(("ops_check", "ops_exec", "bash"))
"""Tools that answer with a judgement of their `command`: it can name what links lead to and patterns meet."""
_OUR_ERRORS = (BadArguments, UnknownTool, NoSuchRecord, BadCommand, UnknownTarget, NotPermitted, TooManyAsks)
"""Errors that say nothing but what the call itself said. The others may quote files and their names."""
MOST_RECALLED = 1000
"""Runs of the log that are looked through for outputs of an earlier process."""
TIME_LIMIT_S = 8.0
"""How long the end of a conversation waits until what was stopped is on record."""

PLANNED = "planned"
"""Status of a rollback that was only looked at: nothing was wanted yet."""

_UNMET = {
    Status.NEEDS_STAMP: 3,
    UNANSWERED: 3,
    EXPIRED: 3,
    Status.REFUSED: 4,
    DENIED: 4,
    Status.SNAPSHOT_FAILED: 5,
    Status.UNKNOWN: 6,
    APPROVED: 1,  # until it is carried out: a yes alone has changed nothing
}
"""Statuses of what did not come about, and what a turn ends with if nothing better follows."""


class Toolset:
    """`agent.using.Hands` over `capabilities`."""

    def __init__(
        self,
        guard: execution.Guard,
        *,
        cwd: str,
        shell: str,
        session: str,
        client: str = "",
        asks: Asks | None = None,
        plans: bool = False,
        resumed: bool = False,
        read_before: Callable[[], str] = str,
    ) -> None:
        """
        Args:
            cwd: absolute; where commands run.
            asks: how the person of this conversation is asked; None where nobody can be.
            plans: whether they are shown all requests of an ask that holds several.
            resumed: the session has run commands before, in another process.
            read_before: what of others' words it has read; "" for nothing.
        """
        self._guard = guard
        self._asks = asks
        self._plans = plans and asks is not None
        self._base = Call(cwd, shell, client=client, session=session, confirm=asks)
        self._jobs = Jobs()
        self._to_recall = resumed
        self._read_before = read_before
        self._requests: dict[str, str] = {}
        self._said_no: dict[str, int] = {}
        self.tools: tuple[Tool, ...] = tuple(self._made(self._base))
        self._known = Registry(self.tools)

    def reads(self, call: ToolCall) -> bool:
        """Whether it only looks. A question to the person stands alone: two at once confuse."""
        return call.name in self._known and call.name != ASK_USER and self._known.tool(call.name).hints.read_only

    def start(self, call: ToolCall, tell: Callable[[Event | Used], None]) -> _Running:
        """Begins the call; `tell` gets its events and then one `Used`, from the call's thread."""
        job = self._jobs.start(call.name, lambda job: self._answer(call, job, tell))
        job.when_done(lambda: tell(self._used(call, job)))
        return _Running(job)

    @property
    def can_ask(self) -> bool:
        """Whether a person can be asked."""
        return self._asks is not None

    def cancel_all(self) -> None:
        """Asks whatever runs to stop, and waits for nothing."""
        self._jobs.cancel_all(0.0)

    def close(self) -> None:
        """Stops what runs, and waits a moment until it is on record."""
        self._jobs.cancel_all(TIME_LIMIT_S)

    def _made(self, call: Call) -> Iterator[Tool]:
        guard, jobs = self._guard, self._jobs
        yield bash_tool(guard, call)
        yield files.read_tool(guard, call, jobs)
        yield runbook.runbook_tool(guard, call)
        yield probe.probe_tool(guard, call)
        yield from ops.tools(guard, call, jobs)
        yield approvals.approve_tool(guard, call)
        yield approvals.revoke_tool(guard, call)
        yield approvals.resolve_tool(guard, call)
        yield snapshots.snapshot_tool(guard, call)
        yield snapshots.rollback_tool(guard, call)
        yield edits.write_tool(guard, call)
        yield edits.edit_tool(guard, call)
        yield ask_user_tool(self._asks)
        if self._plans:
            yield plan_tool(guard, call)

    def _answer(self, call: ToolCall, job: Job, tell: Callable[[Event | Used], None]) -> JSON:
        """Runs the tool; in the job's thread."""
        tool = self._known.tool(call.name)
        if call.fault:
            raise _Unusable(call.fault, not_done="nothing was run", hint="call again with one JSON object")
        arguments = checked(tool, call.arguments)

        def began(execution: str) -> None:
            job.began(execution)
            tell(events.ToolStarted(call.id, execution))

        if call.name == "read":
            self._recall_outputs()
        if call.name not in BEGINS:
            tell(events.ToolStarted(call.id))
        mine = Call(
            self._base.cwd,
            self._base.shell,
            client=self._base.client,
            call_id=call.id,
            session=self._base.session,
            cancel=job.cancel_token,
            on_output=job.transcript.feed,
            on_begin=began,
            read_before=self._read_before(),
            confirm=self._asks,
        )
        (made,) = (one for one in self._made(mine) if one.name == call.name)
        answer = made.run(arguments)
        if output_file := answer.get("output_file"):
            self._jobs.saved(output_file)
        if answer.get("truncated") and answer.get("status") != Status.RUNNING:
            self._jobs.keep(job)
        return answer

    def _recall_outputs(self) -> None:
        """Makes the outputs readable that this session saved in another process: those that the log says are its."""
        if not self._to_recall:
            return
        self._to_recall = False
        with contextlib.suppress(StateError):
            for run in self._guard.ledger.executions(limit=MOST_RECALLED).executions:
                if run.session == self._base.session and run.output_file:
                    self._jobs.saved(os.path.realpath(run.output_file))

    def allow_peers(self, peers: frozenset[str]) -> None:
        """Lets reads ask these machines, which the person named, for the rest of the conversation."""
        policy = self._guard.policy
        if not peers <= policy.person_peers:
            policy = policy.replace(person_peers=policy.person_peers | peers)
            self._guard = dataclasses.replace(self._guard, policy=policy)

    def set_mode(self, mode: str) -> None:
        """What may be done from now on (`guard.types.Mode`); what is at work goes on."""
        self._guard = dataclasses.replace(self._guard, policy=self._guard.policy.replace(mode=mode))

    def _used(self, call: ToolCall, job: Job) -> Used:
        """What the call came to; never raises."""
        took_ms = int(job.took_s * 1000)
        if job.answer is None:
            text, status, code = self._failure(call, job)
            foreign = isinstance(job.error, GuardError) and not isinstance(job.error, (*_OUR_ERRORS, _Unusable))
            result = Result(call.id, call.name, text, status, job.execution, foreign)
            completed = events.ToolCompleted(call.id, status, job.execution or None, text, None, took_ms)
            about = self._about(call) if code and not self.reads(call) else ""
            return Used(result, completed, about, code, wrote=bool(job.execution) and not self.reads(call))
        answer = job.answer
        status = str(answer.get("status", Status.SUCCEEDED))
        execution = str(answer.get("execution") or job.execution or "")
        text = result_text(answer)
        foreign = self._is_foreign(call, answer, execution)
        answered = status in (APPROVED, DENIED)
        request = None if answered or not isinstance(answer.get("request"), str) else answer["request"]
        # A question that was closed leaves its request waiting; one that something else took the place of does not.
        closed = call.name == "ops_approve" and status == Status.CANCELLED and bool(answer.get("next"))
        completed = events.ToolCompleted(
            call.id, status, execution or None, _shown(answer, text), answer.get("exit_code"), took_ms, request
        )
        # That a read-only tool sends a change elsewhere refuses nothing.
        is_nothing = status == PLANNED or (status == Status.REFUSED and self.reads(call))
        about = "" if is_nothing else self._about(call, request)
        return Used(
            Result(call.id, call.name, text, status, execution, foreign),
            completed,
            about,
            # A request of an earlier process: which later call is about it is not known.
            0
            if not about or (status == APPROVED and about == answer["request"])
            else _UNMET.get(UNANSWERED if closed else status, 0),
            wrote=call.name in CHANGES and bool(execution) and answer.get("level") != "R0",
            denials=self._denials(call) if status == DENIED else 0,
        )

    def _is_foreign(self, call: ToolCall, answer: JSON, execution: str) -> bool:
        """Whether an answer may hold what others wrote."""
        if call.name in JUDGED and not execution:
            # Why it did not run may name files below what was asked for, or what other clients did.
            return bool(answer.get("notes")) or self._says_more(call.arguments["command"], answer)
        return call.name not in OUR_WORDS and (bool(execution) or call.name != "ops_plan")

    def _says_more(self, command: str, answer: JSON) -> bool:
        """Whether a judgement tells more than the text of its command: names that were found on this machine."""
        alone = core.check(command, cwd=os.path.realpath(self._base.cwd), policy=self._guard.policy)
        told = {reason.text for reason in alone.reasons} | {effect.object for effect in alone.effects}
        said = [reason["text"] for reason in answer["reasons"]] + [effect["object"] for effect in answer["effects"]]
        return not told.issuperset(said)

    def _denials(self, call: ToolCall) -> int:
        """How often a person said no to this, or to the same effect on the same object; once at least."""
        if call.name == "ops_resolve":
            # No change was wanted, so the log has no denial of one.
            run = str(call.arguments.get("id"))
            self._said_no[run] = self._said_no.get(run, 0) + 1
            return self._said_no[run]
        try:
            return max(1, self._guard.ledger.answers.times_denied(self._base.session))
        except StateError:
            return 1

    def _about(self, call: ToolCall, request: str | None = None) -> str:
        """What a call wants: the same text for a command or a file, and for the request that was kept of it."""
        if call.name == "ops_approve":
            wanted = str(call.arguments.get("request") or f"ops_exec {call.arguments.get('command')}")
            return self._requests.get(wanted, wanted)
        if call.name not in WANTED:
            return ""
        what = call.arguments.get(WANTED[call.name])
        if WANTED[call.name] == "path":
            about = f"file {os.path.realpath(os.path.join(self._base.cwd, str(what)))}"
        else:
            about = f"{'ops_exec' if call.name == 'bash' else call.name} {what}"
        if request:
            self._requests[request] = about
        return about

    def _failure(self, call: ToolCall, job: Job) -> tuple[str, str, int]:
        """Text, status and exit code for a call that gave no answer."""
        error = job.error
        if isinstance(error, Cancelled) or (job.cancel_token.is_set() and self.reads(call)):
            return "not run: the turn was interrupted", Status.CANCELLED, 0
        if job.cancel_token.is_set() and (job.execution or not isinstance(error, GuardError)):
            return MAY_HAVE_RUN, Status.UNKNOWN, 0
        if isinstance(error, GuardError):
            described = {name: value for name, value in error.as_json().items() if value}
            text = json_text({"error": {name: self._guard.redactor.text(value) for name, value in described.items()}})
            return text[:MOST_CHARACTERS], "error", error.exit_code if error.exit_code in (3, 4, 5, 6, 7) else 0
        began = "it is not known how far it came: ops_executions tells what was run" if job.execution else ""
        return f"{call.name} broke: {type(error).__name__}. {began}".strip(), "error", 0


class _Unusable(GuardError):
    """Arguments that could not be read."""

    code = "usage.arguments"
    exit_code = 2


class _Running:
    """`agent.using.Running` over a job."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def last_line(self) -> str:
        size = len(self._job.transcript)
        lines = self._job.transcript.page(max(0, size - 400), 400).text.rstrip().splitlines()
        return lines[-1] if lines else ""

    def cancel(self) -> None:
        self._job.cancel()


def _shown(answer: dict[str, Any], text: str) -> str:
    """What a shell shows of an answer: the output where there is one."""
    outputs = [answer[name] for name in ("stdout", "stderr", "content", "output", "answer") if answer.get(name)]
    if isinstance(answer.get("difference"), list):  # of a file change: lines that begin with + - or a blank
        outputs.append("\n".join(answer["difference"]))
    shown = "\n".join(one.rstrip("\n") for one in outputs if isinstance(one, str))
    return shown[:MOST_CHARACTERS] if shown else text
