"""What the methods of `opsagent rpc` do: conversations, records and rollbacks, for one client."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from agent.held import ClientConfirm, Held, Table
from agent.jsonrpc import CANCELLED, RpcError
from agent.rpc.asking import Asker
from agent.rpc.schemas import ASK_USER, METHODS, PROTOCOL
from agent.sessions.export import summary_object
from agent.sessions.on_record import runs_in
from capabilities import ops, snapshots
from capabilities.call import Call
from capabilities.questions import user_name
from capabilities.registry import fitting
from dialogue.protocol import Turn
from guard.errors import StateError, UsageError

if TYPE_CHECKING:
    from agent.held import World
    from agent.jsonrpc import Connection, Incoming
    from capabilities.registry import Tool
    from dialogue.events import Stamped
    from guard.redact import Redactor

JSON = dict[str, Any]
SHELL = "rpc"
EVENT = "event"
"""The notification that carries one event (dialogue.events)."""
LISTED = 50


class Service:
    """One client's conversations and questions about the records."""

    def __init__(self, world: World, connection: Connection, *, version: str) -> None:
        self._world, self._connection, self._version = world, connection, version
        self._answers: tuple[str, ...] = (ASK_USER,)
        self._client = ""
        self._open = Table()
        self._opening = threading.Lock()
        self._default = ""
        self._prompts: dict[Incoming, str] = {}
        """Who waits for a turn, and of which conversation; "" for the default one."""
        self._methods = {
            "initialize": self._initialize,
            "prompt": self._prompt,
            "reset": self._reset,
            "pending": self._pending,
            "executions": self._executions,
            "rollback/plan": self._rollback_plan,
            "rollback/apply": self._rollback_apply,
            "status": self._status,
            "session/list": self._list,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/close": self._close_one,
        }

    @property
    def redactor(self) -> Redactor:
        """Knows the secrets of this process."""
        return self._world.guard.redactor

    def call(self, name: str, params: JSON, request: Incoming) -> JSON:
        """The result of one request, with `format`. Raises RpcError, GuardError."""
        return {"format": 1, **self._methods[name](fitting(name, METHODS[name].parameters, params), request)}

    def cancel(self, session: str) -> int:
        """Interrupts the turns of a conversation ("" for all) and returns how many; waits for nothing."""
        prompts = list(self._prompts.items())
        meant = [request for request, name in prompts if not session or session == (name or self._default)]
        for request in meant:
            request.cancel()
        return len(meant)

    def close(self) -> None:
        """Ends all conversations, on record."""
        self._open.close_all()

    # ── conversations ────────────────────────────────────────────────────────────────────────────────────────────

    def _initialize(self, params: JSON, request: Incoming) -> JSON:
        if list(self._open):
            raise UsageError(
                "a conversation is open already",
                not_done="nothing was changed",
                hint="initialize before sessions are opened",
            )
        client = params.get("client", {})
        self._client = f"{client.get('name', '')} {client.get('version', '')}".strip()
        self._answers = tuple(params.get("answers", self._answers))
        return {
            "protocol": PROTOCOL,
            "version": self._version,
            "methods": list(METHODS),
            "can_ask": self._world.person and bool(self._answers),
        }

    def _prompt(self, params: JSON, request: Incoming) -> JSON:
        session = params.get("session", "")
        self._prompts[request] = session
        try:
            held = self._open.of(session) if session else self._default_one()
            if request.is_cancelled:
                raise RpcError(CANCELLED, "Request cancelled: the turn had not begun")
            done = held.turn(Turn(params["text"], tuple(params.get("attachments", ()))), request)
        finally:
            del self._prompts[request]
        return done.as_json(host=os.uname().nodename, at=self._world.guard.clock.utc(), session=held.id)

    def _default_one(self) -> Held:
        with self._opening:
            if not self._default:
                self._default = self._opened().id
            return self._open.of(self._default)

    def _opened(self, resume: str = "") -> Held:
        """Opens a conversation and tells so."""
        if not self._connection.is_open:
            raise RpcError(CANCELLED, "Request cancelled: the client is gone")
        self._open.require_room()
        asks = self._world.person and bool(self._answers)
        opened = self._world.open(resume=resume, client=self._client, asks=asks)
        held = Held(opened, tell=self._tell, asker=self._asker(), guard=self._world.guard)
        self._open.add(held)
        held.began(resumed=bool(resume))
        return held

    def _asker(self) -> Asker:
        return Asker(self._connection, self._answers)

    def _tell(self, event: Stamped) -> None:
        self._connection.notify(EVENT, event.as_json())

    def _reset(self, params: JSON, request: Incoming) -> JSON:
        with self._opening:
            was = params.get("session", "") or self._default
            if was:
                self._open.of(was)
                self._open.close(was)
            held = self._opened()
            if was == self._default:
                self._default = held.id
        return {"session": held.id, "was": was or None}

    def _resume(self, params: JSON, request: Incoming) -> JSON:
        with self._opening:
            held = self._opened(self._world.sessions.find(params["session"]))
        opened = held.opened
        return {"session": held.id, "messages": len(opened.messages()), "notes": list(opened.notes)}

    def _fork(self, params: JSON, request: Incoming) -> JSON:
        runs_of = runs_in(self._world.guard.ledger)
        copy = self._world.sessions.fork(params["session"], turns=params.get("turns"), runs_of=runs_of)
        with self._opening:
            held = self._opened(copy.header.id)
        return {
            "session": held.id,
            "forked_from": copy.header.forked_from,
            "messages": len(copy.messages),
            "notes": list(copy.notes),
        }

    def _close_one(self, params: JSON, request: Incoming) -> JSON:
        session = params["session"]
        with self._opening:
            self._open.of(session)
            self._open.close(session)
            if session == self._default:
                self._default = ""
        return {"session": session}

    def _list(self, params: JSON, request: Incoming) -> JSON:
        rows = self._world.sessions.listing(limit=params.get("limit", LISTED))
        return {"sessions": [summary_object(row) for row in rows]}

    # ── records ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _pending(self, params: JSON, request: Incoming) -> JSON:
        return {"requests": ops.list_tool(self._world.guard).run({})["requests"]}

    def _executions(self, params: JSON, request: Incoming) -> JSON:
        return ops.executions_tool(self._world.guard).run(params)

    def _rollback_plan(self, params: JSON, request: Incoming) -> JSON:
        return self._rollback(request).run(params)

    def _rollback_apply(self, params: JSON, request: Incoming) -> JSON:
        return self._rollback(request).run({**params, "confirm": True})

    def _rollback(self, request: Incoming) -> Tool:
        confirm = ClientConfirm(self._asker(), self._default, request) if self._world.person else None
        call = Call(
            self._world.cwd,
            SHELL,
            client=self._client,
            call_id=str(request.id)[:200],
            session=self._default,
            confirm=confirm,
        )
        return snapshots.rollback_tool(self._world.guard, call)

    def _status(self, params: JSON, request: Incoming) -> JSON:
        guard = self._world.guard
        try:
            frozen = guard.ledger.answers.frozen()
        except StateError as error:
            frozen = f"not known: {error.message}"
        return {
            "version": self._version,
            "host": os.uname().nodename,
            "user": user_name(),
            "cwd": self._world.cwd,
            "mode": guard.policy.mode,
            "frozen": guard.redactor.text(frozen) or None,
            "sessions": [
                {"id": one.id, "brain": one.opened.brain, "model": one.opened.model, "running": one.is_running}
                for one in self._open
            ],
            "default": self._default or None,
        }
