"""The MCP server as the Inspector's command line sees it, in both eras of the protocol; part of CI.

    .venv-test/bin/python -m tests.hosts.mcp_inspector

Prints one line a case and ends with 1 when one of them did not get what the server should say.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.npm import Fetched, NoNpm, fetched

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
ROOT = Path(__file__).resolve().parents[2]
ERAS = ("legacy", "modern")


def tool(name: str, **arguments: object) -> list[str]:
    """The Inspector's words for one tool call."""
    return ["--method", "tools/call", "--tool-name", name, "--tool-args-json", json.dumps(arguments)]


CASES: tuple[tuple[str, list[str], Callable[[int, Any], bool]], ...] = (
    (
        "the tools, with no complaint about their schemas",
        ["--method", "tools/list", "--strict"],
        lambda code, got: code == 0 and {"bash", "ops_exec", "ops_approve"} <= {one["name"] for one in got["tools"]},
    ),
    (
        "a check",
        tool("ops_check", command="touch x"),
        lambda code, got: code == 0 and got["structuredContent"]["level"] == "R1",
    ),
    (
        "a read",
        tool("bash", command="echo hello"),
        lambda code, got: code == 0 and got["structuredContent"]["stdout"] == "hello\n",
    ),
    (
        "a change, kept with its next step",
        tool("ops_exec", command="touch x"),
        lambda code, got: got["isError"] and got["structuredContent"]["next"].startswith("opsx approve a-"),
    ),
    (
        "an argument that nobody knows",
        tool("ops_exec", command="touch x", confirm=True),
        lambda code, got: got["isError"] and got["structuredContent"]["error"]["code"] == "usage.arguments",
    ),
    (
        "a runbook",
        tool("runbook", id="memory"),
        lambda code, got: code == 0 and got["structuredContent"]["runbooks"] == ["memory"],
    ),
)
REQUESTS, AT_ONCE = 400, 200
LOAD = [
    *tool("ops_check", command="ls -la"),
    *("--load", "--load-requests", str(REQUESTS), "--load-concurrency", str(AT_ONCE)),
]


def asked(inspector: Fetched, era: str, words: list[str], folder: str) -> tuple[int, str, str]:
    """Exit code, output and errors of one call of the Inspector."""
    done = subprocess.run(
        [
            *inspector.argv("mcp-inspector"),
            *("--cli", "--quiet", "--format", "json", "--protocol-era", era),
            *(str(ROOT / "opsagent"), "mcp"),
            *words,
        ],
        cwd=folder,
        # What it stores of its own belongs to this folder too.
        env={**os.environ, "OPSAGENT_HOME": f"{folder}/state", "HOME": folder},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def value_of(text: str) -> Any:
    """The result in the Inspector's answer."""
    value = json.loads(text)
    return value.get("result", value) if isinstance(value, dict) else value


def main() -> int:
    """Every case in both eras, and one load."""
    try:
        inspector = fetched(INSPECTOR)
    except NoNpm as error:
        sys.stderr.write(f"inspector: NOT RUN: {error}\n")
        return 1
    began, wrong = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="opsagent-inspector-") as folder:
        for era in ERAS:
            for name, words, fits in CASES:
                code, out, err = asked(inspector, era, words, folder)
                try:
                    right = fits(code, value_of(out))
                except (ValueError, KeyError, TypeError):
                    right = False
                wrong += not right
                print(f"inspector, {era}: {name}: {'ok' if right else f'WRONG ({code})'}", flush=True)
                if not right:
                    print(out[:2000] + err[:2000])
        code, out, err = asked(inspector, "legacy", LOAD, folder)
        load = value_of(out) if code == 0 else {}
        right = load.get("ok") == load.get("requests") == REQUESTS
        wrong += not right
        figures = {name: load.get(name) for name in ("ok", "elapsedMs", "latencyMs")}
        print(f"inspector, {AT_ONCE} at once: {'ok' if right else 'WRONG'}: {json.dumps(figures)} {err[:400]}")
    print(f"inspector: {wrong} wrong, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
