"""Listing and look-up over a long log, through the index: first build, warm listing, after one more run, verify.

    python benchmarks/log_executions.py [RECORDS]     (default 1,000,000: about 750 MB below $TMPDIR for a minute)

Target: `executions` over 1,000,000 records in 50 ms warm.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from guard.clock import RandomIds, SystemClock
from guard.hands.liveness import ProcLiveness
from guard.ledger.entries import Entries, Owner
from guard.ledger.log import Log
from guard.ledger.state import StateFolder
from guard.ledger.store import Ledger
from tests.ledger.world import asked, done, read_of, unchanged

BATCH = 2000


def fill(folder: StateFolder, records: int) -> list[str]:
    """Writes so many entries, half of them begins and half ends, and returns the executions' ids."""
    clock, ids, liveness = SystemClock(), RandomIds(), ProcLiveness()
    log = Log(folder, clock=clock, liveness=liveness)
    entries = Entries(unchanged, folder.key())
    owner = Owner(os.getpid(), liveness.start_of(os.getpid()))
    request, assessment, outcome = asked("df -h | tail -n +2"), read_of(), done()
    made: list[str] = []
    for _ in range(0, records, BATCH):
        batch = []
        for _ in range(BATCH // 2):
            made.append(ids.new("e"))
            batch.append(
                entries.started(
                    made[-1],
                    request,
                    assessment,
                    profile="local",
                    enforced="strict",
                    stamp="",
                    owner=owner,
                    began_at=clock.utc(),
                )
            )
            batch.append(entries.ended(made[-1], request, outcome, ended_at=clock.utc()))
        log.append(batch, durable=True)
    return made


def timed(name: str, action: Callable[[], object], rounds: int = 9) -> None:
    """Prints median and minimum of the wall time in milliseconds."""
    taken = []
    for _ in range(rounds):
        before = time.perf_counter()
        action()
        taken.append((time.perf_counter() - before) * 1000)
    print(f"{name:48} median {statistics.median(taken):10.1f} ms   min {min(taken):10.1f} ms")


def main(records: int) -> None:
    """Builds the log, then measures."""
    with tempfile.TemporaryDirectory() as place:
        folder = StateFolder.open(place + "/state")
        before = time.perf_counter()
        made = fill(folder, records)
        size = sum(file.stat().st_size for file in Path(folder.path, "log").glob("*.jsonl"))
        print(f"{records} records, {size / 1e6:.0f} MB, written in {time.perf_counter() - before:.1f} s")
        ledger = Ledger(folder, clock=SystemClock(), ids=RandomIds(), redact=unchanged, liveness=ProcLiveness())
        timed("first listing (builds the index)", lambda: ledger.executions(limit=20), 1)
        timed("executions, 20 newest, warm", lambda: ledger.executions(limit=20))
        timed("executions, 1,000 newest, warm", lambda: ledger.executions(limit=1000))
        timed("executions --status failed (none), warm", lambda: ledger.executions(status="failed", limit=20))
        timed("executions --since the middle, warm", lambda: ledger.executions(since="2020", limit=20))
        timed("show one from the middle, warm", lambda: ledger.show(made[len(made) // 2]))
        timed("audit --tail 20", lambda: ledger.audit(20))

        def one_more() -> None:
            begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
            ledger.end(begun.execution, done())
            ledger.executions(limit=20)

        timed("one more run and the listing after it", one_more)
        timed("verify the whole log", ledger.verify, 1)
        assert ledger.verify().ok


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
