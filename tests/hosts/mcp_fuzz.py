"""Two fuzzers against the MCP server: mcp-fuzzer, fetched by pip into the user's cache, and mutated lines of our own.

    .venv-test/bin/python -m tests.hosts.mcp_fuzz [LINES]

Run by `make hosts`. Ends with 1 when the server crashed, fell silent, answered what is no answer, or when anything that
was sent approved or changed something. What mcp-fuzzer calls "accepted malformed" is only shown: to it, arguments that
fit the schema and notices of unknown kinds are malformed too.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mcp.mutations import mutated
from tests.mcp.talk import Peer
from tests.pypi import NotInstalled, environment_of

ROOT = Path(__file__).resolve().parents[2]
FUZZER = "mcp-fuzzer==0.7.0"
RUNS = 5
SEED = 20261201
LINES = 20_000
WORST = ("crashed", "anomaly", "exceptions")


def by_mcp_fuzzer(folder: Path) -> bool:
    """Whether the server stood it; prints the worst of each tool."""
    work, out = folder / "work", folder / "out"
    work.mkdir()
    env = {**os.environ, "HOME": str(folder), "OPSAGENT_HOME": str(folder / "state")}
    options = {
        "--mode": "all",
        "--phase": "both",
        "--protocol-phase": "aggressive",
        "--protocol": "stdio",
        "--runs": RUNS,
        "--runs-per-type": RUNS,
        "--seed": SEED,
        "--timeout": 60,
        "--tool-timeout": 60,
        "--endpoint": f"{ROOT}/opsagent mcp --cwd {work}",
        "--output-dir": out,
        "--log-level": "CRITICAL",
    }
    words = [str(word) for option in options.items() for word in option]
    done = subprocess.run(
        [environment_of(FUZZER).with_name("mcp-fuzzer"), *words, "--no-corpus"],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    summary = json.loads((out / "run_summary.json").read_text())
    tools = summary["tools"]["by_name"]
    bad = {name: one["outcomes"] for name, one in tools.items() if any(one["outcomes"][kind] for kind in WORST)}
    left = [str(path.relative_to(work)) for path in work.rglob("*")]
    runs = summary["tools"]["total_runs"] + summary["protocols"]["total_runs"]
    print(f"mcp-fuzzer: {runs} runs over {len(tools)} tools, exit code {done.returncode}; {summary['findings']}")
    print(f"mcp-fuzzer: crashed, silent or anomalous: {bad or 'none'}; left in the work folder: {left or 'nothing'}")
    return done.returncode == 0 and not bad and not left and len(tools) > 10 and unapproved(folder)


def unapproved(home: Path) -> bool:
    """Whether nothing was approved or changed, and the log is whole."""
    env = {**os.environ, "HOME": str(home), "OPSAGENT_HOME": str(home / "state")}

    def opsx(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([ROOT / "opsx", *words], env=env, capture_output=True, text=True, timeout=120)

    stamps = json.loads(opsx("stamps", "--all", "--json").stdout)["stamps"]
    runs = json.loads(opsx("executions", "--json", "--limit", "1000").stdout)["executions"]
    changes = [run["id"] for run in runs if run["level"] != "R0"]
    whole = opsx("audit", "verify").returncode == 0
    print(f"approvals: {len(stamps)}, changes: {len(changes)} of {len(runs)} runs, log whole: {whole}")
    return not stamps and not changes and whole


def by_mutations(folder: Path, count: int) -> bool:
    """Whether each line got at most one answer, every answer was one, and the server lives."""
    chance, answers = random.Random(SEED), 0
    with Peer(folder / "mutations") as peer:
        # Few enough at a time that neither side fills a pipe that the other does not read.
        for first in range(0, count, 100):
            for _ in range(min(100, count - first)):
                peer.send(mutated(chance) + b"\n")
            end = f"end {first}"
            peer.send({"jsonrpc": "2.0", "id": end, "method": "ping"})
            while (message := peer.next()) is not None and message.get("id") != end:
                answers += 1
            if message is None:
                print(f"mutations: the server is gone after {first} lines: {peer.err.decode()}")
                return False
        peer.alive()
    print(f"mutations: {count} lines, {answers} answers")
    return 0 < answers <= count


def main(argv: list[str]) -> int:
    """Both."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="opsagent-fuzz-") as folder:
        good = by_mutations(Path(folder), int(argv[0]) if argv else LINES)
        try:
            good = by_mcp_fuzzer(Path(folder)) and good
        except (NotInstalled, OSError) as error:
            print(f"mcp-fuzzer: NOT RUN: {error}")
            good = False
    print(f"fuzz: {'ok' if good else 'WRONG'}, {time.monotonic() - began:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
