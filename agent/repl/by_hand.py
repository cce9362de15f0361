"""`!cmd`, `/approve` and `/rollback`: what a person does by hand, through the same walk as everything else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from capabilities.approvals import not_approved
from capabilities.asking import settle
from capabilities.call import Call
from capabilities.ops import exec_tool
from capabilities.snapshots import rollback_tool
from capabilities.subjects import Wanted
from dialogue import events
from dialogue.confirm import APPROVED
from guard.bound import DEFAULT_TTL_S
from guard.errors import GuardError, UsageError
from guard.types import Actor, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    import execution
    from dialogue.confirm import Confirm
    from dialogue.events import Event
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
    answer = approve(ran["request"], guard, confirm, cwd=cwd, session=session)
    if answer["status"] != APPROVED:
        return {**ran, "status": answer["status"], "next": answer.get("next")}
    return exec_tool(guard, call).run({"command": command})


def run_and_tell(
    command: str,
    guard: execution.Guard,
    confirm: Confirm,
    tell: Callable[[Event], None],
    *,
    cwd: str,
    session: str,
    cancel: Cancel,
) -> None:
    """`run`, told as the events of a tool whose name is `!`. Raises GuardError when it could not be run."""
    id = f"!{time.monotonic_ns()}"
    began: list[str] = []
    tell(events.ToolRequested(id, "!", {"command": command}))

    def on_begin(execution: str) -> None:
        began.append(execution)
        tell(events.ToolStarted(id, execution))

    try:
        ran = run(command, guard, confirm, cwd=cwd, session=session, cancel=cancel, on_begin=on_begin)
    except GuardError:
        tell(events.ToolCompleted(id, "error", began[-1] if began else None))
        raise
    texts = [text.rstrip("\n") for name in ("stdout", "stderr") if (text := ran.get(name))]
    took_ms = int(ran.get("duration_ms") or 0)
    tell(events.ToolCompleted(id, ran["status"], ran.get("execution"), "\n".join(texts), ran.get("exit_code"), took_ms))
    if ran["status"] == Status.REFUSED:
        tell(events.Notice(ran["because"]["text"]))
    if ran.get("next"):
        tell(events.Notice(f"next: {ran['next']}"))


def approve(id: str, guard: execution.Guard, confirm: Confirm, *, cwd: str, session: str) -> dict[str, Any]:
    """Asks the person about a request that waits, whoever asked for it. Runs nothing.

    Args:
        id: `a-…`; "" for the newest of this conversation, else the newest of this folder: what was asked for before,
            by whomever, is asked for again as the same request.
    Returns: `status` and `request`; where there was no yes, also why and what to do next.
    Raises: GuardError; UsageError when it does not wait.
    """
    waiting = guard.ledger.pending()
    if id:
        meant = [kept for kept in waiting if kept.id == id]
    else:
        here = [kept for kept in waiting if kept.cwd == cwd]
        meant = [kept for kept in waiting if kept.session == session] or here
    if not meant:
        what = f"{id} does not wait" if id else "nothing of this conversation or folder waits for an approval"
        raise UsageError(what, not_done="nothing was asked", hint="/pending lists what waits; /approve a-…")
    kept = meant[-1]
    call = Call(cwd, SHELL, Actor.PERSON, session=session, confirm=confirm)
    settled = settle(Wanted.of_kept(kept), guard, call, ttl_s=DEFAULT_TTL_S)
    return {"status": APPROVED, "request": kept.id} if settled.stamp else not_approved(settled)


def roll_back(id: str, guard: execution.Guard, confirm: Confirm, *, cwd: str, session: str) -> dict[str, Any]:
    """Shows the plan with its differences, asks, and applies it after a yes. The object of `ops_rollback`.

    Raises: GuardError.
    """
    call = Call(cwd, SHELL, Actor.PERSON, session=session, confirm=confirm)
    return rollback_tool(guard, call).run({"id": id, "confirm": True})
