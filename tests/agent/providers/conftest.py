"""Each test of a reply runs for both wire formats, streamed and whole, and leaves no connection behind."""

from __future__ import annotations

import pytest

from guard.hands.cancel import CancelToken
from tests.model_server import ModelServer
from tests.model_server.clients import provider, url_of


@pytest.fixture(params=["openai", "anthropic"])
def kind(request):
    """The wire format."""
    return request.param


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def stream(request):
    return request.param


@pytest.fixture
def cancel():
    token = CancelToken()
    yield token
    token.close()


@pytest.fixture
def talk(kind):
    """`talk(*script, **endpoint)`: a server that plays the script, and a provider that asks it."""
    opened = []

    def start(*script, **settings):
        server = ModelServer(*script).__enter__()
        api = provider(kind, url_of(kind, server), **settings)
        opened.extend((api, server))
        return server, api

    yield start
    for one in opened:
        one.close()
