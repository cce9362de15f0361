"""The Claude Agent SDK with our server and hook: its `can_use_tool` is told our words, and its yes approves nothing.

    .venv-test/bin/python -m tests.hosts.agent_sdk

Run by `make hosts`. The SDK lies in an environment of its own, in which this file is started again with `--inside`; it
drives the Claude Code of tests.hosts.versions. Prints one line a case.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PROMPT = "go"


async def inside(options: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs in the SDK's environment: one conversation; every question is answered with what `verdict` says."""
    from claude_agent_sdk import (  # type: ignore[import-not-found]
        ClaudeAgentOptions,
        ClaudeSDKClient,
        PermissionResultAllow,
        PermissionResultDeny,
    )

    asked: list[dict[str, Any]] = []

    async def can_use_tool(name: str, given: dict[str, Any], context: Any) -> Any:
        asked.append({"tool": name, "input": given, "reason": getattr(context, "decision_reason", None)})
        if options["verdict"] == "allow":
            return PermissionResultAllow(updated_input=given)
        return PermissionResultDeny(message="the person said no", interrupt=False)

    settings = ClaudeAgentOptions(
        cwd=options["cwd"],
        cli_path=options["claude"],
        env=options["env"],
        setting_sources=["user"],
        can_use_tool=can_use_tool,
    )
    async with ClaudeSDKClient(settings) as client:
        await client.query(PROMPT)
        async for _ in client.receive_response():
            pass
    return asked


def main() -> int:
    """All cases, from outside of the SDK's environment."""
    from tests.hosts import claude_code, versions
    from tests.hosts.stage import MOST_S, Stage, model, results_in, shown
    from tests.model_server import Call, Say
    from tests.npm import NoNpm, fetched
    from tests.pypi import NotInstalled, environment_of

    try:
        programs, python = fetched(*versions.NPM), environment_of(versions.AGENT_SDK)
    except (NoNpm, NotInstalled) as error:
        sys.stderr.write(f"agent sdk: NOT RUN: {error}\n")
        return 1
    print(f"== {versions.AGENT_SDK}")

    def run(stage: Stage, verdict: str, *calls: Call) -> tuple[list[dict[str, Any]], list[str]]:
        with model([*(Say(calls=[call]) for call in calls), Say("done")]) as server:
            env = {**stage.environ, **claude_code.ENVIRON, "ANTHROPIC_BASE_URL": server.url}
            claude = stage.argv(["claude"])[0]
            options = {"cwd": str(stage.project), "claude": claude, "env": env, "verdict": verdict}
            done = subprocess.run(
                [str(python), __file__, "--inside", json.dumps(options)],
                env=env,
                cwd=stage.project,
                capture_output=True,
                text=True,
                timeout=MOST_S,
            )
            if done.returncode:
                print(done.stderr[-2000:])
                return [], []
            return json.loads(done.stdout), results_in(server.requests)

    with tempfile.TemporaryDirectory(prefix="opsagent-sdk-", ignore_cleanup_errors=True) as folder:
        stage = Stage(Path(folder), programs)
        stage.install("claude-code", "--hook", tee=False)
        outside = stage.folder / "outside"
        exec_it = claude_code.ours("ops_exec", command=f"touch {outside}")
        asked, got = run(stage, "allow", claude_code.ours("bash", command="cat a-file"), exec_it)
        good = shown(
            "can_use_tool is asked for ops_exec alone", [one["tool"] for one in asked] == [exec_it.name], str(asked)
        )
        good &= shown("it sees the command", [one["input"] for one in asked] == [exec_it.arguments], str(asked))
        right = len(got) == 2 and "forty-two" in got[0] and "opsx approve a-" in got[1] and not outside.exists()
        good &= shown("its yes approves nothing: ops_exec says the next step", right, str(got))
        asked, got = run(stage, "deny", exec_it)
        good &= shown("its no reaches the model", len(asked) == 1 and "the person said no" in got[0], str(got))
        asked, got = run(stage, "deny", claude_code.bash(f"touch {outside}"))
        good &= shown(
            "a change in its own Bash is stopped before it is asked", not asked and "ops_exec" in got[0], str(got)
        )
        claude_code.hook_alone(stage)
        asked, got = run(stage, "deny", claude_code.bash(f"touch {outside}"))
        words = json.dumps(asked)
        good &= shown(
            "without our server it is asked, with our words", "no snapshot will exist" in words, words + str(got)
        )
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        json.dump(asyncio.run(inside(json.loads(sys.argv[2]))), sys.stdout)
        sys.exit(0)
    sys.exit(main())
