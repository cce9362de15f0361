"""JSON-RPC 2.0 over lines, for both sides: strict to read, answered whatever comes, never blocked by what it serves.

One thread reads and one writes (`capabilities.lines.Wire`); each request is served in a thread of its own, but for
those that are answered at once. Every line in gives at most one line of answer. Whatever is no well-formed answer to a
request of ours counts as none. Loaded before everything else, so it imports nothing slow.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from capabilities.lines import INVALID_REQUEST, Fault, Wire, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    JSON = dict[str, Any]
    Handler = Callable[[JSON, "Incoming"], JSON]
    Replied = Callable[[str | None], None]
    """Takes the answer to one message, as JSON; None where it gets none."""

METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL = -32601, -32602, -32603
BUSY, CANCELLED = -32000, -32800
"""CANCELLED: as the Language Server Protocol and ACP number it."""

MOST_IN_FLIGHT = 64
"""Requests that are served at once, and messages of one batch."""
MOST_SAID = 20
"""Lines on standard error about lines that make no sense: a peer that reads none of them must not block us."""
PARENT_CHECK_S = 2.0
ORPHAN_IDLE_S = 30.0
"""With the parent process gone and nothing heard for so long, it ends: somebody may hold the pipe open for ever."""
SWITCH_S = 0.001
"""How long a busy thread keeps the interpreter while others wait for it; a fifth of what is usual."""
LAST_LINES_S = 2.0
"""How long a peer that ended its side gets to make room for the last lines."""
CANCEL_REQUEST = "$/cancel_request"


class RpcError(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, message: str, data: JSON | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def as_json(self) -> JSON:
        """The `error` member of a response."""
        shown: JSON = {"code": self.code, "message": self.message}
        return shown if self.data is None else {**shown, "data": self.data}


class Incoming:
    """A request of the peer that has no answer yet."""

    __slots__ = ("id", "_on_cancel", "is_cancelled", "afterwards", "_lock")

    def __init__(self, id: str | int) -> None:
        self.id = id
        self.is_cancelled = False
        self.afterwards: Callable[[], None] | None = None
        """Called once the answer is out, in the same thread; for what only makes sense to whoever has it."""
        self._on_cancel: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def when_cancelled(self, stop: Callable[[], None]) -> None:
        """Calls `stop` when the peer wants no answer any more, at once if it has said so already."""
        with self._lock:
            self._on_cancel = stop
            late = self.is_cancelled
        if late:
            stop()

    def cancel(self) -> None:
        """The peer, or its end, says that nobody waits for this."""
        with self._lock:
            self.is_cancelled = True
            stop = self._on_cancel
        if stop is not None:
            stop()


class Method:
    """What serves a method: `run(params, request)` returns the result, or raises."""

    __slots__ = ("run", "at_once")

    def __init__(self, run: Handler, *, at_once: bool = False) -> None:
        """Args: at_once: served by the reading thread itself; only for what never waits."""
        self.run, self.at_once = run, at_once


class Reply:
    """What came back for a request of ours. `why` is "" for a result, and else says why there is none."""

    __slots__ = ("result", "why")

    def __init__(self, result: Any = None, why: str = "") -> None:
        self.result, self.why = result, why


class Asked:
    """A request of ours on its way. The first of answer, deadline, withdrawal and hang-up settles it."""

    def __init__(self, id: str, forget: Callable[[str], bool], tell: Callable[[str, JSON], None]) -> None:
        self.id = id
        self._forget, self._tell = forget, tell
        self._settled: queue.SimpleQueue[Reply] = queue.SimpleQueue()

    def wait(self, timeout_s: float) -> Reply:
        """The answer, or why there is none."""
        try:
            return self._settled.get(timeout=timeout_s)
        except queue.Empty:
            self.withdraw("nobody answered in time")
            return self._settled.get()

    def withdraw(self, why: str = "it was withdrawn") -> None:
        """From here on no answer counts; the peer is told. Does nothing when it is settled."""
        if self._forget(self.id):
            self.settle(Reply(why=why))
            self._tell(CANCEL_REQUEST, {"requestId": self.id})

    def settle(self, reply: Reply) -> None:
        """Ends the waiting; called by whoever took it out of the open ones."""
        self._settled.put(reply)


class _Batch:
    """Collects the answers to one array of messages into one line."""

    def __init__(self, size: int, put: Callable[[str], None]) -> None:
        self._left, self._put = size, put
        self._answers: list[str] = []
        self._lock = threading.Lock()

    def replied(self, answer: str | None) -> None:
        with self._lock:
            if answer is not None:
                self._answers.append(answer)
            self._left -= 1
            is_whole = self._left == 0 and bool(self._answers)
        if is_whole:
            self._put(f"[{','.join(self._answers)}]")


class Connection:
    """One peer. `serve` reads until the peer, or somebody here, ends it."""

    def __init__(
        self,
        methods: Mapping[str, Method],
        notifications: Mapping[str, Callable[[JSON], None]],
        *,
        batches: bool = False,
        described: Callable[[Exception], RpcError] | None = None,
        wire: Wire | None = None,
    ) -> None:
        """
        Args:
            notifications: called in the reading thread; must not wait.
            batches: whether an array of messages is served; else it is an invalid request.
            described: the error object for what a method raised, without secrets.
        """
        self._methods, self._notifications, self._batches = methods, notifications, batches
        self._described = described or _internal
        self._over: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._none_left = threading.Condition(self._lock)
        self._in_flight: dict[str | int, Incoming] = {}
        self._asked: dict[str, Asked] = {}
        self._serving = self._number = self._said = 0
        self._is_open = True
        self._parent = os.getppid()
        self._wire = wire or Wire(lambda: self.end("nobody reads the output"))

    # ── from here ────────────────────────────────────────────────────────────────────────────────────────────────

    def notify(self, method: str, params: JSON) -> None:
        """Tells the peer something; waits while it does not read."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: JSON) -> Asked:
        """Sends a request; `wait` on what comes back."""
        with self._lock:
            self._number += 1
            asked = Asked(f"srv-{self._number}", self._forget, self.notify)
            is_open = self._is_open
            if is_open:
                self._asked[asked.id] = asked
        if not is_open:
            asked.settle(Reply(why="the client is gone"))
            return asked
        self._send({"jsonrpc": "2.0", "id": asked.id, "method": method, "params": params})
        return asked

    def end(self, why: str = "") -> None:
        """Makes `serve` return. Safe from any thread and from a signal handler."""
        self._over.put(why)

    def serve(self) -> str:
        """Reads and serves until the end of the input, of the readers of the output, of the parent, or `end`.

        Returns:
            Why it ended. Nothing that is open is answered any more: open requests of ours are settled as unanswered,
            those of the peer are told that they are cancelled.
        """
        # Several tools at work hold the interpreter in turn; the reader gets it between two of them.
        sys.setswitchinterval(SWITCH_S)
        threading.Thread(target=self._read, name="wire-in", daemon=True).start()
        while True:
            try:
                why = self._over.get(timeout=PARENT_CHECK_S)
                break
            except queue.Empty:
                idle_s = time.monotonic() - self._wire.heard_s
                if os.getppid() != self._parent and idle_s > ORPHAN_IDLE_S and not self._in_flight:
                    why = "the client is gone"
                    break
        self._hang_up()
        return why

    def close(self, wait_s: float) -> bool:
        """Waits so long until everything that is served has ended, then writes what is left. Whether all had ended."""
        with self._none_left:
            ended = self._none_left.wait_for(lambda: not self._serving, wait_s)
        self._wire.close()
        return ended

    def _hang_up(self) -> None:
        with self._lock:
            self._is_open = False
            asked, self._asked = list(self._asked.values()), {}
            served = list(self._in_flight.values())
        for one in asked:
            one.settle(Reply(why="the client is gone"))
        for request in served:
            request.cancel()
        late = threading.Timer(LAST_LINES_S, self._give_up_writing)
        late.daemon = True
        late.start()

    def _give_up_writing(self) -> None:
        """For a peer that ended its side and reads nothing: whoever waits to tell it something goes on."""
        if self._wire.is_full:
            self._wire.hang_up()

    @property
    def is_open(self) -> bool:
        """Whether anybody is still there to ask."""
        return self._is_open

    def _forget(self, id: str) -> bool:
        with self._lock:
            return self._asked.pop(id, None) is not None

    def _send(self, message: JSON) -> None:
        self._wire.put_when_read(_encoded(message))

    # ── from there ───────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self) -> None:
        try:
            self._wire.read(self._line, self._no_message, self._last_line)
            self.end("the end of the input")
        except Exception as error:  # a fault of ours must not leave a process that nobody can talk to
            self.end(f"reading broke: {type(error).__name__}")

    def _no_message(self, fault: Fault) -> None:
        assert fault.answer is not None
        self._send(fault.answer)

    def _last_line(self, line: bytes) -> None:
        """A line without an end counts when it is whole; half of one is no message."""
        try:
            value_of(line)
        except Fault:
            return
        self._line(line)

    def _line(self, line: bytes) -> None:
        try:
            value = value_of(line)
        except Fault as fault:
            self._no_message(fault)
            return
        if not isinstance(value, list):
            self._take(value, self._answer)
        elif not self._batches:
            self._no_message(Fault(INVALID_REQUEST, "Invalid Request: batches are not supported"))
        elif not 1 <= len(value) <= MOST_IN_FLIGHT:
            self._no_message(Fault(INVALID_REQUEST, f"Invalid Request: a batch has 1 to {MOST_IN_FLIGHT} messages"))
        else:
            batch = _Batch(len(value), self._wire.put_when_read)
            for one in value:
                self._take(one, batch.replied)

    def _answer(self, answer: str | None) -> None:
        if answer is not None:
            self._wire.put_when_read(answer)

    def _take(self, value: Any, replied: Replied) -> None:
        """One message: a request, a notification, or an answer to us. Calls `replied` once, now or later."""
        if not isinstance(value, dict):
            replied(_error(None, INVALID_REQUEST, "Invalid Request: not an object"))
            return
        id = value.get("id")
        good_id = id if isinstance(id, str) or type(id) is int else None
        if "method" not in value and ("result" in value or "error" in value):
            self._settle(value, good_id)
            replied(None)
        elif value.get("jsonrpc") != "2.0":
            replied(_error(good_id, INVALID_REQUEST, 'Invalid Request: jsonrpc is not "2.0"'))
        elif "id" in value and good_id is None:
            replied(_error(None, INVALID_REQUEST, "Invalid Request: an id is a text or a whole number"))
        elif not isinstance(value.get("method"), str) or "result" in value or "error" in value:
            replied(_error(good_id, INVALID_REQUEST, "Invalid Request: a message has a method, or an answer"))
        elif good_id is None:
            self._notified(value["method"], value.get("params", {}))
            replied(None)
        else:
            self._request(good_id, value["method"], value.get("params", {}), replied)

    def _settle(self, value: JSON, id: str | int | None) -> None:
        """An answer to us; whatever is not exactly one result is no answer."""
        with self._lock:
            asked = self._asked.pop(id, None) if isinstance(id, str) else None
        if asked is None:
            self._say(f"an answer to nothing that is open was dropped: {repr(id)[:60]}")
        elif value.get("jsonrpc") != "2.0" or ("result" in value) == ("error" in value):
            asked.settle(Reply(why="the answer was malformed"))
        elif "error" in value:
            error = value["error"]
            code = error.get("code") if isinstance(error, dict) else None
            unknown = code == METHOD_NOT_FOUND
            asked.settle(Reply(why="the client cannot be asked that" if unknown else "the client answered an error"))
        else:
            asked.settle(Reply(value["result"]))

    def _notified(self, method: str, params: Any) -> None:
        if not isinstance(params, dict):
            return
        if method == CANCEL_REQUEST:
            id = params.get("requestId")
            request = self._in_flight.get(id) if isinstance(id, str) or type(id) is int else None
            if request is not None:
                request.cancel()
            return
        run = self._notifications.get(method)
        if run is not None:
            try:
                run(params)
            except Exception as error:  # nobody waits for an answer
                self._say(f"{method}: {type(error).__name__}")

    def _request(self, id: str | int, method: str, params: Any, replied: Replied) -> None:
        served = self._methods.get(method)
        if served is None:
            replied(_error(id, METHOD_NOT_FOUND, f"Method not found: {repr(method)[1:-1][:80]}"))
            return
        if not isinstance(params, dict):
            replied(_error(id, INVALID_PARAMS, "Invalid params: they are an object"))
            return
        request = Incoming(id)
        with self._lock:
            if id in self._in_flight:
                problem = _error(id, INVALID_REQUEST, "Invalid Request: a request with this id is not answered yet")
            elif len(self._in_flight) >= MOST_IN_FLIGHT and not served.at_once:
                problem = _error(id, BUSY, f"busy: {MOST_IN_FLIGHT} requests are being served; try again")
            else:
                problem = None
                self._in_flight[id] = request
                self._serving += 1
        if problem is not None:
            replied(problem)
        elif served.at_once:
            self._served(served, params, request, replied)
        else:
            arguments = (served, params, request, replied)
            threading.Thread(target=self._served, args=arguments, name=f"rpc-{method}", daemon=True).start()

    def _served(self, served: Method, params: JSON, request: Incoming, replied: Replied) -> None:
        try:
            answer = _encoded({"jsonrpc": "2.0", "id": request.id, "result": served.run(params, request)})
        except RpcError as error:
            answer = _encoded({"jsonrpc": "2.0", "id": request.id, "error": error.as_json()})
        except Exception as error:  # one broken request, or a result that is no JSON, never ends the conversation
            answer = _encoded({"jsonrpc": "2.0", "id": request.id, "error": self._described(error).as_json()})
        # Out of the table before the answer is out: whoever has it may use the id again.
        with self._lock:
            self._in_flight.pop(request.id, None)
        replied(answer)
        if request.afterwards is not None:
            request.afterwards()
        with self._none_left:
            self._serving -= 1
            self._none_left.notify_all()

    def _say(self, text: str) -> None:
        self._said += 1
        if self._said <= MOST_SAID:
            more = "; no more of this kind is said" if self._said == MOST_SAID else ""
            sys.stderr.write(f"opsagent: {text}{more}\n")


def _encoded(message: JSON) -> str:
    return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _error(id: str | int | None, code: int, message: str) -> str:
    return _encoded({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})


def _internal(error: Exception) -> RpcError:
    return RpcError(INTERNAL, f"Internal error: {type(error).__name__}")


def guard_errors(redact: Callable[[str], str]) -> Callable[[Exception], RpcError]:
    """For `Connection(described=…)`: the three parts of a GuardError, and nothing of any other."""

    def described(error: Exception) -> RpcError:
        from guard.errors import GuardError

        if not isinstance(error, GuardError):
            return _internal(error)
        parts = {name: redact(text) for name, text in error.as_json().items()}
        return RpcError(error.rpc_code, parts.pop("message"), parts)

    return described
