"""The content blocks of a prompt as a turn: the person's own text, and beside it what others wrote, as data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from agent.acp.hello import bad
from dialogue.protocol import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    Reader = Callable[[str], str | None]
    """(absolute path) → the text of that file as the editor has it, or None."""

MOST_BLOCKS = 200


def turn_of(blocks: object, read: Reader) -> Turn:
    """The turn.

    Args:
        read: asks the client for a file that the person points at.
    Raises:
        RpcError: it is no prompt, or holds what was not declared to be understood.
    """
    if not isinstance(blocks, list) or not blocks or len(blocks) > MOST_BLOCKS:
        raise bad(f"prompt must be a list of 1 to {MOST_BLOCKS} content blocks")
    said: list[str] = []
    attached: list[str] = []
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            said.append(_text(block, "text"))
        elif kind == "resource_link":
            uri = _text(block, "uri")
            text = read(path) if (path := path_of(uri)) else None
            said.append(f"[{uri}]")
            if text is not None:
                attached.append(f"{uri}\n\n{text}")
        elif kind == "resource":
            resource = block.get("resource")
            if not isinstance(resource, dict) or not isinstance(resource.get("text"), str):
                raise bad("a resource in a prompt has a text; other content is not understood")
            uri = _text(resource, "uri")
            said.append(f"[{uri}]")
            attached.append(f"{uri}\n\n{resource['text']}")
        else:
            raise bad(f"content of type {repr(kind)[:40]} is not understood: text, resource_link, resource")
    text = "\n".join(part for part in said if part).strip()
    if not text:
        raise bad("the prompt says nothing")
    return Turn(text, tuple(attached))


def path_of(uri: str) -> str:
    """The absolute path that a file URI names; "" for any other."""
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not os.path.isabs(path) or "\0" in path:
        return ""
    return os.path.normpath(path)


def _text(block: dict[str, Any], name: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise bad(f"{name} of a content block must be a text")
    return value
