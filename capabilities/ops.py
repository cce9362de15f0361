"""The guard's own tools: judge, run, follow, list. Each answers with the JSON object of the command line's `--json`.

Tools are made for one `Call`. What may not run is an answer with a reason and a next step, never an exception.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import core
import execution
from capabilities import countdown
from capabilities.bounded import json_text, largest_page
from capabilities.jobs import DONE
from capabilities.registry import JSON, Tool, hints_of, parameters
from capabilities.rollback_shapes import listed_object
from capabilities.shapes import check_object, exec_object, execution_object, request_object, stamp_object
from guard.bound import SnapshotOptions
from guard.errors import UsageError
from guard.types import LOCAL, Level, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from capabilities.call import Call
    from capabilities.jobs import Job, Jobs

COMMAND: JSON = {
    "type": "string",
    "minLength": 1,
    "maxLength": 65_536,
    "description": "bash text, run as it is",
}
TARGET: JSON = {"type": "string", "description": "only `local`"}
ID: JSON = {"type": "string", "pattern": "^[a-z0-9-]{1,64}$"}
PATHS: JSON = {
    "type": "array",
    "maxItems": 1000,
    "items": {"type": "string", "pattern": "^[^\\0]+$"},
}
READS: JSON = {
    "type": "array",
    "maxItems": 20,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
            "command": {"type": "string", "minLength": 1},
        },
        "required": ["name", "command"],
        "additionalProperties": False,
    },
}
STATUSES = (Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT, Status.CANCELLED, Status.UNKNOWN, Status.RUNNING)

MOST_TIMEOUT_S = 600
PAGE_CHARS = 16_000
"""A page of output in one answer, when its characters are plain."""
MOST_ROWS = 100
MOST_SNAPSHOTS = 20


class NoSuchRecord(UsageError):
    """There is no record with that id."""

    code = "usage.record"


def answer_schema(*required: str) -> JSON:
    """The schema of an answer: what is always there; readers ignore what they do not know.

    Nothing more: the list of tools is in every model's window, and docs/cli.md has the fields.
    """
    return {"type": "object", "required": ["format", *required]}


def spelled(cmds: Iterable[JSON]) -> list[str]:
    """Reads to save the output of, the way the command line spells them."""
    return [f"{one['name']}::{one['command']}" for one in cmds]


def tools(guard: execution.Guard, call: Call, jobs: Jobs) -> Iterator[Tool]:
    """The tools that need nothing but the guard, for this call."""
    yield check_tool(guard, call)
    yield exec_tool(guard, call)
    yield status_tool(guard, jobs)
    yield list_tool(guard)
    yield executions_tool(guard)
    yield audit_tool(guard)


def check_tool(guard: execution.Guard, call: Call) -> Tool:
    """`ops_check`: judges and changes nothing."""

    def run(arguments: JSON) -> JSON:
        request = call.request(arguments["command"], target=arguments.get("target", LOCAL))
        core.require_command(request.command)
        core.require_target(request.target)
        return check_object(execution.assess(request, guard))

    return Tool(
        "ops_check",
        "Judges a shell command without running it: level R0 (reads) to R3 (irreversible), decision (run, needs_stamp, "
        "refuse), reasons, effects, what would be saved first.",
        parameters({"command": COMMAND}, {"target": TARGET}),
        hints_of(Level.R0),
        run,
        answer_schema("level", "decision"),
    )


def exec_tool(guard: execution.Guard, call: Call) -> Tool:
    """`ops_exec`: reads run at once; a change runs with a person's approval and else is kept as a request."""

    def run(arguments: JSON) -> JSON:
        request = call.request(
            arguments["command"], target=arguments.get("target", LOCAL), why=arguments.get("why", "")
        )
        ran = execution.run(
            request,
            guard,
            timeout_s=arguments.get("timeout_s", execution.READ_TIMEOUT_S),
            save=SnapshotOptions(
                files=tuple(os.path.join(call.cwd, path) for path in arguments.get("snapshot_files", ())),
                commands=tuple(spelled(arguments.get("snapshot_cmds", ()))),
                leave_out=tuple(arguments.get("no_snapshot_of", ())),
            ),
            cancel=call.cancel,
            on_output=call.on_output,
            on_begin=call.on_begin,
        )
        found = exec_object(ran)
        if call.confirm is not None and found["status"] == Status.NEEDS_STAMP and found["request"]:
            found["next"] = (
                f'ops_approve{{"request": "{found["request"]}"}} asks the person, or they run: {found["next"]}'
            )
        return found

    return Tool(
        "ops_exec",
        "Runs a shell command. A read (R0) runs at once in a sandbox. Anything else runs only if a person approved "
        "exactly this; else it is kept as a request and `next` says how to ask. A long run answers `running`: poll "
        "ops_status.",
        parameters(
            {"command": COMMAND},
            {
                "snapshot_files": PATHS,
                "snapshot_cmds": READS,
                "no_snapshot_of": PATHS,
                "why": {"type": "string", "maxLength": 2000, "description": "shown to the person who approves"},
                "timeout_s": {"type": "number", "minimum": 1, "maximum": MOST_TIMEOUT_S, "description": "for a read"},
                "target": TARGET,
            },
        ),
        hints_of(Level.R3, open_world=True),
        run,
        answer_schema("status"),
    )


