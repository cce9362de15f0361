"""The whole program is killed while a tool runs; what is gone on with says so, and nothing runs twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CALL = (
    f"import sys; sys.path[:0] = [{str(ROOT)!r}]; sys.argv = ['opsagent', *sys.argv[1:]]\n"
    "from cli.opsagent import main; sys.exit(main(sys.argv[1:]))"
)
WORDS = "do as the script says"


def command(*arguments):
    return [sys.executable, "-X", "utf8", "-c", CALL, *arguments]


def script(path, *replies):
    path.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    return f"script:{path}"


@pytest.mark.guarantee("G-NOT-AGAIN")
def test_killed_in_mid_tool_call_then_resumed_says_verify_and_runs_nothing_again(tmp_path):
    environment = {"PATH": os.defpath, "HOME": str(tmp_path), "OPSAGENT_HOME": str(tmp_path / "state")}
    waits = {"text": "I look.", "calls": [{"tool": "bash", "arguments": {"command": "sleep 20"}}]}
    first = script(tmp_path / "first.jsonl", waits, {"text": "never said"})
    asked = command("-p", WORDS, "--brain", first, "--output", "stream-json")
    with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as program:
        assert program.stdout is not None
        started = next(event for event in map(json.loads, program.stdout) if event["type"] == "tool_started")
        program.kill()

    then = script(tmp_path / "then.jsonl", {"expect": "may have run", "text": "I verify first."})
    done = subprocess.run(
        command("--continue", "-p", "go on", "--brain", then, "--output", "stream-json"),
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kinds = [json.loads(row)["type"] for row in done.stdout.splitlines()]
    assert "tool_started" not in kinds
    shown = subprocess.run(
        command("sessions", "export", "last", "--format", "json"), capture_output=True, text=True, env=environment
    )
    messages = json.loads(shown.stdout)["messages"]
    (result,) = [message for message in messages if message["kind"] == "result"]
    assert "not recorded; it may have run; verify before you retry" in result["text"]
    assert result["status"] == "unknown"
    assert result["execution"] == started["execution"]
    assert [message["text"] for message in messages if message["kind"] == "user"] == [WORDS, "go on"]
