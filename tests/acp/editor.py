"""An editor for tests: an ACP client over a real server."""

from __future__ import annotations

from contextlib import contextmanager

from tests.rpc.stories import served
from tests.rpc.talk import Client, request

ABLE = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True, "elicitation": {"form": {}}}


def allow(option: str = "allow"):
    """Answers each permission request with this option."""
    return lambda message: {"outcome": {"outcome": "selected", "optionId": option}}


class Editor:
    """A client with one conversation, and what it was told of it."""

    def __init__(self, client: Client, cwd, **able) -> None:
        self.client, self.cwd = client, str(cwd)
        self.opened = client.result(
            "initialize", protocolVersion=1, clientCapabilities=able, clientInfo={"name": "editor", "version": "3"}
        )
        self.session = ""

    def new(self, **more) -> dict:
        made = self.client.result("session/new", cwd=self.cwd, mcpServers=[], **more)
        self.session = made["sessionId"]
        return made

    def prompt(self, *blocks) -> dict:
        """The result of a turn; texts stand for their blocks."""
        return self.client.result("session/prompt", **self.words(*blocks))

    def begin(self, id: object, *blocks) -> None:
        self.client.send(request(id, "session/prompt", **self.words(*blocks)))

    def words(self, *blocks) -> dict:
        prompt = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks or ("go",)]
        return {"sessionId": self.session, "prompt": prompt}

    def updates(self, kind: str = "") -> list[dict]:
        """The updates of this conversation so far, of one kind if one is named."""
        told = [note["params"] for note in self.client.notes if note["method"] == "session/update"]
        mine = [one["update"] for one in told if one["sessionId"] == self.session]
        return [one for one in mine if kind in ("", one["sessionUpdate"])]

    def text(self) -> str:
        """What the agent has said."""
        return "".join(one["content"]["text"] for one in self.updates("agent_message_chunk"))


@contextmanager
def editing(home, *replies, answers=lambda message: None, able=None, new: bool = True):
    """An editor on a server with this brain."""
    with served(home, *replies, shell="acp", answers=answers) as client:
        editor = Editor(client, home, **(able or {}))
        if new:
            editor.new()
        yield editor
