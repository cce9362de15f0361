"""A change on record that a dead man watches over, without its process: for what shells show of it."""

from __future__ import annotations

from datetime import datetime

import core
from acting import deadman
from guard.clock import utc_text
from guard.types import Actor, Outcome, Profile, Request, Status

CONNECTION = "192.0.2.1 50000 192.0.2.2 22"


def waits(guard, seconds=120):
    """Its id; it is taken back in so many seconds by the guard's clock."""
    run = guard.ledger.new_execution()
    guard.ledger.record(
        deadman.ARMED,
        execution=run,
        snapshot="s-2222222222",
        seconds=seconds,
        deadline_at=utc_text(int((datetime.fromisoformat(guard.clock.utc()).timestamp() + seconds) * 1000)),
        connection=CONNECTION,
        pid=1,
        pid_start="1",
        unit=None,
    )
    request = Request("nft -f f", cwd="/", actor=Actor.PERSON)
    guard.ledger.begin(request, core.check("nft -f f", cwd="/"), profile=Profile.NONE, enforced="none", execution=run)
    guard.ledger.end(run, Outcome(Status.SUCCEEDED, execution=run, exit_code=0))
    return run
