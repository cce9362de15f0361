"""The conversation on a terminal: first prompt, key to echo under a fast answer, memory after many events.

    .venv/bin/python benchmarks/repl.py [ROUNDS]

Everything runs in a real pseudo-terminal of 120 × 40. The answer of the second part is paced by its sender at 2,000
pieces a second; keys are typed meanwhile, each one that is not on the screen yet, and the time until it is written
back is taken. Nothing here fails, it prints.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from fcntl import ioctl
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = str(ROOT / ".venv/bin/python")
TOKENS_PER_S = 2_000
SECONDS = 12
EVENTS = 5_000
KEYS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
PROMPT = "›".encode()
READY = b"guarded"
DONE = b"alloverhere"


class Child:
    """A program on its own terminal."""

    def __init__(self, argv: list[str], home: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            os.environ.update(OPSAGENT_HOME=f"{home}/state", TERM="xterm-256color")
            os.execv(argv[0], argv)
        self.seen = b""

    def until(self, text: bytes, limit_s: float = 60.0) -> float:
        """Reads until the text has come; the time it took, in ms."""
        began = time.perf_counter()
        while text not in self.seen:
            left = limit_s - (time.perf_counter() - began)
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise SystemExit(f"{text!r} never came; the end of what did: {self.seen[-400:]!r}")
            self.seen = self.seen[-8192:] + os.read(self.fd, 65_536)
        return (time.perf_counter() - began) * 1000

    def drain(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                os.read(self.fd, 65_536)
        self.seen = b""

    def rss_mb(self) -> float:
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024

    def end(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def first_prompt(rounds: int, home: str) -> None:
    """From the start of the launcher to the first prompt, beside a bare interpreter and the terminal library alone."""
    programs = {
        "python -c pass": ([PYTHON, "-c", "print('›guarded')"], PROMPT),
        "import prompt_toolkit": ([PYTHON, "-c", "import prompt_toolkit.shortcuts; print('›guarded')"], READY),
        "./opsagent": ([str(ROOT / "opsagent"), "--brain", "offline"], READY),
    }
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        for name, (argv, text) in programs.items():
            began = time.perf_counter()
            child = Child(argv, home)
            child.until(text)
            if number:  # the first round warms caches
                taken[name].append((time.perf_counter() - began) * 1000)
            child.end()
    print(f"{'first prompt':28} {'median ms':>9} {'min ms':>7}  target")
    for name, times in taken.items():
        wanted = "≤ 600" if name == "./opsagent" else ""
        print(f"{name:28} {statistics.median(times):9.0f} {min(times):7.0f}  {wanted}")


def key_echo(home: str) -> None:
    """Keys while an answer streams."""
    child = Child([PYTHON, __file__, "child", "stream"], home)
    child.until(READY)
    os.write(child.fd, b"go\r")
    child.drain(1.0)
    times: list[float] = []
    end = time.perf_counter() + SECONDS - 3
    while time.perf_counter() < end:
        for key in KEYS:
            child.seen = b""
            os.write(child.fd, key.encode())
            times.append(child.until(key.encode()))
            child.drain(0.02)
        os.write(child.fd, b"\x15")
        child.drain(0.1)
    child.end()
    times.sort()
    p99 = times[int(len(times) * 0.99)]
    print(
        f"\nkey to echo at {TOKENS_PER_S:,} pieces/s, {len(times)} keys: median {statistics.median(times):.1f} ms, ",
        end="",
    )
    print(f"p99 {p99:.1f} ms (target ≤ 16), max {times[-1]:.1f} ms")


def memory(home: str) -> None:
    """Resident size after many events."""
    child = Child([PYTHON, __file__, "child", "events"], home)
    child.until(READY)
    before = child.rss_mb()
    os.write(child.fd, b"go\r")
    took_ms = child.until(DONE, 300.0)
    child.drain(0.5)
    after = child.rss_mb()
    child.end()
    print(f"\n{EVENTS:,} events in {took_ms / 1000:.1f} s: {before:.0f} MB before, {after:.0f} MB after (target ≤ 120)")


def child(what: str) -> None:
    """A conversation whose brain is only its events."""
    sys.path.insert(0, str(ROOT))
    from agent.repl.app import Repl
    from agent.repl.world import Opened
    from cli.opsagent_repl import TerminalWorld
    from dialogue import events as ev
    from dialogue.protocol import Abilities

    class Brain:
        name = "bench"
        abilities = Abilities(streaming=True, interrupt=True)

        def start(self):
            pass

        def send_turn(self, turn):
            pass

        def events(self):
            yield ev.TurnStarted("go")
            yield from stream() if what == "stream" else many()
            yield ev.TurnCompleted(0)

        def respond(self, id, answer):
            pass

        def interrupt(self):
            pass

        close = interrupt

    def stream():
        began = time.perf_counter()
        for number in range(TOKENS_PER_S * SECONDS):
            ahead = number / TOKENS_PER_S - (time.perf_counter() - began)
            if ahead > 0.002:
                time.sleep(ahead)
            yield ev.TextDelta("磁盘 word " if number % 9 else "\n\n" if number % 27 else "\n\n- item ")

    def many():
        for number in range(EVENTS // 5):
            yield ev.ToolRequested(str(number), "bash", {"command": f"cat /var/log/file-{number}"})
            yield ev.ToolStarted(str(number), f"e-{number}")
            yield ev.ToolProgress(str(number), 2000, "a line of output")
            yield ev.ToolCompleted(str(number), "succeeded", f"e-{number}", "a line of output\n" * 1500, 0, 2000)
            yield ev.Text(f"Looked at file {number}: **nothing**.")
        yield ev.Text(DONE.decode())

    Repl(TerminalWorld(read_only=False), Opened(Brain(), "c-bench", "bench")).run()


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as folder:
            first_prompt(int(sys.argv[1]) if len(sys.argv) > 1 else 9, folder)
            key_echo(folder)
            memory(folder)
