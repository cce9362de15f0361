"""Chat completions, as OpenAI and everything that is shaped like it speaks them.

Source: the API reference, and what servers really send: whole calls in one delta, no index, one index for all, ids
that come once, never or each time, names in pieces, content in parts, reasoning beside it, usage anywhere.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.providers import validate
from agent.providers.api import Api
from agent.providers.base import NOT_USED, BrainBusy, BrainUnreachable, Tokens
from agent.providers.recall import Recall
from agent.providers.turns import UserTurn, turns, wire_id

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from agent.providers.base import Reply, Sent
    from agent.providers.endpoint import Endpoint
    from agent.providers.failures import Said
    from agent.providers.gather import Gathering, Part
    from agent.providers.turns import AssistantTurn
    from guard.redact import Redactor

NO_OUTPUT = "(no output)"
NAME_CHARS = 256
BESIDE_CHARS = 65_536
NEW_LIMIT_HOSTS = ("api.openai.com", ".openai.azure.com")
"""Where the limit of a reply is called max_completion_tokens; nearly everybody else kept max_tokens."""
STOPS = {
    **dict.fromkeys(("stop", "eos", "end_turn", "stop_sequence", "eos_token", "complete"), "end"),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use", "tool_call"), "calls"),
    **dict.fromkeys(("length", "max_tokens", "model_length", "max_output_tokens"), "length"),
    **dict.fromkeys(("content_filter", "safety", "refusal", "sensitive", "prohibited_content"), "refused"),
}
BROKEN_STOPS = ("error", "network_error", "abort")
BUSY_STOPS = ("insufficient_system_resource",)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a server wants back with the calls of a reply."""

    reasoning: str = ""
    beside: tuple[dict[str, Any], ...] = ()
    """For each call, fields that stand beside its function; Gemini signs its calls so."""


class OpenAI(Api):
    """One model behind an API of this shape."""

    path = "/chat/completions"
    models_path = "/models"

    def __init__(self, endpoint: Endpoint, redactor: Redactor) -> None:
        super().__init__(endpoint, redactor)
        self._kept: Recall[Kept] = Recall()

    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._endpoint.key}"} if self._endpoint.key else {}

    def _request(self, sent: Sent) -> dict[str, Any]:
        stream = self._endpoint.stream and not self._learned("no stream")
        messages: list[dict[str, Any]] = [{"role": "system", "content": sent.system}] if sent.system else []
        ids: dict[str, str] = {}
        for turn in turns(sent.messages):
            if isinstance(turn, UserTurn):
                messages += _told(turn, ids)
            else:
                ids = {call.id: wire_id(call.id, turn.brain, self.name) for call in turn.calls}
                messages.append(self._said(turn, ids))
        body: dict[str, Any] = {"model": self.model, "messages": messages, "stream": stream}
        if stream and not self._learned("no stream_options"):
            body["stream_options"] = {"include_usage": True}
        if sent.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in sent.tools
            ]
        if self._endpoint.max_tokens:
            body[self._limit_name()] = self._endpoint.max_tokens
        return body

    def _limit_name(self) -> str:
        new = self._endpoint.host.endswith(NEW_LIMIT_HOSTS)
        return "max_completion_tokens" if new != self._learned("the other name of the limit") else "max_tokens"

    def _said(self, turn: AssistantTurn, ids: dict[str, str]) -> dict[str, Any]:
        row: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
        if turn.calls:
            row["tool_calls"] = [
                {
                    "id": ids[call.id],
                    "type": "function",
                    "function": {
                        "name": call.name or "unknown",
                        "arguments": json.dumps(call.arguments, ensure_ascii=False),
                    },
                }
                for call in turn.calls
            ]
        kept = self._kept.of(turn.calls) or Kept()
        for call, beside in zip(row.get("tool_calls", ()), kept.beside, strict=False):
            call.update(beside)
        if kept.reasoning or self._learned("wants reasoning_content"):
            row["reasoning_content"] = kept.reasoning
        return row

    def _lesson(self, said: Said) -> str:
        about = f"{said.kind} {said.words}"
        if "stream_options" in about or "include_usage" in about:
            return "no stream_options"
        if "reasoning_content" in about:
            return "wants reasoning_content"
        if self._endpoint.max_tokens and ("max_tokens" in about or "max_completion_tokens" in about):
            return "the other name of the limit"
        return "no stream" if re.search(r"['\"`]stream['\"`]", about) else ""

    def _keep(self, reply: Reply, gathering: Gathering) -> None:
        beside = tuple(part.beside for part in gathering.parts.values())
        if gathering.reasoning or any(beside):
            self._kept.keep(reply.calls, Kept(gathering.reasoning, beside))

    def _event(self, name: str, value: dict[str, Any], gathering: Gathering) -> Iterator[str]:
        return self._take(value, "delta", gathering)

    def _whole(self, value: dict[str, Any], gathering: Gathering) -> Iterator[str]:
        yield from self._take(value, "message", gathering)
        gathering.stop = gathering.stop or "end"

    def _take(self, value: dict[str, Any], under: str, gathering: Gathering) -> Iterator[str]:
        gathering.model = gathering.model or validate.text_of(value.get("model"))
        if isinstance(value.get("usage"), dict):
            gathering.tokens = _tokens(value["usage"])
        for choice in validate.objects_of(value.get("choices")):
            if choice.get("index") not in (0, None):
                continue
            said = validate.object_of(choice.get(under)) or validate.object_of(choice.get("message"))
            gathering.think(validate.text_of(said.get("reasoning_content")))
            for piece in (_content(said.get("content")), validate.text_of(said.get("refusal"))):
                if piece and (shown := gathering.say(piece)):
                    yield shown
            for position, row in enumerate(validate.objects_of(said.get("tool_calls"))):
                # Of a whole reply each row is a call of its own, whatever its id.
                slot = len(gathering.parts) if under == "message" else _slot(row, position, gathering)
                _take_call(row, gathering.part(slot), gathering)
            if isinstance(said.get("function_call"), dict):
                _take_call({"function": said["function_call"]}, gathering.part("function_call"), gathering)
            if reason := validate.text_of(choice.get("finish_reason")):
                gathering.stop = self._stop(reason, gathering)
            if validate.text_of(said.get("refusal")):
                gathering.stop = "refused"

    def _stop(self, reason: str, gathering: Gathering) -> str:
        if gathering.stop == "refused":
            return "refused"
        if reason in BROKEN_STOPS:
            raise BrainUnreachable(f"{self.name} broke off: {reason}", not_done=NOT_USED)
        if reason in BUSY_STOPS:
            raise BrainBusy(f"{self.name} has too much to do: {reason}", not_done=NOT_USED)
        if reason.lower() not in STOPS:
            gathering.note(f"the reply ended for a reason that is not known here: {repr(reason)[:60]}")
        return STOPS.get(reason.lower(), "end")


