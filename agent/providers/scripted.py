"""The brain that plays a file: rehearsals, demonstrations and tests, without a model and the same every time.

`--brain script:FILE`. The form is described in docs/loop.md, "A scripted brain". It answers with what the file says,
checks what it was told (`expect`), and can take ids out of that for what it says next. It never decides anything.
"""

from __future__ import annotations

import json
import os
import re
import select
import threading
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.messages import Assistant, Note, Result, ToolCall, User
from agent.providers.base import (
    BrainBusy,
    BrainError,
    BrainUnreachable,
    ContextOverflow,
    KeyRefused,
    Reply,
    RequestRefused,
    Tokens,
)
from capabilities.jobs import Cancelled
from guard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent.messages import Message
    from agent.providers.base import Sent
    from guard.ports import Cancel

PREFIX = "script:"
MOST_BYTES = 16 * 1024 * 1024
ERRORS: dict[str, type[BrainError]] = {
    "fault": BrainError,
    "unreachable": BrainUnreachable,
    "busy": BrainBusy,
    "key": KeyRefused,
    "context": ContextOverflow,
    "request": RequestRefused,
}
STOPS = ("end", "calls", "length", "refused")

_FIELDS = {"expect": str, "text": str, "deltas": list, "calls": list, "wait": str, "stop": str, "model": str}
_FIELDS |= {"error": dict, "tokens": dict, "notes": list}
_INNER = {"error": ("kind", "message", "retry_after_s"), "tokens": ("input", "output", "cached")}
_NAME = re.compile(r"\$\{(\w+)\}")


class BadScript(UsageError):
    """A script cannot be read or is not in the form of docs/loop.md."""

    code = "usage.script"


@dataclass(frozen=True, slots=True)
class Step:
    """One reply, as the file says it."""

    expect: re.Pattern[str] | None
    """Has to be found in what came since the last reply; its named groups are kept for `${name}`."""
    text: str
    deltas: tuple[str | dict[str, str], ...]
    """Pieces of the text, or `{"wait": name}` between them."""
    calls: tuple[Mapping[str, Any], ...]
    wait: str
    stop: str
    model: str
    error: Mapping[str, Any]
    tokens: Mapping[str, int]
    notes: tuple[str, ...]


