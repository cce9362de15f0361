"""What servers on standard input and output share before their first request: options, how they end, whom they ask."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from cli.options import Option

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from agent.held import World
    from agent.serving import Serving
    from cli.options import Parsed

OPTIONS = (
    Option("brain", "who answers: openai, anthropic, offline, script:FILE, or a name of your own", value="NAME"),
    Option("model", "the model to ask for, in place of the brain's own", value="MODEL"),
    Option("read-only", "refuse everything above R0"),
    Option("cwd", "the folder that commands run in (default: the current one)", value="DIR"),
)


def served(parsed: Parsed, shell: str, server: Callable[..., Serving[Any]], *, speaks: str, page: str) -> int:
    """Serves a client until it goes away, and returns the exit code.

    Args:
        server: `agent.rpc.server.Server` or `agent.acp.server.Server`.
        speaks: the protocol's name, for a person who starts it on a terminal.
    Raises:
        UsageError, CwdGone: nothing was served.
    """
    if parsed.words:
        from guard.errors import UsageError

        raise UsageError(f"opsagent {shell} takes no {repr(parsed.words[0])[:60]}", hint=parsed.help_line())
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(f"opsagent {shell} speaks {speaks} on standard input ({page}); Ctrl-D ends it\n")
    from cli import surroundings
    from cli.version import VERSION

    cwd = surroundings.cwd(parsed.value("cwd"))

    def world() -> World:
        from cli.hosting import ClientWorld

        return ClientWorld(
            shell,
            cwd=cwd,
            brain=parsed.value("brain"),
            model=parsed.value("model"),
            read_only=parsed.flag("read-only"),
            person=person_may_answer(f"opsagent {shell}"),
        )

    serving = server(world, version=VERSION)
    end_on_signals(serving.connection.end)
    return 130 if serving.run().startswith("signal") else 0


def person_may_answer(program: str) -> bool:
    """Whether an answer through the pipe may be a person's; says on stderr when it may not."""
    from cli.actor import is_below_an_agent

    if not is_below_an_agent():
        return True
    sys.stderr.write(
        f"opsagent: {program} was started below an agent, so nothing is approved here; "
        "what needs that is kept for: opsx approve a-…\n"
    )
    return False


def end_on_signals(end: Callable[[str], None]) -> None:
    """Ctrl-C, a polite kill and a hang-up end the server as the end of its input does."""

    def handle(number: int, frame: FrameType | None) -> None:
        end(f"signal {number}")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handle)
