"""Chat completions and Messages, written from a `Say`: whole, and as a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.model_server.script import Say, pieces


class OpenAI:
    """Chat completions."""

    path = "/chat/completions"

    @staticmethod
    def calls(say: Say, number: int) -> list[dict[str, Any]]:
        return [
            {
                "id": f"call_{number}_{at}" if call.id is None else call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.text()},
            }
            for at, call in enumerate(say.calls)
        ]

    @staticmethod
    def usage(say: Say) -> dict[str, Any]:
        sent, came, cached = say.tokens
        return {
            "prompt_tokens": sent,
            "completion_tokens": came,
            "total_tokens": sent + came,
            "prompt_tokens_details": {"cached_tokens": cached},
        }

    @classmethod
    def whole(cls, say: Say, model: str, number: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(say.deltas()) or None}
        if say.calls:
            message["tool_calls"] = cls.calls(say, number)
        if say.reasoning:
            message["reasoning_content"] = say.reasoning
        choice = {"index": 0, "message": message, "finish_reason": cls.finish(say)}
        return {
            **cls.head(say, model, number),
            "object": "chat.completion",
            "choices": [choice],
            "usage": cls.usage(say),
        }

    @classmethod
    def body(cls, say: Say, model: str, number: int, asked: dict[str, Any]) -> bytes:
        return json.dumps(cls.whole(say, model, number)).encode()

    @staticmethod
    def finish(say: Say) -> str:
        return say.stop or ("tool_calls" if say.calls else "stop")

    @staticmethod
    def head(say: Say, model: str, number: int) -> dict[str, Any]:
        return {"id": f"chatcmpl-{number}", "created": 1_790_000_000, "model": say.model or model}

    @classmethod
    def events(cls, say: Say, model: str, number: int, asked: dict[str, Any]) -> Iterator[Any]:
        head = {**cls.head(say, model, number), "object": "chat.completion.chunk"}

        def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
            return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        yield chunk({"role": "assistant", "content": ""})
        for piece in pieces(say.reasoning, 16):
            yield chunk({"reasoning_content": piece})
        for piece in say.deltas():
            yield chunk({"content": piece})
        for at, call in enumerate(cls.calls(say, number)):
            opened = {**call, "index": at, "function": {"name": call["function"]["name"], "arguments": ""}}
            yield chunk({"tool_calls": [opened]})
            for piece in pieces(call["function"]["arguments"], delta_size(say)):
                yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
        yield chunk({}, cls.finish(say))
        if (asked.get("stream_options") or {}).get("include_usage"):
            yield {**head, "choices": [], "usage": cls.usage(say)}
        yield "[DONE]"

    @staticmethod
    def frame(item: Any) -> bytes:
        return f"data: {item if isinstance(item, str) else json.dumps(item)}\n\n".encode("utf-8", "surrogatepass")


class Anthropic:
    """Messages."""

    path = "/v1/messages"

    @staticmethod
    def blocks(say: Say, number: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        if say.reasoning:
            found.append({"type": "thinking", "thinking": say.reasoning, "signature": f"signed-{number}"})
        if text := "".join(say.deltas()):
            found.append({"type": "text", "text": text})
        found += [
            {
                "type": "tool_use",
                "id": f"toolu_{number}_{at}" if call.id is None else call.id,
                "name": call.name,
                "input": call.arguments,
            }
            for at, call in enumerate(say.calls)
        ]
        return found

    @staticmethod
    def usage(say: Say) -> dict[str, Any]:
        sent, came, cached = say.tokens
        return {"input_tokens": sent - cached, "cache_read_input_tokens": cached, "output_tokens": came}

    @classmethod
    def body(cls, say: Say, model: str, number: int, asked: dict[str, Any]) -> bytes:
        whole = cls.whole(say, model, number)
        whole["content"], written = _spliced(whole["content"])
        text = json.dumps(whole)
        for mark, arguments in written:
            text = text.replace(mark, arguments)
        return text.encode()

    @classmethod
    def whole(cls, say: Say, model: str, number: int) -> dict[str, Any]:
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": say.model or model,
            "content": cls.blocks(say, number),
            "stop_reason": say.stop or ("tool_use" if say.calls else "end_turn"),
            "usage": cls.usage(say),
        }

    @classmethod
    def events(cls, say: Say, model: str, number: int, asked: dict[str, Any]) -> Iterator[Any]:
        whole = cls.whole(say, model, number)
        opening = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
        yield {"type": "message_start", "message": opening}
        yield {"type": "ping"}
        calls = iter(say.calls)
        for at, block in enumerate(whole["content"]):
            match block["type"]:
                case "thinking":
                    empty: dict[str, Any] = {"type": "thinking", "thinking": "", "signature": ""}
                    deltas = [{"type": "thinking_delta", "thinking": part} for part in pieces(say.reasoning, 16)]
                    deltas.append({"type": "signature_delta", "signature": block["signature"]})
                case "text":
                    empty = {"type": "text", "text": ""}
                    deltas = [{"type": "text_delta", "text": part} for part in say.deltas()]
                case _:
                    empty = {**block, "input": {}}
                    parts = pieces(next(calls).text(), delta_size(say))
                    deltas = [{"type": "input_json_delta", "partial_json": part} for part in ["", *parts]]
            yield {"type": "content_block_start", "index": at, "content_block": empty}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": at, "delta": delta}
            yield {"type": "content_block_stop", "index": at}
        ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": say.tokens[1]}}
        yield {"type": "message_stop"}

    @staticmethod
    def frame(item: Any) -> bytes:
        if isinstance(item, str):
            return f"data: {item}\n\n".encode("utf-8", "surrogatepass")
        name = f"event: {item['type']}\n" if isinstance(item, dict) and "type" in item else ""
        return f"{name}data: {json.dumps(item)}\n\n".encode("utf-8", "surrogatepass")


def delta_size(say: Say) -> int:
    """Characters in one delta of a call's arguments."""
    return say.split if isinstance(say.split, int) else 16


def _spliced(blocks: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """The blocks with a mark for arguments that are a text, and what stands for each mark: JSON as it was written."""
    marked, written = [], []
    for at, block in enumerate(blocks):
        given = block.get("input")
        if isinstance(given, str):
            mark = f"@arguments-{at}@"
            written.append((json.dumps(mark), given if _is_json(given) else json.dumps(given)))
            block = {**block, "input": mark}
        marked.append(block)
    return marked, written


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True
