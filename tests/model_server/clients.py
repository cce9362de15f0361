"""Providers that ask a model server, and what tests ask them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from agent.messages import Message, User
from agent.providers.anthropic import Anthropic
from agent.providers.api import Api
from agent.providers.base import Reply, Sent
from agent.providers.endpoint import Endpoint
from agent.providers.openai import OpenAI
from capabilities.registry import Tool, hints_of, parameters
from guard.hands.cancel import CancelToken
from guard.redact import Redactor
from guard.types import Level
from tests.model_server.script import Gate
from tests.model_server.server import ModelServer

KINDS: dict[str, type[Api]] = {"openai": OpenAI, "anthropic": Anthropic}
KEY = "key-of-the-tests-0123456789abcdef"

BASH = Tool(
    "bash",
    "Runs a read.",
    parameters({"command": {"type": "string"}}, {"timeout_s": {"type": "integer"}}),
    hints_of(Level.R0),
    lambda arguments: arguments,
)
READ = Tool("read", "Reads a file.", parameters({"path": {"type": "string"}}), hints_of(Level.R0), lambda given: given)
TOOLS = (BASH, READ)


def url_of(kind: str, server: ModelServer) -> str:
    return server.openai_url if kind == "openai" else server.anthropic_url


def provider(kind: str, base_url: str, *, redactor: Redactor | None = None, **settings: Any) -> Api:
    """A provider of that kind; `settings` are the fields of `Endpoint`."""
    given = {"name": "mine", "model": "mock-1", "key": KEY, **settings}
    return KINDS[kind](Endpoint(base_url=base_url, **given), redactor or Redactor())


def sent(*messages: Message, system: str = "be brief", tools: Iterable[Tool] = TOOLS) -> Sent:
    return Sent(system, messages or (User("how is the disk?"),), tuple(tools))


def ask(api: Api, request: Sent | None = None, cancel: CancelToken | None = None) -> tuple[list[str], Reply]:
    """The pieces that were shown, and the reply."""
    token = cancel or CancelToken()
    try:
        *pieces, reply = api.stream(request or sent(), cancel=token)
    finally:
        if cancel is None:
            token.close()
    assert isinstance(reply, Reply)
    return pieces, reply


@contextmanager
def at(gate: Gate, act: Callable[[], object]) -> Iterator[None]:
    """Acts in another thread once the server has come to the gate."""
    thread = threading.Thread(target=lambda: (gate.wait_until_reached(), act()))
    thread.start()
    try:
        yield
    finally:
        thread.join()
