"""The judge measured: CPU per command, generated texts without an exception, and against two other readers.

    python benchmarks/judge.py speed            CPU per corpus row: level and decision, then everything; limits
    python benchmarks/judge.py fuzz 100000      generated texts: no exception, the slowest named
    python benchmarks/judge.py bash 5000        texts changed by single characters, against a real bash with stubs
    python benchmarks/judge.py shfmt 5000       the same, against shfmt's tree

The last two end with 1 when a text is found that the judge calls a read and the other reader does not.
"""

import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from guard.judge.classify import check
from guard.judge.explain import explain
from guard.types import Level
from tests.judge.test_against_bash import unread
from tests.judge.test_against_shfmt import HARMLESS, SEEDS, calls_seen_by_shfmt
from tests.judge_texts import COMMANDS, SHAPES, Recorder, generated, mutated

LIMITS = {
    "a line of 65,536 bytes": "echo " + "a" * 65_531,
    "10,000 nested parentheses": "(" * 10_000 + "ls" + ")" * 10_000,
    "5,000 pipeline stages": "|".join(["cat"] * 5_000),
    "5,000 commands": ";".join(["ls -l"] * 5_000),
    "13,000 substitutions": "echo " + "$(id)" * 13_000,
    "8,000 redirections": "ls" + " 2>&1" * 8_000,
    "growing variables": ";".join(f"v{i}=$v{i - 1}$v{i - 1}" for i in range(1, 2_000)),
}


def row(name: str, times: "list[float]") -> None:
    """One line: median, 99th percentile and worst in microseconds."""
    times = sorted(times)
    at = [times[int(len(times) * part)] * 1e6 for part in (0.5, 0.99)]
    print(f"{name:36} median {at[0]:8.1f} µs   p99 {at[1]:8.1f} µs   worst {times[-1] * 1e6:10.1f} µs")


def timed(work) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def speed() -> int:
    for command in COMMANDS:
        check(command)  # loads the families
    row("level and decision", [min(timed(lambda c=c: check(c)) for _ in range(3)) for c in COMMANDS])

    def everything(command: str) -> None:
        found = check(command)
        _ = (found.reasons, found.effects, found.snapshot_plan, found.opaque, found.peers, found.env)

    row("with reasons, effects and plan", [min(timed(lambda c=c: everything(c)) for _ in range(3)) for c in COMMANDS])
    row("inputs", [timed(lambda c=c: check(c, cwd="/srv").inputs) for c in COMMANDS])
    row("explain", [timed(lambda c=c: explain(check(c))) for c in COMMANDS])
    for name, text in LIMITS.items():
        print(f"{name:36} {timed(lambda t=text: check(t)) * 1e3:8.1f} ms   {check(text).level}")
    return 0


def fuzz(count: int) -> int:
    chance = random.Random("benchmark")
    times, worst = [], ("", 0.0)
    for number in range(count):
        text = generated(chance)
        spent = timed(lambda t=text: check(t, cwd="/srv"))
        times.append(spent)
        if spent > worst[1]:
            worst = (text, spent)
        if number % 20 == 0:
            found = check(text, cwd="/srv")
            explain(found)
            _ = found.inputs
    row(f"{count:,} generated texts", times)
    print(f"slowest: {worst[0][:200]!r}")
    return 0


def against_bash(count: int) -> int:
    chance, wrong, compared, reads = random.Random("benchmark"), [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder))
        for _ in range(count):
            text = mutated(chance.choice(SHAPES), chance, 2)
            found = check(text)
            if any(reason.rule.startswith("shell.") for reason in found.reasons):
                continue
            compared += 1
            reads += found.level == Level.R0
            calls, made = recorder.run(text)
            acted = {argv[0] for argv in calls} & {"kk", "rm", "touch", "mv"}
            if unread(found, calls) or (found.level == Level.R0 and (made or acted)):
                wrong.append(text)
    print(f"{count:,} texts, {compared:,} read in full and run, {reads:,} of them reads: {len(wrong)} differ")
    for text in wrong[:20]:
        print(f"  {text!r}")
    return 1 if wrong else 0


def against_shfmt(count: int) -> int:
    chance, wrong, compared = random.Random("benchmark"), [], 0
    for _ in range(count):
        text = mutated(chance.choice(SEEDS), chance, 3)
        seen = calls_seen_by_shfmt(text)
        if seen is None:
            continue
        compared += 1
        found = check(text, policy=HARMLESS)
        if seen > sum(ran.name == "kk" for ran in found.ran) and found.level < Level.R2:
            wrong.append(text)
    print(f"{count:,} texts, {compared:,} that shfmt reads: {len(wrong)} in which it sees more than a read")
    for text in wrong[:20]:
        print(f"  {text!r}")
    return 1 if wrong else 0


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else "speed"
    many = int(sys.argv[2]) if len(sys.argv) > 2 else 2_000
    sys.exit(
        {
            "speed": speed,
            "fuzz": lambda: fuzz(many),
            "bash": lambda: against_bash(many),
            "shfmt": lambda: against_shfmt(many),
        }[what]()
    )
