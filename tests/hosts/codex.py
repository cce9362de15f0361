"""Our MCP server in a real Codex: `codex exec`, where nobody can be asked, and `codex app-server`, where a client is.

    .venv-test/bin/python -m tests.hosts.codex

Run by `make hosts`. Prints one line a case; ends with 1 when one of them is not as it should be.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hosts import frames, versions
from tests.hosts.stage import MOST_S, Ran, Stage, model, offered, offers_all, results_in, shown
from tests.model_server import Call, Say
from tests.npm import NoNpm, fetched

CONFIG = """\
# A person's own settings, above ours.
model = "mock-1"
model_provider = "mock"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:1/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
ADDRESS = ("-c", 'model_providers.mock.base_url="{url}/v1"')


Answer = Callable[[dict[str, Any]], dict[str, Any]]
"""What a person at the client says to a question, from the question's own fields."""


def environ(stage: Stage) -> dict[str, str]:
    return {"MOCK_KEY": "none", "CODEX_HOME": str(stage.home / ".codex")}


def codex_exec(stage: Stage, *calls: Call, options: tuple[str, ...] = ()) -> tuple[Ran, list[str]]:
    """One run of `codex exec`, and what it gave back for each call."""
    script = [*(Say(calls=[call]) for call in calls), Say("done")]
    argv = ["codex", "exec", "--json", "--skip-git-repo-check", *options, *ADDRESS, "go"]
    ran = stage.start(argv, script, urls={}, environ=environ(stage))
    return ran, results_in(ran.requests)


def unasked_and_refused(stage: Stage) -> bool:
    """Reads run; what changes something is refused by Codex, which has nobody to ask."""
    ran, got = codex_exec(
        stage,
        Call("ops_check", {"command": "touch x"}),
        Call("bash", {"command": "cat a-file"}),
        Call("ops_exec", {"command": "touch x"}),
        Call("exec_command", {"cmd": "touch x"}),
    )
    if len(got) != 4:
        return shown("exec: four calls", False, ran.err + ran.out[-2000:])
    first = offered(ran.requests[0].json)
    kept = [run["command"] for run in stage.executions()]
    return all(
        [
            shown("exec: all tools in the first request", offers_all(first, "mcp__opsagent."), str(first)),
            shown("exec: ops_check unasked", '"decision":"needs_stamp"' in got[0], got[0]),
            shown("exec: a read unasked, and in our records", "forty-two" in got[1] and kept == ["cat a-file"], got[1]),
            shown("exec: ops_exec needs an approval that nobody can give", "requires approval" in got[2], got[2]),
            shown("exec: its own shell cannot write", "Read-only file system" in got[3], got[3]),
            shown("exec: nothing was written", not (stage.project / "x").exists()),
        ]
    )


def refused_with_our_reason(stage: Stage) -> bool:
    """A person told Codex not to ask: our own approval is asked for all the same."""
    opened = ("-c", 'mcp_servers.opsagent.tools.ops_exec.approval_mode="approve"')
    _, (answer, *_) = codex_exec(stage, Call("ops_exec", {"command": "touch x"}), options=opened)
    right = "opsx approve a-" in answer and not (stage.project / "x").exists()
    return shown("exec: with Codex's own approval off, ours still stands", right, answer)


def hook_in_codex(stage: Stage) -> bool:
    """The hook, trusted for this one run, where Codex's own sandbox is off and nothing else holds its shell.

    Inside that sandbox our records cannot be written, so reads run unrecorded there (docs/hosts.md).
    """
    ran, got = codex_exec(
        stage,
        Call("exec_command", {"cmd": "cat a-file"}),
        Call("exec_command", {"cmd": "rm -rf /var/lib/nothing"}),
        options=("--dangerously-bypass-hook-trust", "-s", "danger-full-access"),
    )
    if len(got) != 2:
        return shown("hook: two calls", False, ran.err + ran.out[-2000:])
    kept = [run["command"] for run in stage.executions()]
    return all(
        [
            shown("hook: a read still works", "forty-two" in got[0], got[0]),
            shown("hook: what cannot be undone is refused", "cannot be undone" in got[1], got[1]),
            shown("hook: the records have the read", "cat a-file" in kept, str(kept)),
        ]
    )


