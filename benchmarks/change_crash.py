"""Kills approved changes all along their walk and counts wrong verdicts: there must be none.

    .venv-test/bin/python benchmarks/change_crash.py [ROUNDS] [SEED]

Each round approves a command that appends to a file that is there, waits and ends with a known code. A process of its
own takes it through the guard and is killed with SIGKILL: in one half of the rounds right before one of the operations
on files and processes from the stamp's look-up to the end, each as likely as any other; in the other half at a moment
that is drawn from the time of one of the walk's three parts (to the stamp, to the begin, to the end), and then in every
other round the witness too. How many operations there are, and how long the parts take here, is found out first by
walks that nobody kills. When everything is quiet, what the log says is held against what the file says, the stamp and
the snapshot.
"""

from __future__ import annotations

import collections
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import execution  # noqa: E402
from acting import approving  # noqa: E402
from guard.bound import LIVE, USED, Consent  # noqa: E402
from guard.ledger.answers import ToApprove  # noqa: E402
from guard.redact import Redactor  # noqa: E402
from guard.types import Request, Status  # noqa: E402

WARM_UP = 5
QUIET_LIMIT_S = 30.0
ASK = f"""
import os, signal, sys
sys.path[:0] = [{str(ROOT)!r}]
import execution
from acting import act, approving, change, states
from guard.ledger import packs
from guard.types import Request
guard, place, seen = execution.open_guard(), int(sys.argv[3]), 0
def step(event, arguments):
    global seen
    if event.startswith(("os.", "subprocess.", "fcntl.")) or event == "open":
        if not str(arguments[0]).endswith((".py", ".pyc")):
            seen += 1
            if seen == place:
                os.kill(os.getpid(), signal.SIGKILL)
carry_out = act.Act.change
def change_from_here(*arguments):
    print("stamp found", flush=True)
    sys.addaudithook(step)
    return carry_out(*arguments)
act.Act.change = change_from_here
print("ready", flush=True)
execution.run(Request(sys.argv[1], cwd=sys.argv[2]), guard, on_begin=lambda execution: print("begun", flush=True))
print(seen)
"""
PARTS = ("ready", "stamp found", "begun")
"""What the asking process says at the start of each part of its walk."""


class Round:
    """One approved change in a state folder of its own."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        work = folder / "work"
        work.mkdir(parents=True)
        self.effect = work / "effect"
        self.effect.write_text("as it was\n")
        os.environ["OPSAGENT_HOME"] = str(folder / "state")
        self.code, self.wait_s = chance.randrange(2), chance.choice((0.0, 0.1, 0.4))
        self.request = Request(f"echo x >> effect; sleep {self.wait_s}; exit {self.code}", cwd=str(work))
        self.guard = execution.open_guard()
        assessment = execution.assess(self.request, self.guard)
        item = ToApprove(self.request, assessment, approving.bind(self.request, assessment, self.guard))
        self.guard.ledger.answers.approve([item], Consent(how="tty", rendered_sha256="0" * 64))

    def asking(self, place: int = 0) -> subprocess.Popen[str]:
        """The process that asks; it kills itself before the operation of that number."""
        return subprocess.Popen(
            [sys.executable, "-c", ASK, self.request.command, self.request.cwd, str(place)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def kill_witness(self) -> None:
        for run in self.guard.ledger.executions().executions:
            if run.status == Status.RUNNING and run.pid > 1:
                os.killpg(run.pid, signal.SIGKILL)

    def verdict(self) -> tuple[str, str]:
        """(what the log says, what is wrong with that or ""), once nothing runs any more."""
        until = time.monotonic() + QUIET_LIMIT_S
        while True:
            ledger = execution.open_store(Redactor())
            runs = ledger.executions().executions
            if not any(run.status == Status.RUNNING for run in runs) or time.monotonic() > until:
                break
            time.sleep(0.05)
        if any(run.status == Status.UNKNOWN for run in runs):
            time.sleep(self.wait_s + 0.3)  # its witness is gone, the command itself may not be
        (stamp,) = ledger.stamps.listed(every=True)
        begun = ledger.snapshots.ids()
        saved = [one.id for one in ledger.snapshots.listed()]
        if not runs:
            state = "saved" if saved else "half-made" if begun else "not begun"
            said = f"never began, its snapshot {state}"
        else:
            said = str(runs[0].status)
        times = self.effect.read_text().count("x")
        fault = self._fault(said, len(runs), times)
        if not fault and stamp.state != (USED if runs else LIVE):
            fault = f"its stamp is {stamp.state}"
        if not fault and runs and not saved:
            fault = "it began without a snapshot"
        return said, fault or next((f"{one} is damaged" for one in saved if ledger.snapshots.verify(one)), "")

    def _fault(self, said: str, runs: int, times: int) -> str:
        if runs > 1 or times > 1:
            return "it ran twice"
        if not runs and times:
            return "it ran without a record"
        if said == Status.SUCCEEDED and (self.code or not times):
            return "it did not succeed"
        if said == Status.FAILED and not self.code:
            return "it did not fail"
        if said == Status.RUNNING:
            return "it is not running any more"
        return ""


def reach(process: subprocess.Popen[str], part: str) -> None:
    """Waits until this part of the walk begins, or the process has ended."""
    assert process.stdout is not None
    while (line := process.stdout.readline()) and line.strip() != part:
        pass


def measured(scratch: Path, chance: random.Random) -> tuple[int, dict[str, float]]:
    """How many operations a walk is made of, and how long its parts take without the command's own wait, in seconds."""
    counts: list[int] = []
    times: dict[str, list[float]] = {part: [] for part in PARTS}
    for number in range(WARM_UP):
        one = Round(scratch / f"warm-{number}", chance)
        process = one.asking()
        stands = []
        for part in PARTS:
            reach(process, part)
            stands.append(time.monotonic())
        counts.append(int(process.communicate()[0]))
        stands.append(time.monotonic() - one.wait_s)
        for part, began, ended in zip(PARTS, stands, stands[1:], strict=False):
            times[part].append(ended - began)
    return max(counts), {part: statistics.median(found) for part, found in times.items()}


def main(rounds: int, seed: int) -> int:
    """Prints the verdicts by kind and every wrong one; the exit code is 1 when there was one."""
    chance = random.Random(seed)
    said: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    wrong = []
    with tempfile.TemporaryDirectory(prefix="change-crash-") as scratch:
        places, parts = measured(Path(scratch), chance)
        for number in range(rounds):
            one = Round(Path(scratch) / str(number), chance)
            part = chance.choice(PARTS)
            if number % 2:
                how = f"from {part!r} on"
                process = one.asking()
                reach(process, part)
                time.sleep(chance.uniform(0, parts[part] + (one.wait_s if part == "begun" else 0)))
                process.kill()
                if number % 4 == 1:
                    one.kill_witness()
            else:
                how = "before an operation"
                process = one.asking(chance.randint(1, places))
            process.communicate()
            status, fault = one.verdict()
            said[how][status] += 1
            if fault:
                wrong.append((number, status, fault))
    print(f"{rounds} rounds, seed {seed}; a walk is {places} operations, and {sum(parts.values()) * 1000:.0f} ms here")
    for how, counts in sorted(said.items()):
        print(f"killed {how}: {sum(counts.values())}: {dict(counts.most_common())}")
    print(f"wrong verdicts: {wrong or 0}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, int(sys.argv[2]) if len(sys.argv) > 2 else 1))
