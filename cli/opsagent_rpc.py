"""`opsagent rpc`: JSON-RPC 2.0 on standard input and output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cli.options import Option, Verb
from cli.serving import end_on_signals, person_may_answer

if TYPE_CHECKING:
    from agent.held import World
    from cli.options import Parsed

SHELL = "rpc"
BRAINS = (
    Option("brain", "who answers: openai, anthropic, offline, script:FILE, or a name of your own", value="NAME"),
    Option("model", "the model to ask for, in place of the brain's own", value="MODEL"),
    Option("read-only", "refuse everything above R0"),
    Option("cwd", "the folder that commands run in (default: the current one)", value="DIR"),
)
VERB = Verb(
    "rpc",
    "cli.opsagent_rpc",
    "serve a client of your own on standard input and output, with JSON-RPC 2.0",
    usage="[options]",
    options=BRAINS,
    text="""
One JSON object a line, in and out: prompt, cancel, pending, rollback/apply … (docs/protocol.md). Nothing is sent before
the first request. Approvals are asked through the pipe: whoever holds it holds the power to approve. Started by an
agent, it asks nobody.""",
    codes="0 the client went away · 2 usage · 130 stopped by a signal",
)


def main(parsed: Parsed) -> int:
    """Serves until the client goes away."""
    if parsed.words:
        from guard.errors import UsageError

        raise UsageError(f"opsagent rpc takes no {ascii(parsed.words[0])[:60]}", hint=parsed.help_line())
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write("opsagent rpc speaks JSON-RPC on standard input (docs/protocol.md); Ctrl-D ends it\n")
    from agent.rpc.server import Server
    from cli import surroundings
    from cli.version import VERSION

    cwd = surroundings.cwd(parsed.value("cwd"))

    def world() -> World:
        from cli.hosting import ClientWorld

        return ClientWorld(
            SHELL,
            cwd=cwd,
            brain=parsed.value("brain"),
            model=parsed.value("model"),
            read_only=parsed.flag("read-only"),
            person=person_may_answer("opsagent rpc"),
        )

    server = Server(world, version=VERSION)
    end_on_signals(server.connection.end)
    return 130 if server.run().startswith("signal") else 0
