"""The program's own source files, read as syntax: what they import, when, and which names they call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "acting",
    "agent",
    "capabilities",
    "cli",
    "dialogue",
    "fleet",
    "guard",
    "mcp_wire",
    "runbooks",
    "runtimes",
    "opsagent_cli",
    "launch",
)
ROOT_MODULES = ("core", "execution", "mcp_server")


class Import(NamedTuple):
    """One imported module or name, as written."""

    module: str
    line: int
    # False for what only the type checker sees.
    at_run_time: bool
    # True for what happens when the importing module itself is imported.
    at_import: bool


@cache
def modules() -> dict[str, Path]:
    """Dotted name → file, for everything that is the program; tests, benchmarks and tools are not."""
    found = {name: ROOT / f"{name}.py" for name in ROOT_MODULES if (ROOT / f"{name}.py").exists()}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def tree(name: str) -> ast.Module:
    """The module's syntax."""
    return ast.parse(modules()[name].read_text("utf-8"), str(modules()[name]))


def within(name: str, *prefixes: str) -> bool:
    """True if the dotted name is one of these, or below one of these."""
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


@cache
def imports(name: str) -> tuple[Import, ...]:
    """All imports of a module, wherever they stand; `from a import b` counts as a.b where that is a module of ours."""
    return tuple(_walk(tree(name), at_run_time=True, at_import=True, package=_package(name)))


def _package(name: str) -> str:
    return name if modules()[name].name == "__init__.py" else name.rpartition(".")[0]


def _walk(node: ast.AST, *, at_run_time: bool, at_import: bool, package: str) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, child.lineno, at_run_time, at_import)
        elif isinstance(child, ast.ImportFrom):
            base = child.module or ""
            if child.level:
                above = package.split(".")[: len(package.split(".")) - child.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in child.names:
                full = f"{base}.{alias.name}"
                yield Import(full if full in modules() else base, child.lineno, at_run_time, at_import)
        elif isinstance(child, ast.If) and _is_type_checking(child.test):
            for part in child.body:
                yield from _walk(ast.Module([part], []), at_run_time=False, at_import=at_import, package=package)
            for part in child.orelse:
                yield from _walk(ast.Module([part], []), at_run_time=at_run_time, at_import=at_import, package=package)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _walk(child, at_run_time=at_run_time, at_import=at_import and not inside, package=package)


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def names(name: str) -> Iterator[tuple[str, int]]:
    """Every plain name that a module reads, with its line."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id, node.lineno


def dotted(node: ast.expr) -> str:
    """`a.b.c` for attribute chains on a name, calls left out (`f().run` reads as `f.run`); "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else node.attr
    if isinstance(node, ast.Call):
        return dotted(node.func)
    return ""


def attributes(name: str) -> Iterator[tuple[str, int]]:
    """Every `a.b` of a module as a dotted name, with its line."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Attribute):
            yield dotted(node), node.lineno


def calls(name: str) -> Iterator[tuple[str, int]]:
    """Every call of a module as a dotted name, with its line."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Call):
            yield dotted(node.func), node.lineno
