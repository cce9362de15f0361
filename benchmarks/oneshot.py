"""One question with one tool call, from the start of the process to its end: wall time, CPU time and memory.

    .venv/bin/python benchmarks/oneshot.py [ROUNDS] [--peer 'COMMAND …']

The model is the tests' scripted server on loopback, so what is measured is ours: start, imports, one request, one read
in the sandbox, one more request, the records. A peer (`codex exec`, pointed at a scripted model of its own) is run in
turn with ours when it is named. Nothing here fails; it prints. Targets: at most 0.46 s and 75 MB on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.model_server import Call, ModelServer, Say  # noqa: E402

PYTHON = str(ROOT / ".venv/bin/python")
TARGET_S, TARGET_MB = 0.46, 75


def measured(argv: list[str], env: dict[str, str]) -> tuple[float, float, float]:
    """Seconds, CPU seconds and peak MiB of one process with all that it waited for."""
    began = time.perf_counter()
    pid = os.posix_spawnp(
        argv[0],
        argv,
        env,
        file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)],
    )
    _, status, used = os.wait4(pid, 0)
    took = time.perf_counter() - began
    if status:
        print(f"{argv[0]} ended with {os.waitstatus_to_exitcode(status)}", file=sys.stderr)
    return took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def answered(request: object) -> Say:
    """Asks for one read, and after that answers."""
    body = request.body  # type: ignore[attr-defined]
    if b"tool_result" in body or b'"role": "tool"' in body:
        return Say("The disk is a third full.")
    return Say(calls=[Call("bash", {"command": "df -h /"})])


def main() -> None:
    """Prints a row for each wire format, and for peers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", type=int, nargs="?", default=10)
    parser.add_argument("--peer", action="append", default=[], help="a command that does the same")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, ModelServer(*[answered] * 100_000) as server:
        base = {"PATH": os.environ["PATH"], "HOME": home, "OPSAGENT_HOME": f"{home}/state", "LC_ALL": "C.UTF-8"}
        question = [str(ROOT / "opsagent"), "-p", "how is the service?"]
        runs = {
            "python -c pass": ([PYTHON, "-c", "pass"], base),
            "opsagent -p, offline": ([*question[:2], "disk"], base),
            "opsagent -p, chat completions": (
                question,
                {
                    **base,
                    "OPENAI_BASE_URL": server.openai_url,
                    "OPENAI_API_KEY": "bench-key-1",
                    "OPENAI_MODEL": "mock-1",
                },
            ),
            "opsagent -p, messages": (
                question,
                {
                    **base,
                    "ANTHROPIC_BASE_URL": server.anthropic_url,
                    "ANTHROPIC_API_KEY": "bench-key-1",
                    "ANTHROPIC_MODEL": "mock-1",
                },
            ),
            **{peer: (shlex.split(peer), dict(os.environ)) for peer in chosen.peer},
        }
        taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in runs}
        for number in range(chosen.rounds + 1):
            for name, (argv, env) in runs.items():
                found = measured(argv, env)
                if number:  # the first round warms caches
                    taken[name].append(found)
    print(f"{'':36} {'wall s':>8} {'min s':>8} {'CPU s':>8} {'MiB':>6}   target {TARGET_S} s, {TARGET_MB} MiB")
    for name, rows in taken.items():
        wall, cpu, memory = (statistics.median(row[column] for row in rows) for column in range(3))
        print(f"{name[:36]:36} {wall:8.3f} {min(row[0] for row in rows):8.3f} {cpu:8.3f} {memory:6.0f}")


if __name__ == "__main__":
    main()
