"""A stdio server behind HTTP, for programs that test only what they can reach by a URL.

The Streamable HTTP transport as far as a test needs it: one server process a session, every request answered as a
stream of events that ends with its response. Listens on the loopback interface alone and checks Host and Origin.
"""

from __future__ import annotations

import json
import queue
import secrets
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SESSION = "Mcp-Session-Id"
PATIENCE_S = 60.0
LOCAL = frozenset(("127.0.0.1", "localhost", "[::1]"))


class Session:
    """One server process, and who waits for what of it."""

    def __init__(self, argv: list[str], env: Mapping[str, str], cwd: str) -> None:
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(env), cwd=cwd
        )
        self._lock = threading.Lock()
        self._waiting: dict[Any, queue.SimpleQueue[dict[str, Any] | None]] = {}
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: dict[str, Any]) -> None:
        """Hands one message on."""
        assert self._process.stdin
        with self._lock:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def answers(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Sends a request; gives what comes until its response, the response last."""
        mine: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._waiting[message["id"]] = mine
        try:
            self.send(message)
            while (found := mine.get(timeout=PATIENCE_S)) is not None:
                yield found
                if found.get("id") == message["id"] and "method" not in found:
                    return
        finally:
            del self._waiting[message["id"]]

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            message = json.loads(line)
            waiting = dict(self._waiting)
            if "method" not in message:
                takers = [waiting[message["id"]]] if message.get("id") in waiting else []
            else:
                # A pipe does not tell which call a request or a notice belongs to: the newest open one takes it.
                takers = list(waiting.values())[-1:]
            for taker in takers:
                taker.put(message)
        for taker in list(self._waiting.values()):
            taker.put(None)

    def close(self) -> None:
        """Hangs up and waits."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._process.stdout.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self._is_local():
            return self._plain(403, "only local callers")
        try:
            message = json.loads(body)
        except ValueError:
            return self._plain(400, "no JSON")
        if not isinstance(message, dict):
            return self._plain(400, "one message at a time")
        name = self.headers.get(SESSION, "")
        if message.get("method") == "initialize":
            name = secrets.token_hex(16)
            self.server.sessions[name] = self.server.new_session()
        session = self.server.sessions.get(name)
        if session is None:
            return self._plain(404 if name else 400, "no such session")
        if "method" not in message or "id" not in message:
            session.send(message)
            return self._plain(202, "")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header(SESSION, name)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for answer in session.answers(message):
            self.wfile.write(f"event: message\ndata: {json.dumps(answer)}\n\n".encode())
            self.wfile.flush()

    def do_GET(self) -> None:
        self._plain(405, "no stream of its own")

    def do_DELETE(self) -> None:
        session = self.server.sessions.pop(self.headers.get(SESSION, ""), None)
        if session is not None:
            session.close()
        self._plain(200 if session else 404, "")

    def _is_local(self) -> bool:
        """Refuses pages of other sites whose names point here (DNS rebinding)."""
        host = self.headers.get("Host", "").rpartition(":")[0]
        origin = self.headers.get("Origin", "")
        return host in LOCAL and (not origin or origin.partition("://")[2].rpartition(":")[0] in LOCAL)

    def _plain(self, status: int, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the tests speak."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, argv: list[str], env: Mapping[str, str], cwd: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sessions: dict[str, Session] = {}
        self.new_session = lambda: Session(argv, env, cwd)


@contextmanager
def bridged(argv: list[str], *, env: Mapping[str, str], cwd: str) -> Iterator[str]:
    """The server's URL for the length of a `with` block."""
    server = _Server(argv, env, cwd)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        server.server_close()
        for session in server.sessions.values():
            session.close()
