"""OpenAI's Responses, written from a `Say`: whole, and as a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.model_server.script import Say, pieces
from tests.model_server.wire import Anthropic, delta_size


class Responses:
    """Responses; `store` and `previous_response_id` mean nothing here."""

    path = "/v1/responses"

    @staticmethod
    def items(say: Say, number: int, asked: dict[str, Any]) -> list[dict[str, Any]]:
        """What the model put out. A call of a tool that was offered in a namespace names that."""
        found: list[dict[str, Any]] = []
        if say.reasoning:
            summary = [{"type": "summary_text", "text": say.reasoning}]
            found.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary})
        if text := "".join(say.deltas()):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            found.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content})
        for at, call in enumerate(say.calls):
            item = {
                "type": "function_call",
                "id": f"fc_{number}_{at}",
                "call_id": f"call_{number}_{at}" if call.id is None else call.id,
                "name": call.name,
                "arguments": call.text(),
            }
            if namespace := _namespace_of(call.name, asked):
                item["namespace"] = namespace
            found.append(item)
        return [{**item, "status": "completed"} for item in found]

    @staticmethod
    def usage(say: Say) -> dict[str, Any]:
        sent, came, cached = say.tokens
        return {
            "input_tokens": sent,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": came,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sent + came,
        }

    @classmethod
    def whole(cls, say: Say, model: str, number: int, asked: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1_790_000_000,
            "status": say.stop or "completed",
            "model": say.model or model,
            "output": cls.items(say, number, asked),
            "usage": cls.usage(say),
        }

    @classmethod
    def body(cls, say: Say, model: str, number: int, asked: dict[str, Any]) -> bytes:
        return json.dumps(cls.whole(say, model, number, asked)).encode()

    @classmethod
    def events(cls, say: Say, model: str, number: int, asked: dict[str, Any]) -> Iterator[Any]:
        whole = cls.whole(say, model, number, asked)
        opening = {**whole, "status": "in_progress", "output": [], "usage": None}
        for order, event in enumerate(cls._unnumbered(say, whole, opening)):
            yield {**event, "sequence_number": order}

    @staticmethod
    def _unnumbered(say: Say, whole: dict[str, Any], opening: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield {"type": "response.created", "response": opening}
        yield {"type": "response.in_progress", "response": opening}
        for at, item in enumerate(whole["output"]):
            begun = {**item, "status": "in_progress"}
            place = {"output_index": at, "item_id": item["id"]}
            match item["type"]:
                case "message":
                    yield {"type": "response.output_item.added", "output_index": at, "item": {**begun, "content": []}}
                    inner = {**place, "content_index": 0}
                    part = item["content"][0]
                    yield {"type": "response.content_part.added", **inner, "part": {**part, "text": ""}}
                    for piece in say.deltas():
                        yield {"type": "response.output_text.delta", **inner, "delta": piece}
                    yield {"type": "response.output_text.done", **inner, "text": part["text"]}
                    yield {"type": "response.content_part.done", **inner, "part": part}
                case "function_call":
                    yield {"type": "response.output_item.added", "output_index": at, "item": {**begun, "arguments": ""}}
                    for piece in pieces(item["arguments"], delta_size(say)):
                        yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
                    yield {
                        "type": "response.function_call_arguments.done",
                        **place,
                        "arguments": item["arguments"],
                    }
                case _:
                    yield {"type": "response.output_item.added", "output_index": at, "item": {**begun, "summary": []}}
                    for piece in pieces(say.reasoning, 16):
                        yield {
                            "type": "response.reasoning_summary_text.delta",
                            **place,
                            "summary_index": 0,
                            "delta": piece,
                        }
            yield {"type": "response.output_item.done", "output_index": at, "item": item}
        yield {"type": "response.completed", "response": whole}

    frame = Anthropic.frame
    """Both name the event before its data."""


def _namespace_of(name: str, asked: dict[str, Any]) -> str:
    for offered in asked.get("tools") or ():
        if offered.get("type") == "namespace" and any(tool.get("name") == name for tool in offered.get("tools", ())):
            return str(offered["name"])
    return ""
