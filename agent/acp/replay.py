"""What was said in an earlier conversation, as updates: a client shows it as it showed it then. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.acp.updates import DONE, Told, text_content
from agent.messages import Assistant, Result, User
from dialogue.events import ToolRequested
from guard import render

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent.messages import Message

JSON = dict[str, Any]


def replayed(messages: Sequence[Message], told: Told) -> Iterator[JSON]:
    """The updates, oldest first. Notes to the brain and what was attached are not shown again."""
    for number, message in enumerate(messages):
        if isinstance(message, User):
            yield _chunk("user_message_chunk", number, message.text)
        elif isinstance(message, Assistant):
            if message.text.strip():
                yield _chunk("agent_message_chunk", number, message.text)
            for call in message.calls:
                shown = told.call(ToolRequested(call.id, call.name, dict(call.arguments)))
                yield {"sessionUpdate": "tool_call", **shown, "status": "pending", "rawInput": dict(call.arguments)}
        elif isinstance(message, Result):
            yield {
                "sessionUpdate": "tool_call_update",
                "toolCallId": message.call_id,
                "status": "completed" if message.status in DONE else "failed",
                "content": [text_content(message.text)],
                "rawOutput": {"status": message.status, "execution": message.execution or None},
            }


def _chunk(kind: str, number: int, text: str) -> JSON:
    content = {"type": "text", "text": render.visible(text)}
    return {"sessionUpdate": kind, "messageId": f"r-{number}", "content": content}
