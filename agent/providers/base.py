"""What the loop asks of a model API, and how a model API fails.

A provider is synchronous: `stream` yields pieces of text as they come and ends with one `Reply`. It never retries,
never runs anything and keeps nothing between calls: retries and the chain of brains are `agent.brains`', tools are the
loop's.

    GuardError
    └── BrainError            brain.fault        what came back could not be used
        ├── BrainUnreachable  brain.unreachable  no connection, cut in mid-stream, 5xx: may be tried again
        ├── BrainBusy         brain.busy         429 or overloaded: may be tried again after `retry_after_s`
        ├── KeyRefused        brain.key          401, 403, no key
        ├── ContextOverflow   brain.context      more than the model's window: compaction helps
        └── RequestRefused    brain.request      the API does not take this request (unknown model, bad parameter)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from guard.errors import GuardError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.messages import Message, ToolCall
    from capabilities.registry import Tool
    from guard.ports import Cancel


NOT_USED = "nothing of this reply was used"
"""What was not done when a reply failed, however far it had come."""


NAME, REFUSED, NO_WAY, PROXY, TLS, SILENT, CUT = "name", "refused", "no-way", "proxy", "tls", "silent", "cut"
"""What kept an answer away: the name is not known, nothing listens there, nothing came back at all, the proxy, the
encryption; or it was reached and said nothing in time, or broke off."""


class BrainError(GuardError):
    """A brain answered with something that cannot be used."""

    code = "brain.fault"
    exit_code = 1
    retryable = False
    """Whether the same request may succeed later."""
    retry_after_s: float | None = None
    """What the API asked for, seconds from now; None when it said nothing."""
    status: int = 0
    """Of HTTP, where it answered with one that is none of success."""
    cause: str = ""
    """One of the seven above, where no answer came."""


class BrainUnreachable(BrainError):
    """No connection, a connection that broke in the middle, or an API that is down."""

    code = "brain.unreachable"
    retryable = True


class BrainBusy(BrainError):
    """The API has too much to do, or this account has asked too often."""

    code = "brain.busy"
    retryable = True

    def __init__(self, message: str, *, not_done: str = "", hint: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, not_done=not_done, hint=hint)
        self.retry_after_s = retry_after_s


class KeyRefused(BrainError):
    """There is no key, or the API does not accept it."""

    code = "brain.key"


class ContextOverflow(BrainError):
    """The conversation is longer than the model's window."""

    code = "brain.context"


class RequestRefused(BrainError):
    """The API does not take this request: an unknown model, a parameter that it does not have."""

    code = "brain.request"


@dataclass(frozen=True, slots=True)
class Sent:
    """All of what one request says. The view may be compacted; the session file is not."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a reply cost, as the API counts; 0 where it says nothing."""

    input: int = 0
    output: int = 0
    cached: int = 0
    """Part of `input` that was read from the API's cache."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply, validated: the authority; the pieces before it were for display."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    stop: str = "end"
    """`end` · `calls` · `length` (cut by the token limit: its calls are not to be run) · `refused`"""
    tokens: Tokens = Tokens()
    model: str = ""
    """The model that answered, as the API names it."""
    brain: str = ""
    """The entry of the chain that answered; "" reads as the provider's own name."""
    cost: float | None = None
    """Of this reply, in the currency of the configured price; None without one."""
    notes: tuple[str, ...] = ()
    """What a person should know: another model answered, a tool call was recovered from text, bytes were dropped."""


class Provider(Protocol):
    """One model behind one API."""

    name: str
    """Of its entry in the configuration, or `openai`, `anthropic`, `script:FILE`."""
    model: str
    window_tokens: int
    """The model's context window; 0 when nobody said."""

    def stream(self, sent: Sent, *, cancel: Cancel) -> Iterator[str | Reply]:
        """Pieces of text as they come, then one `Reply` as the last.

        Raises:
            BrainError: one of the kinds above; secrets are redacted from its words.
            capabilities.jobs.Cancelled: `cancel` was set; within 0.2 s, at any byte.
        """
        ...

    def close(self) -> None:
        """Ends connections; safe to call twice and from another thread."""
        ...
