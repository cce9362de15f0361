"""`opsagent mcp` and `opsagent-mcp`: the MCP server on standard input and output."""

from __future__ import annotations

import sys
from dataclasses import replace

from cli.options import Option, Verb, help_of, name_config, parse

VERB = Verb(
    "mcp",
    "cli.opsagent_mcp",
    "serve the guard's tools to an MCP host on standard input and output",
    usage="[options]",
    options=(
        Option("read-only", "refuse everything above R0"),
        Option("cwd", "the folder that commands run in (default: the current one)", value="DIR"),
    ),
    text="""
A host starts it, for example: claude mcp add opsagent -- /path/to/opsagent mcp
docs/mcp.md has the tools, the approval walk and the settings of the common hosts.""",
    codes="0 the host went away · 2 usage · 4 refused at start",
)


def main(argv: list[str]) -> int:
    """Serves until the host goes away. `argv` is what follows `mcp`."""
    parsed = parse("opsagent", VERB, argv)
    if parsed.flag("help"):
        from cli.report import write

        write(help_of("opsagent", VERB))
        return 0
    if parsed.words:
        from guard.errors import UsageError

        raise UsageError(f"opsagent mcp takes no {repr(parsed.words[0])[:60]}", hint="opsagent mcp --help")
    name_config(parsed)
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write("opsagent mcp speaks the Model Context Protocol on standard input; Ctrl-D ends it\n")
    from cli import config, surroundings
    from cli.mcp_config import HOST, McpSettings
    from cli.version import VERSION

    cwd = surroundings.cwd(parsed.value("cwd"))
    from execution import open_guard
    from guard.clock import RandomIds
    from mcp_server import Options, serve

    outputs = surroundings.outputs_folder()
    guard = open_guard(surroundings.policy(read_only=parsed.flag("read-only")), outputs_folder=outputs)
    if outputs is not None:
        # Other clients' outputs lie there too; the read tool gives each client its own.
        guard = replace(guard, hidden=(*guard.hidden, outputs))
    settings = config.load().mcp or McpSettings()
    options = Options(
        host_counts=settings.approval == HOST,
        shared_outputs=outputs or "" if settings.share_outputs else "",
        edits=settings.edits,
    )
    return serve(guard, version=VERSION, cwd=cwd, session=RandomIds().new("c"), options=options)
