"""A client for tests: speaks to a real server over pipes, answers what it is asked, and never waits for ever."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.mcp.talk import ROOT, Peer

ECHO = [sys.executable, str(ROOT / "tests/rpc/echo_server.py")]


def request(id: object, method: str, /, **params: object) -> dict:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


class Client(Peer):
    """`answers` gets each request of the server and returns a result, an `Exception` for an error, or None: silence."""

    def __init__(self, home: Path, argv: list[str], answers=lambda message: None, **more) -> None:
        super().__init__(home, open=False, argv=argv, **more)
        self.answers = answers
        self.asked: list[dict] = []

    def answer(self, id: object) -> dict:
        """The answer to that request; what comes before it is kept in `notes`, and what is asked is answered."""
        while True:
            message = self.next()
            assert message is not None, f"the server is gone: {self.err.decode()}"
            if "method" not in message:
                assert message["id"] == id and type(message["id"]) is type(id), f"an answer to nothing: {message}"
                return message
            self.took(message)

    def took(self, message: dict) -> None:
        """Notes a notification, or answers a request."""
        if "id" not in message:
            self.notes.append(message)
            return
        self.asked.append(message)
        said = self.answers(message)
        if isinstance(said, Exception):
            self.reply(message["id"], error={"code": -32000, "message": str(said)})
        elif said is not None:
            self.reply(message["id"], result=said)

    def until(self, wanted) -> dict:
        """The first message of the server that `wanted` says yes to; all before it are taken."""
        while True:
            message = self.next()
            assert message is not None, f"the server is gone: {self.err.decode()}"
            if "method" in message:
                self.took(message)
            if wanted(message):
                return message

    def reply(self, id: object, **what: object) -> None:
        self.send({"jsonrpc": "2.0", "id": id, **what})

    def result(self, method: str, /, **params: object) -> dict:
        """The result of a request."""
        answer = self.ask(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, /, **params: object) -> dict:
        """The error of a request."""
        return self.ask(method, params)["error"]

    def alive(self) -> None:
        assert "result" in self.ask("ping", {})

    def events(self, type: str) -> list[dict]:
        """The events of one type so far."""
        told = [note["params"] for note in self.notes if note["method"] == "event"]
        return [one for one in told if one["type"] == type]

    def ended(self) -> list[dict]:
        """Closes the input, and returns what still came."""
        self.process.stdin.close()
        rest = []
        while (message := self.next()) is not None:
            rest.append(message)
        self.code = self.process.wait(60)
        self._err_reader.join(60)
        return rest


def line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"
