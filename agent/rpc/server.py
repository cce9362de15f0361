"""Serves one client of `opsagent rpc`: what can be answered at once is, all else is loaded at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.jsonrpc import Method
from agent.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.held import World
    from agent.jsonrpc import JSON, Connection, Incoming
    from agent.rpc.service import Service

SERVED = (
    *("initialize", "prompt", "reset", "pending", "executions", "rollback/plan", "rollback/apply", "status"),
    *("session/list", "session/resume", "session/fork", "session/close"),
)
"""Methods of `agent.rpc.service`; `ping` and `cancel` are here."""


class Server(Serving["Service"]):
    """One client, from its first line to its last."""

    def __init__(self, world: Callable[[], World], *, version: str) -> None:
        """Args: world: called at the first request that needs more than an answer."""

        def load(connection: Connection) -> Service:
            from agent.rpc.service import Service

            return Service(world(), connection, version=version)

        quick = {"ping": Method(_ping, at_once=True), "cancel": Method(self._cancel, at_once=True)}
        super().__init__(load, SERVED, methods=quick, batches=True)

    def _cancel(self, params: JSON, request: Incoming) -> JSON:
        from agent.rpc.schemas import METHODS
        from capabilities.registry import fitting

        session = fitting("cancel", METHODS["cancel"].parameters, params).get("session", "")
        return {"format": 1, "cancelled": 0 if self.service is None else self.service.cancel(session)}


def _ping(params: JSON, request: Incoming) -> JSON:
    return {"format": 1}
