"""Our MCP server and hook in a real Claude Code: reads, refusal, a person's approval, execution, rollback.

    .venv-test/bin/python -m tests.hosts.claude_code

Run by `make hosts`. Prints one line a case; ends with 1 when one of them is not as it should be.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hosts import frames, versions
from tests.hosts.stage import ROOT, Ran, Stage, offered, offers_all, results_in, shown
from tests.model_server import Call, Say
from tests.npm import NoNpm, fetched

ENVIRON = {
    "IS_SANDBOX": "1",
    "ANTHROPIC_API_KEY": "none",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
}
APPROVE = re.compile(r"opsx approve (a-[a-z0-9]+)")
URLS = {"ANTHROPIC_BASE_URL": "{url}"}


def claude(stage: Stage, *calls: Call, options: tuple[str, ...] = ()) -> tuple[Ran, list[str]]:
    """One headless run in which the model makes these calls, and what the host gave back for each."""
    script = [*(Say(calls=[call]) for call in calls), Say("done")]
    argv = ["claude", "-p", "go", "--output-format", "stream-json", "--verbose", *options]
    ran = stage.start(argv, script, urls=URLS, environ=ENVIRON)
    return ran, results_in(ran.requests)


def ours(tool: str, **arguments: object) -> Call:
    return Call(f"mcp__opsagent__{tool}", arguments)


def bash(command: str) -> Call:
    return Call("Bash", {"command": command, "description": "a step"})


def told(text: str) -> dict[str, Any]:
    """The answer of one of our tools; empty when the host said something of its own."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def asking(stage: Stage, verdict: str) -> tuple[tuple[str, ...], Path]:
    """Options with which the host asks `tests.hosts.asker`, and where it writes what it was asked."""
    log, config = stage.folder / f"asked-{verdict}.jsonl", stage.folder / f"asker-{verdict}.json"
    argv = ["-I", str(ROOT / "tests/hosts/asker.py"), verdict, str(log)]
    entry = {"command": sys.executable, "args": argv, "alwaysLoad": True}
    config.write_text(json.dumps({"mcpServers": {"asker": entry}}))
    return ("--mcp-config", str(config), "--permission-prompt-tool", "mcp__asker__approve"), log


def reads_and_refusals(stage: Stage) -> bool:
    """Everything that no person is needed for, in one run: ours, and the host's own Bash under the hook."""
    outside = stage.folder / "outside"
    ran, got = claude(
        stage,
        ours("ops_check", command=f"touch {outside}"),
        ours("bash", command="cat a-file"),
        ours("ops_exec", command=f"touch {outside}"),
        bash("cat a-file"),
        bash(f"touch {outside}"),
    )
    if len(got) != 5:
        return shown("five calls", False, ran.err + ran.out[-2000:])
    first = offered(ran.requests[0].json)
    commands = [run["command"] for run in stage.executions()]
    return all(
        [
            shown("all tools in the first request", offers_all(first, "mcp__opsagent__")),
            shown("ops_check without a prompt", told(got[0]).get("decision") == "needs_stamp", got[0]),
            shown("a read without a prompt", told(got[1]).get("stdout") == "forty-two\n", got[1]),
            shown("ops_exec is not called unasked", "haven't granted it" in got[2], got[2]),
            shown("its own Bash: a read goes through opsx", got[3] == "forty-two" and "cat a-file" in commands, got[3]),
            shown("its own Bash: a change is stopped", "Call mcp__opsagent__ops_exec" in got[4], got[4]),
            shown("nothing was written", not outside.exists()),
        ]
    )


