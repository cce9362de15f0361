"""Calls for the hook's tests: frames, places, and the real launcher with a frame on standard input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from cli.hooks import ruling
from cli.hooks.frame import Frame
from cli.hooks.hosts import HOSTS, Answer
from guard.types import Enforcement, Policy
from tests.fakes import STRICT

ROOT = Path(__file__).resolve().parent.parent.parent
OPSX = "/opt/ops agent/opsx"
LIMIT_S = 60


class World:
    """A home with a project in it, and the ruling on calls from there."""

    def __init__(self, folder: Path, enforcement: Enforcement = STRICT, *, terminal: bool = True) -> None:
        self.home = folder / "home"
        self.project = self.home / "work"
        self.project.mkdir(parents=True, exist_ok=True)
        self.state = folder / "state"
        self.environ = {"CLAUDE_PROJECT_DIR": str(self.project), "GEMINI_PROJECT_DIR": str(self.project)}
        self.enforcement, self.terminal = enforcement, terminal

    def place(self) -> ruling.Place:
        return ruling.Place(
            opsx=OPSX,
            policy=Policy(own_paths=(str(self.state), "/opt/ops agent")),
            enforcement=self.enforcement,
            home=str(self.home),
            environ=self.environ,
            process_cwd=str(self.project),
            terminal=self.terminal,
        )

    def call(self, tool: str, given: dict[str, object], host: str = "claude-code", cwd: str = "") -> Answer:
        one = HOSTS[host]
        return ruling.rule(Frame(one.event, tool, given, cwd or str(self.project)), one, self.place())

    def bash(self, command: str, host: str = "claude-code", cwd: str = "") -> Answer:
        return self.call(HOSTS[host].shells[0], {"command": command}, host, cwd)

    def configure(self, text: str) -> Path:
        """The user's config.toml; the tests' OPSAGENT_HOME is `state`."""
        file = self.state / "config" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o600)
        return file


def frame_bytes(command: str = "ls", **changes: object) -> bytes:
    frame = {"hook_event_name": "PreToolUse", "cwd": "/", "tool_name": "Bash", "tool_input": {"command": command}}
    return json.dumps({**frame, **changes}).encode()


def hook(frame: bytes, host: str = "claude-code", *, code: str = "") -> subprocess.CompletedProcess[bytes]:
    """The verb in a process of its own. `code` runs before it."""
    path, call = f"sys.path.insert(0, {str(ROOT)!r})", f"sys.exit(main(['hook', {host!r}]))"
    script = "\n".join(("import sys", path, code, "from cli.opsx import main", call))
    return subprocess.run(
        [sys.executable, "-c", script], input=frame, capture_output=True, timeout=LIMIT_S, env=dict(os.environ)
    )
