"""HTTP for model APIs: one request at a time, stopped at any byte, and a key that goes to its own address only.

The library is imported where it is used (0.3 s of processor time); `warm` does so in a thread. A thread of its own
sends each request and reads the answer; the caller waits for its bytes or for its `Cancel`. A stop shuts the socket
down, which wakes that thread wherever it reads or writes. Redirects are never followed, cookies never kept.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from agent.providers.base import NOT_USED, BrainError
from agent.providers.endpoint import WRITE_S, Endpoint
from agent.providers.exchange import HINT, Connection, Exchange, failure_of
from agent.providers.inflate import BadEncoding, inflated
from agent.providers.proxies import proxy_for
from capabilities.jobs import Cancelled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx2

    from guard.ports import Cancel
    from guard.redact import Redactor

ANSWER_BYTES = 1024 * 1024 * 1024
"""The longest answer, everything counted. A million small deltas are 200 MB on the wire and 5 MB of text."""
BODY_BYTES = 32 * 1024 * 1024
"""The longest answer that comes in one piece."""


class Answer:
    """What came back: status and headers at once, the body as it comes. To be closed."""

    def __init__(self, exchange: Exchange, cancel: Cancel) -> None:
        self._exchange, self._cancel = exchange, cancel
        self.status = exchange.status
        self.headers = exchange.headers
        """Names in small letters."""

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self._exchange.close()

    def pieces(self) -> Iterator[bytes]:
        """The body, decompressed.

        Raises:
            BrainUnreachable: it broke off, or nothing came for too long.
            BrainError: it is longer than any reply.
            Cancelled
        """
        read = 0
        try:
            for piece in inflated(self._exchange.pieces(self._cancel), self.headers.get("content-encoding", "")):
                read += len(piece)
                if read > ANSWER_BYTES:
                    raise BrainError(f"{self._exchange.who} sent more than {ANSWER_BYTES:,} bytes", not_done=NOT_USED)
                yield piece
        except BadEncoding as fault:
            raise BrainError(f"{self._exchange.who}: {fault}", not_done=NOT_USED) from None

    def body(self, most: int = BODY_BYTES) -> bytes:
        """The whole body. Raises what `pieces` raises, and BrainError beyond `most` bytes."""
        parts, size = [], 0
        for piece in self.pieces():
            parts.append(piece)
            size += len(piece)
            if size > most:
                raise BrainError(f"{self._exchange.who} sent more than {most:,} bytes in one piece", not_done=NOT_USED)
        return b"".join(parts)

    def settle(self) -> None:
        """Waits a moment for the end of an answer that has said all, so that its connection can be used again."""
        self._exchange.settle(self._cancel)

    def beginning(self, most: int) -> bytes:
        """At most so many bytes of the body, whatever happens to the rest; for errors, whose words may be long."""
        data = b""
        try:
            for piece in self.pieces():
                data += piece
                if len(data) >= most:
                    break
        except BrainError:
            pass
        return data[:most]


class Http:
    """Connections to one endpoint. Safe to close from another thread."""

    def __init__(self, endpoint: Endpoint, redactor: Redactor) -> None:
        self._endpoint, self._redactor = endpoint, redactor
        self._lock = threading.Lock()
        self._free: list[Connection] = []
        self._busy: set[Exchange] = set()
        self._verify: Any = None
        self._closed = False

    def warm(self) -> threading.Thread:
        """Imports the library and sets TLS up, in a thread that nobody needs to wait for."""
        thread = threading.Thread(target=self._warm, name="brain-warm", daemon=True)
        thread.start()
        return thread

    def send(
        self, method: str, path: str, headers: Mapping[str, str], *, cancel: Cancel, body: bytes | None = None
    ) -> Answer:
        """Sends one request and waits for the status.

        Raises:
            BrainUnreachable: no connection, or nothing came back in time.
            Cancelled: `cancel` was set.
        """
        if cancel.is_set():
            raise Cancelled("interrupted", not_done="nothing was sent")
        exchange = Exchange(self, method, path, headers, body)
        with self._lock:
            self._busy.add(exchange)
        try:
            exchange.start(cancel)
        except BaseException:
            exchange.close()
            raise
        return Answer(exchange, cancel)

    def close(self) -> None:
        """Ends every connection; what is waited for ends as unreachable."""
        with self._lock:
            busy, free = list(self._busy), self._free
            self._free = []
            self._closed = True
        for exchange in busy:
            exchange.abort()
        for connection in free:
            connection.client.close()

    # For exchanges, in their threads.

    @property
    def endpoint(self) -> Endpoint:
        return self._endpoint

    def connection(self) -> Connection:
        """A connection that nobody uses, an open one if there is any."""
        with self._lock:
            if self._free:
                return self._free.pop()
        return Connection(self._client())

    def give_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(connection)
                return
        connection.client.close()

    def forget(self, exchange: Exchange) -> None:
        with self._lock:
            self._busy.discard(exchange)

    def failure(self, error: BaseException) -> BrainError:
        """A transport's failure in our words; what the library says is redacted, for it may name a proxy's password."""
        return failure_of(error, self._endpoint, lambda text: self._redactor.text(text))

    def _warm(self) -> None:
        try:
            self.give_back(Connection(self._client()))
        except Exception:  # noqa: S110 - the first request says what is wrong, to somebody who listens
            pass

    def _client(self) -> httpx2.Client:
        from urllib.request import getproxies

        import httpx2

        endpoint = self._endpoint
        proxy = proxy_for(endpoint, getproxies())
        with self._lock:
            if self._verify is None:
                self._verify = _verification(endpoint)
            verify = self._verify
        return httpx2.Client(
            verify=verify,
            proxy=proxy or None,
            # What the environment says is heeded here: proxies above, certificates in `verify`.
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(
                connect=endpoint.connect_s, read=endpoint.idle_s, write=WRITE_S, pool=endpoint.connect_s
            ),
            limits=httpx2.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=60.0),
        )


def _verification(endpoint: Endpoint) -> Any:
    """How certificates are checked; without certificates to load where nothing is encrypted."""
    import os
    import ssl

    if not endpoint.secure:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    import httpx2

    try:
        if endpoint.ca_bundle:
            return ssl.create_default_context(cafile=os.path.expanduser(endpoint.ca_bundle))
        return httpx2.create_ssl_context()
    except OSError as error:
        where = (
            f"ca_bundle {endpoint.ca_bundle}" if endpoint.ca_bundle else "SSL_CERT_FILE or the system's certificates"
        )
        why = error.strerror or "no certificates in it"
        raise BrainError(f"{endpoint.name}: {where}: {why}", not_done="nothing was sent", hint=HINT) from None
