"""The server: threads over loopback, replies from a script, everything that came in kept."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.model_server.gemini import Gemini
from tests.model_server.responses import Responses
from tests.model_server.script import Delivery, Events, Fail, Gate, Raw, Reply, Say
from tests.model_server.wire import Anthropic, OpenAI

WIRES = (OpenAI, Anthropic, Responses, Gemini)
COUNTS = {"/messages/count_tokens": "input_tokens", ":countTokens": "totalTokens"}
"""Paths that ask how long a text is, and the name of the answer's number."""


@dataclass(frozen=True)
class Received:
    """One request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in small letters."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ModelServer:
    """Listens from entering to leaving.

    Args:
        script: a reply for each request in turn, or a function that makes one from the request.
        otherwise: answers when the script is over.
        models: what the list of models holds.
        certificate: a folder with cert.pem and key.pem; the server speaks TLS then.
    """

    def __init__(
        self,
        *script: Reply | Callable[[Received], Reply],
        otherwise: Callable[[Received], Reply] | None = None,
        models: Iterable[str] = ("mock-1",),
        port: int = 0,
        certificate: Path | None = None,
    ) -> None:
        self.script = list(script)
        self.otherwise = otherwise or (lambda received: Fail(500, "the script is over"))
        self.models = list(models)
        self.requests: list[Received] = []
        """To the wire formats' own paths, in order."""
        self.looked: list[Received] = []
        """Everything else, such as the list of models."""
        self.on_request: Callable[[BaseHTTPRequestHandler], None] = lambda handler: None
        """Called for each request as it comes."""
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._gates: list[Gate] = []
        self._server = _Server(("127.0.0.1", port), self)
        self._scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            self._scheme = "https"

    def __enter__(self) -> ModelServer:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends every connection; what is being sent breaks off."""
        self._server.shutdown()
        for gate in self._gates:
            gate.open()
        self.drop_connections()
        self._server.server_close()
        for thread in self._threads:
            thread.join(30)

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """For OPENAI_BASE_URL."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """For ANTHROPIC_BASE_URL."""
        return self.url

    @property
    def gemini_url(self) -> str:
        """For GOOGLE_GEMINI_BASE_URL."""
        return self.url

    @property
    def connections(self) -> int:
        """How many are open."""
        with self._lock:
            return len(self._connections)

    def drop_connections(self) -> None:
        """Ends every open connection, as servers do with idle ones."""
        with self._lock:
            for one in self._connections:
                try:
                    # Not the method of a TLS socket, which its reading thread would not survive.
                    socket.socket.shutdown(one, socket.SHUT_RDWR)
                except OSError:
                    pass

    # For the handlers.

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def ended(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)

    def next_reply(self, received: Received) -> tuple[int, Reply]:
        with self._lock:
            self.requests.append(received)
            number = len(self.requests)
            step = self.script[number - 1] if number <= len(self.script) else self.otherwise
        reply = step(received) if callable(step) else step
        if not isinstance(reply, Fail) and reply.delivery.gate is not None:
            self._gates.append(reply.delivery.gate)
        return number, reply


class _Server(ThreadingHTTPServer):
    # Joined at close: a connection is shut down first, so that none keeps a thread.
    daemon_threads = False

    def __init__(self, address: tuple[str, int], owner: ModelServer) -> None:
        self.owner = owner
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is what many tests do."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        # Else small writes wait for the other side's delayed acknowledgement.
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server.owner.opened(self.connection)

    def finish(self) -> None:
        self.server.owner.ended(self.connection)
        try:
            super().finish()
        except OSError:
            pass

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        self.server.owner.looked.append(self._received(b""))
        if self.path.endswith("/models"):
            rows = [{"id": name, "object": "model", "type": "model"} for name in self.server.owner.models]
            self._whole(200, json.dumps({"object": "list", "data": rows, "has_more": False}).encode())
        else:
            self._whole(404, json.dumps({"error": {"message": "there is nothing here"}}).encode())

    def do_HEAD(self) -> None:
        self.server.owner.looked.append(self._received(b""))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.server.owner.on_request(self)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        received = self._received(body)
        path = self.path.partition("?")[0]
        wire = next((one for one in WIRES if path.endswith(one.path)), None)
        if wire is None:
            self.server.owner.looked.append(received)
            counted = next((name for end, name in COUNTS.items() if path.endswith(end)), None)
            if counted is not None:
                self._whole(200, json.dumps({counted: len(body) // 4}).encode())
                return
            self._whole(404, json.dumps({"error": {"message": "there is nothing here"}}).encode())
            return
        number, reply = self.server.owner.next_reply(received)
        asked = json.loads(body)
        # Gemini has the model and the wish for a stream in its path.
        model = asked.get("model") or path.rpartition("/")[2].partition(":")[0]
        match reply:
            case Fail():
                self._fail(reply)
            case Raw():
                self._stream(reply.pieces, reply.delivery, reply.type)
            case Events():
                self._stream((wire.frame(item) for item in reply.items), reply.delivery)
            case Say() if asked.get("stream") or path.endswith(":streamGenerateContent"):
                events = wire.events(reply, model, number, asked)
                self._stream((wire.frame(item) for item in events), reply.delivery)
            case Say():
                whole = wire.body(reply, model, number, asked)
                self._stream([whole[: len(whole) // 2], whole[len(whole) // 2 :]], reply.delivery, "application/json")

    def _received(self, body: bytes) -> Received:
        return Received(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)

    def _fail(self, reply: Fail) -> None:
        body = reply.body
        data = (
            body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        )
        kind = "text/plain" if isinstance(body, bytes | str) else "application/json"
        self._whole(reply.status, data, {"Content-Type": kind, **reply.headers})

    def _whole(self, status: int, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, parts: Iterable[bytes], delivery: Delivery, kind: str = "text/event-stream") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        if delivery.packed:
            self.send_header("Content-Encoding", "gzip")
            parts = [gzip.compress(b"".join(parts))]
        for name, value in delivery.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for part in self._delivered(parts, delivery):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        if delivery.cut_after is not None:
            self._cut(delivery.cut)
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _delivered(self, parts: Iterable[bytes], delivery: Delivery) -> Iterator[bytes]:
        for number, part in enumerate(parts):
            if number == delivery.cut_after:
                return
            if delivery.gate is not None and number == delivery.gate.after:
                delivery.gate.pass_through()
            if part:
                yield part

    def _cut(self, how: str) -> None:
        self.close_connection = True
        if how == "rst":
            # A socket that does not linger is reset when it closes.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        else:
            self.connection.shutdown(socket.SHUT_RDWR)
