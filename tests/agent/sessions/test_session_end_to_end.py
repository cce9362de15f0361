"""The whole program over session files: killed and gone on with; with words in a file that would allow something."""

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


@pytest.fixture
def environment(tmp_path):
    return {"PATH": os.defpath, "HOME": str(tmp_path), "OPSAGENT_HOME": str(tmp_path / "state")}


@pytest.fixture
def opsagent(tmp_path, environment):
    def call(*arguments):
        return subprocess.run(
            command(*arguments), capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=60
        )

    return call


def messages_of(opsagent):
    return json.loads(opsagent("sessions", "export", "last", "--format", "json").stdout)["messages"]


@pytest.mark.guarantee("G-NOT-AGAIN")
def test_killed_in_mid_tool_call_then_resumed_says_verify_and_runs_nothing_again(tmp_path, environment, opsagent):
    waits = {"text": "I look.", "calls": [{"tool": "bash", "arguments": {"command": "sleep 20"}}]}
    first = script(tmp_path / "first.jsonl", waits, {"text": "never said"})
    asked = command("-p", WORDS, "--brain", first, "--output", "stream-json")
    with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path) as program:
        assert program.stdout is not None
        started = next(event for event in map(json.loads, program.stdout) if event["type"] == "tool_started")
        program.kill()

    then = script(tmp_path / "then.jsonl", {"expect": "may have run", "text": "I verify first."})
    done = opsagent("--continue", "-p", "go on", "--brain", then, "--output", "stream-json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tool_started" not in [json.loads(row)["type"] for row in done.stdout.splitlines()]
    messages = messages_of(opsagent)
    (result,) = [message for message in messages if message["kind"] == "result"]
    assert "not recorded; it may have run; verify before you retry" in result["text"]
    assert result["status"] == "unknown"
    assert result["execution"] == started["execution"]
    assert [message["text"] for message in messages if message["kind"] == "user"] == [WORDS, "go on"]


@pytest.mark.guarantee("G-SESSION-DATA")
def test_machine_that_only_the_file_names_is_not_one_that_the_person_named(tmp_path, opsagent):
    words = "look at https://shop.example.test/health"
    opsagent("-p", words, "--brain", script(tmp_path / "first.jsonl", {"text": "later"}))
    sends = {"calls": [{"tool": "bash", "arguments": {"command": "curl -sI https://shop.example.test/health"}}]}
    then = script(tmp_path / "then.jsonl", sends, {"text": "so be it"})
    opsagent("--continue", "-p", "go on", "--brain", then)
    messages = messages_of(opsagent)
    assert [message["text"] for message in messages if message["kind"] == "user"] == [words, "go on"]
    (result,) = [message for message in messages if message.get("name") == "bash"]
    assert result["status"] == "needs_stamp"
    assert result.get("execution") is None
