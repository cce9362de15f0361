"""`opsagent rpc`: JSON-RPC 2.0 on standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.options import Verb
from cli.serving import OPTIONS, served

if TYPE_CHECKING:
    from cli.options import Parsed

VERB = Verb(
    "rpc",
    "cli.opsagent_rpc",
    "serve a client of your own on standard input and output, with JSON-RPC 2.0",
    usage="[options]",
    options=OPTIONS,
    text="""
One JSON object a line, in and out: prompt, cancel, pending, rollback/apply … (docs/protocol.md). Nothing is sent before
the first request. Approvals are asked through the pipe: whoever holds it holds the power to approve. Started by an
agent, it asks nobody.""",
    codes="0 the client went away · 2 usage · 130 stopped by a signal",
)


def main(parsed: Parsed) -> int:
    """Serves until the client goes away."""
    from agent.rpc.server import Server

    return served(parsed, "rpc", Server, speaks="JSON-RPC", page="docs/protocol.md")
