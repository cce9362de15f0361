"""What the sandbox costs per command: own CPU and wall time beside a plain run, in one process and one run.

Usage: python benchmarks/sandbox_overhead.py [rounds]. Target: at most 1 ms of CPU more per command (ours and
the command's together).
"""

from __future__ import annotations

import pathlib
import resource
import statistics
import sys
import time
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from guard.hands.environment import build_environment
from guard.hands.targets.local import LocalTarget
from guard.types import Profile

COMMANDS = (
    "true",
    "df -h / | tail -n 1",
    "ls -la /etc >/dev/null",
    "find /usr/share/doc -name '*.gz' | wc -l",
    "for i in {1..200}; do : >/dev/null; done",
)


def cpu_s() -> float:
    ours, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return ours.ru_utime + ours.ru_stime + theirs.ru_utime + theirs.ru_stime


def measured(rounds: int, run: Callable[[], object]) -> tuple[float, float, float]:
    """(median wall ms, least wall ms, CPU ms per run)."""
    run()
    walls = []
    before = cpu_s()
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        walls.append((time.perf_counter() - started) * 1000)
    return statistics.median(walls), min(walls), (cpu_s() - before) * 1000 / rounds


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    target = LocalTarget()
    started = time.perf_counter()
    held = target.enforcement()
    print(f"measure(): {(time.perf_counter() - started) * 1000:.1f} ms, {held}")
    env = build_environment().env

    def run(command: str, profile: str) -> None:
        result = target.run(command, cwd="/", profile=profile, env=env, timeout_s=60)
        assert result.exit_code == 0, result

    print(f"{'command':44} {'plain med/min/cpu ms':>24} {'sandboxed med/min/cpu ms':>26} {'more cpu':>9}")
    for command in COMMANDS:
        plain = measured(rounds, lambda c=command: run(c, Profile.NONE))
        boxed = measured(rounds, lambda c=command: run(c, Profile.LOCAL))
        print(
            f"{command:44} {plain[0]:8.2f}{plain[1]:8.2f}{plain[2]:8.2f} {boxed[0]:10.2f}{boxed[1]:8.2f}{boxed[2]:8.2f}"
            f" {boxed[2] - plain[2]:+9.2f}"
        )


if __name__ == "__main__":
    main()