class AppServer:
    """A client of `codex app-server`, which answers its questions."""

    def __init__(self, stage: Stage, url: str) -> None:
        self.process = subprocess.Popen(
            [*stage.programs.argv("codex"), "app-server", *(word.replace("{url}", url) for word in ADDRESS)],
            env={**stage.environ, **environ(stage)},
            cwd=stage.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.asked: list[dict[str, Any]] = []
        """Its questions, in order."""
        self.number = 0

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        return self.until(lambda message: message.get("id") == self.number and "method" not in message, nothing)

    def until(self, wanted: Callable[[dict[str, Any]], bool], answer: Answer) -> dict[str, Any]:
        """Reads on, answering its questions, until the message comes."""
        while (line := self.lines.get(timeout=MOST_S)) is not None:
            message: dict[str, Any] = json.loads(line)
            if "method" in message and "id" in message:
                self.asked.append(message)
                self.send({"id": message["id"], "result": answer(message["params"])})
            if wanted(message):
                return message
        raise AssertionError("the app-server ended")

    def turn(self, thread: str, answer: Answer) -> dict[str, Any]:
        self.ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "go"}]})
        return self.until(lambda message: message.get("method") == "turn/completed", answer)

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(60)
        self.process.stdout.close()


def nothing(question: dict[str, Any]) -> dict[str, Any]:
    return {"action": "cancel"}


def accept(question: dict[str, Any]) -> dict[str, Any]:
    """A person who says yes to each question, with the exact words where our form wants them."""
    choices = question["requestedSchema"]["properties"].get("answer", {}).get("enum")
    return {"action": "accept", "content": {"answer": choices[-1]} if choices else {}}


def accept_blindly(question: dict[str, Any]) -> dict[str, Any]:
    """A program that says yes to everything and fills in nothing."""
    return {"action": "accept", "content": {}}


def decline(question: dict[str, Any]) -> dict[str, Any]:
    return {"action": "decline"}


def app_server(stage: Stage, answer: Answer) -> bool:
    """Each call is Codex's question, ops_approve's is followed by our own form; one kind of answer to all of them."""
    verdict = answer.__name__.replace("_", " ")
    target = stage.project / f"made-{answer.__name__}"
    command = f"touch {target}"
    script = [
        Say(calls=[Call("ops_exec", {"command": command})]),
        Say(calls=[Call("ops_approve", {"command": command})]),
        Say(calls=[Call("ops_exec", {"command": command})]),
        Say("done"),
    ]
    with model(script) as server:
        client = AppServer(stage, server.url)
        try:
            client.ask("initialize", {"clientInfo": {"name": "tests", "title": "tests", "version": "1"}})
            client.send({"method": "initialized"})
            started = client.ask(
                "thread/start", {"cwd": str(stage.project), "approvalPolicy": "on-request", "sandbox": "read-only"}
            )
            thread = started["result"]["thread"]["id"]
            client.turn(thread, answer)
        finally:
            client.close()
        results = results_in(server.requests)
    forms = [one["params"] for one in client.asked]
    kinds = [(form.get("_meta") or {}).get("codex_approval_kind", "our form") for form in forms]
    text = json.dumps(forms, ensure_ascii=False)
    runs = answer is accept
    good = shown(
        f"app-server, {verdict}: it {'runs' if runs else 'does not run'}", target.exists() == runs, str(results)
    )
    good &= shown(f"app-server, {verdict}: the turn goes on to its end", len(results) == 3, str(results))
    asks = 4 if answer is not decline else 3
    good &= shown(f"app-server, {verdict}: {asks} questions in a row", len(forms) == asks, str(kinds))
    if answer is not decline:
        good &= shown(f"app-server, {verdict}: our own form shows the command", "our form" in kinds and command in text)
    return good


def main() -> int:
    """All cases."""
    try:
        programs = fetched(*versions.NPM)
    except NoNpm as error:
        sys.stderr.write(f"codex: NOT RUN: {error}\n")
        return 1
    print(f"== {versions.CODEX}")
    with tempfile.TemporaryDirectory(prefix="opsagent-codex-", ignore_cleanup_errors=True) as folder:
        stage = Stage(Path(folder), programs)
        (stage.home / ".codex").mkdir()
        (stage.home / ".codex" / "config.toml").write_text(CONFIG)
        stage.install("codex", "--hook")
        good = True
        for case in (unasked_and_refused, refused_with_our_reason, hook_in_codex):
            good &= case(stage)
        for answer in (accept, accept_blindly, decline):
            good &= app_server(stage, answer)
        frames.keep_if_asked("codex", versions.CODEX, stage)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