def _told(turn: UserTurn, ids: dict[str, str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": ids[result.call_id], "content": result.text or NO_OUTPUT}
        for result in turn.results
    ]
    return [*rows, {"role": "user", "content": turn.text}] if turn.texts else rows


def _content(content: Any) -> str:
    """Text, or the text among parts; what else there is (reasoning, pictures) is left out."""
    if isinstance(content, list):
        parts = validate.objects_of(content)
        return "".join(validate.text_of(part.get("text")) for part in parts if part.get("type") in ("text", None))
    return validate.text_of(content)


def _take_call(row: dict[str, Any], part: Part, gathering: Gathering) -> None:
    """A call, or a piece of one."""
    function = validate.object_of(row.get("function"))
    name = validate.text_of(function.get("name"))
    part.id = part.id or validate.text_of(row.get("id"))
    if not part.name:
        part.name = name
    elif name != part.name and part.name not in gathering.names and not part.chars and len(part.name) < NAME_CHARS:
        part.name += name
    beside, fault = validate.given_arguments(row.get("extra_content"))
    if beside and not fault and len(json.dumps(beside)) <= BESIDE_CHARS:
        part.beside["extra_content"] = beside
    given = function.get("arguments")
    if isinstance(given, str):
        part.add(given)
    elif given is not None:
        part.value, part.given = given, True


def _slot(row: dict[str, Any], position: int, gathering: Gathering) -> Hashable:
    """Which call a delta belongs to, by its number in order.

    An index or a known id says so; but some servers give every call the same index, and some give neither. Then a name
    begins a new call, unless it repeats that of one whose arguments are not complete.
    """
    slots, parts = gathering.slots, gathering.parts
    index, id = row.get("index"), validate.text_of(row.get("id"))
    name = validate.text_of(validate.object_of(row.get("function")).get("name"))
    by: Hashable = ("index", index) if type(index) is int else ("id", id) if id else None
    at = slots.get(by) if by is not None else None
    if at is None and by is None and parts:
        at = len(parts) - 1
    part = parts.get(at) if at is not None else None
    if part is None or _begins(part, position, id, name, by):
        at = len(parts)
    if by is not None:
        slots[by] = at
    return at


def _begins(part: Part, position: int, id: str, name: str, by: Hashable) -> bool:
    """Whether a delta that points at a call begins another one all the same."""
    if not name:
        return False
    if id and part.id:
        return id != part.id
    if by is None and position > 0:
        return True
    if not part.chars and not part.given:
        return False
    return part.given or not validate.arguments(part.text.getvalue())[1]


def _tokens(usage: dict[str, Any]) -> Tokens:
    details = validate.object_of(usage.get("prompt_tokens_details"))
    cached = validate.count(details.get("cached_tokens")) or validate.count(usage.get("prompt_cache_hit_tokens"))
    return Tokens(validate.count(usage.get("prompt_tokens")), validate.count(usage.get("completion_tokens")), cached)
