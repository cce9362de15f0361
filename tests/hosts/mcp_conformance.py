"""The official conformance suite against the MCP server, through our own bridge from HTTP to its pipes.

    .venv-test/bin/python -m tests.hosts.mcp_conformance

Run by `make hosts`. Most scenarios call a tool, a prompt or a resource of a made-up server; they are expected to fail,
each with its reason here. One that fails without being listed, or passes although it is, ends this with 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.hosts.mcp_bridge import bridged
from tests.npm import NoNpm, fetched

CONFORMANCE = "@modelcontextprotocol/conformance@0.1.16"
ROOT = Path(__file__).resolve().parents[2]

NO_TOOL = "it calls a tool of the suite's own server, which offers such things to be tested"
NO_RESOURCES = "we offer no resources"
NO_PROMPTS = "we offer no prompts"
OPTIONAL = "it asks for an optional part that we do not declare"
TRANSPORT = "it is about HTTP, which is the bridge's and not the server's"
EXPECTED_FAILURES = {
    **dict.fromkeys(
        (
            *("tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource"),
            *("tools-call-mixed-content", "tools-call-with-logging", "tools-call-error", "tools-call-with-progress"),
            *("tools-call-sampling", "tools-call-elicitation", "json-schema-2020-12", "elicitation-sep1034-defaults"),
            "elicitation-sep1330-enums",
        ),
        NO_TOOL,
    ),
    **dict.fromkeys(
        (
            *("resources-list", "resources-read-text", "resources-read-binary", "resources-templates-read"),
            *("resources-subscribe", "resources-unsubscribe"),
        ),
        NO_RESOURCES,
    ),
    **dict.fromkeys(
        (
            *("prompts-list", "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource"),
            "prompts-get-with-image",
        ),
        NO_PROMPTS,
    ),
    **dict.fromkeys(("logging-set-level", "completion-complete"), OPTIONAL),
    "server-sse-polling": TRANSPORT,
}


def main() -> int:
    """The whole suite."""
    try:
        suite = fetched(CONFORMANCE)
    except NoNpm as error:
        sys.stderr.write(f"conformance: NOT RUN: {error}\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="opsagent-conformance-") as folder:
        expected = Path(folder) / "expected.yml"
        expected.write_text("server:\n" + "".join(f"  - {name}\n" for name in EXPECTED_FAILURES))
        env = {**os.environ, "OPSAGENT_HOME": f"{folder}/state"}
        with bridged([str(ROOT / "opsagent"), "mcp"], env=env, cwd=folder) as url:
            done = subprocess.run(
                [
                    *suite.argv("conformance"),
                    *("server", "--url", url, "--suite", "all"),
                    *("--expected-failures", str(expected), "--output-dir", f"{folder}/results"),
                ],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                timeout=600,
            )
    for reason in dict.fromkeys(EXPECTED_FAILURES.values()):
        names = [name for name, why in EXPECTED_FAILURES.items() if why == reason]
        print(f"conformance: expected to fail, because {reason}: {', '.join(names)}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
