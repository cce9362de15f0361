"""MCP: from the start of the server to its answer to tools/list, beside mcp-server-git; and what one call costs.

Both servers run on the same interpreter in one run, in turn. mcp-server-git is installed into an environment of its
own in a temporary folder (`--peer PYTHON` names one that has it already); without a package index it is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = 0.85
"""Of mcp-server-git's time."""
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "0"},
}


class Server:
    """A server that is spoken to line by line."""

    def __init__(self, argv: list[str], home: str) -> None:
        env = {"PATH": os.environ["PATH"], "HOME": home, "OPSAGENT_HOME": f"{home}/state"}
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=home
        )
        self.number = 0

    def send(self, method: str, params: dict | None = None, *, answered: bool = True) -> None:
        message: dict = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        if answered:
            self.number += 1
            message["id"] = self.number
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> dict:
        assert self.process.stdout
        while True:
            message = json.loads(self.process.stdout.readline())
            if "id" in message:
                return message

    def ask(self, method: str, params: dict | None = None) -> dict:
        self.send(method, params)
        return self.answer()

    def open(self) -> dict:
        """The handshake and the first tools/list."""
        self.ask("initialize", INITIALIZE)
        self.send("notifications/initialized", answered=False)
        return self.ask("tools/list")

    def close(self) -> resource.struct_rusage:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        _, _, used = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        self.process.stdout.close()
        return used


def start_up(servers: dict[str, list[str]], home: str, rounds: int) -> dict[str, float]:
    """Prints wall and CPU time and memory for each server, and returns the median wall times in seconds."""
    wall: dict[str, list[float]] = {name: [] for name in servers}
    cpu: dict[str, list[float]] = {name: [] for name in servers}
    size: dict[str, list[int]] = {name: [] for name in servers}
    shown: dict[str, tuple[int, int]] = {}
    for number in range(rounds + 1):
        for name, argv in servers.items():
            began = time.perf_counter()
            server = Server(argv, home)
            listed = server.open()
            took = time.perf_counter() - began
            used = server.close()
            shown[name] = len(listed["result"]["tools"]), len(json.dumps(listed, separators=(",", ":")))
            if number:  # the first round compiles and fills the page cache
                wall[name].append(took)
                cpu[name].append(used.ru_utime + used.ru_stime)
                size[name].append(used.ru_maxrss)
    for name in servers:
        tools, size_bytes = shown[name]
        print(
            f"{name:16} wall {statistics.median(wall[name]):.3f} s (min {min(wall[name]):.3f})  "
            f"CPU {statistics.median(cpu[name]):.3f} s  {max(size[name]) // 1024} MB  {tools} tools, {size_bytes} bytes"
        )
    return {name: statistics.median(times) for name, times in wall.items()}


def calls(argv: list[str], home: str, count: int) -> None:
    """Prints what a read costs beyond running it, 200 at once, and memory after many calls."""
    server = Server(argv, home)
    server.open()
    bash = {"name": "bash", "arguments": {"command": "echo hello"}}
    for _ in range(5):
        server.ask("tools/call", bash)
    times, plain = [], []
    for _ in range(100):
        began = time.perf_counter()
        server.ask("tools/call", bash)
        times.append(time.perf_counter() - began)
        began = time.perf_counter()
        subprocess.run(["/bin/bash", "--noprofile", "--norc", "-p", "-c", "echo hello"], stdout=subprocess.DEVNULL)
        plain.append(time.perf_counter() - began)
    over_ms = (statistics.median(times) - statistics.median(plain)) * 1000
    print(f"one R0 call      {statistics.median(times) * 1000:.1f} ms, {over_ms:.1f} ms over running it (target 15)")
    began = time.perf_counter()
    sender = threading.Thread(target=lambda: [server.send("tools/call", bash) for _ in range(200)])
    sender.start()
    right = 0
    for _ in range(200):
        structured = server.answer()["result"]["structuredContent"]
        right += structured["status"] == "succeeded" and structured["stdout"] == "hello\n"
    sender.join()
    print(f"200 at once      {right} right, {time.perf_counter() - began:.1f} s")
    sizes = []
    for number in range(count):
        server.ask("tools/call", bash)
        if number % max(1, count // 10) == 0:
            sizes.append(_rss_kib(server.process.pid))
    sizes.append(_rss_kib(server.process.pid))
    print(f"{count} calls in turn, memory in MB: {' '.join(str(size // 1024) for size in sizes)}")
    server.close()


def _rss_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def peer(folder: str) -> str | None:
    """A Python that has mcp-server-git, or None when it cannot be installed."""
    place = f"{folder}/peer"
    venv.create(place, with_pip=True)
    done = subprocess.run(
        [f"{place}/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "mcp-server-git"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        print(f"mcp-server-git could not be installed: {done.stderr.strip().splitlines()[-1:]}")
        return None
    subprocess.run([f"{place}/bin/python", "-m", "compileall", "-q", place], capture_output=True)
    return f"{place}/bin/python"


def main() -> None:
    """Everything; the figures are for people, nothing fails here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python that has mcp-server-git")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=10_000)
    options = parser.parse_args()
    ours = [str(ROOT / "opsagent"), "mcp"]
    with tempfile.TemporaryDirectory(prefix="opsagent-bench-") as folder:
        home = f"{folder}/home"
        os.mkdir(home, 0o700)
        servers = {"opsagent mcp": ours}
        python = options.peer or peer(folder)
        if python:
            servers["mcp-server-git"] = [python, "-m", "mcp_server_git"]
        medians = start_up(servers, home, options.rounds)
        if python:
            ratio = medians["opsagent mcp"] / medians["mcp-server-git"]
            print(f"ratio            {ratio:.2f} (target {TARGET})")
        calls(ours, home, options.calls)


if __name__ == "__main__":
    sys.exit(main())
