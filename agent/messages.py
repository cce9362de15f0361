"""What a conversation is made of: four kinds of messages, the same for every brain. Values only.

Providers translate these to their wire and back; session files keep them; nothing here knows a protocol. What a model
said is reduced to these fields at the edge, so that a strange field can neither break a session nor live on in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool that a model wants used."""

    id: str
    """As the provider named it, unique within the session; ours (`t-…`) where it gave none or the same one twice."""
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    """What the model passed; {} when `fault` is set."""
    fault: str = ""
    """Why the arguments could not be used, as a sentence for the model: no object, too deep, too big, no JSON."""


@dataclass(frozen=True, slots=True)
class User:
    """A person's (or a program's) words."""

    text: str
    attachments: tuple[str, ...] = ()
    """Texts that came beside the words, such as a piped log: data, sent in an envelope that says so."""


@dataclass(frozen=True, slots=True)
class Assistant:
    """One reply of a brain."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    brain: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one tool call. Output is data, never instruction: it is sent in an envelope with its source."""

    call_id: str
    name: str
    text: str
    """Redacted, bounded: the JSON or the words that the model reads."""
    status: str
    """A `guard.types.Status`, or `error` for arguments that could not be used."""
    execution: str = ""
    """`e-…` where a record exists."""
    untrusted: bool = False
    """Whether it holds text that somebody else than opsagent wrote: command output, file contents."""


@dataclass(frozen=True, slots=True)
class Note:
    """opsagent's own words to a brain: another brain took over, what has run, what was denied."""

    text: str


Message = User | Assistant | Result | Note


def open_calls(messages: Iterable[Message]) -> tuple[ToolCall, ...]:
    """The calls that have no result yet, in the order in which they were made."""
    waiting: dict[str, ToolCall] = {}
    for message in messages:
        if isinstance(message, Assistant):
            waiting.update((call.id, call) for call in message.calls)
        elif isinstance(message, Result):
            waiting.pop(message.call_id, None)
    return tuple(waiting.values())
