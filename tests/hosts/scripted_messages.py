"""A model service on 127.0.0.1 that speaks Anthropic's Messages, streamed, and says what a list tells it to say.

The reply's number is the number of the model's replies already in the request, so that retries get the same answer.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Turn = dict[str, Any] | str
"""A tool call `{"name", "input"}`, or the words of a last answer."""


class Scripted(ThreadingHTTPServer):
    """Serves until the `with` block ends. `port` is chosen by the kernel."""

    daemon_threads = True

    def __init__(self, turns: list[Turn]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.turns = turns
        self.results: list[str] = []
        """What the host gave back for each tool call, in order."""

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def __enter__(self) -> Scripted:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.shutdown()
        self.server_close()

    def reply(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """The content blocks that answer a request."""
        messages = request.get("messages", [])
        said = sum(message["role"] == "assistant" for message in messages)
        if not request.get("tools") or said >= len(self.turns):
            return [{"type": "text", "text": "done"}]
        results = [_text_of(block) for message in messages for block in _blocks(message)]
        if len(results) > len(self.results):
            self.results = results
        turn = self.turns[said]
        if isinstance(turn, str):
            return [{"type": "text", "text": turn}]
        return [{"type": "tool_use", "id": f"toolu_{said:024d}", **turn}]


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [b for b in content if b.get("type") == "tool_result"] if isinstance(content, list) else []


def _text_of(block: dict[str, Any]) -> str:
    content = block.get("content", "")
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


class _Handler(BaseHTTPRequestHandler):
    server: Scripted
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._send(200, "text/plain", b"")

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
        if "count_tokens" in self.path:
            self._send(200, "application/json", b'{"input_tokens": 10}')
            return
        blocks = self.server.reply(request)
        stop = "tool_use" if blocks[0]["type"] == "tool_use" else "end_turn"
        head = {
            "id": f"msg_{time.monotonic_ns()}",
            "type": "message",
            "role": "assistant",
            "model": request.get("model", "m"),
        }
        usage = {"input_tokens": 10, "output_tokens": 5}
        if not request.get("stream"):
            whole = {**head, "content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage}
            self._send(200, "application/json", json.dumps(whole).encode())
            return
        opening = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": opening}]
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                empty = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events += [
                {"type": "content_block_start", "index": index, "content_block": empty},
                {"type": "content_block_delta", "index": index, "delta": delta},
                {"type": "content_block_stop", "index": index},
            ]
        events += [
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]
        body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self._send(200, "text/event-stream", body.encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return
