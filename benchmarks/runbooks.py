"""How long runbooks take on this machine, through the guard: disk and memory, all at once, all while every read hangs.

Prints seconds of wall time beside the targets, the load it was measured under, and the planner's milliseconds. Ends
with 1 when the bound of the worst case does not hold; the others depend on what else the machine does.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from capabilities.run import read_only_runner  # noqa: E402
from cli import surroundings  # noqa: E402
from execution import open_guard  # noqa: E402
from guard.clock import SystemClock  # noqa: E402
from runbooks import runner  # noqa: E402
from runbooks.catalogue import RANKED  # noqa: E402
from runbooks.look import this_machine  # noqa: E402
from runbooks.model import Answer  # noqa: E402
from runbooks.planner import plan  # noqa: E402


def seconds(ids: tuple[str, ...], ask: object) -> float:
    """The wall time of these runbooks, run once."""
    began = time.monotonic()
    runner.run(ids, ask, this_machine(), utc=SystemClock().utc)  # type: ignore[arg-type]
    return time.monotonic() - began


def hangs(argv: object, timeout_s: float) -> Answer:
    """A read that uses up its time and a moment more."""
    time.sleep(timeout_s + 0.5)
    return Answer(None, status="timed_out")


def main() -> int:
    """Measures and prints."""
    with tempfile.TemporaryDirectory() as state:
        os.environ["OPSAGENT_HOME"] = state
        ask = read_only_runner(open_guard(surroundings.policy(), outputs_folder=None))
        few = min(seconds(("disk", "memory"), ask) for _ in range(5))
        every = min(seconds(RANKED, ask) for _ in range(3))
    worst = seconds(RANKED, hangs)
    questions = ["which services failed", "磁盘快满了吗", "why did nginx restart", "给这台机器做个体检"] * 25
    plan("warm")
    began = time.perf_counter()
    for question in questions:
        plan(question)
    planned_ms = 1000 * (time.perf_counter() - began) / len(questions)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"disk and memory: {few:.2f} s (target 0.40)")
    print(f"all {len(RANKED)} at once: {every:.2f} s (target 4 on a healthy machine)")
    print(f"all {len(RANKED)} while every read hangs: {worst:.2f} s (target {runner.TOTAL_S:g})")
    print(f"planner: {planned_ms:.2f} ms a question (target 5)")
    return 0 if worst <= runner.TOTAL_S + 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
