"""The methods of the Agent Client Protocol, version 1, for one client."""

from __future__ import annotations

import itertools
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.acp import commands
from agent.acp.asking import Asker
from agent.acp.blocks import turn_of
from agent.acp.hello import bad, text_in
from agent.acp.replay import replayed
from agent.acp.updates import Told
from agent.conversation import Conversation
from agent.held import ClientConfirm, Held, Table
from agent.jsonrpc import CANCELLED, RpcError
from agent.sessions.store import NoSuchSession
from capabilities.call import Call
from dialogue.events import ToolRequested
from guard.types import Mode

if TYPE_CHECKING:
    from agent.acp.hello import Hello
    from agent.held import World
    from agent.jsonrpc import Connection, Incoming
    from dialogue.events import Stamped
    from guard.redact import Redactor

JSON = dict[str, Any]
SHELL = "acp"
NOT_FOUND = -32002
GUARD = "guard"
"""The option that a client can set: read-only, or what is configured."""
PAGE = 50
READ_S = 10.0
MOST_READ = 1_000_000
"""Characters of a file that the editor holds."""
MODES = {
    Mode.READ_ONLY: ("Read only", "refuse everything that changes something"),
    Mode.GUARDED: ("Guarded", "changes need your approval"),
    Mode.LAB: ("Lab", "small reversible changes run without approval; larger ones need it"),
}


@dataclass(slots=True)
class Session:
    """One conversation, and what its client was told."""

    held: Held
    told: Told
    asker: Asker
    cwd: str
    mode: str


