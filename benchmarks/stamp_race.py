"""64 processes race for one stamp, 1,000 rounds: exactly one wins each. Then: the time of a look-up among them all.

A process that waits for the log's lock in vain has lost too: nothing of it ran. That happens on a busy machine.

python benchmarks/stamp_race.py [rounds]
"""

from __future__ import annotations

import collections
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.approvals.test_stamp_race import _RACER, PROCESSES  # noqa: E402
from tests.ledger.world import approved, bound, ledger_in  # noqa: E402


def main() -> int:
    """Prints winners and times; the exit code is 1 when a round had another number of winners than one."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    wrong: list[str] = []
    in_vain = 0
    with tempfile.TemporaryDirectory() as folder:
        state = os.path.join(folder, "state")
        ledger = ledger_in(state)
        racers = subprocess.Popen(
            [sys.executable, "-c", _RACER, str(ROOT), state, str(rounds), str(PROCESSES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert racers.stdin is not None and racers.stdout is not None
        began = time.monotonic()
        for _ in range(rounds):
            racers.stdin.write(approved(ledger).id + "\n")
            racers.stdin.flush()
            outcome = racers.stdout.readline().strip()
            in_vain += outcome.count("b")
            if outcome.count("w") != 1 or outcome.count("l") + outcome.count("b") != PROCESSES - 1:
                wrong.append(outcome)
        racers.stdin.close()
        racers.wait()
        took = time.monotonic() - began
        print(f"{rounds} rounds of {PROCESSES}: {len(wrong)} wrong, {took / rounds * 1000:.0f} ms a round")
        print(f"waited 5 s for the log's lock in vain: {in_vain:,} of {rounds * PROCESSES:,} processes")
        for outcome in wrong[:20]:
            print(f"wrong: {outcome}")
        used = collections.Counter(len(stamp.used_by) for stamp in ledger.stamps.listed(every=True))
        print(f"runs per approval, as the log tells: {dict(used)}")
        times = []
        for _ in range(20):
            start = time.perf_counter()
            ledger.stamps.find(bound())
            times.append(time.perf_counter() - start)
        print(
            f"look-up among {len(ledger.stamps.listed(every=True))} approvals: {sorted(times)[10] * 1000:.1f} ms median"
        )
        print("log:", "whole" if ledger.verify().ok else "DAMAGED")
    return 1 if wrong or set(used) != {1} else 0


if __name__ == "__main__":
    sys.exit(main())
