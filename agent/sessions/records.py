"""Messages as the objects that a session file holds, and back. Pure; knows types and sizes, not marks or secrets.

The file is data. What is read here becomes a message of one of four kinds, of known fields, and nothing else: there is
no record of a system prompt, an approval or a grant, so none can come out of a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.messages import Assistant, Note, Result, ToolCall, User

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.messages import Message

Record = dict[str, Any]

MOST_CALLS = 256
"""Tool calls of one reply. Models make fewer than twenty; a file with more is not one that we wrote."""
MOST_ATTACHMENTS = 64


class BadRecord(ValueError):
    """A record lacks a field, or has one of the wrong kind; the text names it."""


def record_of(message: Message, at: str) -> Record:
    """The object that stands for a message in the file. Fields that say nothing are left out."""
    record: Record
    if isinstance(message, User):
        record = {"kind": "user", "at": at, "text": message.text}
        if message.attachments:
            record["attachments"] = list(message.attachments)
    elif isinstance(message, Assistant):
        record = {"kind": "assistant", "at": at, "text": message.text}
        if message.calls:
            record["calls"] = [_call_record(call) for call in message.calls]
        record |= {name: value for name, value in (("brain", message.brain), ("model", message.model)) if value}
    elif isinstance(message, Result):
        record = {
            "kind": "result",
            "at": at,
            "call_id": message.call_id,
            "name": message.name,
            "text": message.text,
            "status": message.status,
        }
        if message.execution:
            record["execution"] = message.execution
        if message.untrusted:
            record["untrusted"] = True
    else:
        record = {"kind": "note", "at": at, "text": message.text}
    return record


def message_of(record: Record) -> tuple[Message | None, int]:
    """The message that a record stands for, and how many unknown fields were left out of it.

    None for a kind that this version does not know.

    Raises:
        BadRecord: a field is missing or of the wrong kind.
    """
    kind = record.get("kind")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        return None, 0
    _text(record, "at")
    return reader(record)


def _user(record: Record) -> tuple[Message, int]:
    attachments = _list(record, "attachments", MOST_ATTACHMENTS)
    if not all(type(text) is str for text in attachments):
        raise BadRecord("attachments that are no texts")
    return User(_text(record, "text"), tuple(attachments)), _unknown(record, _USER)


def _assistant(record: Record) -> tuple[Message, int]:
    unknown = _unknown(record, _ASSISTANT)
    calls = []
    for item in _list(record, "calls", MOST_CALLS):
        if type(item) is not dict:
            raise BadRecord("a call that is no object")
        calls.append(_call(item))
        unknown += _unknown(item, _CALL)
    text, brain, model = _text(record, "text"), _text(record, "brain", ""), _text(record, "model", "")
    return Assistant(text, tuple(calls), brain, model), unknown


def _call(item: Record) -> ToolCall:
    arguments = item.get("arguments", {})
    if type(arguments) is not dict:
        raise BadRecord("arguments that are no object")
    fault = _text(item, "fault", "")
    return ToolCall(_text(item, "id"), _text(item, "name"), {} if fault else arguments, fault)


def _result(record: Record) -> tuple[Message, int]:
    untrusted = record.get("untrusted", False)
    if type(untrusted) is not bool:
        raise BadRecord("untrusted is neither true nor false")
    result = Result(
        _text(record, "call_id"),
        _text(record, "name"),
        _text(record, "text"),
        _text(record, "status"),
        _text(record, "execution", ""),
        untrusted,
    )
    return result, _unknown(record, _RESULT)


def _note(record: Record) -> tuple[Message, int]:
    return Note(_text(record, "text")), _unknown(record, _NOTE)


def _call_record(call: ToolCall) -> Record:
    record: Record = {"id": call.id, "name": call.name}
    if call.fault:
        record["fault"] = call.fault
    else:
        record["arguments"] = call.arguments
    return record


def _text(record: Record, name: str, default: str | None = None) -> str:
    value = record.get(name, default)
    if type(value) is not str:
        raise BadRecord(f"{name} is missing" if value is None else f"{name} is no text")
    return value


def _list(record: Record, name: str, most: int) -> list[Any]:
    value = record.get(name, [])
    if type(value) is not list:
        raise BadRecord(f"{name} is no list")
    if len(value) > most:
        raise BadRecord(f"more than {most} {name}")
    return value


def _unknown(record: Record, known: frozenset[str]) -> int:
    return 0 if record.keys() <= known else len(record.keys() - known)


_READERS: dict[str, Callable[[Record], tuple[Message, int]]] = {
    "user": _user,
    "assistant": _assistant,
    "result": _result,
    "note": _note,
}
_USER = frozenset(("kind", "at", "text", "attachments", "mark"))
_ASSISTANT = frozenset(("kind", "at", "text", "calls", "brain", "model", "mark"))
_CALL = frozenset(("id", "name", "arguments", "fault"))
_RESULT = frozenset(("kind", "at", "call_id", "name", "text", "status", "execution", "untrusted", "mark"))
_NOTE = frozenset(("kind", "at", "text", "mark"))
