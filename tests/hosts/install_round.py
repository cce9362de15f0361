"""`opsagent install` beside the real hosts: put in, seen by the host itself, looked over by the doctor, taken out.

    .venv-test/bin/python -m tests.hosts.install_round

Run by `make hosts`. Every settings file has to be byte for byte what it was.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.hosts import claude_code, codex, gemini_cli, versions
from tests.hosts.stage import MOST_S, Stage, shown
from tests.npm import NoNpm, fetched

CLAUDE_SETTINGS = '{\n\t"model": "opus",\n\t"permissions": {"allow": ["Bash(git status)"]}\n}\n'
BEFORE = {
    "claude-code": {".claude/settings.json": CLAUDE_SETTINGS},
    "codex": {".codex/config.toml": codex.CONFIG},
    "gemini": {".gemini/settings.json": gemini_cli.SETTINGS},
}
LISTED = {
    "claude-code": (["claude", "mcp", "list"], claude_code.ENVIRON),
    "codex": (["codex", "mcp", "list"], {}),
    "gemini": (["gemini", "mcp", "list"], gemini_cli.ENVIRON),
}
"""The host's own list of its servers."""
OK_ROWS = ("program", "server", "tools", "hook", "hook, a read", "hook, irreversible", "hook, missing", "hook, hanging")


def round_trip(stage: Stage, host: str) -> bool:
    for name, text in BEFORE[host].items():
        path = stage.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    stage.install(host, "--hook", tee=False)
    argv, more = LISTED[host]
    listed = subprocess.run(
        stage.argv(argv),
        env={**stage.environ, **more},
        cwd=stage.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=MOST_S,
    )
    good = shown(f"{host}: the host lists our server", "opsagent" in listed.stdout + listed.stderr, listed.stderr)
    doctor = json.loads(stage.ours("opsagent", "install", "doctor", host, "--json").stdout)
    states = {row["name"]: row["state"] for row in doctor["checks"]}
    right = doctor["ok"] and all(states.get(name) == "ok" for name in OK_ROWS) and states.get("hook, killed") == "ok"
    good &= shown(f"{host}: the doctor finds all well", right, json.dumps(doctor["checks"], indent=1))
    stage.ours("opsagent", "install", host, "--remove").check_returncode()
    left = {name: (stage.home / name).read_text() for name in BEFORE[host]}
    return good & shown(f"{host}: taken out, byte for byte", left == BEFORE[host], str(left))


def main() -> int:
    """Each host in a home of its own."""
    try:
        programs = fetched(*versions.NPM)
    except NoNpm as error:
        sys.stderr.write(f"install: NOT RUN: {error}\n")
        return 1
    good = True
    for host in BEFORE:
        with tempfile.TemporaryDirectory(prefix="opsagent-install-", ignore_cleanup_errors=True) as folder:
            good &= round_trip(Stage(Path(folder), programs), host)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
