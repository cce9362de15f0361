"""One gigabyte of output: how much memory this process grows by, and how long it takes.

Usage: python benchmarks/sandbox_output.py [MiB]. Target: at most 20 MB above the resting size.
"""

from __future__ import annotations

import pathlib
import resource
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from guard.hands.environment import build_environment
from guard.hands.targets.local import LocalTarget


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    target = LocalTarget()
    env = build_environment().env

    def run(command: str) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        cpu, started = time.process_time(), time.perf_counter()
        result = target.run(command, cwd="/", profile="local", env=env, timeout_s=600)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(
            f"{command:52} {result.stdout.size_bytes >> 20:5} MiB  {time.perf_counter() - started:6.2f} s  own cpu"
            f" {time.process_time() - cpu:5.2f} s  +{grown:.1f} MB  kept {len(result.stdout.text):,} characters,"
            f" {result.stdout.undecodable_bytes:,} bad bytes"
        )
        assert result.stdout.size_bytes == size << 20
        assert grown <= 20

    target.run("true", cwd="/", profile="local", env=env, timeout_s=60)
    run(f"yes | head -c {size}M")
    run(f"yes 'é漢字🔒' | head -c {size}M")
    run(f"head -c {size}M /dev/urandom")


if __name__ == "__main__":
    main()
