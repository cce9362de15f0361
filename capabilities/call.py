"""Who calls a tool, from where, and how the caller follows or stops what it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from guard.types import LOCAL, Actor, Request

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dialogue.confirm import Confirm
    from guard.ports import Cancel


class AnswerNeeded(Exception):
    """The caller has to bring a person's answer and call again. `mark` comes back with it."""

    def __init__(self, text: str, schema: dict[str, Any], mark: str) -> None:
        super().__init__("a person's answer is needed")
        self.text = text
        self.schema = schema
        self.mark = mark


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one tool. Tools are made for a call, so that nothing of it is kept anywhere else."""

    cwd: str
    """Absolute; where commands run."""
    shell: str
    """The way in, as in `guard.types.Request`."""
    actor: str = Actor.AGENT
    client: str = ""
    """Name and version of the program that calls, as it says them itself; "" when it does not."""
    call_id: str = ""
    session: str = ""
    cancel: Cancel | None = None
    on_output: Callable[[str, bytes], None] | None = None
    """Gets `stdout`/`stderr` and redacted bytes as they come."""
    on_begin: Callable[[str], None] | None = None
    """Gets the execution's id before it runs."""
    read_before: str = ""
    """What of others' words the caller had read, in words; "" when it had not, or does not say."""
    confirm: Confirm | None = None
    """Asks the person in front of the caller. None: nobody can be asked through this caller."""

    def request(self, command: str, *, target: str = LOCAL, why: str = "") -> Request:
        """The command as a request of this caller."""
        return Request(
            command,
            target=target,
            cwd=self.cwd,
            actor=self.actor,
            why=why,
            shell=self.shell,
            client=self.client,
            call_id=self.call_id,
            session=self.session,
            read_before=self.read_before,
        )

    def stopped(self) -> bool:
        """Whether the caller wants no answer any more."""
        return self.cancel is not None and self.cancel.is_set()
