"""What servers on standard input and output share before their first request: how they end, and whom they may ask."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


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
