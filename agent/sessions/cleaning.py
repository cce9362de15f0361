"""Makes a message fit for disk and for a model: no secrets, no broken characters, bounded, names as APIs allow them.

Pure and idempotent. What goes into a session file, and what comes out of one that was not written here, passes
through `clean`.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.messages import Assistant, Note, Result, ToolCall, User
from agent.sessions.records import MOST_ATTACHMENTS, MOST_CALLS, record_of
from capabilities.bounded import cut_text
from guard.ledger.formats import MAX_LINE_BYTES
from guard.redact import MASK

if TYPE_CHECKING:
    from agent.messages import Message
    from guard.redact import Redactor

SURE_CHARS = 130_000
"""So many characters in all fit into a line whatever they are: JSON spells one with 12 bytes at most."""
DEEPEST_ARGUMENTS = 24
"""Objects and lists within each other; with what is around them a line stays below guard.ledger.formats.MAX_DEPTH."""
LONGEST_NAME = 64
"""Of a tool. Source: both wire formats refuse longer ones, and other characters than _NAME's, when replayed."""

_BESIDE_BYTES = 16_384
"""Room in a line for the mark, the time and what else does not count above."""

_NAME = re.compile(r"[^A-Za-z0-9_-]")
_ID = re.compile(r"[A-Za-z0-9_.:|/+=-]{1,256}")
_EXECUTION = re.compile(r"e-[a-z0-9-]{1,62}")
_STATUS = re.compile(r"[a-z_]{1,32}")


def clean(message: Message, redactor: Redactor) -> Message:
    """The message as it may be kept and sent: at most as long as a line of a session file.

    The same object comes back when nothing has to change.
    """
    cleaned: Message
    if isinstance(message, User):
        attachments = tuple(clean_text(text, redactor) for text in message.attachments[:MOST_ATTACHMENTS])
        cleaned = replace(message, text=clean_text(message.text, redactor), attachments=attachments)
    elif isinstance(message, Assistant):
        cleaned = replace(
            message,
            text=clean_text(message.text, redactor),
            calls=tuple(_clean_call(call, redactor) for call in message.calls[:MOST_CALLS]),
            brain=clean_line(message.brain, redactor),
            model=clean_line(message.model, redactor),
        )
    elif isinstance(message, Result):
        cleaned = replace(
            message,
            call_id=clean_id(message.call_id, redactor),
            name=_clean_name(message.name, redactor),
            text=clean_text(message.text, redactor),
            status=message.status if _STATUS.fullmatch(message.status) else "error",
            execution=message.execution if _EXECUTION.fullmatch(message.execution) else "",
        )
    else:
        cleaned = Note(clean_text(message.text, redactor))
    cleaned = _bounded(cleaned)
    return message if cleaned == message else cleaned


def clean_text(text: str, redactor: Redactor) -> str:
    """The text redacted, with lone surrogates replaced."""
    return redactor.text(_whole(text))


def clean_line(text: str, redactor: Redactor, *, longest: int = 4_096) -> str:
    """A name, a path or a sentence, likewise; cut at `longest` characters."""
    return clean_text(text, redactor)[:longest]


def clean_id(call_id: str, redactor: Redactor) -> str:
    """The id of a call, kept when it is an ordinary one; else one made from it, the same at every time.

    Not redacted like text: two ids must stay two.
    """
    if _ID.fullmatch(call_id) and redactor.text(call_id) == call_id:
        return call_id
    return "t-" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _bounded(message: Message) -> Message:
    """The message, with its texts cut until a line of the file can hold it."""
    texts = _texts(message)
    if sum(map(len, texts)) <= SURE_CHARS or len(json.dumps(record_of(message, ""))) < MAX_LINE_BYTES - _BESIDE_BYTES:
        return message
    each = SURE_CHARS // len(texts)
    if isinstance(message, User):
        attachments = tuple(cut_text(text, each) for text in message.attachments)
        return replace(message, text=cut_text(message.text, each), attachments=attachments)
    if isinstance(message, Assistant):
        calls = tuple(_bounded_call(call, each) for call in message.calls)
        return replace(message, text=cut_text(message.text, each), calls=calls)
    return replace(message, text=cut_text(message.text, each))


def _texts(message: Message) -> list[str]:
    if isinstance(message, User):
        return [message.text, *message.attachments]
    if isinstance(message, Assistant):
        return [message.text, *(json.dumps(call.arguments, ensure_ascii=False) for call in message.calls)]
    return [message.text]


def _bounded_call(call: ToolCall, longest: int) -> ToolCall:
    size = len(json.dumps(call.arguments, ensure_ascii=False))
    if size <= longest:
        return call
    return replace(call, arguments={}, fault=f"the arguments had {size} characters and are not kept")


def _clean_name(name: str, redactor: Redactor) -> str:
    """A tool's name in the characters that wire formats take; one that holds a secret says only that."""
    if redactor.text(name) != name:
        return "redacted"
    return _NAME.sub("_", name)[:LONGEST_NAME] or "_"


def _clean_call(call: ToolCall, redactor: Redactor) -> ToolCall:
    arguments, fault = call.arguments, call.fault
    if not fault:
        arguments, fault = _clean_arguments(arguments, redactor)
    return ToolCall(
        clean_id(call.id, redactor),
        _clean_name(call.name, redactor),
        {} if fault else arguments,
        clean_line(fault, redactor),
    )


def _clean_arguments(arguments: dict[str, Any], redactor: Redactor) -> tuple[dict[str, Any], str]:
    """The arguments without secrets, and "" or why they cannot be kept."""
    try:
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {}, "the arguments were no JSON that can be kept"
    if _depth(text) > DEEPEST_ARGUMENTS:
        return {}, f"the arguments were more than {DEEPEST_ARGUMENTS} levels deep"
    parts = _clean_value(json.loads(_whole(text)), redactor)
    # Once more as a whole: a secret may be known only by the name beside it, or by the pair {"name": …, "value": …}.
    whole = json.dumps(parts, ensure_ascii=False)
    shown = redactor.text(whole)
    if shown == whole:
        return parts, ""
    # A number or a bare word was replaced: the mask has to be a string to stand in JSON.
    shown = shown.replace(f": {MASK}", f': "{MASK}"')
    try:
        parts = json.loads(shown)
    except ValueError:
        parts = None
    if not isinstance(parts, dict) or redactor.text(shown) != shown:
        return {}, "the arguments held a secret that could not be cut out of them, and are not kept"
    return parts, ""


def _clean_value(value: Any, redactor: Redactor) -> Any:
    """A JSON value with each of its texts redacted by itself: there its lines are lines, and not `\\n` in a string."""
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, dict):
        return {redactor.text(name): _clean_value(item, redactor) for name, item in value.items()}
    if isinstance(value, list):
        return [_clean_value(item, redactor) for item in value]
    return value


def _depth(text: str) -> int:
    """How deep JSON text nests at most, strings aside."""
    depth = deepest = 0
    for bracket in re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text):
        if bracket in ("{", "["):
            depth += 1
            deepest = max(deepest, depth)
        elif bracket in ("}", "]"):
            depth -= 1
    return deepest


def _whole(text: str) -> str:
    """Text that UTF-8 can hold: a lone surrogate, as broken JSON escapes leave them, becomes U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
