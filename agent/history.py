"""What was said in one conversation, in memory, and behind it the file that keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agent.messages import Assistant, Message, Result, ToolCall, User
from guard.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

READ_SHOWN = 3
"""Sources that an ask names; more are counted."""


class Transcript(Protocol):
    """A session's file, open for writing (`agent.sessions.store`)."""

    @property
    def id(self) -> str:
        """`c-…`"""
        ...

    @property
    def messages(self) -> tuple[Message, ...]:
        """What it held when it was opened, repaired."""
        ...

    def append(self, message: Message) -> None:
        """Keeps one more; a reply is on the disk when this returns. Raises StateError, and tries again next time."""
        ...

    def sync(self) -> None:
        """Waits until everything so far is on the disk. Raises StateError."""
        ...

    def close(self) -> None:
        """Never raises; safe to call twice."""
        ...


class Unsaved:
    """A transcript that is kept nowhere: for questions whose shell saves nothing."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.messages: tuple[Message, ...] = ()

    def append(self, message: Message) -> None:
        """Keeps nothing, as it was asked to."""

    def sync(self) -> None:
        """There is nothing to wait for."""

    def close(self) -> None:
        """There is nothing to close."""


class History:
    """The messages so far, which calls have no result yet, and what was read that others wrote."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self.messages: list[Message] = []
        self._calls: dict[str, ToolCall] = {}
        self._open: dict[str, ToolCall] = {}
        self._read: dict[str, None] = {}
        for message in transcript.messages:
            self._note(message)

    def append(self, message: Message) -> str:
        """Keeps it. Returns why it could not be saved, "" when it was: a conversation goes on without its file."""
        self._note(message)
        return _why_not(self._transcript.append, message)

    def sync(self) -> str:
        """Waits until everything so far is on the disk. Returns why that failed, "" when it did not."""
        return _why_not(self._transcript.sync)

    def open_calls(self) -> Sequence[ToolCall]:
        """Calls without a result, in order."""
        return tuple(self._open.values())

    def has_call(self, id: str) -> bool:
        return id in self._calls

    def read_before(self) -> str:
        """What of others' words this conversation has read, for those who decide about what it proposes; "" if none."""
        sources = list(self._read)
        more = f" and {len(sources) - READ_SHOWN} more" if len(sources) > READ_SHOWN else ""
        return "; ".join(sources[-READ_SHOWN:]) + more

    def _note(self, message: Message) -> None:
        self.messages.append(message)
        if isinstance(message, Assistant):
            for call in message.calls:
                self._calls[call.id] = self._open[call.id] = call
        elif isinstance(message, Result):
            self._open.pop(message.call_id, None)
            if message.untrusted:
                self._saw(source_of(self._calls.get(message.call_id), message))
        elif isinstance(message, User) and message.attachments:
            self._saw("a text that came with the question")

    def _saw(self, source: str) -> None:
        self._read.pop(source, None)  # the newest stands last
        self._read[source] = None


def _why_not(write: Callable[..., None], *message: Message) -> str:
    try:
        write(*message)
    except StateError as error:
        return error.message
    return ""


def source_of(call: ToolCall | None, result: Result) -> str:
    """Where an output came from, in words: `output of df -h (e-…)`."""
    arguments = call.arguments if call is not None else {}
    for name, words in (("command", "output of "), ("path", "file "), ("id", f"{result.name} "), ("what", "probe ")):
        value = arguments.get(name)
        if isinstance(value, str) and value:
            shown = " ".join(value.split())
            text = f"{words}{shown[:80]}{'…' if len(shown) > 80 else ''}"
            break
    else:
        text = result.name
    return f"{text} ({result.execution})" if result.execution else text
