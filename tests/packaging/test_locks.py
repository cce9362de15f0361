"""The committed locks: complete, hashed, without addresses, and in step with pyproject.toml."""

from __future__ import annotations

import re
import tomllib

import pytest

from launch.lock import with_header, without_comments, without_foreign
from tests.packaging.checkouts import ROOT

LOCKS = ("requirements.lock", "requirements-test.lock")


def read_entries(name: str) -> dict[str, list[str]]:
    """Library → the texts of its entries (more than one where platforms need different versions)."""
    body = (ROOT / name).read_text().split("\n", 1)[1]
    entries: dict[str, list[str]] = {}
    for entry in re.split(r"\n(?=[A-Za-z0-9])", body.strip()):
        entries.setdefault(re.split(r"==", entry)[0], []).append(entry)
    return entries


def canonical(requirement: str) -> str:
    return re.split(r"[<>=\[;~! ]", requirement)[0].lower().replace("_", "-")


@pytest.mark.parametrize("name", LOCKS)
def test_first_line_names_the_content(name):
    text = (ROOT / name).read_text()
    body = text.split("\n", 1)[1]
    assert with_header(body) == text, "edit pyproject.toml and run `make lock`; never edit a lock by hand"


@pytest.mark.parametrize("name", LOCKS)
def test_every_entry_is_exact_and_hashed(name):
    for texts in read_entries(name).values():
        for text in texts:
            assert re.match(r"[a-z0-9-]+==[0-9][0-9a-z.]*( ; [^\\]+)? \\\n", text), text.split("\n")[0]
            assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", text)) == text.count("\n")


@pytest.mark.parametrize("name", LOCKS)
def test_no_lock_names_an_address(name):
    text = (ROOT / name).read_text()
    assert "://" not in text and "@" not in text and "--index" not in text and "--find-links" not in text


def test_locks_follow_pyproject_and_agree_with_each_other():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    runtime, tests = read_entries(LOCKS[0]), read_entries(LOCKS[1])
    assert {canonical(one) for one in project["dependencies"]} <= set(runtime)
    assert {canonical(one) for one in project["optional-dependencies"]["test"]} <= set(tests)
    for library, texts in runtime.items():
        assert tests[library] == texts


def test_pinned_dependencies_have_the_same_version_in_the_lock():
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    pinned = [one for one in dependencies if "==" in one]
    assert {canonical(one) for one in pinned} == {"tree-sitter", "tree-sitter-bash"}
    for one in pinned:
        assert read_entries(LOCKS[0])[canonical(one)][0].startswith(one + " ")


def test_entries_for_platforms_that_are_not_supported_are_dropped():
    text = "# by a tool\na==1 \\\n    --hash=sha256:00\npywin32==2 ; sys_platform == 'win32' \\\n    --hash=sha256:11\n"
    assert without_foreign(without_comments(text)) == "a==1 \\\n    --hash=sha256:00\n"


def test_every_dependency_has_its_line_in_the_docs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "docs" / "dependencies.md").read_text()
    named = {name.lower() for name in re.findall(r"^\| `([^`]+)` \|", text, re.M)}
    direct = {canonical(one) for one in project["dependencies"] + project["optional-dependencies"]["test"]}
    assert named == direct
