"""HTTP for model APIs: one request at a time, stopped at any byte, and a key that goes to its own address only.

The library is imported where it is used (0.3 s of processor time); `warm` does so in a thread. A thread of its own
sends each request and reads the answer; the caller waits for its bytes or for its `Cancel`. A stop shuts the socket
down, which wakes that thread wherever it reads or writes. Redirects are never followed, cookies never kept.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from agent.providers.base import NOT_USED, BrainError, BrainUnreachable
from agent.providers.endpoint import WRITE_S, Endpoint
from agent.providers.handover import Gone, Handover, until_end
from agent.providers.inflate import BadEncoding, inflated
from agent.providers.proxies import proxy_for
from capabilities.jobs import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from socket import socket

    import httpx2

    from guard.ports import Cancel
    from guard.redact import Redactor

ANSWER_BYTES = 1024 * 1024 * 1024
"""The longest answer, everything counted. A million small deltas are 200 MB on the wire and 5 MB of text."""
BODY_BYTES = 32 * 1024 * 1024
"""The longest answer that comes in one piece."""
HINT = "opsagent doctor tells whether the brains can be reached"
SETTLE_S = 0.1
"""How long the end of the line is waited for after the end of the reply; then the next reply takes a new one."""
MARGIN_S = 5.0
"""How much later than the library's own time-outs ours strike: looking a name up has none there."""


class Answer:
    """What came back: status and headers at once, the body as it comes. To be closed."""

    def __init__(self, exchange: _Exchange, cancel: Cancel) -> None:
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
        self._free: list[_Connection] = []
        self._busy: set[_Exchange] = set()
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
        exchange = _Exchange(self, method, path, headers, body)
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

    def connection(self) -> _Connection:
        """A connection that nobody uses, an open one if there is any."""
        with self._lock:
            if self._free:
                return self._free.pop()
        return _Connection(self._client())

    def give_back(self, connection: _Connection) -> None:
        with self._lock:
            if not self._closed:
                self._free.append(connection)
                return
        connection.client.close()

    def forget(self, exchange: _Exchange) -> None:
        with self._lock:
            self._busy.discard(exchange)

    def failure(self, error: BaseException) -> BrainError:
        """A transport's failure in our words; what the library says is redacted, for it may name a proxy's password."""
        return failure_of(error, self._endpoint, lambda text: self._redactor.text(text))

    def _warm(self) -> None:
        try:
            self.give_back(_Connection(self._client()))
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


