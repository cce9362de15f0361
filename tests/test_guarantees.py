"""Every promise of docs/guarantees.md has a test, and every id in a test is a promise."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def promised() -> list[str]:
    """The ids of docs/guarantees.md, in the order of the page."""
    return re.findall(r"^\| (G-[A-Z0-9-]+) \|", (ROOT / "docs" / "guarantees.md").read_text("utf-8"), re.M)


def held() -> dict[str, list[str]]:
    """Id → the tests that carry `@pytest.mark.guarantee(id)` (on a function, a class or a whole module)."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.guarantee":
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{file}:{node.lineno}: an id is written out"
                    found.setdefault(argument.value, []).append(f"{file.relative_to(ROOT)}:{node.lineno}")
    return found


def test_no_promise_is_written_twice():
    ids = promised()
    assert len(ids) > 10 and len(ids) == len(set(ids))


def test_every_promise_has_a_test():
    assert [one for one in promised() if one not in held()] == []


def test_every_id_in_a_test_is_a_promise():
    assert {one: places for one, places in held().items() if one not in promised()} == {}
