"""Anthropic's messages.

Source: the API reference (version 2023-06-01), "Streaming messages", "Errors", "Prompt caching", "Thinking".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agent.providers import validate
from agent.providers.api import Api
from agent.providers.base import Tokens
from agent.providers.recall import Recall
from agent.providers.turns import UserTurn, turns, wire_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent.providers.base import Reply, Sent
    from agent.providers.endpoint import Endpoint
    from agent.providers.failures import Said
    from agent.providers.gather import Gathering
    from agent.providers.turns import AssistantTurn
    from guard.redact import Redactor

VERSION = "2023-06-01"
MAX_TOKENS = 16_384
"""The format wants a limit. Every current model takes this one; one that does not says its own, which is then used."""
NO_OUTPUT = "(no output)"
CACHE = {"type": "ephemeral"}
STOPS = {
    **dict.fromkeys(("end_turn", "stop_sequence", "pause_turn"), "end"),
    "tool_use": "calls",
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length"),
    "refusal": "refused",
}

_MOST_TOKENS = re.compile(r"max_tokens: \d+ > (\d+)")

Blocks = list[dict[str, Any]]


class Anthropic(Api):
    """One model behind an API of this shape."""

    path = "/v1/messages"
    models_path = "/v1/models"

    def __init__(self, endpoint: Endpoint, redactor: Redactor) -> None:
        super().__init__(endpoint, redactor)
        self._max_tokens = endpoint.max_tokens or MAX_TOKENS
        self._thoughts: Recall[Blocks] = Recall()

    def _headers(self) -> dict[str, str]:
        key = {"x-api-key": self._endpoint.key} if self._endpoint.key else {}
        return {"anthropic-version": VERSION, **key}

    def _request(self, sent: Sent) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self._max_tokens,
            "messages": self._messages(sent),
            "stream": self._endpoint.stream,
        }
        if sent.system:
            body["system"] = [self._cached({"type": "text", "text": sent.system})]
        if sent.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in sent.tools
            ]
        return body

    def _messages(self, sent: Sent) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        ids: dict[str, str] = {}
        for turn in turns(sent.messages):
            if isinstance(turn, UserTurn):
                rows.append({"role": "user", "content": _told(turn, ids)})
            else:
                ids = {call.id: wire_id(call.id, turn.brain, self.name) for call in turn.calls}
                rows.append({"role": "assistant", "content": self._said(turn, ids)})
        # What was said so far is read from the cache by the next request, the tools and the system prompt by all.
        rows[-1]["content"][-1] = self._cached(rows[-1]["content"][-1])
        return rows

    def _said(self, turn: AssistantTurn, ids: dict[str, str]) -> Blocks:
        blocks: Blocks = [] if self._learned("no thinking") else [*(self._thoughts.of(turn.calls) or [])]
        if turn.text.strip():
            blocks.append({"type": "text", "text": turn.text})
        for call in turn.calls:
            # Arguments that were no object are {} here: the format takes nothing else.
            use = {"type": "tool_use", "id": ids[call.id], "name": call.name or "unknown", "input": call.arguments}
            blocks.append(use)
        return blocks

    def _cached(self, block: dict[str, Any]) -> dict[str, Any]:
        return block if self._learned("no cache_control") else {**block, "cache_control": CACHE}

    def _lesson(self, said: Said) -> str:
        if found := _MOST_TOKENS.search(said.words):
            self._max_tokens = int(found[1])
            return "a smaller limit"
        return next((f"no {what}" for what in ("cache_control", "thinking") if what in said.words), "")

    def _keep(self, reply: Reply, gathering: Gathering) -> None:
        if gathering.thoughts and not gathering.thought_too_long:
            self._thoughts.keep(reply.calls, [_thought(block) for block in gathering.thoughts.values()])

    def _whole(self, value: dict[str, Any], gathering: Gathering) -> Iterator[str]:
        yield from self._event("", {"type": "message_start", "message": value}, gathering)
        for index, block in enumerate(validate.objects_of(value.get("content"))):
            yield from _begin(index, block, gathering, whole=True)
        yield from self._event("", {"type": "message_delta", "delta": value}, gathering)
        gathering.stop = gathering.stop or "end"

    def _event(self, name: str, value: dict[str, Any], gathering: Gathering) -> Iterator[str]:
        index = value.get("index")
        match validate.text_of(value.get("type")) or name:
            case "message_start":
                message = validate.object_of(value.get("message"))
                gathering.model = validate.text_of(message.get("model"))
                gathering.tokens = _tokens(message.get("usage"), gathering.tokens)
            case "content_block_start" if type(index) is int:
                yield from _begin(index, validate.object_of(value.get("content_block")), gathering)
            case "content_block_delta" if type(index) is int:
                yield from _more(index, validate.object_of(value.get("delta")), gathering)
            case "message_delta":
                gathering.tokens = _tokens(value.get("usage"), gathering.tokens)
                if reason := validate.text_of(validate.object_of(value.get("delta")).get("stop_reason")):
                    gathering.stop = _stop(reason, gathering)
            case "message_stop":
                gathering.stop = gathering.stop or "end"
            case _:  # pings, ends of blocks, and what a later version may add
                pass


def _told(turn: UserTurn, ids: dict[str, str]) -> Blocks:
    blocks: Blocks = []
    for result in turn.results:
        block = {"type": "tool_result", "tool_use_id": ids[result.call_id], "content": result.text or NO_OUTPUT}
        blocks.append({**block, "is_error": True} if result.status == "error" else block)
    return [*blocks, {"type": "text", "text": turn.text}] if turn.texts else blocks


def _begin(index: int, block: dict[str, Any], gathering: Gathering, *, whole: bool = False) -> Iterator[str]:
    """A block opens; of a whole reply it is all there."""
    kind = validate.text_of(block.get("type"))
    gathering.slots[index] = kind
    if kind == "text":
        if shown := gathering.say(validate.text_of(block.get("text"))):
            yield shown
    elif kind == "tool_use":
        part = gathering.part(index)
        part.id, part.name = validate.text_of(block.get("id")), validate.text_of(block.get("name"))
        if whole or block.get("input"):
            part.value, part.given = block.get("input"), True
    elif kind in ("thinking", "redacted_thinking"):
        gathering.thoughts[index] = {"type": [kind]}
        for name in ("thinking", "signature", "data"):
            if name in block:
                _ponder(index, name, block[name], gathering)


def _more(index: int, delta: dict[str, Any], gathering: Gathering) -> Iterator[str]:
    """A piece of a block that is open. Tools that the server itself uses have pieces too: they are none of ours."""
    kind, opened = delta.get("type"), gathering.slots.get(index)
    if kind == "text_delta" and opened in ("text", None):
        if shown := gathering.say(validate.text_of(delta.get("text"))):
            yield shown
    elif kind == "input_json_delta" and opened == "tool_use":
        gathering.part(index).add(validate.text_of(delta.get("partial_json")))
    elif kind in ("thinking_delta", "signature_delta") and opened == "thinking":
        name = kind.removesuffix("_delta")
        _ponder(index, name, delta.get(name), gathering)


def _ponder(index: int, name: str, piece: Any, gathering: Gathering) -> None:
    text = validate.text_of(piece)
    gathering.think(text)
    if not gathering.thought_too_long:
        gathering.thoughts[index].setdefault(name, []).append(text)


def _thought(block: dict[str, list[str]]) -> dict[str, Any]:
    """A block of reasoning as it came; the API checks that nothing in it was changed."""
    return {name: "".join(parts) for name, parts in block.items()}


def _stop(reason: str, gathering: Gathering) -> str:
    if reason == "pause_turn":
        gathering.note("the API paused a long reply; ask to go on")
    elif reason not in STOPS:
        gathering.note(f"the reply ended for a reason that is not known here: {repr(reason)[:60]}")
    return STOPS.get(reason, "end")


def _tokens(usage: Any, before: Tokens) -> Tokens:
    """What counts so far; later figures replace earlier ones, and what is left out stays."""
    row = validate.object_of(usage)
    cached = validate.count(row.get("cache_read_input_tokens"))
    new = validate.count(row.get("input_tokens")) + validate.count(row.get("cache_creation_input_tokens")) + cached
    return Tokens(
        new or before.input, validate.count(row.get("output_tokens")) or before.output, cached or before.cached
    )
