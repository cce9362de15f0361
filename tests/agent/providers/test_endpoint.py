"""Where a model is: this machine or another, behind which proxy, and by which names it goes. Pure."""

from __future__ import annotations

import pytest

from agent.providers.api import same_model
from agent.providers.endpoint import Endpoint
from agent.providers.proxies import bypassed, proxy_for

ENDPOINT = Endpoint("mine", "https://models.example/v1", "mock-1")


@pytest.mark.parametrize(
    ("base_url", "host", "here"),
    [
        ("http://127.0.0.1:11434/v1", "127.0.0.1", True),
        ("http://[::1]:8080", "::1", True),
        ("http://localhost/v1", "localhost", True),
        ("http://0.0.0.0:8000", "0.0.0.0", True),
        ("http://model.localhost", "model.localhost", True),
        ("https://127.0.0.1.evil.example", "127.0.0.1.evil.example", False),
        ("http://127.evil.example", "127.evil.example", False),
        ("http://localhost.evil.example", "localhost.evil.example", False),
        ("https://API.example:443/v1", "api.example", False),
        ("http://192.168.1.5/v1", "192.168.1.5", False),
    ],
)
def test_only_this_machine_counts_as_this_machine(base_url, host, here):
    endpoint = Endpoint("mine", base_url, "m")
    assert (endpoint.host, endpoint.here) == (host, here)


def test_an_address_with_a_password_is_none():
    with pytest.raises(ValueError, match="user's name") as caught:
        Endpoint("mine", "https://user:pa55word@models.example/v1", "m")
    assert "pa55word" not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("gpt-5", "gpt-5-2025-08-07", True),
        ("openai/gpt-5", "gpt-5", True),
        ("llama3", "llama3:latest", True),
        ("claude-sonnet-4-6", "claude-sonnet-4-6@20260101", True),
        ("qwen3:8b", "qwen3", True),
        ("mock-1", "/models/mock-1.gguf", True),
        ("", "anything", True),
        ("gpt-5", "gpt-5-mini", False),
        ("gpt-5-mini", "gpt-5-nano", False),
        ("claude-opus-4-6", "claude-sonnet-4-6", False),
    ],
)
def test_names_of_one_model_are_known_as_such(asked, answered, same):
    assert same_model(asked, answered) is same


@pytest.mark.parametrize(
    ("no_proxy", "host", "without"),
    [
        ("", "models.example", False),
        ("*", "models.example", True),
        ("models.example", "models.example", True),
        ("example", "models.example", True),
        (".example", "models.example", True),
        ("*.example", "models.example", True),
        ("models.example:443", "models.example", True),
        ("xample", "models.example", False),
        ("other.example, models.example", "models.example", True),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8,192.168.0.0/16", "172.16.0.1", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3:8080", "10.1.2.3", True),
        ("10.1.2", "10.1.2.3", False),
        ("[fd00::1]", "fd00::1", True),
        ("fd00::/8", "fd00::1", True),
        ("2.3", "10.1.2.3", False),
    ],
)
def test_what_no_proxy_names_is_asked_directly(no_proxy, host, without):
    assert bypassed(host, no_proxy) is without


@pytest.mark.parametrize(
    ("proxies", "chosen"),
    [
        ({}, ""),
        ({"https": "http://p:1"}, "http://p:1"),
        ({"https": "p:1"}, "http://p:1"),
        ({"http": "http://p:1"}, ""),
        ({"all": "http://a:1"}, "http://a:1"),
        ({"all": "socks5://a:1", "https": "http://p:1"}, "http://p:1"),
        ({"https": "http://p:1", "no": "models.example"}, ""),
    ],
)
def test_the_proxy_of_the_scheme_is_chosen_then_the_one_for_all(proxies, chosen):
    assert proxy_for(ENDPOINT, proxies) == chosen
