"""A conversation in the strict form that APIs want: user and assistant in turn, each call followed by its result. Pure.

Both wire formats, and the templates of local models behind them, refuse or misread anything else. What is out of place
(a note between calls and results, a result without its call) keeps its words and gets a place.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent.envelope import as_sent
from agent.messages import Assistant, Note, Result, ToolCall, User
from guard.types import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.messages import Message

BEGINNING = "(The beginning of this conversation is left out.)"
GO_ON = "(Go on.)"
NO_WORDS = "(no text)"
NOT_RECORDED = "not recorded; it may have run; verify before you retry"
MARK = "[opsagent] "
"""Before our own words, which have no role of their own in the wire formats."""


@dataclass(slots=True)
class UserTurn:
    """What the model is told: first what came of its calls, then words."""

    results: list[Result] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n\n".join(self.texts)


@dataclass(slots=True)
class AssistantTurn:
    """What a model said and wanted."""

    text: str
    calls: tuple[ToolCall, ...]
    brain: str


Turn = UserTurn | AssistantTurn


def turns(messages: Iterable[Message]) -> list[Turn]:
    """The conversation as turns, the first and last the user's; each call has exactly one result, right after it."""
    made: list[Turn] = []
    for message in messages:
        if isinstance(message, Assistant):
            _say(made, message)
        elif isinstance(message, Result):
            _give(made, message)
        else:
            _tell(made, _words(message))
    _answer_all(made)
    if not made or isinstance(made[-1], AssistantTurn):
        made.append(UserTurn(texts=[GO_ON]))
    if isinstance(made[0], AssistantTurn):
        made.insert(0, UserTurn(texts=[BEGINNING]))
    return made


def wire_id(call_id: str, brain: str, own: str) -> str:
    """The id of a call as this brain takes it: its own as it gave it, another's in nine letters and digits.

    Nine letters and digits are what the strictest API wants (Mistral); OpenAI takes 40 characters, Anthropic no dots.
    """
    if brain == own:
        return call_id
    return "c" + hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:8]


def _words(message: User | Note) -> str:
    if isinstance(message, Note):
        return MARK + message.text
    sent = as_sent(message)
    return sent.text if sent.text.strip() else NO_WORDS


def _say(made: list[Turn], message: Assistant) -> None:
    if not message.text.strip() and not message.calls:
        return
    _answer_all(made)
    last = made[-1] if made else None
    if isinstance(last, AssistantTurn):
        last.text = "\n\n".join(part for part in (last.text, message.text) if part)
        last.calls, last.brain = message.calls, message.brain
    else:
        made.append(AssistantTurn(message.text, message.calls, message.brain))


def _give(made: list[Turn], result: Result) -> None:
    if any(call.id == result.call_id for call in _open(made)):
        _user(made).results.append(result)
    else:
        _tell(made, f"{MARK}what came of an earlier {result.name} call:\n{result.text}")


def _tell(made: list[Turn], text: str) -> None:
    _user(made).texts.append(text)


def _user(made: list[Turn]) -> UserTurn:
    """The user's turn that goes on, or a new one."""
    last = made[-1] if made else None
    if isinstance(last, UserTurn):
        return last
    made.append(UserTurn())
    return made[-1]  # type: ignore[return-value]


def _open(made: list[Turn]) -> list[ToolCall]:
    """The calls of the last assistant's turn that have no result yet."""
    last = made[-1] if made else None
    if isinstance(last, AssistantTurn):
        return list(last.calls)
    before = made[-2] if len(made) > 1 else None
    if not isinstance(last, UserTurn) or not isinstance(before, AssistantTurn):
        return []
    done = {result.call_id for result in last.results}
    return [call for call in before.calls if call.id not in done]


def _answer_all(made: list[Turn]) -> None:
    """No request ever holds a call without a result: APIs refuse it, and the model must not think that nothing ran."""
    for call in _open(made):
        _user(made).results.append(Result(call.id, call.name, NOT_RECORDED, Status.UNKNOWN))
