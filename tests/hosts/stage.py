"""Where a host is tried: a home, a project and records of its own, and a scripted model on loopback.

`start` runs a program of a host to its end; `at_terminal` types into one of ours as a person would.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.approvals.terminal import Terminal
from tests.model_server import ModelServer, Received, Say
from tests.npm import Fetched

ROOT = Path(__file__).resolve().parents[2]
US = {"name": "a test", "version": "1"}
MOST_S = 300
"""Wide: under load these programs take twenty times as long as they need."""


@dataclass(frozen=True)
class Ran:
    """One run of a host."""

    code: int
    out: str
    err: str
    requests: list[Received]
    """What the model was asked, side calls included."""

    @property
    def rows(self) -> list[Any]:
        """The standard output as JSON lines; other lines are left out."""
        found = []
        for line in self.out.splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found


class Stage:
    """A folder with `home`, `project` and `state`; `environ` is all that a host sees of the environment."""

    def __init__(self, folder: Path, programs: Fetched) -> None:
        self.folder, self.programs = folder, programs
        self.home, self.project, self.state = folder / "home", folder / "project", folder / "state"
        for made in (self.home, self.project):
            made.mkdir(parents=True)
        (self.project / "a-file").write_text("forty-two\n")
        self.environ = {
            "PATH": f"{self.programs.folder}/node_modules/.bin:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "OPSAGENT_HOME": str(self.state),
        }

    def argv(self, words: Sequence[str]) -> list[str]:
        """The words with their program, which lies in `node_modules`, by its path; a script after its own Node."""
        program = self.programs.folder / "node_modules" / ".bin" / words[0]
        script = program.resolve().suffix == ".js"
        return [*(self.programs.argv(words[0]) if script else [str(program)]), *words[1:]]

    def start(
        self, argv: Sequence[str], script: Sequence[Say], *, urls: Mapping[str, str], environ: Mapping[str, str] = {}
    ) -> Ran:
        """Runs it to its end against a model that says the script.

        Args:
            urls: variables that name the model's address, each with a `{url}` in it.
        """
        with model(script) as server:
            named = {name: text.format(url=server.url) for name, text in urls.items()}
            done = subprocess.run(
                self.argv([part.format(url=server.url) if "{url}" in part else part for part in argv]),
                env={**self.environ, **environ, **named},
                cwd=self.project,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=MOST_S,
            )
            return Ran(done.returncode, done.stdout, done.stderr, server.requests)

    def ours(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """`opsx` or `opsagent`, without a terminal."""
        return subprocess.run(
            [str(ROOT / program), *words],
            env=self.environ,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=MOST_S,
        )

    def install(self, host: str, *options: str, tee: bool = True) -> None:
        """What a person does first. Raises CalledProcessError.

        Args:
            tee: what the host and our server say to each other is kept in `wire`.
        """
        self.ours("opsagent", "install", host, *options, "--write").check_returncode()
        if tee:
            self.between()

    @property
    def wire(self) -> Path:
        """The lines between a host and our server, as `tests.hosts.tee` keeps them."""
        return self.folder / "wire.jsonl"

    def between(self) -> None:
        """Puts the tee into the settings that were written, under the server's own name."""
        ours, tee = ROOT / "opsagent", self.folder / "opsagent"
        tee.write_text(f'#!/bin/sh\nexec {sys.executable} -I {ROOT}/tests/hosts/tee.py {self.wire} {ours} "$@"\n')
        tee.chmod(0o755)
        for path in (*self.folder.rglob("*.json"), *self.folder.rglob("*.toml")):
            text = path.read_text()
            if f'"{ours}"' in text:
                path.write_text(text.replace(f'"{ours}"', f'"{tee}"'))

    def executions(self) -> list[dict[str, Any]]:
        """The records, newest first."""
        rows = json.loads(self.ours("opsx", "executions", "--json").stdout)["executions"]
        return list(rows)

    def at_terminal(self, words: Iterable[str], answer: str, *, wait_for: str) -> str:
        """A person's `opsx` at a terminal: types `answer` once `wait_for` is shown, and returns all that was shown."""
        argv = [str(ROOT / "opsx"), *words]
        terminal = Terminal(argv, env={**self.environ, "TERM": "xterm"}, cwd=str(self.project), columns=120)
        try:
            terminal.wait_for(wait_for)
            # What comes in its first moments is dropped: nobody reads that fast.
            terminal.answer(answer)
            terminal.end()
            return str(terminal.text)
        finally:
            terminal.close()


