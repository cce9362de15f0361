"""Our MCP server and hook in a real Gemini CLI, headless.

    .venv-test/bin/python -m tests.hosts.gemini_cli

Run by `make hosts`. Prints one line a case; ends with 1 when one of them is not as it should be.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.hosts import frames, versions
from tests.hosts.stage import Ran, Stage, offered, offers_all, results_in, shown
from tests.model_server import Call, Say
from tests.npm import NoNpm, fetched

SETTINGS = """\
{
  // a person's own
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "privacy": {"usageStatisticsEnabled": false},
  "general": {"enableAutoUpdate": false} // no updates
}
"""
ENVIRON = {"GEMINI_API_KEY": "none", "GEMINI_CLI_NO_RELAUNCH": "1"}


def gemini(stage: Stage, *calls: Call, options: tuple[str, ...] = ("--skip-trust",)) -> tuple[Ran, list[str]]:
    """One headless run, and what it gave back for each call."""
    script = [*(Say(calls=[call]) for call in calls), Say("done")]
    argv = ["gemini", *options, "-m", "gemini-2.5-flash", "-p", "go", "--output-format", "stream-json"]
    ran = stage.start(argv, script, urls={"GOOGLE_GEMINI_BASE_URL": "{url}"}, environ=ENVIRON)
    return ran, results_in(ran.requests)


def ours(tool: str, **arguments: object) -> Call:
    return Call(f"mcp_opsagent_{tool}", arguments)


def reads_and_refusals(stage: Stage) -> bool:
    ran, got = gemini(
        stage,
        ours("ops_check", command="touch x"),
        ours("bash", command="cat a-file"),
        ours("ops_exec", command="touch x"),
    )
    if len(got) != 3:
        return shown("three calls", False, ran.err + ran.out[-2000:])
    first = offered(ran.requests[0].json)
    kept = [run["command"] for run in stage.executions()]
    return all(
        [
            shown("all tools in the first request", offers_all(first, "mcp_opsagent_"), str(first)),
            shown("ops_check without a prompt", "needs_stamp" in got[0], got[0]),
            shown(
                "a read without a prompt, and in our records", "forty-two" in got[1] and kept == ["cat a-file"], got[1]
            ),
            shown(
                "ops_exec wants a person, and headless there is none", "requires user confirmation" in got[2], got[2]
            ),
            shown("nothing was written", not (stage.project / "x").exists()),
        ]
    )


def hook_under_yolo(stage: Stage) -> bool:
    """Where the host asks nobody, the hook still stands before its shell, and our approval before our tools."""
    outside = stage.folder / "outside"
    ran, got = gemini(
        stage,
        Call("run_shell_command", {"command": "cat a-file", "description": "a step"}),
        Call("run_shell_command", {"command": f"touch {outside}", "description": "a step"}),
        ours("ops_exec", command=f"touch {outside}"),
        options=("--skip-trust", "--yolo"),
    )
    if len(got) != 3:
        return shown("yolo: three calls", False, ran.err + ran.out[-2000:])
    kept = [run["command"] for run in stage.executions()]
    return all(
        [
            shown("yolo: its shell: a read goes through opsx", "forty-two" in got[0] and kept.count("cat a-file") == 2),
            shown("yolo: its shell: a change is stopped", "opsagent: R1" in got[1], got[1]),
            shown(
                "yolo: ops_exec needs a person's approval", "opsx approve a-" in got[2] or "confirm" in got[2], got[2]
            ),
            shown("yolo: nothing was written", not outside.exists()),
        ]
    )


def untrusted_folder(stage: Stage) -> bool:
    ran, _ = gemini(stage, options=())
    return shown("a folder that nobody trusts: it does not start", ran.code == 55 and not ran.requests, ran.err)


def main() -> int:
    """All cases."""
    try:
        programs = fetched(*versions.NPM)
    except NoNpm as error:
        sys.stderr.write(f"gemini: NOT RUN: {error}\n")
        return 1
    print(f"== {versions.GEMINI}")
    with tempfile.TemporaryDirectory(prefix="opsagent-gemini-", ignore_cleanup_errors=True) as folder:
        stage = Stage(Path(folder), programs)
        (stage.home / ".gemini").mkdir()
        (stage.home / ".gemini" / "settings.json").write_text(SETTINGS)
        stage.install("gemini", "--hook")
        good = True
        for case in (reads_and_refusals, hook_under_yolo, untrusted_folder):
            good &= case(stage)
        frames.keep_if_asked("gemini", versions.GEMINI, stage)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
