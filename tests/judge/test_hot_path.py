"""Judging starts in a few milliseconds because it imports nothing slow."""

import subprocess
import sys
from pathlib import Path

import tree_sitter

ROOT = Path(__file__).parent.parent.parent
PROBE = """
import sys
sys.path[:0] = [{root!r}, {site!r}]
before = set(sys.modules)
from guard.judge.classify import check
for command in ("ls -la | head", "sudo systemctl status nginx", "git log", "kubectl get pods", "sed -n 1p f",
    "psql -c 'select 1'"):
    check(command)
print(" ".join(sorted(set(sys.modules) - before)))
"""


def test_judging_imports_nothing_slow():
    site = str(Path(tree_sitter.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROBE.format(root=str(ROOT), site=site)],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert "guard.judge.families.vcs" in loaded
    slow = {"typing", "json", "dataclasses", "enum", "re", "inspect", "importlib.resources", "pathlib",
        "tempfile", "tree_sitter", "subprocess", "argparse"}  # fmt: skip
    assert loaded & slow == set()
    assert "guard.judge.families.storage" not in loaded
