"""Kills approved changes at random moments and counts wrong verdicts: there must be none.

    .venv-test/bin/python benchmarks/change_crash.py [ROUNDS] [SEED]

Each round approves a command that appends to a file, waits and ends with a known code, starts it through the guard in
a process of its own, and kills that process (in half of the rounds the witness too) with SIGKILL at a random moment.
When everything is quiet, what the log says is held against what the file says.
"""

from __future__ import annotations

import collections
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import execution  # noqa: E402
from acting import approving  # noqa: E402
from guard.bound import Consent  # noqa: E402
from guard.ledger.answers import ToApprove  # noqa: E402
from guard.redact import Redactor  # noqa: E402
from guard.types import Request, Status  # noqa: E402

ASK = (
    f"import sys; sys.path[:0] = [{str(ROOT)!r}]\n"
    "import execution; from guard.types import Request\n"
    "execution.run(Request(sys.argv[1], cwd=sys.argv[2]), execution.open_guard())"
)


def one_round(folder: Path, chance: random.Random) -> tuple[str, str]:
    """(what the log says, what is wrong with that or "")."""
    work = folder / "work"
    work.mkdir(parents=True)
    os.environ["OPSAGENT_HOME"] = str(folder / "state")
    code, wait_s = chance.randrange(2), chance.choice((0.0, 0.1, 0.4))
    request = Request(f"echo x >> effect; sleep {wait_s}; exit {code}", cwd=str(work))
    guard = execution.open_guard()
    assessment = execution.assess(request, guard)
    item = ToApprove(request, assessment, approving.bind(request, assessment, guard))
    guard.ledger.answers.approve([item], Consent(how="tty", rendered_sha256="0" * 64))
    asking = subprocess.Popen(
        [sys.executable, "-c", ASK, request.command, request.cwd], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(chance.uniform(0.05, 1.2))
    asking.kill()
    asking.wait()
    if chance.randrange(2):
        for run in guard.ledger.executions().executions:
            if run.status == Status.RUNNING and run.pid > 1:
                os.killpg(run.pid, signal.SIGKILL)
    time.sleep(wait_s + 0.8)
    return verdict(execution.open_store(Redactor()).executions().executions, work / "effect", code)


def verdict(runs: tuple, effect: Path, code: int) -> tuple[str, str]:
    """The record against the file."""
    times = effect.read_text().count("x") if effect.exists() else 0
    said = runs[0].status if runs else "never began"
    if len(runs) > 1 or times > 1:
        return said, "it ran twice"
    if said == "never began" and times:
        return said, "it ran without a record"
    if said == Status.SUCCEEDED and (code or not times):
        return said, "it did not succeed"
    if said == Status.FAILED and not code:
        return said, "it did not fail"
    if said == Status.RUNNING:
        return said, "it is not running any more"
    return said, ""


def main(rounds: int, seed: int) -> None:
    """Prints the verdicts by kind and every wrong one."""
    chance = random.Random(seed)
    said: collections.Counter[str] = collections.Counter()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="change-crash-") as scratch:
        for number in range(rounds):
            status, fault = one_round(Path(scratch) / str(number), chance)
            said[status] += 1
            if fault:
                wrong.append((number, status, fault))
    print(f"{rounds} rounds, seed {seed}: {dict(said)}")
    print(f"wrong verdicts: {wrong or 0}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
