"""Slash commands of an ACP client: records and rollback, answered by opsagent itself without asking a brain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.acp.updates import text_content, title_of
from capabilities import ops, snapshots
from guard import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    import execution
    from capabilities.call import Call

JSON = dict[str, Any]

COMMANDS: tuple[JSON, ...] = (
    {"name": "pending", "description": "requests that wait for a person's approval"},
    {"name": "executions", "description": "what was run, newest first"},
    {
        "name": "rollback",
        "description": "take a run or a snapshot back, after your approval of the plan",
        "input": {"hint": "e-… or s-…"},
    },
)
NAMES = tuple(command["name"] for command in COMMANDS)
LISTED = 20


def command_of(text: str) -> tuple[str, str]:
    """The command that a prompt is, and its words; ("", "") for a prompt to the brain."""
    name, _, words = text.strip().partition(" ")
    return (name[1:], words.strip()) if name.startswith("/") and name[1:] in NAMES else ("", "")


def listed(name: str, guard: execution.Guard) -> str:
    """What a command that lists says, a line each."""
    if name == "pending":
        rows = ops.list_tool(guard).run({})["requests"]
        lines = [f"{row['id']}  {row['level']}  {row['command']}" for row in rows]
    else:
        rows = ops.executions_tool(guard).run({"limit": LISTED})["executions"]
        lines = [f"{row['id']}  {row['started_at']}  {row['status']}  {row['level']}  {row['command']}" for row in rows]
    return "\n".join(render.visible_line(line) for line in lines) or "none"


def rolled_back(id: str, guard: execution.Guard, call: Call) -> Iterator[JSON]:
    """The updates of `/rollback ID`; the tool call of `call` is told before its approval is asked."""
    shown = {"toolCallId": call.call_id, "title": title_of("ops_rollback", {"id": id}), "kind": "edit"}
    yield {"sessionUpdate": "tool_call", **shown, "status": "in_progress"}
    done = snapshots.rollback_tool(guard, call).run({"id": id, "confirm": True})
    status = str(done["status"])
    paths = [f"{one['result']}: {one['path']} {one['text']}".rstrip() for one in done.get("results", ())]
    text = "\n".join([status, *paths, *filter(None, [done.get("because"), done.get("next")])])
    yield {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call.call_id,
        "status": "completed" if status == "succeeded" else "failed",
        "content": [text_content(text)],
        "rawOutput": {"status": status, "execution": done.get("execution")},
    }
