"""`opsagent acp`: the Agent Client Protocol on standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.options import Verb
from cli.serving import OPTIONS, served

if TYPE_CHECKING:
    from cli.options import Parsed

VERB = Verb(
    "acp",
    "cli.opsagent_acp",
    "serve an editor that speaks the Agent Client Protocol, on standard input and output",
    usage="[options]",
    options=OPTIONS,
    text="""
An editor starts it: `opsagent install zed|emacs|neovim` prints how to set that up (docs/editors.md). Approvals are
asked in the editor: whoever holds the pipe holds the power to approve. Started by an agent, it asks nobody.""",
    codes="0 the client went away · 2 usage · 130 stopped by a signal",
)


def main(parsed: Parsed) -> int:
    """Serves until the client goes away."""
    from agent.acp.server import Server

    return served(parsed, "acp", Server, speaks="the Agent Client Protocol", page="docs/editors.md")
