"""`!cmd` and `/rollback`: what a person runs by hand, through the same walk as everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capabilities.approvals import approve_tool
from capabilities.call import Call
from capabilities.ops import exec_tool
from capabilities.snapshots import rollback_tool
from dialogue.confirm import APPROVED
from guard.types import Actor, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    import execution
    from dialogue.confirm import Confirm
    from guard.ports import Cancel

SHELL = "repl"


def run(
    command: str,
    guard: execution.Guard,
    confirm: Confirm,
    *,
    cwd: str,
    session: str,
    cancel: Cancel | None = None,
    on_output: Callable[[str, bytes], None] | None = None,
    on_begin: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Runs a command for the person: a read at once, a change after their yes to it. The object of `ops_exec`.

    Raises: GuardError, as `ops_exec` and `ops_approve` do.
    """
    call = Call(
        cwd,
        SHELL,
        Actor.PERSON,
        session=session,
        cancel=cancel,
        on_output=on_output,
        on_begin=on_begin,
        confirm=confirm,
    )
    ran = exec_tool(guard, call).run({"command": command})
    if ran["status"] not in (Status.NEEDS_STAMP, Status.REFUSED) or not ran.get("request"):
        return ran
    answer = approve_tool(guard, call).run({"request": ran["request"]})
    if answer["status"] != APPROVED:
        return {**ran, "status": answer["status"], "next": answer.get("next")}
    return exec_tool(guard, call).run({"command": command})


def roll_back(id: str, guard: execution.Guard, confirm: Confirm, *, cwd: str, session: str) -> dict[str, Any]:
    """Shows the plan with its differences, asks, and applies it after a yes. The object of `ops_rollback`.

    Raises: GuardError.
    """
    call = Call(cwd, SHELL, Actor.PERSON, session=session, confirm=confirm)
    return rollback_tool(guard, call).run({"id": id, "confirm": True})
