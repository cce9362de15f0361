"""Serves one client of `opsagent rpc`: what can be answered at once is, all else is loaded at its first use."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from agent.jsonrpc import Connection, Method, guard_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.held import World
    from agent.jsonrpc import JSON, Incoming
    from agent.rpc.service import Service

SERVED = (
    *("initialize", "prompt", "reset", "pending", "executions", "rollback/plan", "rollback/apply", "status"),
    *("session/list", "session/resume", "session/fork", "session/close"),
)
"""Methods of `agent.rpc.service`; `ping` and `cancel` are here."""
END_S = 5.0


class Server:
    """One client, from its first line to its last."""

    def __init__(self, world: Callable[[], World], *, version: str) -> None:
        """Args: world: called at the first request that needs more than an answer."""
        self._make_world, self._version = world, version
        self._lock = threading.Lock()
        self._service: Service | None = None
        methods = {name: Method(self._late(name)) for name in SERVED}
        methods["ping"] = Method(lambda params, request: {"format": 1}, at_once=True)
        methods["cancel"] = Method(self._cancel, at_once=True)
        self.connection = Connection(methods, {}, batches=True, described=guard_errors(self._redact))

    def run(self) -> str:
        """Serves until the client goes; returns why it ended. Everything that was open is on record then."""
        why = self.connection.serve()
        if self._service is not None:
            self._service.close()
        self.connection.close(END_S)
        return why

    def _late(self, name: str) -> Callable[[JSON, Incoming], JSON]:
        return lambda params, request: self._ready().call(name, params, request)

    def _ready(self) -> Service:
        with self._lock:
            if self._service is None:
                from agent.rpc.service import Service

                self._service = Service(self._make_world(), self.connection, version=self._version)
            return self._service

    def _cancel(self, params: JSON, request: Incoming) -> JSON:
        from agent.rpc.schemas import METHODS
        from capabilities.registry import fitting

        session = fitting("cancel", METHODS["cancel"].parameters, params).get("session", "")
        return {"format": 1, "cancelled": 0 if self._service is None else self._service.cancel(session)}

    def _redact(self, text: str) -> str:
        from guard.redact import Redactor

        redactor = self._service.redactor if self._service is not None else Redactor()
        return redactor.text(text)
