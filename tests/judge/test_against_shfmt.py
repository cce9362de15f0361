"""Where another reader of shell texts sees a call that ours does not, ours does not say "a read"."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from guard.judge.classify import check
from guard.types import Level, Policy, UserRule
from tests.judge_texts import SHAPES, mutated

SHFMT = shutil.which("shfmt") or str(Path(sys.executable).parent / "shfmt")
HARMLESS = Policy(rules=[UserRule("t.kk", "kk", ["..."], Level.R0, "the program of this test", True, "test")])
"""`kk` is a read here, so that only what is not read raises the level."""
SEEDS = [
    *(shape.replace("id", "kk").replace("df", "kk") for shape in SHAPES),
    "cat <<-E\n\t$(kk)\n\tE", "echo ${x/$(kk)/b}", "echo ${a[$(kk)]}", "a[$(kk)]=1; ls", "echo a # kk", "coproc kk",
    "time kk", "export Z=$(kk)", "declare -a y=($(kk))", "select x in a; do kk; done", "until kk; do ls; done",
    "ls > >(kk)", "kk |& kk", "(( x = $(kk) ))", "[ $(kk) ] && ls", "echo \"${x//a/$(kk)}\"", "echo $\"$(kk)\"",
]  # fmt: skip


def calls_seen_by_shfmt(text: str) -> "int | None":
    """How many simple commands named `kk` shfmt's tree holds; None when it refuses the text."""
    done = subprocess.run(
        [SHFMT, "-ln", "bash", "--to-json"], input=text.encode(), capture_output=True, timeout=20, check=False
    )
    if done.returncode:
        return None
    found, queue = 0, [json.loads(done.stdout)]
    while queue:
        node = queue.pop()
        if isinstance(node, list):
            queue.extend(node)
        elif isinstance(node, dict):
            words = node.get("Args") if node.get("Type") == "CallExpr" else None
            if words and [part.get("Value") for part in words[0]["Parts"]] == ["kk"]:
                found += 1
            queue.extend(value for value in node.values() if isinstance(value, dict | list))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_call_that_shfmt_sees_is_read_or_the_text_is_no_read(seed):
    chance = random.Random(f"shfmt {seed}")
    for text in [seed, *(mutated(seed, chance, 2) for _ in range(6))]:
        seen = calls_seen_by_shfmt(text)
        assessment = check(text, policy=HARMLESS)
        read = sum(ran.name == "kk" for ran in assessment.ran)
        if seen is not None and seen > read:
            assert assessment.level >= Level.R2, text


def test_shfmt_sees_the_calls_that_this_test_counts():
    assert calls_seen_by_shfmt("kk a; x=$(kk b | cat); f() { kk; }") == 3
    assert calls_seen_by_shfmt("echo 'kk' # kk") == 0
    assert calls_seen_by_shfmt("if kk") is None
