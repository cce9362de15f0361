"""Agent programs beside ours, in one run: start, one text answer, one shell command and the answer.

    .venv-test/bin/python benchmarks/hosts.py [ROUNDS] [--only 'codex exec' …]

Fetches Claude Code, Codex, Gemini CLI and opencode in the versions of tests/hosts/versions.py (1.4 GB in the user's
cache, once). Every model is the tests' scripted server on loopback. Wall time, CPU time of all processes and memory of
the largest one are medians; the programs take turns, so that what else the machine does meets them all. Nothing here
fails; it prints. docs/hosts.md has one such table. Targets: at most codex exec's time, and half its memory.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.oneshot import measured  # noqa: E402
from tests.hosts import claude_code, codex, gemini_cli, opencode, versions  # noqa: E402
from tests.hosts.stage import Stage, model, results_in  # noqa: E402
from tests.model_server import Call, ModelServer, Say  # noqa: E402
from tests.npm import fetched  # noqa: E402

COMMAND = "cat a-file"
Run = tuple[list[str], Mapping[str, str]]
Figures = tuple[float, float, float]


def programs(stage: Stage, url: str, call: bool) -> dict[str, Run]:
    """What is started, with its environment; `call`: the model wants one command run before it answers."""
    ours = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "bench-key-1", "OPENAI_MODEL": "mock-1"}
    address = [word.replace("{url}", url) for word in codex.ADDRESS]
    yolo = ["--yolo"] if call else []
    gemini = ["gemini", "--skip-trust", *yolo, "-m", "gemini-2.5-flash", "-p", "go"]
    return {
        "opsagent": ([str(ROOT / "opsagent"), "-p", "go"], ours),
        "codex exec": (
            [*stage.argv(["codex", "exec", "--skip-git-repo-check", *address, "go"])],
            codex.environ(stage),
        ),
        "claude -p": (stage.argv(["claude", "-p", "go"]), {**claude_code.ENVIRON, "ANTHROPIC_BASE_URL": url}),
        "gemini -p": (stage.argv(gemini), {**gemini_cli.ENVIRON, "GOOGLE_GEMINI_BASE_URL": url}),
        "opencode run": (stage.argv(["opencode", "run", "go"]), {**opencode.ENVIRON, "MODEL_URL": url}),
    }


TOOLS = {
    "opsagent": Call("bash", {"command": COMMAND}),
    "codex exec": Call("exec_command", {"cmd": COMMAND}),
    "claude -p": Call("Bash", {"command": COMMAND, "description": "a step"}),
    "gemini -p": Call("run_shell_command", {"command": COMMAND, "description": "a step"}),
    "opencode run": Call("bash", {"command": COMMAND, "description": "a step"}),
}
VERSIONS = {
    "codex exec": versions.CODEX,
    "claude -p": versions.CLAUDE_CODE,
    "gemini -p": versions.GEMINI,
    "opencode run": versions.OPENCODE,
}


def once(stage: Stage, name: str, call: bool) -> Figures:
    """One run. Says on stderr when the command's output did not come back to the model."""
    script = [Say(calls=[TOOLS[name]]), Say("done")] if call else [Say("done")]
    with model(script) as server:
        argv, more = programs(stage, server.url, call)[name]
        figures = measured(argv, {**stage.environ, **more})
        if call and not _came_back(server):
            print(f"{name}: its command did not run", file=sys.stderr)
        return figures


def _came_back(server: ModelServer) -> bool:
    return any("forty-two" in result for result in results_in(server.requests))


def prepared(folder: Path) -> Stage:
    """A stage with the least that each program needs to reach the scripted model."""
    stage = Stage(folder, fetched(*versions.NPM))
    for name, text in ((".codex/config.toml", codex.CONFIG), (".gemini/settings.json", gemini_cli.SETTINGS)):
        (stage.home / name).parent.mkdir()
        (stage.home / name).write_text(text)
    (stage.project / "opencode.json").write_text(opencode.settings(ask=False))
    return stage


def main() -> None:
    """Prints the three figures of each program and job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--only", action="append", choices=list(TOOLS), help="leave the others out; can be repeated")
    chosen = parser.parse_args()
    jobs = ("start", "text", "command")
    names = [name for name in TOOLS if name in (chosen.only or TOOLS)]
    taken: dict[tuple[str, str], list[Figures]] = {(name, job): [] for name in names for job in jobs}
    with tempfile.TemporaryDirectory(prefix="opsagent-bench-", ignore_cleanup_errors=True) as folder:
        stage = prepared(Path(folder))
        os.chdir(stage.project)
        for number in range(chosen.rounds + 1):
            for name, job in taken:
                if job == "start":
                    argv = [*programs(stage, "http://127.0.0.1:1", False)[name][0]]
                    # The program alone; a script keeps its Node before it.
                    words = 2 if argv[1].startswith("/") else 1
                    figures = measured([*argv[:words], "--version"], stage.environ)
                else:
                    figures = once(stage, name, job == "command")
                if number:  # the first round warms caches and makes homes
                    taken[name, job].append(figures)
        os.chdir(ROOT)
    load = os.getloadavg()[0]
    print(f"medians of {chosen.rounds}; load {load:.1f}; wall s (the least) / CPU s / MiB of the largest process")
    print("| program | `--version` | a text answer | one command and the answer |\n| --- | --- | --- | --- |")
    for name in names:
        cells = []
        for job in jobs:
            wall, cpu, memory = (statistics.median(row[at] for row in taken[name, job]) for at in range(3))
            least = min(row[0] for row in taken[name, job])
            cells.append(f"{wall:.2f} ({least:.2f}) / {cpu:.2f} / {memory:.0f}")
        version = VERSIONS.get(name, "").rpartition("@")[2]
        print(f"| {name} {version} | {' | '.join(cells)} |".replace("  ", " "))


if __name__ == "__main__":
    main()
