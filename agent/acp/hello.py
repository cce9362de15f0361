"""The first words of an ACP client, and ours: answered before this machine is looked at. Imports nothing slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.jsonrpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from agent.jsonrpc import JSON

VERSION = 1
"""Of the protocol; version 2 is a draft."""


class Hello:
    """Who the client is and what it can, as it said last."""

    def __init__(self) -> None:
        self.client = ""
        """Its name and version."""
        self._can: JSON = {}

    def has(self, *path: str) -> bool:
        """Whether the client declared an ability: true, or an object."""
        value: object = self._can
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value is True or isinstance(value, dict)

    def answer(self, params: JSON, *, version: str) -> JSON:
        """Takes `initialize` and answers it.

        Args:
            version: of opsagent.
        Raises:
            RpcError: it is none.
        """
        if type(params.get("protocolVersion")) is not int:
            raise bad("protocolVersion must be a whole number")
        info, can = object_in(params, "clientInfo"), object_in(params, "clientCapabilities")
        self.client = " ".join(str(info.get(name) or "") for name in ("name", "version")).strip()[:200]
        self._can = can
        return {
            "protocolVersion": VERSION,
            "agentInfo": {"name": "opsagent", "title": "opsagent", "version": version},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": False, "sse": False},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "authMethods": [],
        }


def object_in(params: JSON, name: str) -> JSON:
    """An object that may be missing. Raises RpcError for anything else."""
    value = params.get(name) or {}
    if not isinstance(value, dict):
        raise bad(f"{name} must be an object")
    return value


def text_in(params: JSON, name: str) -> str:
    """A text that must be there. Raises RpcError."""
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise bad(f"{name} must be a text")
    return value


def bad(message: str) -> RpcError:
    """The error for parameters that do not fit."""
    return RpcError(INVALID_PARAMS, f"Invalid params: {message}")
