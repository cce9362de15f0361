"""What an API's refusal means: its kind, whether waiting helps, what a person is told. Pure."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.providers import failures
from agent.providers.base import (
    BrainBusy,
    BrainError,
    BrainUnreachable,
    ContextOverflow,
    KeyRefused,
    RequestRefused,
)
from agent.providers.endpoint import Endpoint
from guard.redact import Redactor

ENDPOINT = Endpoint("mine", "https://models.example/v1", "mock-1")


def failed(status, body="", headers=None, redactor=None):
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return failures.failure(ENDPOINT, redactor or Redactor(), status, failures.read_body(data), headers)


def openai(message, type="", code=None):
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


def anthropic(message, type):
    return {"type": "error", "error": {"type": type, "message": message}, "request_id": "req_1"}


KINDS = [
    (401, openai("Incorrect API key provided", "invalid_request_error", "invalid_api_key"), KeyRefused),
    (401, anthropic("invalid x-api-key", "authentication_error"), KeyRefused),
    (403, anthropic("not allowed", "permission_error"), KeyRefused),
    (403, "<html>blocked</html>", KeyRefused),
    (402, {"error": {"message": "Insufficient Balance"}}, KeyRefused),
    (429, openai("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), KeyRefused),
    (400, anthropic("Your credit balance is too low to access the API", "invalid_request_error"), KeyRefused),
    (429, openai("Rate limit reached. See account/billing to add a payment method", "requests"), BrainBusy),
    (
        429,
        [{"error": {"code": 429, "message": "exceeded your current quota", "status": "RESOURCE_EXHAUSTED"}}],
        BrainBusy,
    ),
    (429, "", BrainBusy),
    (
        429,
        {"error": {"type": "rate_limit_error", "error_code": "enforced_spend_limit_reached", "message": "over"}},
        KeyRefused,
    ),
    (400, anthropic("You have reached your specified API usage limits.", "invalid_request_error"), KeyRefused),
    (529, anthropic("Overloaded", "overloaded_error"), BrainBusy),
    (503, {"error": {"message": "The engine is currently overloaded"}}, BrainBusy),
    (503, "upstream connect error", BrainUnreachable),
    (500, anthropic("Internal server error", "api_error"), BrainUnreachable),
    (502, "<html>Bad Gateway</html>", BrainUnreachable),
    (504, "", BrainUnreachable),
    (408, "", BrainUnreachable),
    (409, "", BrainUnreachable),
    (
        400,
        openai(
            "This model's maximum context length is 8192 tokens", "invalid_request_error", "context_length_exceeded"
        ),
        ContextOverflow,
    ),
    (400, anthropic("prompt is too long: 207791 tokens > 200000 maximum", "invalid_request_error"), ContextOverflow),
    (
        400,
        anthropic(
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000", "invalid_request_error"
        ),
        ContextOverflow,
    ),
    (
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size",
                "type": "exceed_context_size_error",
            }
        },
        ContextOverflow,
    ),
    (413, anthropic("Request exceeds the maximum size", "request_too_large"), ContextOverflow),
    (404, openai("The model `x` does not exist", "invalid_request_error", "model_not_found"), RequestRefused),
    (404, {"error": "model 'x' not found, try pulling it first"}, RequestRefused),
    (400, {"object": "error", "message": "bad tool schema", "type": "BadRequestError"}, RequestRefused),
    (422, {"detail": [{"loc": ["body"], "msg": "field required", "type": "missing"}]}, RequestRefused),
    (405, {"detail": "Method Not Allowed"}, RequestRefused),
    (418, "", RequestRefused),
    (201, "", RequestRefused),
]


@pytest.mark.parametrize(("status", "body", "kind"), KINDS, ids=lambda value: str(value)[:40])
def test_refusals_have_their_kind(status, body, kind):
    error = failed(status, body)
    assert type(error) is kind
    assert error.retryable is (kind in (BrainBusy, BrainUnreachable))
    assert error.message.startswith(f"mine at models.example answered {status}: ")
    assert error.hint


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (openai("plain words"), "plain words"),
        ({"error": "just a text"}, "just a text"),
        ({"detail": [{"msg": "one"}, {"msg": "two"}]}, "one; two"),
        ({"message": "outside"}, "outside"),
        ([{"error": {"message": "in a list"}}], "in a list"),
        ("not json", "not json"),
        ("<!DOCTYPE html><p>x", "a web page"),
        ("", "no words"),
        ([], "no words"),
        ({"error": None}, "no words"),
        ({"error": {"message": {"deep": 1}}}, "no words"),
        (b"\xff\xfe", "⟨U+FFFD⟩⟨U+FFFD⟩"),
    ],
)
def test_words_are_found_whatever_their_form(body, words):
    assert failed(400, body).message == f"mine at models.example answered 400: {words}"


def test_secrets_and_controls_in_words_are_not_shown():
    redactor = Redactor(["known-secret-value-123456"])
    body = openai("bad\x1b[2J key known-secret-value-123456 and sk-ant-api03-" + "a1B2" * 20)
    message = failed(401, body, redactor=redactor).message
    assert "known-secret" not in message and "a1B2" not in message and "\x1b" not in message


def test_a_secret_at_the_edge_of_what_is_shown_is_not_cut_in_half():
    redactor = Redactor(["known-secret-value-123456"])
    for before in range(failures.SHOWN_CHARS - 30, failures.SHOWN_CHARS + 5):
        message = failed(500, "x" * before + " known-secret-value-123456", redactor=redactor).message
        assert "known" not in message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Tue, 01 Dec 2026 08:00:30 GMT", "date": "Tue, 01 Dec 2026 08:00:00 GMT"}, 30.0),
        ({"retry-after": "Tue, 01 Dec 2026 08:00:00 GMT", "date": "Tue, 01 Dec 2026 08:00:30 GMT"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "1e12"}, 86_400.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_what_the_api_asks_to_wait_is_read(headers, seconds):
    assert failed(429, "", headers).retry_after_s == seconds
    assert failed(503, "", headers).retry_after_s == seconds


def test_a_date_without_the_server_s_own_clock_is_counted_by_ours(monkeypatch):
    monkeypatch.setattr(failures.time, "time", lambda: 1_796_112_000.0)
    assert failed(429, "", {"retry-after": "Tue, 01 Dec 2026 08:01:00 GMT"}).retry_after_s == 60.0


def test_a_server_that_says_not_to_try_again_is_believed():
    assert not failed(500, "", {"x-should-retry": "false"}).retryable


def test_a_redirect_shows_no_key_of_its_address():
    error = failed(307, "", {"location": "https://user:pass@elsewhere.example/v1?key=abc"})
    assert error.message == "mine at models.example redirects to elsewhere.example/v1; it was not followed"


@given(st.integers(min_value=201, max_value=599), st.binary(max_size=300))
def test_any_answer_is_an_error_with_words(status, body):
    error = failed(status, body)
    assert isinstance(error, BrainError)
    assert error.message and error.not_done and error.hint
    assert error.message.isprintable()