def approved_and_taken_back(stage: Stage) -> bool:
    """A change: the host's prompt lets the call through, which approves nothing; a person does; and back again."""
    file = stage.folder / "settings.conf"
    file.write_text("old\n")
    change = ours("ops_exec", command=f"sed -i s/old/new/ {file}", why="the new value")
    options, log = asking(stage, "allow")
    _, (first, *_) = claude(stage, change, options=options)
    asked = told(first)
    wanted = APPROVE.search(str(asked.get("next")))
    good = shown(
        "the host's yes is no approval: refused, with the next step",
        asked.get("status") == "needs_stamp" and wanted is not None and file.read_text() == "old\n",
        first,
    )
    question = json.loads(log.read_text().splitlines()[0])
    good &= shown("its prompt shows the very command", question["input"] == change.arguments, str(question))
    if wanted is None:
        return False
    screen = stage.at_terminal(["approve", wanted[1]], "yes\r", wait_for="anything else is no: ")
    good &= shown("a person reads the command and says yes", str(file) in screen and "approved" in screen, screen)
    _, (second, *_) = claude(stage, change, options=options)
    done = told(second)
    ran = file.read_text() == "new\n" and done.get("status") == "succeeded"
    good &= shown("then it runs", ran, second)
    run = next((one for one in stage.executions() if one["id"] == done.get("execution")), {})
    good &= shown(
        "opsx executions shows the host's tool-use id", str(run.get("call_id")).startswith("toolu_"), str(run)
    )
    good &= shown("and the host", str(run.get("client")).startswith("claude-code 2."), str(run.get("client")))
    return good and _taken_back(stage, str(done["execution"]), file, options)


def _taken_back(stage: Stage, execution: str, file: Path, options: tuple[str, ...]) -> bool:
    """The plan; asked for without a person; a person's consent; applied."""
    back = ours("ops_rollback", id=execution, confirm=True)
    _, got = claude(stage, ours("ops_rollback", id=execution), back, options=options)
    good = shown("rollback: the plan names the file", str(file) in got[0] and file.read_text() == "new\n", got[0])
    wanted = APPROVE.search(got[1])
    good &= shown("rollback: a model's yes only asks", wanted is not None and file.read_text() == "new\n", got[1])
    if wanted is None:
        return False
    screen = stage.at_terminal(["approve", wanted[1]], "yes\r", wait_for="anything else is no: ")
    _, (applied, *_) = claude(stage, back, options=options)
    return good & shown("rollback: applied after a person's yes", file.read_text() == "old\n", screen + applied)


def a_no_at_the_prompt(stage: Stage) -> bool:
    options, log = asking(stage, "deny")
    _, (answer, *_) = claude(stage, ours("ops_exec", command="touch never"), options=options)
    asked = log.read_text().splitlines()
    return shown("a no at the host's prompt", "the person said no" in answer and len(asked) == 1, answer)


def hook_alone(stage: Stage) -> None:
    """Leaves the hook in the settings, and nothing else of ours."""
    (stage.home / ".claude.json").unlink(missing_ok=True)
    settings = stage.ours("opsx", "hook", "claude-code", "--settings").stdout
    (stage.home / ".claude" / "settings.json").write_text(settings)


def hook_asks_with_our_words(stage: Stage) -> bool:
    """Without our server the hook's question is the host's, in our words; headless it is a no."""
    hook_alone(stage)
    outside = stage.folder / "outside"
    _, (answer, *_) = claude(stage, bash(f"touch {outside}"))
    right = "opsagent: R1" in answer and "no snapshot will exist" in answer and not outside.exists()
    return shown("without our server: the question says what is missing", right, answer)


CASES: tuple[Callable[[Stage], bool], ...] = (
    reads_and_refusals,
    approved_and_taken_back,
    a_no_at_the_prompt,
    hook_asks_with_our_words,
)


def main() -> int:
    """All cases, one after the other, on one stage."""
    try:
        programs = fetched(*versions.NPM)
    except NoNpm as error:
        sys.stderr.write(f"claude-code: NOT RUN: {error}\n")
        return 1
    print(f"== {versions.CLAUDE_CODE}")
    with tempfile.TemporaryDirectory(prefix="opsagent-claude-", ignore_cleanup_errors=True) as folder:
        stage = Stage(Path(folder), programs)
        stage.install("claude-code", "--hook")
        good = True
        for case in CASES:
            good &= case(stage)
        frames.keep_if_asked("claude-code", versions.CLAUDE_CODE, stage)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
