"""Serves one ACP client. All methods are loaded at the first one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.acp.service import Service
    from agent.held import World
    from agent.jsonrpc import JSON, Connection

SERVED = (
    *("initialize", "session/new", "session/load", "session/resume", "session/list", "session/close"),
    *("session/prompt", "session/set_config_option"),
)


class Server(Serving["Service"]):
    """One client, from its first line to its last."""

    def __init__(self, world: Callable[[], World], *, version: str) -> None:
        """Args: world: called at the first request."""

        def load(connection: Connection) -> Service:
            from agent.acp.service import Service

            return Service(world(), connection, version=version)

        super().__init__(load, SERVED, notifications={"session/cancel": self._cancel})

    def _cancel(self, params: JSON) -> None:
        if self.service is not None and isinstance(session := params.get("sessionId"), str):
            self.service.cancel(session)