class _Connection:
    """One client of the library, which holds at most one connection."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client
        self.socket: socket | None = None


class _Exchange:
    """One request and its answer, carried by a thread."""

    def __init__(self, http: Http, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> None:
        self._http = http
        self._request = (method, http.endpoint.base_url + path, dict(headers), body)
        self._body = Handover()
        self._began = threading.Event()
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._stopped = False
        self._error: BaseException | None = None
        self.who = http.endpoint.name
        self.status = 0
        self.headers: dict[str, str] = {}

    def start(self, cancel: Cancel) -> None:
        """Returns when the status is there."""
        threading.Thread(target=self._work, name=f"brain-{self.who}", daemon=True).start()
        # The thread hands an empty piece over as soon as it has the headers.
        endpoint = self._http.endpoint
        if not self._body.wait(cancel, endpoint.connect_s + endpoint.idle_s + WRITE_S + MARGIN_S):
            raise self._http.failure(TimeoutError())
        self._require_going(cancel)
        if not self._began.is_set():
            raise self._http.failure(self._error or ConnectionError())

    def pieces(self, cancel: Cancel) -> Iterator[bytes]:
        try:
            yield from until_end(self._body, cancel, self._http.endpoint.idle_s + MARGIN_S)
        except TimeoutError as error:
            raise self._http.failure(error) from None
        self._require_going(cancel)
        if self._error is not None:
            raise self._http.failure(self._error)

    def settle(self, cancel: Cancel) -> None:
        try:
            for _ in until_end(self._body, cancel, SETTLE_S):
                pass
        except TimeoutError:
            pass

    def _require_going(self, cancel: Cancel) -> None:
        if cancel.is_set():
            raise Cancelled("interrupted while the brain was answering", not_done=NOT_USED)

    def abort(self) -> None:
        """Wakes the thread wherever it is: in a read, in a write, or before the next step. It ends by itself."""
        with self._lock:
            self._stopped = True
            if self._connection is not None:
                _shut(self._connection.socket)

    def close(self) -> None:
        """Stops what is still on its way; an answer that was read to its end leaves its connection to the next."""
        self.abort()
        self._body.close()
        self._http.forget(self)

    def _work(self) -> None:
        try:
            connection = self._http.connection()
            try:
                self._carry(connection)
            except BaseException:
                connection.client.close()
                raise
        except Exception as error:
            self._error = error
        finally:
            self._body.end()

    def _carry(self, connection: _Connection) -> None:
        method, url, headers, body = self._request
        with self._lock:
            self._connection = connection
            if self._stopped:
                raise Gone
        with connection.client.stream(
            method, url, headers=headers, content=body, extensions={"trace": self._step}
        ) as response:
            self.status = response.status_code
            self.headers = {name.lower(): value for name, value in response.headers.items()}
            self._began.set()
            self._body.put(b"")
            for piece in response.iter_raw():
                if piece:
                    self._body.put(piece)
        with self._lock:
            self._connection = None
            if self._stopped:
                raise Gone
        connection.client.cookies.clear()
        self._http.give_back(connection)

    def _step(self, name: str, info: dict[str, Any]) -> None:
        """Called before and after every step of the library: learns the socket, and shuts it if it came too late."""
        if not name.endswith(("connect_tcp.complete", "start_tls.complete")):
            return
        with self._lock:
            found = info["return_value"].get_extra_info("socket")
            if self._connection is not None:
                self._connection.socket = found
            if self._stopped:
                _shut(found)


def _shut(open_socket: socket | None) -> None:
    """Ends both directions and leaves the descriptor to its owner: whoever reads there sees the end at once."""
    from socket import SHUT_RDWR, socket

    if open_socket is not None:
        try:
            # Not the method of a TLS socket, which takes the session away under a reading thread.
            socket.shutdown(open_socket, SHUT_RDWR)
        except OSError:
            pass


def failure_of(error: BaseException, endpoint: Endpoint, redact: Callable[[str], str]) -> BrainError:
    """What a person is told of a connection that failed; the kind says whether another try may help."""
    import ssl

    if isinstance(error, BrainError):
        return error
    name = type(error).__name__
    words = redact(str(error)).strip()[:300]
    who = f"{endpoint.name} at {endpoint.host}"
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(chain) < 8:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    if any(isinstance(one, ssl.SSLError) for one in chain):
        found = BrainUnreachable(
            f"{who}: TLS failed: {words}",
            not_done=NOT_USED,
            hint='ca_bundle = "/path/ca.pem" in its entry, or SSL_CERT_FILE, for a certificate of your own',
        )
        found.retryable = False
        return found
    if isinstance(error, TimeoutError) or name in ("ReadTimeout", "WriteTimeout", "PoolTimeout"):
        return BrainUnreachable(f"{who}: nothing came for {endpoint.idle_s:g} s", not_done=NOT_USED, hint=HINT)
    if name == "ConnectTimeout":
        return BrainUnreachable(
            f"{who}: no connection within {endpoint.connect_s:g} s", not_done="nothing was sent", hint=HINT
        )
    if name in ("ConnectError", "ProxyError"):
        what = "the proxy" if name == "ProxyError" else "no connection"
        return BrainUnreachable(f"{who}: {what}: {words}", not_done="nothing was sent", hint=HINT)
    if name in ("ReadError", "WriteError", "RemoteProtocolError", "CloseError", "ConnectionError", "Gone"):
        return BrainUnreachable(f"{who}: the connection broke: {words or name}", not_done=NOT_USED, hint=HINT)
    return BrainError(f"{who}: {name}: {words}", not_done=NOT_USED, hint=HINT)
