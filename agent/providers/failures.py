"""What an API's refusal means, and what a person is told of it. Pure; the API's own words are redacted and cut.

Sources: the error pages of both wire formats, and what servers that speak them really send (Ollama, vLLM, llama.cpp,
gateways): `{"error": {"message", "type", "code"}}`, `{"error": "…"}`, `{"message"}`, `{"detail"}`, a list, plain text.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.providers import validate
from agent.providers.base import (
    NOT_USED,
    BrainBusy,
    BrainError,
    BrainUnreachable,
    ContextOverflow,
    KeyRefused,
    RequestRefused,
)
from guard.render import visible_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.providers.endpoint import Endpoint
    from guard.redact import Redactor

SHOWN_CHARS = 400
BODY_BYTES = 65_536
LONGEST_WAIT_S = 86_400.0
HINT = "opsagent doctor asks each brain and says what is missing"

_TOO_LONG = re.compile(
    r"context[ _](?:length|window|limit|size)|prompt (?:is|was) too long|exceed_context_size|maximum (?:context|prompt)"
    r"|too many (?:input )?tokens|input (?:is )?too long|input length|reduce the length|model_max_prompt_tokens"
    r"|longer than the (?:model|context)|string_above_max_length|上下文",
    re.IGNORECASE,
)
# Not "billing" or "quota" alone: rate limits name them in their advice.
_NO_MONEY = re.compile(
    r"insufficient[ _](?:quota|balance|funds|credit)|credit balance|billing_error|spend_limit"
    r"|reached your specified API|余额",
    re.IGNORECASE,
)
_BUSY = ("overloaded", "rate_limit", "rate limit", "too_many_requests", "resource_exhausted", "throttl", "capacity")
_KEY = ("authentication", "invalid_api_key", "permission", "unauthorized")
_REQUEST = ("invalid_request", "not_found", "bad_request", "unsupported")


@dataclass(frozen=True, slots=True)
class Said:
    """What an API said about its refusal."""

    words: str = ""
    kind: str = ""
    """Its `type` and `code`, in small letters, for choosing."""
    status: int = 0
    """A status that stands in the words of a stream; 0: none."""


def said_in(value: Any) -> Said:
    """The words and the kind in an error's body, whatever its form."""
    if isinstance(value, list):
        value = value[0] if value else {}
    if isinstance(value, str):
        return Said(value)
    outer = validate.object_of(value)
    inner = outer.get("error")
    row = inner if isinstance(inner, dict) else outer
    words = inner if isinstance(inner, str) else ""
    for name in ("message", "detail", "msg", "error_description"):
        if not words and name in row:
            found = row[name]
            rows = validate.objects_of(found)
            words = found if isinstance(found, str) else "; ".join(validate.text_of(one.get("msg")) for one in rows)
    codes = [row.get(name) for name in ("type", "code", "error_code", "status", "param")]
    number = next((code for code in codes if type(code) is int and 400 <= code < 600), 0)
    return Said(words, " ".join(str(code) for code in codes if code is not None).lower()[:200], number)


def read_body(data: bytes) -> Said:
    """The same of bytes; a web page is only called one."""
    text = data.decode("utf-8", "replace").strip()
    try:
        return said_in(validate.envelope(text))
    except validate.Unreadable:
        page = text[:200].lower().startswith(("<!doctype", "<html", "<head"))
        return Said("a web page" if page else text)


def failure(
    endpoint: Endpoint, redactor: Redactor, status: int, said: Said, headers: Mapping[str, str] | None = None
) -> BrainError:
    """The error for a refusal.

    Args:
        status: of HTTP; 0 for a refusal in the middle of a stream, which is told by its kind.
        headers: names in small letters.
    """
    headers = headers or {}
    status = status or said.status
    # Cut well before it is shown, so that no secret is cut in half before it is redacted.
    words = visible_line(redactor.text(said.words[: SHOWN_CHARS * 20]))[:SHOWN_CHARS].strip()
    who = f"{endpoint.name} at {endpoint.host}"
    message = f"{who} answered {status}: {words or 'no words'}" if status else f"{who} broke off: {words or 'no words'}"
    found = _kind(endpoint, status, said, message, headers)
    found.retry_after_s = retry_after_s(headers)
    found.status = status
    if headers.get("x-should-retry") == "false":
        found.retryable = False
    return found


def _kind(endpoint: Endpoint, status: int, said: Said, message: str, headers: Mapping[str, str]) -> BrainError:
    about = f"{said.kind} {said.words[:4096]}"
    if 300 <= status < 400:
        where = visible_line(headers.get("location", "").partition("?")[0].rpartition("@")[2])[:200]
        return RequestRefused(
            f"{endpoint.name} at {endpoint.host} redirects to {where or 'somewhere'}; it was not followed",
            not_done="the key was not sent there",
            hint="if the address is right, make it the base_url",
        )
    if status == 413 or (status in (0, 400, 422, 500) and too_long(said)):
        return ContextOverflow(message, not_done=NOT_USED, hint="a shorter conversation fits; /compact, or a new one")
    if status == 402 or (status in (0, 400, 403, 429) and _NO_MONEY.search(about)):
        return KeyRefused(message, not_done=NOT_USED, hint="the account has no credit left")
    if status in (429, 529) or (status in (0, 500, 503) and any(word in about.lower() for word in _BUSY)):
        return BrainBusy(message, not_done=NOT_USED, hint="it may work in a moment")
    if status in (401, 403) or (status == 0 and any(word in said.kind for word in _KEY)):
        return KeyRefused(message, not_done=NOT_USED, hint=f"check where the key of {endpoint.name} comes from")
    if status in (0, 408, 409, 425) or status >= 500:
        if status == 0 and any(word in said.kind for word in _REQUEST):
            return RequestRefused(message, not_done=NOT_USED, hint=HINT)
        return BrainUnreachable(message, not_done=NOT_USED, hint=HINT)
    hint = "check base_url and model" if status in (404, 405) else HINT
    return RequestRefused(message, not_done=NOT_USED, hint=hint)


def too_long(said: Said) -> bool:
    """Whether it refused because the conversation does not fit the model's window."""
    return _TOO_LONG.search(f"{said.kind} {said.words[:4096]}") is not None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """What the API asked for: seconds, milliseconds, or a date (RFC 9110, 10.2.3), counted by its clock if it told."""
    found = _number(headers.get("retry-after-ms"))
    if found is not None:
        return _bounded(found / 1000)
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    found = _number(value)
    if found is not None:
        return _bounded(found)
    at, now = _date_s(value), _date_s(headers.get("date", ""))
    return None if at is None else _bounded(at - (time.time() if now is None else now))


def _number(value: str | None) -> float | None:
    try:
        found = float(value or "")
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _date_s(value: str) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_WAIT_S)
