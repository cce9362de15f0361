"""Who may import whom, what is pure, what the hot path may load: docs/architecture.md as assertions.

Import contracts of ready-made tools know packages only; this program also has single files at the root, so its own
syntax is read here.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import sysconfig

import pytest

from tests.sources import ROOT, attributes, calls, imports, modules, names, tree, within

OURS = (
    "acting",
    "agent",
    "capabilities",
    "cli",
    "core",
    "dialogue",
    "execution",
    "fleet",
    "guard",
    "mcp_server",
    "mcp_wire",
    "runbooks",
    "runtimes",
)
# What the judge may import of the guard, pure and light; then what else is only values.
HOT = ("guard.types", "guard.errors", "guard.lines", "guard.quoting", "guard.exact", "guard.pointers")
VALUES = (*HOT, "guard.saved", "guard.metadata", "guard.bound", "guard.keeping", "guard.filechange")

# Pure services of the guard that every wing may use.
SERVICES = ("guard.ports", "guard.clock", "guard.redact", "guard.redaction", "guard.render")

# Module or package → what of ours it may import beside itself. The longest fitting name decides.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "guard": VALUES,
    "guard.judge": (*HOT, "guard.render"),
    # A person's rules are tried against the judge before they count.
    "guard.userrules": (*VALUES, "guard.judge"),
    "guard.redact": (*VALUES, "guard.redaction"),
    "guard.redaction": VALUES,
    "guard.ledger": (*VALUES, *SERVICES),
    "guard.hands": (*VALUES, *SERVICES),
    # The face for thinking: it judges and reads what was recorded, and has no hands.
    "core": (*VALUES, *SERVICES, "guard.judge", "guard.ledger"),
    "execution": ("core", "guard", "acting"),
    # What execution is made of. Beside it, only what asks a person knows four of its parts: what is bound, a file
    # change, a plan, and a dead man.
    "acting": ("core", "guard"),
    "dialogue": ("guard.types", "guard.render"),
    "capabilities": (
        *("execution", "acting.approving", "acting.deadman", "acting.edit", "acting.rollback_request"),
        "acting.snapshots",
        *("core", "dialogue", "guard"),
    ),
    "runbooks": ("capabilities", "execution", "core", "dialogue", "guard"),
    "runtimes": ("capabilities", "execution", "core", "dialogue", "guard"),
    "fleet": ("capabilities", "execution", "core", "dialogue", "guard"),
    # Siblings that a conversation needs; they do not know it. mcp_server and agent do not know each other.
    "agent": ("runbooks", "runtimes", "fleet", "capabilities", "execution", "core", "dialogue", "guard"),
    "mcp_wire": ("capabilities.lines",),
    "mcp_server": ("mcp_wire", "runbooks", "capabilities", "execution", "core", "dialogue", "guard"),
    "cli": OURS,
    # What starts programs knows their entry points and nothing else.
    "opsagent_cli": ("cli.opsx", "cli.opsagent", "cli.ending", "mcp_server"),
    "launch": ("cli.opsx", "cli.opsagent", "cli.ending"),
}

# What the judge may load of the standard library: nothing that reaches files, processes, sockets, clock or environment.
JUDGE_LIBRARY = {
    "sys",
    "binascii",
    "bisect",
    "collections",
    "collections.abc",
    "functools",
    "itertools",
    "operator",
    "unicodedata",
}
# The grammar is loaded by path, families by name; no other module of the judge loads code.
JUDGE_LOADERS = {"guard.judge.shell.grammar", "guard.judge.families"}
FORBIDDEN_NAMES = {"open", "print", "input", "exec", "eval", "compile", "breakpoint", "__import__"}

# Processes of their own that speak with their parent over standard input and output, and with no person.
CHILDREN = {"guard.hands.witness", "guard.hands.sandbox.canary_probe", "acting.notifying"}
STREAMS = {f"sys.{mark}{name}{mark}" for name in ("stdin", "stdout", "stderr") for mark in ("", "__")}

# Measured: dataclasses alone is 2.5 times `python -c pass`.
SLOW = {
    "dataclasses",
    "typing",
    "json",
    "inspect",
    "enum",
    "re",
    "argparse",
    "asyncio",
    "subprocess",
    "pathlib",
    "logging",
}
SLOW |= {
    "importlib.resources",
    "importlib.metadata",
    "tempfile",
    "shutil",
    "socket",
    "ssl",
    "ctypes",
    "decimal",
    "datetime",
}
SLOW |= {"concurrent", "multiprocessing", "sqlite3", "unittest", "urllib", "http", "email", "platform", "uuid"}
SLOW |= {"jsonschema", "httpx2", "mcp", "pydantic", "prompt_toolkit", "platformdirs"}


# The grammar's extension module loads these itself (7 of the 9 ms that it costs); our own code must not.
GRAMMAR_BRINGS = {"re", "enum"}


def rule_of(name: str) -> str:
    """The key of MAY_IMPORT that speaks for a module."""
    fitting = [key for key in MAY_IMPORT if within(name, key)]
    assert fitting, f"{name} has no rule in MAY_IMPORT"
    return max(fitting, key=len)


def test_imports_go_one_way():
    wrong = []
    for name in modules():
        rule = rule_of(name)
        allowed = (rule, *MAY_IMPORT[rule])
        if rule == "guard" and name != "guard":
            allowed = (name, *VALUES)
        for one in imports(name):
            if within(one.module, *OURS) and not within(one.module, *allowed):
                wrong.append(f"{name}:{one.line} imports {one.module}")
    assert wrong == []


def test_every_root_name_is_ours_alone():
    """A root package that the standard library or a dependency also has would be shadowed, or would shadow."""
    assert not set(OURS) & set(sys.stdlib_module_names)
    top = {name.partition(".")[0] for name in modules()}
    assert top <= {*OURS, "opsagent_cli", "launch"}
    strays = {file.stem for file in ROOT.glob("*.py")} - {*OURS, "hatch_build"}
    assert strays == set(), "a module at the root needs a rule above and a place in the wheel"


def test_program_is_wholly_in_the_wheel():
    import hatch_build

    packed = {place.removeprefix("opsagent_cli/_app/") for place in hatch_build.app_files(ROOT).values()}
    sources = {str(file.relative_to(ROOT)) for name, file in modules().items() if within(name, *OURS)}
    assert sources <= packed
    assert not any("__pycache__" in place for place in packed)


@pytest.mark.guarantee("G-PURE")
def test_judge_reaches_nothing_outside_itself():
    wrong = []
    for name in modules():
        if not within(name, "guard.judge", *HOT):
            continue
        loader = name in JUDGE_LOADERS
        for one in imports(name):
            ours = within(one.module, "guard")
            allowed = JUDGE_LIBRARY | ({"importlib.machinery"} if loader else set())
            if one.at_run_time and not ours and one.module not in allowed:
                wrong.append(f"{name}:{one.line} imports {one.module}")
        for used, line in names(name):
            if used in FORBIDDEN_NAMES and not (loader and used == "__import__"):
                wrong.append(f"{name}:{line} uses {used}")
        for called, line in calls(name):
            if called.startswith("sys.") and not loader:
                wrong.append(f"{name}:{line} calls {called}")
    assert wrong == []


def test_nothing_below_the_shells_prints_or_asks():
    wrong = []
    for name in modules():
        if within(name, "cli", "launch", "opsagent_cli"):
            continue
        wrong += [
            f"{name}:{line} uses {used}" for used, line in names(name) if used in ("print", "input", "breakpoint")
        ]
        wrong += [f"{name}:{one.line} imports getpass" for one in imports(name) if one.module == "getpass"]
        if within(
            name, "guard", "core", "acting", "execution", "dialogue", "capabilities", "runbooks", "runtimes", "fleet"
        ):
            wrong += [
                f"{name}:{line} uses {used}"
                for used, line in attributes(name)
                if used in STREAMS and name not in CHILDREN
            ]
    assert wrong == []


def test_only_execution_reaches_a_target():
    """Whoever holds a Target can run a command that nobody judged.

    The self-test does so on purpose: it asks the kernel, with the judge left out, and in a folder of its own.
    """
    wrong = []
    for name in modules():
        if within(name, "execution", "acting", "guard.hands", "cli.opsx_selftest"):
            continue
        wrong += [
            f"{name}:{one.line} imports {one.module}"
            for one in imports(name)
            if within(one.module, "guard.hands.targets")
        ]
        for called, line in calls(name):
            holder, _, method = called.rpartition(".")
            if method == "run" and holder.rpartition(".")[2].lower().endswith("target"):
                wrong.append(f"{name}:{line} calls {called}")
    assert wrong == []


def test_asyncio_stays_in_the_prompt_and_the_mcp_server():
    wrong = [
        f"{name}:{one.line}"
        for name in modules()
        if not within(name, "agent.repl", "mcp_server", "mcp_wire")
        for one in imports(name)
        if within(one.module, "asyncio", "anyio") and one.at_run_time
    ]
    assert wrong == []


PROCESSES = ("subprocess", "signal", "multiprocessing", "ctypes", "http", "urllib", "httpx2")
OUTSIDE = (*PROCESSES, "os", "io", "pathlib", "shutil", "tempfile", "socket", "time", "random", "secrets")


def test_ledger_starts_no_process_and_calls_nobody():
    wrong = [
        f"{name}:{one.line} imports {one.module}"
        for name in modules()
        if within(name, "guard.ledger")
        for one in imports(name)
        if within(one.module, *PROCESSES)
    ]
    assert wrong == []


def test_redaction_and_rendering_see_only_what_they_are_given():
    wrong = [
        f"{name}:{one.line} imports {one.module}"
        for name in modules()
        if within(name, "guard.redact", "guard.redaction", "guard.render")
        for one in imports(name)
        if one.at_run_time and within(one.module, *OUTSIDE)
    ]
    assert wrong == []


def test_every_module_says_what_it_promises():
    silent = [name for name in modules() if not (ast.get_docstring(tree(name)) or "").strip()]
    assert silent == []


def test_hot_path_modules_import_nothing_slow_at_run_time():
    hot = [
        name for name in modules() if within(name, "guard.types", "guard.errors", "guard.judge", "core", "launch.start")
    ]
    wrong = [
        f"{name}:{one.line} imports {one.module}"
        for name in hot
        for one in imports(name)
        if one.at_run_time and one.module in SLOW and not (name == "core" and not one.at_import)
    ]
    assert wrong == []


def loaded_by(code: str, tmp_path) -> set[str]:
    """The modules that a fresh isolated interpreter holds after this code, in the program's own way of starting."""
    path = [str(ROOT), sysconfig.get_path("platlib"), sysconfig.get_path("purelib")]
    script = f"import sys\nsys.path += {path!r}\n{code}\nsys.stderr.write('\\n'.join(sys.modules))\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "utf8", "-c", script],
        env={"PATH": os.defpath, "HOME": str(tmp_path), "OPSAGENT_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split("\n"))


def slow_ones(loaded: set[str]) -> set[str]:
    return {name for name in loaded if within(name, *(SLOW - GRAMMAR_BRINGS))}


@pytest.mark.parametrize("command", ["ls", "sudo systemctl status nginx", "kubectl -n prod get pods | grep x > /tmp/y"])
def test_judging_a_command_loads_nothing_slow(tmp_path, command):
    loaded = loaded_by(
        f"import core\nassessment = core.check({command!r})\nassessment.level, assessment.decision", tmp_path
    )
    assert "guard.judge.shell.grammar" in loaded
    # Not even hashlib: it loads OpenSSL, and a level needs no digest.
    assert slow_ones(loaded) | ({"hashlib"} & loaded) == set()
    assert not any(within(name, "guard.ledger", "guard.hands", "execution", "capabilities") for name in loaded)


@pytest.mark.parametrize("arguments", [["check", "ls"], ["check", "--json", "--", "df", "-h"], ["--version"]])
def test_opsx_check_loads_nothing_slow(tmp_path, arguments):
    # What the kernel enforces is measured by the first run that has a state folder; the hot path is what follows.
    for first in (["exec", "--", "ls"], ["check", "ls"]):
        loaded_by(f"from cli.opsx import main\nmain({first!r})", tmp_path)
    code = f"from cli.opsx import main\nassert main({arguments!r}) in (0, 3, 4)\nsys.stdout.flush()"
    assert slow_ones(loaded_by(code, tmp_path)) == set()


def test_one_version_number_everywhere():
    import tomllib

    from cli.version import VERSION

    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION


def test_architecture_page_names_every_part():
    page = (ROOT / "docs" / "architecture.md").read_text()
    missing = [name for name in {n.partition(".")[0] for n in modules()} if name not in page]
    assert missing == []