def status_tool(guard: execution.Guard, jobs: Jobs) -> Tool:
    """`ops_status`: how a run, or a request, stands; with output for what this client started itself."""

    def run(arguments: JSON) -> JSON:
        id, offset = arguments["id"], int(arguments.get("offset", 0))
        job = jobs.find(id)
        if job is not None:
            return largest_page(lambda size: _job_object(job, id, offset, size), PAGE_CHARS)
        return _recorded_object(guard, id, jobs)

    return Tool(
        "ops_status",
        "How a run (e-…, j-…) or a request (a-…) stands. For your own runs also the output from character `offset` on, "
        "both streams as they came; go on at `next_offset`.",
        parameters({"id": ID}, {"offset": {"type": "integer", "minimum": 0}}),
        hints_of(Level.R0),
        run,
        answer_schema("id", "status"),
    )


def _job_object(job: Job, id: str, offset: int, size: int) -> JSON:
    done = job.state == DONE
    page = job.transcript.page(offset, size)
    found = {
        "format": 1,
        "id": id,
        "tool": job.tool,
        "status": Status.RUNNING if job.state != "queued" else job.state,
        "execution": job.execution or None,
        "elapsed_ms": int(job.elapsed_s * 1000),
        "output": page.text,
        "offset": page.offset,
        "next_offset": page.next_offset,
        "size": page.size,
        "more": page.next_offset < page.size,
    }
    if not done:
        return {**found, "next": f'ops_status{{"id": "{id}", "offset": {page.next_offset}}}'}
    if isinstance(job.error, BaseException):
        described = (
            job.error.as_json() if hasattr(job.error, "as_json") else {"code": "internal", "message": "it broke"}
        )
        return {**found, "status": Status.FAILED, "error": described}
    answer = job.answer or {}
    # The output is in the transcript already; the rest of the answer is what a caller that waited would have got.
    rest = {name: value for name, value in answer.items() if name not in ("stdout", "stderr", "format")}
    return {**rest, **found, "status": answer.get("status", Status.SUCCEEDED)}


def _recorded_object(guard: execution.Guard, id: str, jobs: Jobs) -> JSON:
    """What the records say; another client's output is not part of it."""
    shown = guard.ledger.show(id)
    if shown.execution is not None:
        found = {"format": 1, "id": id, **execution_object(shown.execution)}
        if watched := countdown.as_object(id, guard):
            found["dead_man"] = watched
        output = shown.execution.output_file
        if output and jobs.may_read_output(os.path.realpath(output)):
            found["next"] = f"read{json_text({'path': output})}"
        return found
    if shown.request is not None:
        return {
            "format": 1,
            "id": id,
            "status": "waiting",
            "request": request_object(shown.request, guard.redactor.text),
            "next": f"opsx approve {id}",
        }
    if not shown.entries:
        raise NoSuchRecord(
            f"there is no record of {id}", not_done="nothing was looked up", hint="ops_executions lists runs"
        )
    return {
        "format": 1,
        "id": id,
        "status": str(shown.entries[-1].get("kind", "")),
        "entries": list(shown.entries)[-5:],
    }


def list_tool(guard: execution.Guard) -> Tool:
    """`ops_list`: what waits for a person, what a person approved, and what was saved."""

    def run(arguments: JSON) -> JSON:
        redact = guard.redactor.text
        waiting = guard.ledger.pending()
        found: JSON = {"format": 1, "requests": [request_object(kept, redact) for kept in waiting[:MOST_ROWS]]}
        if len(waiting) > MOST_ROWS:
            found["left_out"] = {"requests": len(waiting) - MOST_ROWS}
        if waits := [
            {"execution": one.execution, **(countdown.as_object(one.execution, guard) or {})}
            for one in countdown.waiting(guard)
        ]:
            found["dead_men"] = waits
        found["stamps"] = [stamp_object(stamp) for stamp in guard.ledger.stamps.listed()[:MOST_ROWS]]
        found["snapshots"] = [listed_object(one, redact) for one in guard.ledger.snapshots.listed()[:MOST_SNAPSHOTS]]
        return found

    return Tool(
        "ops_list",
        "Lists the requests that wait for a person's approval, the live approvals, and the newest snapshots.",
        parameters({}),
        hints_of(Level.R0),
        run,
        answer_schema("requests", "stamps", "snapshots"),
    )


def executions_tool(guard: execution.Guard) -> Tool:
    """`ops_executions`: what was run, newest first."""

    def run(arguments: JSON) -> JSON:
        listing = guard.ledger.executions(status=arguments.get("status"), limit=int(arguments.get("limit", 20)))
        return {
            "format": 1,
            "executions": [execution_object(one) for one in listing.executions],
            "notes": list(listing.notes),
        }

    return Tool(
        "ops_executions",
        "Lists recorded runs, newest first. `unknown`: it began and its end is not on record; look first.",
        parameters(
            {}, {"status": {"enum": list(STATUSES)}, "limit": {"type": "integer", "minimum": 1, "maximum": MOST_ROWS}}
        ),
        hints_of(Level.R0),
        run,
        answer_schema("executions"),
    )


def audit_tool(guard: execution.Guard) -> Tool:
    """`ops_audit`: the end of the log."""

    def run(arguments: JSON) -> JSON:
        entries: list[Any] = [dict(entry) for entry in guard.ledger.audit(int(arguments.get("tail", 20)))]
        return {"format": 1, "entries": entries}

    return Tool(
        "ops_audit",
        "The last entries of the audit log, oldest of them first.",
        parameters({}, {"tail": {"type": "integer", "minimum": 1, "maximum": MOST_ROWS}}),
        hints_of(Level.R0),
        run,
        answer_schema("entries"),
    )
