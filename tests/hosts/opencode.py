"""Our MCP server in a real opencode, headless.

    .venv-test/bin/python -m tests.hosts.opencode

Run by `make hosts`. Prints one line a case; ends with 1 when one of them is not as it should be.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.hosts import frames, versions
from tests.hosts.stage import ROOT, Stage, offered, offers_all, results_in, shown
from tests.model_server import Call, Say
from tests.npm import NoNpm, fetched

ENVIRON = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_SHARE": "1",
}
ASKED = {f"opsagent_{tool}": "ask" for tool in ("ops_exec", "write", "edit", "ops_approve", "ops_rollback")}
"""docs/hosts.md tells a person to write these."""


def settings(ask: bool) -> str:
    """What docs/hosts.md says, beside a model on loopback whose address is filled in."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "{env:MODEL_URL}/v1", "apiKey": "none"},
        "models": {"mock-1": {}},
    }
    server = {"type": "local", "command": [str(ROOT / "opsagent"), "mcp"], "enabled": True, "timeout": 60_000}
    whole = {
        "autoupdate": False,
        "share": "disabled",
        "model": "mock/mock-1",
        "provider": {"mock": provider},
        "mcp": {"opsagent": server},
        "permission": ASKED if ask else {},
    }
    return json.dumps(whole, indent=2)


def opencode(stage: Stage, *calls: Call) -> tuple[list[str], list[str], str]:
    """Tools that were offered, what it gave back for each call, and its output."""
    script = [*(Say(calls=[call]) for call in calls), Say("done")]
    argv = ["opencode", "run", "--format", "json", "go"]
    ran = stage.start(argv, script, urls={"MODEL_URL": "{url}"}, environ=ENVIRON)
    tools = max((offered(request.json) for request in ran.requests), key=len, default=[])
    return tools, results_in(ran.requests), ran.out + ran.err


def cases(stage: Stage) -> bool:
    (stage.project / "opencode.json").write_text(settings(ask=True))
    stage.between()
    tools, got, out = opencode(
        stage,
        Call("opsagent_ops_check", {"command": "touch x"}),
        Call("opsagent_bash", {"command": "cat a-file"}),
        Call("opsagent_ops_exec", {"command": "touch x"}),
    )
    good = all(
        [
            shown("all tools are offered", offers_all(tools, "opsagent_"), str(tools) + out[-1500:]),
            shown("ops_check and a read run", len(got) > 1 and "forty-two" in got[1], str(got)),
            shown("ops_exec is asked, and headless that is a no", "rejected permission" in out, out[-1500:]),
        ]
    )
    (stage.project / "opencode.json").write_text(settings(ask=False))
    _, got, out = opencode(stage, Call("opsagent_ops_exec", {"command": "touch x"}))
    right = bool(got) and "opsx approve a-" in got[0] and not (stage.project / "x").exists()
    return good & shown(
        "where opencode does not ask, ops_exec is refused with the next step", right, str(got) + out[-900:]
    )


def main() -> int:
    """All cases."""
    try:
        programs = fetched(*versions.NPM)
    except NoNpm as error:
        sys.stderr.write(f"opencode: NOT RUN: {error}\n")
        return 1
    print(f"== {versions.OPENCODE}")
    with tempfile.TemporaryDirectory(prefix="opsagent-opencode-", ignore_cleanup_errors=True) as folder:
        stage = Stage(Path(folder), programs)
        try:
            good = cases(stage)
        except subprocess.TimeoutExpired as error:
            good = shown("opencode ends", False, str(error))
        frames.keep_if_asked("opencode", versions.OPENCODE, stage)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
