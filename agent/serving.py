"""A server on standard input and output whose methods are loaded at the first that needs them. Imports nothing slow."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from agent.jsonrpc import Connection, Method, guard_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agent.jsonrpc import JSON, Handler, Incoming
    from guard.redact import Redactor

END_S = 5.0
"""How long the last answers get once all conversations have ended."""


class Service(Protocol):
    """What serves a client's methods, once it is loaded."""

    @property
    def redactor(self) -> Redactor: ...

    def call(self, name: str, params: JSON, request: Incoming) -> JSON: ...

    def close(self) -> None:
        """Ends everything that is open, on record."""
        ...


S = TypeVar("S", bound=Service)


class Serving(Generic[S]):
    """One client, from its first line to its last."""

    def __init__(
        self,
        load: Callable[[Connection], S],
        served: Iterable[str],
        *,
        methods: Mapping[str, Method] | None = None,
        notifications: Mapping[str, Callable[[JSON], None]] | None = None,
        batches: bool = False,
    ) -> None:
        """
        Args:
            load: makes the service, at the first of the `served` methods.
            methods: further ones, which need no service.
        """
        self._load = load
        self._lock = threading.Lock()
        self.service: S | None = None
        """None before the first method that needs it."""
        late = {name: Method(self._late(name)) for name in served}
        self.connection = Connection(
            {**late, **(methods or {})}, notifications or {}, batches=batches, described=guard_errors(self._redact)
        )

    def run(self) -> str:
        """Serves until the client goes; returns why it ended. Everything that was open is on record then."""
        why = self.connection.serve()
        if self.service is not None:
            self.service.close()
        self.connection.close(END_S)
        return why

    def warm(self) -> None:
        """Loads the service, so that the first method that needs it does not wait; that one tells what is wrong."""
        with contextlib.suppress(Exception):
            self._ready()

    def _late(self, name: str) -> Handler:
        return lambda params, request: self._ready().call(name, params, request)

    def _ready(self) -> S:
        with self._lock:
            if self.service is None:
                self.service = self._load(self.connection)
            return self.service

    def _redact(self, text: str) -> str:
        from guard.redact import Redactor

        redactor = self.service.redactor if self.service is not None else Redactor()
        return redactor.text(text)
