"""How long the launchers take to start, as ratios to `python -c pass` of the same interpreter in the same run.

    .venv/bin/python benchmarks/startup.py [ROUNDS]

Each round runs every command once, in turn, so that a machine that gets slower or faster hits all alike. Targets are
those of the design's section 16; nothing here fails, it prints.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = str(ROOT / ".venv/bin/python")

COMMANDS = {
    "python -c pass": ([PYTHON, "-c", "pass"], None),
    "python -I -S -c pass": ([PYTHON, "-I", "-S", "-c", "pass"], None),
    "./opsagent --version": ([str(ROOT / "opsagent"), "--version"], 2.0),
    "./opsx --version": ([str(ROOT / "opsx"), "--version"], 2.0),
    "./opsx check ls": ([str(ROOT / "opsx"), "check", "ls"], 3.0),
    "./opsx check --json 'kubectl -n prod get pods | grep x'": (
        [str(ROOT / "opsx"), "check", "--json", "kubectl -n prod get pods | grep x"],
        3.0,
    ),
    "./opsx exec -- true": ([str(ROOT / "opsx"), "exec", "--", "true"], None),
    "./opsagent -p disk+memory": ([str(ROOT / "opsagent"), "-p", "check this machine's disk and memory"], None),
}


def main(rounds: int) -> None:
    """Prints a table: median and minimum in milliseconds, the ratio of medians, and the target."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "OPSAGENT_HOME": f"{home}/state"}
        for number in range(rounds + 1):
            for name, (argv, _) in COMMANDS.items():
                before = time.perf_counter()
                subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
                if number:  # the first round warms caches
                    taken[name].append((time.perf_counter() - before) * 1000)
    floor = statistics.median(taken["python -c pass"])
    print(f"{'command':58} {'median ms':>9} {'min ms':>7} {'ratio':>6}  target")
    for name, (_, target) in COMMANDS.items():
        middle = statistics.median(taken[name])
        wanted = f"≤ {target:g}" if target else ""
        print(f"{name:58} {middle:9.1f} {min(taken[name]):7.1f} {middle / floor:6.2f}  {wanted}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
