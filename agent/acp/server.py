"""Serves one ACP client. The first words are answered at once; all else is loaded after that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.acp.hello import Hello
from agent.jsonrpc import Method
from agent.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.acp.service import Service
    from agent.held import World
    from agent.jsonrpc import JSON, Connection, Incoming

SERVED = (
    *("session/new", "session/load", "session/resume", "session/list", "session/close"),
    *("session/prompt", "session/set_config_option"),
)
"""Methods of `agent.acp.service`; `initialize` is here."""


class Server(Serving["Service"]):
    """One client, from its first line to its last."""

    def __init__(self, world: Callable[[], World], *, version: str) -> None:
        """Args: world: called when the first words were answered, or at the first other request."""
        self._hello, self._version = Hello(), version

        def load(connection: Connection) -> Service:
            from agent.acp.service import Service

            return Service(world(), connection, self._hello)

        super().__init__(
            load,
            SERVED,
            methods={"initialize": Method(self._initialize)},
            notifications={"session/cancel": self._cancel},
        )

    def _initialize(self, params: JSON, request: Incoming) -> JSON:
        request.afterwards = self.warm
        return self._hello.answer(params, version=self._version)

    def _cancel(self, params: JSON) -> None:
        if self.service is not None and isinstance(session := params.get("sessionId"), str):
            self.service.cancel(session)