def model(script: Sequence[Say]) -> ModelServer:
    """Says one reply of the script for each reply that the conversation already holds, so that retries get the same.

    A request that offers no tools is a side call (a title, a summary), and gets a word.
    """

    def reply(received: Received) -> Say:
        asked = received.json
        if not offered(asked):
            return Say("title")
        number = replies_in(asked)
        return script[number] if number < len(script) else Say("done")

    return ModelServer(otherwise=reply)


def offered(asked: dict[str, Any]) -> list[str]:
    """Names of the tools that a request of any format offers; those of a namespace after its name and a dot."""
    names: list[str] = []
    for tool in asked.get("tools") or ():
        if tool.get("type") == "namespace":
            names += [f"{tool['name']}.{one['name']}" for one in tool["tools"]]
        elif "functionDeclarations" in tool:
            names += [one["name"] for one in tool["functionDeclarations"]]
        else:
            names.append(tool.get("name") or tool.get("function", {}).get("name", ""))
    return names


@functools.cache
def served() -> tuple[str, ...]:
    """Names of the tools that our server lists, sorted."""
    lines = (
        {
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": US},
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    )
    said = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)
    with tempfile.TemporaryDirectory() as home:
        environ = {"PATH": os.defpath, "HOME": home, "OPSAGENT_HOME": f"{home}/state"}
        done = subprocess.run(
            [ROOT / "opsagent", "mcp"], input=said, env=environ, capture_output=True, text=True, timeout=MOST_S
        )
    listed = next(row for row in map(json.loads, done.stdout.splitlines()) if row.get("id") == 2)
    return tuple(sorted(tool["name"] for tool in listed["result"]["tools"]))


def offers_all(names: Iterable[str], prefix: str) -> bool:
    """Whether these tools, which begin with `prefix`, are all of our server's."""
    return tuple(sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix))) == served()


def replies_in(asked: dict[str, Any]) -> int:
    """How often the model has already spoken in what it is sent."""
    if "contents" in asked:
        return sum(one["role"] == "model" for one in asked["contents"])
    if "input" in asked:
        kinds = [one.get("type") if one.get("role") != "assistant" else "said" for one in asked["input"]]
        calls = ("function_call", "said")
        return sum(kind in calls and (at == 0 or kinds[at - 1] not in calls) for at, kind in enumerate(kinds))
    return sum(one["role"] == "assistant" for one in asked.get("messages", ()))


def results_in(requests: Sequence[Received]) -> list[str]:
    """What the host gave back for each tool call, in order, from the longest conversation among the requests."""
    return max((_results(one.json) for one in requests), key=len, default=[])


def _results(asked: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for one in asked.get("contents", ()):
        found += [json.dumps(p["functionResponse"]["response"]) for p in one["parts"] if "functionResponse" in p]
    for one in asked.get("input", ()) if isinstance(asked.get("input"), list) else ():
        if one.get("type") == "function_call_output":
            found.append(_text(one["output"]))
    for one in asked.get("messages", ()):
        if one["role"] == "tool":
            found.append(_text(one["content"]))
        elif isinstance(one["content"], list):
            found += [_text(part.get("content", "")) for part in one["content"] if part.get("type") == "tool_result"]
    return found


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def shown(name: str, right: bool, detail: str = "") -> bool:
    """Prints one line for a case."""
    print(f"{name}: {'ok' if right else 'WRONG'}", flush=True)
    if not right and detail:
        print("    " + detail[:1500].replace("\n", "\n    "), flush=True)
    return right


def clean(folder: Path) -> None:
    """Takes a stage away, read-only folders in it included."""
    shutil.rmtree(folder, ignore_errors=True)
