"""A host for tests: speaks to a real server over pipes, line by line, and never waits for ever."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
"""Far more than any answer takes; only a fault waits so long."""
LEGACY = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "7"}}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "7"},
}


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "OPSAGENT_HOME": str(home / "state"), **more}


def command(*options: str, handle_after_s: float = 30.0, progress_every_s: float = 10.0) -> list[str]:
    """The server's argv; options are `host`, `share` and `edits` (served.py)."""
    return [sys.executable, str(ROOT / "tests/mcp/served.py"), str(handle_after_s), str(progress_every_s), *options]


class Peer:
    """A server under test. Every line that comes from it is checked to be one strict JSON-RPC object."""

    def __init__(
        self,
        home: Path,
        *,
        modern: bool = False,
        open: bool = True,
        env: dict | None = None,
        options: tuple[str, ...] = (),
        client: dict | None = None,
        argv: list[str] | None = None,
        **waits,
    ) -> None:
        home.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            argv or command(*options, **waits),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=home,
            env=environment(home, **(env or {})),
        )
        self.modern = modern
        self.number = 0
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self.notes: list[dict] = []
        self.err = b""
        threading.Thread(target=self._read_out, daemon=True).start()
        self._err_reader = threading.Thread(target=self._read_err, daemon=True)
        self._err_reader.start()
        if open and not modern:
            self.opened = self.ask("initialize", {**LEGACY, **(client or {})})
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _read_out(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _read_err(self) -> None:
        for line in self.process.stderr:
            self.err += line

    def send(self, message: dict | bytes) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def next(self, timeout_s: float = PATIENCE_S) -> dict | None:
        """The next message, None at the end of the output."""
        line = self.lines.get(timeout=timeout_s)
        if line is None:
            return None
        assert line.endswith(b"\n")
        message = json.loads(line, parse_constant=lambda name: pytest_fail(name))
        assert isinstance(message, dict) and message["jsonrpc"] == "2.0"
        message["line_bytes"] = len(line)
        return message

    def request(self, method: str, params: dict | None = None) -> int:
        """Sends a request and returns its id."""
        self.number += 1
        params = dict(params or {})
        if self.modern:
            params["_meta"] = {**MODERN_META, **params.get("_meta", {})}
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def answer(self, id: object) -> dict:
        """The answer to that request; notifications that come before it are kept in `notes`."""
        while True:
            message = self.next()
            assert message is not None, f"the server is gone: {self.err.decode()}"
            if "method" in message:
                self.notes.append(message)
            elif message.get("id") == id:
                return message
            else:
                raise AssertionError(f"an answer to nothing: {message}")

    def ask(self, method: str, params: dict | None = None) -> dict:
        return self.answer(self.request(method, params))

    def call(self, tool: str, **arguments) -> dict:
        """The result of one tool call."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def structured(self, tool: str, **arguments) -> dict:
        return self.call(tool, **arguments)["structuredContent"]

    def alive(self) -> None:
        """Asserts that the next request still gets its answer."""
        assert "result" in self.ask("tools/list")

    def close(self) -> int:
        """Hangs up and returns the exit code."""
        self.process.stdin.close()
        code = self.process.wait(PATIENCE_S)
        self._err_reader.join(PATIENCE_S)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._err_reader.join(PATIENCE_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if not pipe.closed:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass


def pytest_fail(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")
