"""The wire formats that only other people's clients speak to the tests' model server: Responses and Gemini."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from tests.model_server import Call, ModelServer, Say

SAY = Say("Looking at it.", [Call("ops_check", {"command": "df -h /"})], split=5, reasoning="hm", tokens=(70, 9, 30))
NAMESPACE = {"type": "namespace", "name": "mcp__opsagent", "tools": [{"type": "function", "name": "ops_check"}]}
ASKED = {"model": "m-1", "tools": [NAMESPACE]}


def posted(url: str, body: dict[str, Any]) -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def events(data: bytes) -> list[Any]:
    blocks = data.decode().strip().split("\n\n")
    return [json.loads(block[block.index("data: ") + 6 :]) for block in blocks]


@pytest.fixture
def server():
    with ModelServer(otherwise=lambda received: SAY) as server:
        yield server


def test_responses_are_the_same_whole_and_as_a_stream(server):
    whole = json.loads(posted(f"{server.openai_url}/responses", ASKED))
    streamed = events(posted(f"{server.openai_url}/responses", {**ASKED, "stream": True}))
    assert [item["type"] for item in whole["output"]] == ["reasoning", "message", "function_call"]
    assert whole["output"][2]["namespace"] == "mcp__opsagent" and whole["model"] == "m-1"
    assert json.loads(whole["output"][2]["arguments"]) == {"command": "df -h /"}
    done = [event["item"] for event in streamed if event["type"] == "response.output_item.done"]
    assert streamed[-1]["response"]["output"] == done and [one["type"] for one in done] == [
        one["type"] for one in whole["output"]
    ]
    text = "".join(event["delta"] for event in streamed if event["type"] == "response.output_text.delta")
    assert text == SAY.text == whole["output"][1]["content"][0]["text"]
    assert [event["sequence_number"] for event in streamed] == list(range(len(streamed)))


def test_gemini_is_the_same_whole_and_as_a_stream(server):
    at = f"{server.gemini_url}/v1beta/models/m-2"
    whole = json.loads(posted(f"{at}:generateContent", {"contents": []}))
    streamed = events(posted(f"{at}:streamGenerateContent?alt=sse", {"contents": []}))
    parts = [part for event in streamed for part in event["candidates"][0]["content"]["parts"]]
    assert whole["modelVersion"] == "m-2" and whole["usageMetadata"]["cachedContentTokenCount"] == 30
    assert "".join(part["text"] for part in parts if "text" in part and "thought" not in part) == SAY.text
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    assert [(call["name"], call["args"]) for call in calls] == [("ops_check", {"command": "df -h /"})]
    assert streamed[-1]["candidates"][0]["finishReason"] == whole["candidates"][0]["finishReason"] == "STOP"


def test_clients_may_ask_how_long_a_text_is(server):
    counted = posted(f"{server.anthropic_url}/v1/messages/count_tokens?beta=true", {"messages": []})
    assert json.loads(counted)["input_tokens"] > 0
    counted = posted(f"{server.gemini_url}/v1beta/models/m:countTokens", {"contents": []})
    assert json.loads(counted)["totalTokens"] > 0
    assert server.requests == []
