"""A short life of a state folder, always the same: what the golden folders of tests/golden were made from."""

from __future__ import annotations

import os

from guard.ledger.state import StateFolder
from guard.types import Effect, Interference, Level, Status, Verdict
from tests.ledger.world import (
    CountingIds,
    FakeLiveness,
    FixedClock,
    Judged,
    approved,
    asked,
    bound,
    change_of,
    done,
    ledger_in,
    read_of,
)

KEY = bytes(range(32))


def told(path: str):
    """Makes the folder and returns its ledger, with the owner of its open executions gone."""
    StateFolder.open(path)
    with open(os.open(path + "/key", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        file.write(KEY)
    clock, ids, liveness = FixedClock(), CountingIds(), FakeLiveness()
    ledger = ledger_in(
        path,
        clock=clock,
        ids=ids,
        liveness=liveness,
        redact=lambda text: text.replace("hunter2", "[REDACTED]"),
        segment_bytes=4000,
    )
    begun = ledger.begin_read(asked("df -h"), read_of(), profile="local", enforced="strict")
    clock.pass_s(0.25)
    ledger.end(begun.execution, done())
    begun = ledger.begin_read(
        asked("curl -u me:hunter2 http://x/", why="看看"), read_of(), profile="net", enforced="strict"
    )
    clock.pass_s(2)
    refused = tuple(Interference("unlinkat", f"/etc/{number}") for number in range(60))
    outcome = done(
        Status.FAILED, 7, interference=refused, notes=("2 processes were left over",), output_file="/o/e-2.txt"
    )
    ledger.end(begun.execution, outcome)
    ledger.keep_request(asked("systemctl restart nginx", session="c-1"), change_of())
    forced = Judged("rm -rf /srv/x", Level.R3, [Effect("delete", "/srv/x")], Verdict.REFUSE, forceable=True)
    ledger.keep_request(asked("rm -rf /srv/x", actor="person", client="", call_id=""), forced)
    binding = bound(file_x="[1, 2]")
    stamp = approved(ledger, binding=binding)
    change = ledger.begin(
        asked("systemctl restart nginx"), change_of(), profile="none", enforced="none", stamp=stamp.id, binding=binding
    )
    ledger.end(change, done(Status.RUNNING, None))
    clock.pass_s(3600)
    ledger.end(change, done(snapshot="s-1"))
    begun = ledger.begin_read(asked("find /"), read_of(), profile="local", enforced="strict")
    ledger.end(begun.execution, done(Status.TIMED_OUT, None, interference=None))
    ledger.note("output_lost", execution=begun.execution, why="no space left for /o/hunter2")
    newest = max(name for name in os.listdir(path + "/log") if name.endswith(".jsonl"))
    with open(f"{path}/log/{newest}", "ab") as file:
        file.write(b'{"format":1,"seq":99,"at":"2026-1')
    ledger.note("notice", code="selftest", text="after a torn line")
    ledger.begin_read(asked("uptime"), read_of(), profile="local", enforced="strict")
    answered = ledger.keep_request(asked("rm hunter2", session="c-2"), change_of("rm hunter2"))
    ledger.answers.deny(asked("rm hunter2"), request_id=answered, reason="not now: hunter2")
    ledger.answers.revoke(approved(ledger).id)
    lost = ledger.begin(asked("touch /srv/y"), change_of("touch /srv/y"), profile="none", enforced="none")
    liveness.dead = True
    ledger.answers.resolve(lost, "done", evidence="/srv/y is there")
    ledger.answers.freeze("maintenance", actor="agent")
    ledger.answers.thaw()
    return ledger
