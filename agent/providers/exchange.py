"""One request and its answer on the line, carried by a thread that a stop wakes wherever it is."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from agent.providers.base import CUT, NAME, NO_WAY, NOT_USED, PROXY, REFUSED, SILENT, TLS, BrainError, BrainUnreachable
from agent.providers.endpoint import WRITE_S
from agent.providers.handover import Gone, Handover, until_end
from capabilities.jobs import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from socket import socket

    import httpx2

    from agent.providers.endpoint import Endpoint
    from agent.providers.http import Http
    from guard.ports import Cancel

HINT = "opsagent doctor tells whether the brains can be reached"
SETTLE_S = 0.1
"""How long the end of the line is waited for after the end of the reply; then the next reply takes a new one."""
MARGIN_S = 5.0
"""How much later than the library's own time-outs ours strike: looking a name up has none there."""


class Connection:
    """One client of the library, which holds at most one connection."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client
        self.socket: socket | None = None


class Exchange:
    """One request and its answer, carried by a thread."""

    def __init__(self, http: Http, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> None:
        self._http = http
        self._request = (method, http.endpoint.base_url + path, dict(headers), body)
        self._body = Handover()
        self._began = threading.Event()
        self._lock = threading.Lock()
        self._connection: Connection | None = None
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

    def _carry(self, connection: Connection) -> None:
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
    if isinstance(error, BrainError):
        return error
    name = type(error).__name__
    words = redact(str(error)).strip()[:300]
    who = f"{endpoint.name} at {endpoint.host}"
    cause = _cause(name, error)
    not_done = "nothing was sent" if cause in (NAME, REFUSED, NO_WAY, PROXY) else NOT_USED
    said = {
        NAME: f"the name is not known: {words}",
        REFUSED: f"no connection: {words}",
        NO_WAY: f"no connection within {endpoint.connect_s:g} s"
        if name == "ConnectTimeout"
        else f"no connection: {words}",
        PROXY: f"the proxy: {words}",
        TLS: f"TLS failed: {words}",
        SILENT: f"nothing came for {endpoint.idle_s:g} s",
        CUT: f"the connection broke: {words or name}",
    }
    if not cause:
        return BrainError(f"{who}: {name}: {words}", not_done=NOT_USED, hint=HINT)
    hint = 'ca_bundle = "/path/ca.pem" in its entry, or SSL_CERT_FILE, for a certificate of your own'
    found = BrainUnreachable(f"{who}: {said[cause]}", not_done=not_done, hint=hint if cause == TLS else HINT)
    found.retryable, found.cause = cause != TLS, cause
    return found


def _cause(name: str, error: BaseException) -> str:
    """What kept the answer away (`agent.providers.base`), "" for a fault that is none of the line.

    Args: name: of the library's kind of error.
    """
    import socket
    import ssl

    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(chain) < 8:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    if name == "ConnectError":
        # A connection that ends without a word is a cut, encrypted or not.
        cut = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
        if any(isinstance(one, ssl.SSLError) and not isinstance(one, cut) for one in chain):
            return TLS
        if any(isinstance(one, socket.gaierror) for one in chain):
            return NAME
        return REFUSED if any(isinstance(one, ConnectionRefusedError) for one in chain) else NO_WAY
    if isinstance(error, TimeoutError) or name in ("ReadTimeout", "WriteTimeout", "PoolTimeout"):
        return SILENT
    if name in ("ReadError", "WriteError", "RemoteProtocolError", "CloseError", "ConnectionError", "Gone"):
        return CUT
    return {"ConnectTimeout": NO_WAY, "ProxyError": PROXY}.get(name, "")