class Service:
    """One client."""

    def __init__(self, world: World, connection: Connection, hello: Hello) -> None:
        self._world, self._connection, self._hello = world, connection, hello
        self._open = Table()
        self._sessions: dict[str, Session] = {}
        self._opening = threading.Lock()
        self._prompts: dict[Incoming, str] = {}
        self._numbers = itertools.count(1)
        self._methods = {
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close_one,
            "session/prompt": self._prompt,
            "session/set_config_option": self._configure,
        }

    @property
    def redactor(self) -> Redactor:
        """Knows the secrets of this process."""
        return self._world.guard.redactor

    def call(self, name: str, params: JSON, request: Incoming) -> JSON:
        """The result of one request. Raises RpcError, GuardError."""
        return self._methods[name](params, request)

    def cancel(self, session: str) -> None:
        """Interrupts the turn of a conversation; waits for nothing."""
        for request, name in list(self._prompts.items()):
            if name == session:
                request.cancel()

    def close(self) -> None:
        """Ends all conversations, on record."""
        self._open.close_all()

    # ── conversations ────────────────────────────────────────────────────────────────────────────────────────────

    def _new(self, params: JSON, request: Incoming) -> JSON:
        session = self._opened(params, request)
        return {"sessionId": session.held.id, "configOptions": self._options(session)}

    def _load(self, params: JSON, request: Incoming) -> JSON:
        session = self._opened(params, request, text_in(params, "sessionId"))
        for update in replayed(session.held.opened.messages(), session.told):
            self._tell(session.held.id, update)
        return {"configOptions": self._options(session)}

    def _resume(self, params: JSON, request: Incoming) -> JSON:
        return {"configOptions": self._options(self._opened(params, request, text_in(params, "sessionId")))}

    def _opened(self, params: JSON, request: Incoming, resume: str = "") -> Session:
        """Opens a conversation; what it has to tell at once comes after the answer, when the client knows its id."""
        cwd = text_in(params, "cwd")
        if not os.path.isabs(cwd):
            raise bad("cwd must be an absolute path")
        servers = params.get("mcpServers") or ()
        with self._opening:
            if not self._connection.is_open:
                raise RpcError(CANCELLED, "Request cancelled: the client is gone")
            self._open.require_room()
            try:
                opened = self._world.open(resume=resume, cwd=cwd, client=self._hello.client)
            except NoSuchSession as error:
                raise RpcError(NOT_FOUND, f"Resource not found: {error.message}") from None
            told = Told(cwd, notices=self._hello.has("session", "notices"), window_tokens=opened.window_tokens)
            asker = Asker(self._connection, told, forms=self._hello.has("elicitation", "form"))
            id = opened.id
            held = Held(opened, tell=lambda event: self._event(id, event), asker=asker, guard=self._world.guard)
            session = self._sessions[id] = Session(held, told, asker, cwd, self._world.guard.policy.mode)
            self._open.add(held)

        def afterwards() -> None:
            self._tell(id, {"sessionUpdate": "available_commands_update", "availableCommands": [*commands.COMMANDS]})
            held.began(resumed=bool(resume))
            if isinstance(servers, list) and servers:
                names = ", ".join(str(one.get("name")) for one in servers if isinstance(one, dict))
                held.note(f"MCP servers of the client are never started here: {names}")

        request.afterwards = afterwards
        return session

    def _list(self, params: JSON, request: Incoming) -> JSON:
        cursor, cwd = params.get("cursor") or "0", params.get("cwd")
        if not isinstance(cursor, str) or not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
            raise bad("cursor must be one that was given with an earlier page")
        first = int(cursor)
        rows = [row for row in self._world.sessions.listing() if os.path.isabs(row.cwd) and cwd in (None, row.cwd)]
        shown = [
            {"sessionId": row.id, "cwd": row.cwd, "title": row.first_line or None, "updatedAt": row.used_at}
            for row in rows[first : first + PAGE]
        ]
        more = {"nextCursor": str(first + PAGE)} if len(rows) > first + PAGE else {}
        return {"sessions": shown, **more}

    def _close_one(self, params: JSON, request: Incoming) -> JSON:
        id = self._session(params).held.id
        self._open.close(id)
        self._sessions.pop(id, None)
        return {}

    def _session(self, params: JSON) -> Session:
        session = self._sessions.get(id := text_in(params, "sessionId"))
        if session is None:
            raise RpcError(NOT_FOUND, f"Resource not found: no conversation {repr(id)[1:-1][:80]} is open here")
        return session

    # ── a turn ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _prompt(self, params: JSON, request: Incoming) -> JSON:
        session = self._session(params)
        self._prompts[request] = session.held.id
        try:
            turn = turn_of(params.get("prompt"), lambda path: self._buffer(session.held.id, path))
            if request.is_cancelled:
                return {"stopReason": "cancelled"}
            name, words = commands.command_of(turn.text)
            if name:
                return self._command(session, name, words, request)
            session.held.turn(turn, request)
        finally:
            del self._prompts[request]
        told = session.told
        about = {"exitCode": told.exit_code, "requests": list(told.requests)}
        return {"stopReason": told.stop_reason, "_meta": {"opsagent": about}}

    def _event(self, session: str, event: Stamped) -> None:
        for update in self._sessions[session].told.updates(event.event):
            self._tell(session, update)

    def _tell(self, session: str, update: JSON) -> None:
        self._connection.notify("session/update", {"sessionId": session, "update": update})

    def _buffer(self, session: str, path: str) -> str | None:
        """A file as the editor has it, saved or not; None where the client does not say."""
        if not self._hello.has("fs", "readTextFile"):
            return None
        reply = self._connection.ask("fs/read_text_file", {"sessionId": session, "path": path}).wait(READ_S)
        content = reply.result.get("content") if not reply.why and isinstance(reply.result, dict) else None
        return content[:MOST_READ] if isinstance(content, str) else None

    def _command(self, session: Session, name: str, words: str, request: Incoming) -> JSON:
        id, guard = session.held.id, self._world.guard
        if name != "rollback":
            text = f"```\n{commands.listed(name, guard)}\n```"
            content = {"type": "text", "text": text}
            message = f"k-{next(self._numbers)}"
            self._tell(id, {"sessionUpdate": "agent_message_chunk", "messageId": message, "content": content})
            return {"stopReason": "end_turn"}
        call_id = f"k-{next(self._numbers)}"
        asker = session.asker.for_call(ToolRequested(call_id, "ops_rollback", {"id": words}))
        confirm = ClientConfirm(asker, id, request) if self._world.person else None
        call = Call(session.cwd, SHELL, client=self._hello.client, call_id=call_id, session=id, confirm=confirm)
        for update in commands.rolled_back(words, guard, call):
            self._tell(id, update)
        return {"stopReason": "cancelled" if request.is_cancelled else "end_turn"}

    # ── options ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _configure(self, params: JSON, request: Incoming) -> JSON:
        session = self._session(params)
        if params.get("configId") != GUARD:
            raise bad(f"there is one option: {GUARD}")
        value = params.get("value")
        if value not in self._modes(session):
            raise bad(f"{GUARD} must be one of {', '.join(self._modes(session))}")
        conversation = session.held.opened.session
        if isinstance(conversation, Conversation):
            conversation.set_mode(value)
        session.mode = value
        return {"configOptions": self._options(session)}

    def _modes(self, session: Session) -> tuple[str, ...]:
        """What can be chosen: never more than what is configured."""
        configured = self._world.guard.policy.mode
        if not isinstance(session.held.opened.session, Conversation):
            return (session.mode,)
        return tuple(dict.fromkeys((Mode.READ_ONLY, configured)))

    def _options(self, session: Session) -> list[JSON]:
        return [
            {
                "id": GUARD,
                "name": "Guard",
                "description": "What may be changed on this machine",
                "category": "mode",
                "type": "select",
                "currentValue": session.mode,
                "options": [
                    {"value": mode, "name": MODES[mode][0], "description": MODES[mode][1]}
                    for mode in self._modes(session)
                ],
            }
        ]
