"""The program around a server on standard input and output: guard, brains and sessions, opened when they are needed."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli import surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping

    import execution
    from agent.repl.world import Opened
    from agent.sessions.store import Sessions


@dataclass(slots=True)
class _Place:
    """`agent.repl.world.Place` of one conversation."""

    guard: execution.Guard
    cwd: str
    person: bool
    environ: Mapping[str, str]

    @property
    def sessions(self) -> Sessions:
        from agent.sessions.store import Sessions

        return Sessions.open(self.guard.redactor)


class ClientWorld:
    """`agent.held.World` for this process. Safe from any thread."""

    def __init__(self, shell: str, *, cwd: str, brain: str, model: str, read_only: bool, person: bool) -> None:
        """Args: person: whether the program at the other end may bring a person's answer."""
        self.cwd, self.person = cwd, person
        self._shell, self._brain, self._model, self._read_only = shell, brain, model, read_only
        self._lock = threading.Lock()
        self._guard: execution.Guard | None = None

    @property
    def guard(self) -> execution.Guard:
        """This machine's, opened once."""
        with self._lock:
            if self._guard is None:
                from execution import open_guard

                policy = surroundings.policy(read_only=self._read_only)
                self._guard = open_guard(policy, outputs_folder=surroundings.outputs_folder())
            return self._guard

    @property
    def sessions(self) -> Sessions:
        """The conversations on disk. Raises StateError."""
        return self._place(self.cwd, asks=False).sessions

    def open(self, *, resume: str = "", cwd: str = "", client: str = "", asks: bool = True) -> Opened:
        """See `World.open`."""
        from cli.opsagent_brains import opened

        place = self._place(surroundings.cwd(cwd) if cwd else self.cwd, asks=asks)
        return opened(place, brain=self._brain, model=self._model, resume=resume, shell=self._shell, client=client)

    def _place(self, cwd: str, *, asks: bool) -> _Place:
        return _Place(self.guard, cwd, self.person and asks, os.environ)
