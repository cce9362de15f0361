"""The wire as it is documented: recorded frames, and the client of docs/protocol.md, which really runs.

The frames are recorded anew with `GOLDEN=write pytest tests/rpc/test_rpc_frames.py`; then `make docs`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.mcp.talk import ROOT, environment
from tests.rpc.stories import change, served, use, written
from tests.rpc.talk import request

GOLDEN = ROOT / "tests" / "golden" / "rpc" / "frames.jsonl"
SAME = [
    (r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "2026-12-01T09:00:00.000Z"),
    (r"\be-[a-z0-9]{6,}", "e-7k2m4p9q"),
    (r"\ba-[a-z0-9]{6,}", "a-7k2m4p"),
    (r"\bt-[a-z0-9]{6,}", "t-7k2m4p9q"),
    (r"\bs-[a-z0-9]{6,}", "s-7k2m4p9q"),
    (r"\bc-[a-z0-9]{6,}", "c-7k2m4p9q"),
    (r'"duration_ms": ?\d+', '"duration_ms": 42'),
    (r'"digest": ?"[0-9a-f]{64}"', '"digest": "…"'),
    (r'"host": ?"[^"]*"', '"host": "web-1"'),
    (r"on          \S+ \(target local\), as .*?\\n", r"on          web-1 (target local), as ops (uid 1000)\\n"),
    (r'"user": ?"[^"]*"', '"user": "ops (uid 1000)"'),
]


def plain(message: dict, home: str) -> dict:
    """A frame with examples in place of what is another one each time."""
    message.pop("line_bytes", None)
    text = json.dumps(message, ensure_ascii=False).replace(home, "/srv/app")
    for pattern, example in SAME:
        text = re.sub(pattern, example, text)
    return json.loads(text)


def facts_left_out(frame: dict) -> dict:
    """Of results that tools made only the status: what the kernel enforces is another one on other machines."""
    params = frame.get("params", {})
    if params.get("type") == "tool_completed":
        params["output"] = "…"
    return frame


def recorded(home) -> list[dict]:
    frames = []
    with served(home, use("bash", command="echo hello"), *change("touch made"), "It is made.") as client:

        def say(message):
            frames.append({">": message})
            client.send(message)

        say(request(1, "initialize", client={"name": "example", "version": "1"}, answers=["approve", "ask_user"]))
        frames.append({"<": client.next()})
        say(request(2, "prompt", text="make it"))
        while True:
            message = client.next()
            frames.append({"<": message})
            if message.get("method") == "approve":
                say({"jsonrpc": "2.0", "id": message["id"], "result": {"answer": "approve"}})
            if message.get("id") == 2:
                break
    return [{way: facts_left_out(plain(frame, str(home)))} for one in frames for way, frame in one.items()]


@pytest.fixture
def short():
    """A folder whose name is as long for everybody: rows are wrapped at a width."""
    with tempfile.TemporaryDirectory(prefix="f-", dir="/tmp") as folder:
        yield Path(folder)


def test_frames_are_the_recorded_ones(short):
    frames = recorded(short / "h")
    if os.environ.get("GOLDEN") == "write":
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in frames), "utf-8")
    wanted = [json.loads(row) for row in GOLDEN.read_text("utf-8").splitlines()]
    assert [ordered(one) for one in frames] == [ordered(one) for one in wanted]


def ordered(frame: dict) -> str:
    return json.dumps(frame, sort_keys=True, ensure_ascii=False)


@pytest.fixture
def documented(tmp_path):
    """The client of the page, as a file."""
    page = (ROOT / "docs" / "protocol.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    path = tmp_path / "client.py"
    path.write_text(code.replace('"opsagent", "rpc"', f'"{sys.executable}", "{ROOT}/tests/rpc/served.py", "rpc"'))
    assert code.count("\n") <= 45
    return path


@pytest.mark.guarantee("G-RPC-YES")
@pytest.mark.parametrize(("typed", "made"), [("yes", True), ("no", False), ("", False)])
def test_the_documented_client_prompts_and_approves(tmp_path, documented, typed, made):
    home = tmp_path / "h"
    home.mkdir()
    replies = [use("ask_user", question="which file?"), *change("touch made"), "That is all."]
    if not made:
        replies[-2:] = ["That is all."]
    done = subprocess.run(
        [sys.executable, str(documented), "make it", written(home, *replies)],
        input=f"made\n{typed}\n",
        capture_output=True,
        text=True,
        cwd=home,
        env=environment(home),
        timeout=60,
    )
    assert (done.returncode, (home / "made").exists()) == (0, made), done.stderr
    assert "which file?" in done.stdout
    assert "  | touch made\n" in done.stdout
    assert done.stdout.endswith("That is all.\n")
