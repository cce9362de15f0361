"""A person's word that one can still come in: `opsx confirm`. Only a connection that shows it counts.

What shows it is a connection from outside that was opened after the change had ended: whoever speaks over it has just
come in. Everything else shows nothing: the old connection and what shares it, a terminal that outlived its connection
(tmux, screen), mosh (which came in by ssh once, and by other means since), a console, this machine's call to itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acting import deadman, timer
from guard.errors import NotPermitted
from guard.ledger import claims
from guard.types import Actor, Status

if TYPE_CHECKING:
    from acting.deadman import Armed
    from acting.world import Guard

NOT_DONE = "nothing was confirmed"


def confirm(execution: str, guard: Guard, *, actor: str, pid: int) -> None:
    """Keeps a change for good.

    Args:
        pid: of the process that asks; how it came in is read from the system, never from its environment.
    Raises:
        NotPermitted: it is no such person, or there is nothing to confirm (any more).
        StateError: it cannot be recorded.
    """
    if actor != Actor.PERSON:
        raise NotPermitted("only a person on a terminal confirms a change", not_done=NOT_DONE)
    armed = deadman.armed_for(execution, guard)
    if armed is None:
        raise NotPermitted(f"nothing waits for a confirmation of {ascii(execution)[1:-1][:64]}", not_done=NOT_DONE)
    ended = deadman.ended_as(execution, guard)
    if ended:
        raise NotPermitted(f"{execution} is settled already: {ended}", not_done=NOT_DONE, hint=f"opsx show {execution}")
    since_s = _ended_boot_s(execution, guard)
    if since_s is None:
        raise NotPermitted(f"{execution} has not ended yet", not_done=NOT_DONE, hint=f"opsx wait {execution}")
    over = _over(armed, since_s, pid)
    if not claims.claim(guard.ledger.answers.folder, execution, claims.CONFIRMED):
        raise NotPermitted(f"{execution} is being taken back already", not_done=NOT_DONE)
    guard.ledger.record(deadman.CONFIRMED, execution=execution, actor=actor, connection=over)
    if armed.unit:
        timer.stop(armed.unit)


def _over(armed: Armed, since_s: float, pid: int) -> str:
    """The connection that shows that one comes in, as SSH_CONNECTION. Raises NotPermitted: this one does not."""
    from guard.hands.connection import comes_from_here, connection_of, multiplexer_of

    again = f"open a new connection to this machine and run there: opsx confirm {armed.execution}"

    def no(what: str, hint: str = again) -> NotPermitted:
        return NotPermitted(what, not_done=NOT_DONE, hint=hint)

    connection = connection_of(pid)
    if connection is None:
        inside = multiplexer_of(pid)
        if inside:
            outside = f"run it in a new ssh connection, outside of {inside}: opsx confirm {armed.execution}"
            raise no(f"this terminal belongs to {inside}, so it does not show how anybody came in", outside)
        raise no("this is no ssh connection, so it does not show that one can still come in")
    if not connection.is_live:
        raise no("no ssh connection that stands belongs to this terminal, so it does not show that one can come in")
    if connection.opened_boot_s <= since_s or connection.text == armed.connection:
        raise no("this connection was opened before the change ended, so it does not show that a new one comes through")
    if connection.is_own and not comes_from_here(armed.connection):
        raise no(
            "this connection comes from this machine itself, so it does not show that one can come in from outside"
        )
    return connection.text


def _ended_boot_s(execution: str, guard: Guard) -> float | None:
    """When the change ended, in seconds since this boot; None while it has not, or where nobody could say so."""
    shown = guard.ledger.show(execution)
    if shown.execution is None or shown.execution.status == Status.RUNNING or not shown.execution.ended_at:
        return None
    said = [entry.get("boot_s") for entry in shown.entries if entry.get("kind") == deadman.ENDED]
    return float(said[-1]) if said and isinstance(said[-1], (int, float)) else None
