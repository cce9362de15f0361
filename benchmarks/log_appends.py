"""What recording costs: one read's begin and end, eight writers at once; and kill -9 at random moments.

    python benchmarks/log_appends.py [KILLS]     (default 500 kills, a few minutes)

Prints figures and fails (AssertionError) if an entry that a writer reported is not in the log, or the chain breaks.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from guard.clock import RandomIds, SystemClock
from guard.hands.liveness import ProcLiveness
from guard.ledger.log import Log
from guard.ledger.segments import lines_from
from guard.ledger.state import StateFolder
from guard.ledger.store import Ledger
from guard.ledger.verify import entries_of, verify
from tests.ledger.world import asked, done, read_of, unchanged

ROOT = str(Path(__file__).resolve().parent.parent)
WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from guard.clock import SystemClock
from guard.hands.liveness import ProcLiveness
from guard.ledger.log import Log
from guard.ledger.state import StateFolder

log = Log(StateFolder.open(sys.argv[2]), clock=SystemClock(), liveness=ProcLiveness(), segment_bytes=200_000)
for number in range(int(sys.argv[4])):
    log.append([{"kind": "notice", "text": f"{sys.argv[3]}:{number}"}], durable=number % 3 == 0, wait_s=60)
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


def show(name: str, taken_ms: list[float]) -> None:
    """Prints median, p99 and maximum."""
    taken_ms.sort()
    p99 = taken_ms[int(len(taken_ms) * 0.99)]
    print(f"{name:40} median {statistics.median(taken_ms):7.2f} ms  p99 {p99:7.2f}  max {taken_ms[-1]:7.2f}")


def one_writer(path: str) -> None:
    """Begin and end of reads, with the CPU that they take."""
    ledger = Ledger(
        StateFolder.open(path), clock=SystemClock(), ids=RandomIds(), redact=unchanged, liveness=ProcLiveness()
    )
    begins, ends, rounds = [], [], 500
    cpu = time.process_time()
    for _ in range(rounds):
        at = time.perf_counter()
        begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
        middle = time.perf_counter()
        ledger.end(begun.execution, done())
        begins.append((middle - at) * 1000)
        ends.append((time.perf_counter() - middle) * 1000)
    print(f"one read, begin and end: {(time.process_time() - cpu) / rounds * 1000:.2f} ms CPU")
    show("begin of a read", begins)
    show("end of a read (synced)", ends)


def spawned(path: str, name: str, count: int) -> subprocess.Popen[str]:
    """A writer process; it prints a number for each entry that it has been told is in the log."""
    argv = [sys.executable, "-c", WRITER, ROOT, path, name, str(count)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def eight_writers(path: str, count: int) -> None:
    """Nothing lost, one chain; entries a second over all."""
    StateFolder.open(path)
    before = time.perf_counter()
    writers = [spawned(path, str(number), count) for number in range(8)]
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    seconds = time.perf_counter() - before
    report = verify(StateFolder.open(path))
    assert report.ok and report.entries == 8 * count, report
    print(f"eight writers: {report.entries} of {8 * count} entries, {8 * count / seconds:.0f} a second, chain valid")


def kills(path: str, rounds: int) -> None:
    """Writers killed at random moments: what they reported is there, and the next writer goes on."""
    folder = StateFolder.open(path)
    chance = random.Random(20261201)
    reported: set[str] = set()
    for attempt in range(rounds):
        writer = spawned(path, str(attempt), 1_000_000)
        assert writer.stdout is not None
        reported.add(f"{attempt}:{writer.stdout.readline().strip()}")
        time.sleep(chance.random() * 0.03)
        writer.kill()
        rest = writer.communicate()[0].split("\n")[:-1]
        reported |= {f"{attempt}:{number}" for number in rest if number}
    Log(folder, clock=SystemClock(), liveness=ProcLiveness()).append([{"kind": "notice", "text": "end"}], durable=True)
    report = verify(folder)
    entries = list(entries_of(lines_from(folder)))
    found = {entry.get("text") for entry in entries}
    torn = sum(entry["kind"] == "torn" for entry in entries)
    assert report.ok, report
    assert reported <= found, reported - found
    print(f"{rounds} kills: {len(reported)} reported entries all there, {torn} torn ends set aside, chain valid")


def main(rounds: int) -> None:
    """Runs all three."""
    with tempfile.TemporaryDirectory() as place:
        one_writer(place + "/one")
        eight_writers(place + "/eight", 250)
        kills(place + "/kills", rounds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
