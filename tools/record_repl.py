"""Records docs/repl-session.md: a conversation and an incident on a real terminal, with a scripted brain.

    .venv-test/bin/python tools/record_repl.py

As root, in a folder /srv/shop that it makes and takes away. Everything on the page is what the program wrote; only
ids and times differ from one recording to the next.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.repl.tmux import Tmux  # noqa: E402

SHOP = Path("/srv/shop")
PAGE = ROOT / "docs" / "repl-session.md"
FILES = {
    "app.conf": "listen=8080\nworkers=0\n",
    "cache.conf": "size=64\npath=/srv/shop/cache\n",
    "app.log": "12:00:01 INFO  start\n12:00:02 ERROR workers=0: nobody serves requests\n"
    "12:00:09 ERROR 磁盘缓存已满 (cache)\n",
}
FIX = "sed -i s/workers=0/workers=4/ app.conf"
REQUEST = '"request": "(?P<request>a-[a-z0-9]+)"'


def call(tool: str, **arguments: object) -> dict[str, object]:
    return {"tool": tool, "arguments": arguments}


FIRST = (
    {
        "text": "I look at the log and at what is configured.",
        "calls": [call("bash", command="tail -n 2 app.log"), call("bash", command="grep -n workers app.conf")],
    },
    {
        "text": "**Cause:** `workers=0` in app.conf, so nobody serves requests.\n\n"
        "| | now | proposed |\n|---|---:|---:|\n"
        "| workers | 0 | 4 |\n\nThe file is saved first; `ops_rollback` puts it back.",
        "calls": [call("ops_exec", command=FIX, why="workers=0 serves nobody")],
    },
    {"expect": REQUEST, "calls": [call("ops_approve", request="${request}")]},
    {"calls": [call("ops_exec", command=FIX)]},
    {"expect": '"execution": "(?P<run>e-[a-z0-9]+)"', "calls": [call("bash", command="grep -n workers app.conf")]},
    {"expect": "workers=4", "text": "workers is 4 now (${run}). 已修复。"},
)
NEXT_DAY = ({"text": "Yesterday workers went from 0 to 4, and you took it back. It is 0 again."},)
STEPS = (
    ("sed -i s/workers=0/workers=4/ app.conf", "somebody has to serve"),
    ("sed -i s/size=64/size=256/ cache.conf", "the cache is full"),
    ("mv app.pid.new app.pid", "the new process"),
    ("touch reload", "read the configuration again"),
    ("chmod 600 app.conf", "nobody else reads it"),
)
INCIDENT = (
    {
        "text": "Five steps, one after the other:",
        "calls": [call("ops_plan", steps=[{"command": command, "why": why} for command, why in STEPS])],
    },
    {
        "expect": r"1\. succeeded (?P<one>e-\w+)[\s\S]*2\. succeeded (?P<two>e-\w+)[\s\S]*3\. failed",
        "text": "Step 3 failed: there is no `app.pid.new`. The plan stopped; I propose to take back 2 and 1.",
        "calls": [call("ops_rollback", id="${two}", confirm=True), call("ops_rollback", id="${one}", confirm=True)],
    },
    {"text": "Both are back as they were. Steps 4 and 5 never ran."},
)


class Recording:
    """Scenes of one terminal after the other, as the page shows them."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._state = tempfile.TemporaryDirectory(prefix="state-")
        self.screen: Tmux | None = None

    def start(self, replies: tuple[dict[str, object], ...], *arguments: str) -> Tmux:
        script = Path(self._state.name) / "rehearsal.jsonl"
        script.write_text("".join(json.dumps(reply, ensure_ascii=False) + "\n" for reply in replies))
        self.screen = Tmux(
            [str(ROOT / "opsagent"), "--brain", f"script:{script}", *arguments],
            cwd=SHOP,
            environ={"OPSAGENT_HOME": f"{self._state.name}/home"},
        )
        self.screen.wait_for("guarded")
        return self.screen

    def say(self, text: str) -> None:
        assert self.screen is not None
        self.screen.type(text)
        self.screen.keys("Enter")

    def dock(self, title: str, answer: str = "yes") -> None:
        """What is asked, in as many screens as it takes, and the answer."""
        assert self.screen is not None
        shown = self.screen.wait_for("approve? >")
        self.scene(title, shown)
        while "PgDn reads on" in shown:
            self.screen.keys("PageDown")
            shown = self.screen.wait_until(lambda now, before=shown: now != before, "the next page")
            self.scene("… the next page", shown)
        self.screen.type(answer)
        self.screen.wait_for(f"approve? > {answer}")
        self.screen.keys("Enter")
        self.screen.wait_until(lambda now: f"approve? > {answer}" not in now, "the end of the question")

    def scene(self, title: str, text: str) -> None:
        self.parts.append(f"**{title}**\n\n```text\n{text.rstrip()}\n```\n")

    def end(self, title: str) -> None:
        """Everything that was said, and the end of the program."""
        assert self.screen is not None
        self.scene(title, self.screen.everything())
        self.say("/exit")
        assert self.screen.exit_code() == 0
        self.screen.close()

    def close(self) -> None:
        self._state.cleanup()


def recorded() -> str:
    """The page."""
    page = Recording()
    screen = page.start(FIRST)
    page.say("the shop answers nothing, why?")
    page.dock("The change is proposed; the dock asks")
    screen.wait_for("workers is 4 now")
    run = screen.wait_for("e-").split("workers is 4 now (")[1].split(")")[0]
    page.say(f"/rollback {run}")
    page.dock("`/rollback` shows its plan and asks")
    screen.wait_for(f"rollback of {run}: succeeded")
    page.say("!grep -n workers app.conf")
    screen.wait_for("✓ !  grep", "workers=0")
    page.end("All of it, as it stands in the scrollback")
    screen = page.start(NEXT_DAY, "--resume", "last")
    screen.wait_for("conversation c-", "workers is 4 now")
    page.say("what did we do?")
    screen.wait_for("It is 0 again.")
    page.end("The next day: `./opsagent --resume last`")
    screen = page.start(INCIDENT)
    page.say("bring the shop back")
    page.dock("An incident: five steps, one answer")
    page.dock("Step 3 failed; taking back step 2 is the second answer")
    page.dock("Taking back step 1 is the third")
    screen.wait_for("Steps 4 and 5 never ran.")
    page.say("/executions")
    screen.wait_for("sed -i", "mv app.pid.new")
    page.end("All of it")
    page.close()
    head = """# A recorded conversation

Written by `tools/record_repl.py` from the real program on a real terminal of 80 × 24, with a scripted brain
(docs/loop.md). Ids and times are of that run. [How it works](repl.md).

"""
    return head + "\n".join(page.parts)


def main() -> None:
    """Makes the shop, plays, writes the page, takes the shop away."""
    SHOP.mkdir(parents=True)
    try:
        for name, text in FILES.items():
            (SHOP / name).write_text(text)
        page = recorded()
    finally:
        shutil.rmtree(SHOP)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
