"""Changes that a dead man watches over: one on record alone, for what shells show of it, and one with its process."""

from __future__ import annotations

from datetime import datetime

import core
import execution
from acting import deadman
from guard.clock import utc_text
from guard.ledger.plans import snapshot_plan
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


def changed(guard, file, seconds, content="changed", *, also=()):
    """Files saved, a dead man armed for them, and a run that changed them on record."""
    plan = snapshot_plan((), cwd="/", files=[str(file), *map(str, also)])
    run = guard.ledger.new_execution()
    snapshot = execution.snapshot(plan, guard, cwd="/", execution=run, reason="exec")
    armed = deadman.arm(run, snapshot, seconds, plan, guard)
    request = Request("touch x", cwd="/", actor=Actor.PERSON)
    guard.ledger.begin(request, core.check("touch x", cwd="/"), profile=Profile.NONE, enforced="none", execution=run)
    for one in (file, *also):
        one.write_text(content)
    execution.record_after(snapshot, guard)
    deadman.change_ended(run, guard)
    guard.ledger.end(run, Outcome(Status.SUCCEEDED, execution=run, exit_code=0))
    return armed
