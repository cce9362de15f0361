"""Gemini's generateContent, written from a `Say`: whole, and as a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.model_server.script import Say
from tests.model_server.wire import OpenAI


class Gemini:
    """generateContent and streamGenerateContent; the model stands in the path."""

    path = (":generateContent", ":streamGenerateContent")

    @staticmethod
    def parts(say: Say, number: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [{"text": say.reasoning, "thought": True}] if say.reasoning else []
        if text := "".join(say.deltas()):
            found.append({"text": text})
        for at, call in enumerate(say.calls):
            name = f"call_{number}_{at}" if call.id is None else call.id
            found.append({"functionCall": {"id": name, "name": call.name, "args": call.arguments}})
        return found

    @staticmethod
    def chunk(say: Say, model: str, parts: list[dict[str, Any]], finish: str = "") -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        sent, came, cached = say.tokens
        usage = {"promptTokenCount": sent, "candidatesTokenCount": came, "totalTokenCount": sent + came}
        if cached:
            usage["cachedContentTokenCount"] = cached
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": say.model or model}

    @classmethod
    def body(cls, say: Say, model: str, number: int, asked: dict[str, Any]) -> bytes:
        return json.dumps(cls.chunk(say, model, cls.parts(say, number), say.stop or "STOP")).encode()

    @classmethod
    def events(cls, say: Say, model: str, number: int, asked: dict[str, Any]) -> Iterator[Any]:
        for part in cls.parts(say, number):
            if "thought" not in part and "text" in part:
                for piece in say.deltas():
                    yield cls.chunk(say, model, [{"text": piece}])
            else:
                yield cls.chunk(say, model, [part])
        yield cls.chunk(say, model, [{"text": ""}], say.stop or "STOP")

    frame = OpenAI.frame