class Scripted:
    """`agent.providers.base.Provider` over the steps of a file, in order, from the first in each process."""

    def __init__(self, name: str, steps: tuple[Step, ...], *, folder: str = "", window_tokens: int = 0) -> None:
        """Args: folder: where a `wait` may find a named pipe; "" when only `release` ends it."""
        self.name = name
        self.model = "script"
        self.window_tokens = window_tokens
        self.sent: list[Sent] = []
        """What it was asked, for tests and rehearsals."""
        self._steps = steps
        self._at = 0
        self._names: dict[str, str] = {}
        self._folder = folder
        self._released: dict[str, _Gate] = {}
        self._lock = threading.Lock()

    def stream(self, sent: Sent, *, cancel: Cancel) -> Iterator[str | Reply]:
        """The next step. Raises what it says, and RequestRefused when it was not told what it expects."""
        self.sent.append(sent)
        if self._at >= len(self._steps):
            raise RequestRefused(f"{self.name} is over: it has {len(self._steps)} replies")
        step = self._steps[self._at]
        self._at += 1
        self._check(step, heard(sent.messages))
        if step.wait:
            self._wait(step.wait, cancel)
        for piece in step.deltas:
            if cancel.is_set():
                raise Cancelled("the reply was interrupted")
            if isinstance(piece, str):
                yield self._filled(piece)
            else:
                self._wait(piece["wait"], cancel)
        if step.error:
            raise self._error(step.error)
        calls = tuple(self._call(call, number) for number, call in enumerate(step.calls, 1))
        yield Reply(
            self._filled(step.text),
            calls,
            step.stop or ("calls" if calls else "end"),
            Tokens(**step.tokens),
            step.model or self.model,
            notes=step.notes,
        )

    def release(self, name: str) -> None:
        """Ends the `wait` of this name, now or when it comes."""
        self._gate(name).open()

    def close(self) -> None:
        """Does nothing: a waiting reply ends with its turn."""

    def _check(self, step: Step, told: str) -> None:
        if step.expect is None:
            return
        found = step.expect.search(told)
        if found is None:
            raise RequestRefused(
                f"step {self._at} of {self.name} expects {step.expect.pattern!r}, and was told {told[-400:]!r}",
                hint="the script and what really happened differ",
            )
        self._names.update({name: text for name, text in found.groupdict().items() if text is not None})

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return _NAME.sub(lambda found: self._names.get(found[1], found[0]), value)
        if isinstance(value, dict):
            return {name: self._filled(one) for name, one in value.items()}
        return [self._filled(one) for one in value] if isinstance(value, list) else value

    def _call(self, call: Mapping[str, Any], number: int) -> ToolCall:
        arguments = call.get("arguments", {})
        fault = "" if isinstance(arguments, dict) else "the arguments are no JSON object"
        id = call.get("id") or f"s{self._at}-{number}"
        return ToolCall(id, call["tool"], {} if fault else self._filled(arguments), fault)

    def _error(self, error: Mapping[str, Any]) -> BrainError:
        kind = ERRORS[error.get("kind", "fault")]
        message = error.get("message", "the script says so")
        if kind is BrainBusy:
            return BrainBusy(message, retry_after_s=error.get("retry_after_s"))
        return kind(message)

    def _gate(self, name: str) -> _Gate:
        with self._lock:
            return self._released.setdefault(name, _Gate())

    def _wait(self, name: str, cancel: Cancel) -> None:
        """Waits for `release`, for a byte (or the end) on a named pipe FOLDER/NAME, or for `cancel`."""
        gate = self._gate(name)
        watched: list[int] = [gate.fileno(), cancel.fileno()]
        pipe = -1
        if self._folder:
            try:
                pipe = os.open(os.path.join(self._folder, name), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                watched.append(pipe)
            except OSError:
                pipe = -1
        try:
            while True:
                ready, _, _ = select.select(watched, [], [])
                if cancel.is_set():
                    raise Cancelled("the reply was interrupted")
                if ready:
                    return
        finally:
            if pipe >= 0:
                os.close(pipe)


class _Gate:
    """Opened once; readable from then on."""

    def __init__(self) -> None:
        self._reads, self._writes = os.pipe()

    def open(self) -> None:
        if self._writes >= 0:
            os.close(self._writes)  # its end makes the other side readable for ever
            self._writes = -1

    def fileno(self) -> int:
        return self._reads

    def __del__(self) -> None:
        self.open()
        os.close(self._reads)


def heard(messages: tuple[Message, ...]) -> str:
    """What a brain was told since its last reply, one text after the other."""
    texts: list[str] = []
    for message in reversed(messages):
        if isinstance(message, Assistant):
            break
        if isinstance(message, User | Result | Note):
            texts.append(message.text)
    return "\n".join(reversed(texts))


def open_script(path: str) -> Scripted:
    """The brain that plays a file: TOML with `[[reply]]` tables where its name ends in `.toml`, else JSON Lines.

    Raises:
        BadScript: it cannot be read, or is not in that form; names the reply.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadScript(f"the script {repr(path)[1:-1]} cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise BadScript(f"the script {repr(path)[1:-1]} has more than {MOST_BYTES:,} bytes")
    try:
        rows = _toml_rows(data) if path.endswith(".toml") else _json_rows(data)
    except (ValueError, RecursionError) as error:
        raise BadScript(f"the script {repr(path)[1:-1]} cannot be read: {error}") from None
    return Scripted(PREFIX + path, steps_of(rows), folder=os.path.dirname(os.path.abspath(path)))


def _toml_rows(data: bytes) -> list[Any]:
    table = tomllib.loads(data.decode())
    if set(table) != {"reply"}:
        raise ValueError("it consists of [[reply]] tables")
    rows: list[Any] = table["reply"]
    return rows


def _json_rows(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.decode().split("\n") if line.strip() and not line.startswith("#")]


def steps_of(rows: list[Any]) -> tuple[Step, ...]:
    """The steps of a script. Raises BadScript, naming the reply by its number."""
    return tuple(_step(row, number) for number, row in enumerate(rows, 1))


def _step(row: Any, number: int) -> Step:
    def wrong(what: str) -> BadScript:
        return BadScript(f"reply {number} of the script: {what}", hint='docs/loop.md, "A scripted brain"')

    if not isinstance(row, dict):
        raise wrong("it is no object")
    for name, value in row.items():
        if name not in _FIELDS:
            raise wrong(f"it knows no field {repr(name)[:60]}; the fields are {', '.join(sorted(_FIELDS))}")
        if not isinstance(value, _FIELDS[name]):
            raise wrong(f"{name} is a {_FIELDS[name].__name__}")
    for name, known in _INNER.items():
        for inner in row.get(name, {}):
            if inner not in known:
                raise wrong(f"{name} has {', '.join(known)}, not {repr(inner)[:60]}")
    calls = row.get("calls", [])
    for call in calls:
        if (
            not isinstance(call, dict)
            or not isinstance(call.get("tool"), str)
            or set(call) - {"tool", "arguments", "id"}
        ):
            raise wrong('a call is {"tool": name, "arguments": object}')
    text = row.get("text", "")
    deltas = tuple(row.get("deltas", [text] if text else []))
    for piece in deltas:
        if not isinstance(piece, str) and not (
            isinstance(piece, dict) and set(piece) == {"wait"} and isinstance(piece["wait"], str)
        ):
            raise wrong('a delta is a text or {"wait": name}')
    if not text:
        text = "".join(piece for piece in deltas if isinstance(piece, str))
    error = row.get("error", {})
    if error and error.get("kind", "fault") not in ERRORS:
        raise wrong(f"the kind of an error is one of {', '.join(ERRORS)}")
    if row.get("stop", "end") not in STOPS:
        raise wrong(f"stop is one of {', '.join(STOPS)}")
    for name in (row.get("wait", ""), *(piece["wait"] for piece in deltas if isinstance(piece, dict))):
        if "/" in name:
            raise wrong("the name of a wait has no slash")
    try:
        expect = re.compile(row["expect"], re.MULTILINE) if "expect" in row else None
    except re.error as fault:
        raise wrong(f"expect is no regular expression: {fault}") from None
    return Step(
        expect,
        text,
        deltas,
        tuple(calls),
        row.get("wait", ""),
        row.get("stop", ""),
        row.get("model", ""),
        error,
        row.get("tokens", {}),
        tuple(row.get("notes", [])),
    )
