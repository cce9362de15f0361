"""From the start of a program to its first prompt on a terminal of 120 × 40: ours beside other people's agents.

    .venv-test/bin/python benchmarks/first_prompt.py [ROUNDS]

Fetches Claude Code, Gemini CLI and opencode in the versions of tests/hosts/versions.py. Each has a home of its own in
which it was set up and its folder is trusted, and a model whose address nobody answers; the first round, not counted,
lets it make what it keeps there. Programs ask their terminal for its colours and abilities before they draw: the same
answers come at once to all. They take turns; the times are medians, and ratios are to ours in the same round. Nothing
here fails; it prints. Target: at most 0.6 s, and the fastest of all.
"""

from __future__ import annotations

import json
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
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.hosts import prepared  # noqa: E402
from tests.hosts import claude_code, gemini_cli, opencode, versions  # noqa: E402
from tests.hosts.stage import Stage  # noqa: E402

NOWHERE = "http://127.0.0.1:9"
LIMIT_S = 120
ANSWERS = {
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b]10;?": b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
}
"""What a terminal says of itself (xterm's control sequences): kind, place of the cursor, colours."""
OURS = "opsagent"
PROMPTS = {OURS: "›", "claude": "❯", "gemini": "Type your message", "opencode": "Ask anything"}
VERSIONS = {"claude": versions.CLAUDE_CODE, "gemini": versions.GEMINI, "opencode": versions.OPENCODE}


def programs(stage: Stage) -> dict[str, tuple[Sequence[str], Mapping[str, str]]]:
    """What is started, with what it needs of the environment."""
    key = {"OPENAI_BASE_URL": f"{NOWHERE}/v1", "OPENAI_API_KEY": "bench-key-1", "OPENAI_MODEL": "mock-1"}
    return {
        OURS: ([str(ROOT / "opsagent")], key),
        "claude": (stage.argv(["claude"]), {**claude_code.ENVIRON, "ANTHROPIC_BASE_URL": NOWHERE}),
        "gemini": (
            stage.argv(["gemini", "--skip-trust"]),
            {**gemini_cli.ENVIRON, "GOOGLE_GEMINI_BASE_URL": NOWHERE},
        ),
        "opencode": (stage.argv(["opencode"]), {**opencode.ENVIRON, "MODEL_URL": NOWHERE}),
    }


def set_up(stage: Stage) -> None:
    """Claude Code asks three things of a new user before it shows a prompt; here they were answered."""
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    settings = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [claude_code.ENVIRON["ANTHROPIC_API_KEY"]], "rejected": []},
        "projects": {str(stage.project): trusted},
    }
    (stage.home / ".claude.json").write_text(json.dumps(settings))


def first_prompt(argv: Sequence[str], environ: Mapping[str, str], folder: Path, prompt: str) -> float:
    """Seconds from the start to the first of these words on the terminal."""
    began = time.perf_counter()
    pid, fd = pty.fork()
    if pid == 0:
        ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.chdir(folder)
        os.execve(argv[0], list(argv), dict(environ))
    seen = b""
    try:
        while prompt.encode() not in seen:
            left = LIMIT_S - (time.perf_counter() - began)
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise SystemExit(f"{argv}: no {prompt!r}; the end of what came: {seen[-400:]!r}")
            try:
                came = os.read(fd, 65_536)
            except OSError:
                raise SystemExit(f"{argv} ended before its prompt; the end of what came: {seen[-400:]!r}") from None
            seen += came
            for asked, answer in ANSWERS.items():
                if asked in came:
                    os.write(fd, answer)
        return time.perf_counter() - began
    finally:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)


def main(rounds: int) -> None:
    """Prints median, least and ratio of each program."""
    with tempfile.TemporaryDirectory(prefix="opsagent-bench-", ignore_cleanup_errors=True) as folder:
        stage = prepared(Path(folder))
        set_up(stage)
        base = {**stage.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        runs = programs(stage)
        taken: dict[str, list[float]] = {name: [] for name in runs}
        for number in range(rounds + 1):
            for name, (argv, more) in runs.items():
                took = first_prompt(argv, {**base, **more}, stage.project, PROMPTS[name])
                if number:
                    taken[name].append(took)
    print(f"first prompt, medians of {rounds}; load {os.getloadavg()[0]:.1f}")
    print(f"{'program':24} {'median s':>9} {'least s':>8} {'ratio to ours':>14}")
    for name, times in taken.items():
        ratio = statistics.median(theirs / ours for theirs, ours in zip(times, taken[OURS], strict=True))
        full = f"{name} {VERSIONS.get(name, '').rpartition('@')[2]}"
        print(f"{full:24} {statistics.median(times):9.2f} {min(times):8.2f} {ratio:14.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
