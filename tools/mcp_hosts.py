"""The MCP server against other people's clients: the Inspector's command line, fetched by npm into a temporary folder.

Run by `make hosts`. Prints what each answered; ends with 1 when one of them did not get what the server should say.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVER = [str(ROOT / "opsagent"), "mcp"]
CALLS = (
    (["--method", "tools/list"], lambda got: "ops_exec" in [tool["name"] for tool in got["tools"]]),
    (
        ["--method", "tools/call", "--tool-name", "ops_check", "--tool-arg", "command=touch x"],
        lambda got: got["structuredContent"]["level"] == "R1",
    ),
    (
        ["--method", "tools/call", "--tool-name", "ops_exec", "--tool-arg", "command=touch x"],
        lambda got: got["isError"] and got["structuredContent"]["next"].startswith("opsx approve a-"),
    ),
    (
        ["--method", "tools/call", "--tool-name", "runbook", "--tool-arg", "id=memory"],
        lambda got: got["structuredContent"]["runbooks"] == ["memory"],
    ),
)


def inspector(folder: str) -> bool:
    """Installs the Inspector and asks the server through it."""
    npm = shutil.which("npm")
    if npm is None:
        sys.stdout.write("inspector: npm is not installed\n")
        return False
    subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--silent", "@modelcontextprotocol/inspector"],
        cwd=folder,
        check=True,
        timeout=600,
    )
    env = {**os.environ, "OPSAGENT_HOME": f"{folder}/state"}
    good = True
    for arguments, fits in CALLS:
        done = subprocess.run(
            [f"{folder}/node_modules/.bin/mcp-inspector", "--cli", *SERVER, *arguments],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        try:
            right = done.returncode == 0 and bool(fits(json.loads(done.stdout)))
        except (ValueError, KeyError, TypeError):
            right = False
        sys.stdout.write(f"inspector {' '.join(arguments[1:])}: {'ok' if right else 'WRONG'}\n")
        if not right:
            sys.stdout.write(done.stdout[:2000] + done.stderr[:2000])
        good = good and right
    return good


def main() -> int:
    """All clients, one after the other."""
    with tempfile.TemporaryDirectory(prefix="opsagent-hosts-") as folder:
        return 0 if inspector(folder) else 1


if __name__ == "__main__":
    sys.exit(main())
