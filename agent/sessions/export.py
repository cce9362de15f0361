"""A conversation as a document: Markdown for people, JSON for programs. Builds text; touches nothing.

What others wrote stands in fences that it cannot close, and what is invisible is made visible.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from agent.messages import Assistant, Result, User
from agent.sessions.records import record_of
from guard.render import visible, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.messages import Message
    from agent.sessions.store import Conversation, Summary

FORMAT = 1


def as_json(conversation: Conversation) -> dict[str, Any]:
    """The whole conversation as one object: its header's fields and its messages (docs/formats.md, "Conversations")."""
    header = conversation.header
    return {
        "format": FORMAT,
        "id": header.id,
        "at": header.at,
        "cwd": header.cwd,
        "brain": header.brain or None,
        "model": header.model or None,
        "title": header.title or None,
        "forked_from": header.forked_from or None,
        "messages": [
            record_of(message, at) for message, at in zip(conversation.messages, conversation.times, strict=True)
        ],
        "notes": list(conversation.notes),
    }


def summary_object(row: Summary) -> dict[str, Any]:
    """One row of a listing."""
    return {
        "id": row.id,
        "at": row.at or None,
        "used_at": row.used_at,
        "first_line": row.first_line,
        "size_bytes": row.size_bytes,
        "brain": row.brain or None,
        "model": row.model or None,
        "cwd": row.cwd or None,
        "open": row.is_open,
        "fault": row.fault or None,
    }


def as_markdown(conversation: Conversation) -> str:
    """The whole conversation as Markdown, LF at the end."""
    header = conversation.header
    facts = [f"- began {visible_line(header.at)}", f"- folder {_code(header.cwd)}"]
    if header.brain or header.model:
        facts.append(f"- brain {_code(' '.join(part for part in (header.brain, header.model) if part))}")
    if header.forked_from:
        facts.append(f"- copied from {_code(header.forked_from)}")
    facts += [f"- note: {visible_line(note)}" for note in conversation.notes]
    blocks = [f"# Conversation {header.id}" + (f": {visible_line(header.title)}" if header.title else "")]
    blocks.append("\n".join(facts))
    for message, at in zip(conversation.messages, conversation.times, strict=True):
        blocks += _blocks_of(message, at)
    return "\n\n".join(blocks) + "\n"


def _blocks_of(message: Message, at: str) -> Iterator[str]:
    when = visible_line(at)
    if isinstance(message, User):
        yield f"## Person · {when}"
        yield _quoted(message.text)
        for text in message.attachments:
            yield "Attached:"
            yield fenced(text)
    elif isinstance(message, Assistant):
        who = " ".join(visible_line(part) for part in (message.brain, message.model) if part)
        yield f"## {who or 'Brain'} · {when}"
        if message.text:
            yield _quoted(message.text)
        for call in message.calls:
            yield f"Tool {_code(call.name)} ({_code(call.id)})" + (
                f": {visible_line(call.fault)}" if call.fault else ""
            )
            if call.arguments:
                yield fenced(_arguments(call.arguments))
    elif isinstance(message, Result):
        record = f", {_code(message.execution)}" if message.execution else ""
        yield f"### Result of {_code(message.name)} ({_code(message.call_id)}): {visible_line(message.status)}{record}"
        yield fenced(message.text)
    else:
        yield f"### opsagent · {when}"
        yield _quoted(message.text)


def _arguments(arguments: dict[str, Any]) -> str:
    """A lone command as it is; anything else as JSON."""
    if list(arguments) == ["command"] and isinstance(arguments["command"], str):
        return arguments["command"]
    return json.dumps(arguments, ensure_ascii=False, indent=2)


def _quoted(text: str) -> str:
    """A block quote: nothing in it can begin a heading, a list or a fence of the document's own."""
    return "\n".join(f"> {line}".rstrip() for line in visible(text).splitlines()) or ">"


def fenced(text: str) -> str:
    """A fence longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{visible(text)}\n{fence}"


def _code(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{visible_line(text) or '(none)'}{pad}{fence}"
