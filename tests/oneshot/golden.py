"""What people and monitoring systems see, as files. `python -m tests.oneshot.golden` rewrites them; read the diff."""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from pathlib import Path

from agent import oneshot
from cli import opsagent
from cli.json_text import json_line
from runbooks.model import Where
from tests.runbooks.replay import CASES, NOW_S, Recorded

FOLDER = Path(__file__).parent / "golden"
UTC = "2026-12-01T04:40:00.000Z"
SICK = (
    "disk/rhel-var-full",
    "memory/nearly-used-up",
    "oom/killed-tonight",
    "cpu/overloaded",
    "io/disk-saturated",
    "services/two-failed",
    "logs/storm",
)
WELL = ("disk/debian-healthy", "memory/debian-healthy")
ANSWERS = {
    "overview-sick.en.txt": ("what is wrong with this server", "text", SICK),
    "overview-sick.zh.txt": ("给这台机器做个体检", "text", SICK),
    "disk-memory-well.en.txt": ("check this machine's disk and memory", "text", WELL),
    "disk-memory-well.zh.txt": ("看一下本机磁盘和内存", "text", WELL),
    "disk-full.nagios": ("disk", "nagios", SICK),
    "change.en.txt": ("please restart nginx", "text", ("services/debian-healthy",)),
    "nothing-checked.en.txt": ("which services failed", "text", ("services/no-systemd",)),
    "unknown.en.txt": ("write a poem", "text", WELL),
}


def machine(names) -> Recorded:
    """One machine made of recordings; what none of them holds is not installed on it."""
    folders = {f"{case.parent.name}/{case.name}": case for case in CASES}
    rows = [json.loads((folders[name] / "commands.json").read_text("utf-8"))["answers"] for name in names]
    ask = Recorded([row for each in rows for row in each])

    def answer(argv, timeout_s):
        if tuple(argv) not in ask.by_argv:
            ask.by_argv[tuple(argv)] = {"argv": argv, "exit_code": 127, "stderr": [f"{argv[0]}: command not found"]}
        given = ask(argv, timeout_s)
        # Reads run side by side, so an id by order would differ from run to run.
        return given.replace(execution=f"e-{sorted(ask.by_argv).index(tuple(argv))}")

    return answer


def page(name: str) -> str:
    """The text of one golden file, as the program makes it now."""
    if name == "help.txt":
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            opsagent.main(["--help"])
        return out.getvalue()
    text, output, names = ANSWERS[name]
    question = oneshot.Question(text, output=output)
    kept = oneshot.this_machine
    oneshot.this_machine = lambda: Where("web-1", 0, NOW_S)
    try:
        return oneshot.answer(question, machine(names), utc=lambda: UTC, encode=json_line)[0]
    finally:
        oneshot.this_machine = kept


NAMES = ("help.txt", *ANSWERS)

if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    FOLDER.mkdir(exist_ok=True)
    for name in NAMES:
        (FOLDER / name).write_text(page(name), "utf-8")
