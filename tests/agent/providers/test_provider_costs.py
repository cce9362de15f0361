"""What providers cost: modules at import, memory however long a reply is, and unpacking in bounded pieces."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import sysconfig
import threading
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.providers import inflate
from agent.providers.gather import Gathering
from agent.providers.handover import HELD_BYTES, Gone, Handover, until_end
from agent.providers.inflate import BadEncoding, inflated
from agent.providers.openai import OpenAI
from guard.hands.cancel import CancelToken
from tests.model_server.clients import provider, sent
from tests.sources import ROOT

HEAVY = {
    "httpx2",
    "httpcore2",
    "h11",
    "ssl",
    "asyncio",
    "anyio",
    "http.client",
    "email",
    "jsonschema",
    "mcp",
    "logging",
}


@pytest.mark.parametrize("module", ["openai", "anthropic"])
def test_importing_a_provider_loads_no_network_library(tmp_path, module):
    code = f"import sys; sys.path[:0] = {[str(ROOT), sysconfig.get_path('purelib')]!r}; import agent.providers.{module}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{code}; print(*sys.modules)"],
        env={"PATH": os.defpath, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert HEAVY & set(done.stdout.split()) == set()


def test_a_plain_address_loads_no_certificates(monkeypatch):
    import ssl

    from agent.providers import http

    def refuse(*_, **__):
        raise AssertionError("certificates were loaded")

    monkeypatch.setattr(ssl, "create_default_context", refuse)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", refuse)
    assert http._verification(provider("openai", "http://10.0.0.7:11434/v1")._endpoint) is not None


def deltas(count: int):
    """A stream of that many deltas, a character each, as it comes from the line."""
    frame = (
        b'data: {"model": "mock-1", "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": null}]}\n\n'
    )
    for _ in range(count // 100):
        yield frame * 100
    yield b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


def test_memory_does_not_grow_with_the_number_of_deltas():
    api = provider("openai", "http://127.0.0.1:1/v1")
    assert isinstance(api, OpenAI)

    class Line:
        pieces = staticmethod(lambda: deltas(30_000))

    gathering = Gathering(sent(), "mine")
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        shown = sum(len(piece) for piece in api._read_events(Line(), gathering))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert shown == len(gathering.reply().text) == 30_000
    # The text itself is 4 bytes a character in the buffer; a list of deltas would be 60 and more.
    assert peak - before < 500_000


# ── unpacking ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    st.binary(max_size=2_000), st.integers(min_value=1, max_value=50), st.sampled_from(["gzip", "deflate", "x-gzip"])
)
def test_what_was_packed_is_unpacked_in_whatever_pieces(data, size, encoding):
    packed = zlib.compress(data) if encoding == "deflate" else gzip.compress(data)
    pieces = [packed[at : at + size] for at in range(0, len(packed), size)]
    assert b"".join(inflated(pieces, encoding)) == data


def test_a_bomb_is_unpacked_in_small_pieces():
    packed = gzip.compress(b"\0" * 50_000_000)
    assert len(packed) < 60_000
    total = 0
    for piece in inflated([packed], "gzip"):
        assert len(piece) <= inflate.PIECE_BYTES
        total += len(piece)
    assert total == 50_000_000


@pytest.mark.parametrize("cut", [1, 10, -5])
def test_half_of_something_packed_is_an_error(cut):
    with pytest.raises(BadEncoding):
        list(inflated([gzip.compress(b"x" * 1_000)[:cut]], "gzip"))


def test_plain_pieces_pass_through():
    assert list(inflated([b"a", b"b"], "")) == list(inflated([b"a", b"b"], "identity")) == [b"a", b"b"]


# ── handing bytes over ──────────────────────────────────────────────────────────────────────────────────────────────


def test_bytes_arrive_whole_and_in_order(cancel):
    handover = Handover()
    sent_bytes = [bytes([n % 256]) * (n % 700) for n in range(3_000)]

    def write():
        for piece in sent_bytes:
            handover.put(piece)
        handover.end()

    thread = threading.Thread(target=write)
    thread.start()
    assert b"".join(until_end(handover, cancel, 30.0)) == b"".join(sent_bytes)
    thread.join()
    handover.close()


def test_a_writer_waits_for_a_slow_reader_and_goes_when_it_closes():
    handover = Handover()
    written: list[int] = []
    gone = threading.Event()

    def write():
        try:
            while True:
                handover.put(b"x" * 65_536)
                written.append(65_536)
        except Gone:
            gone.set()

    thread = threading.Thread(target=write)
    thread.start()
    while sum(written) <= HELD_BYTES:
        pass  # until the writer has filled what may lie ready
    handover.close()
    thread.join(30)
    assert gone.is_set()
    assert sum(written) <= HELD_BYTES + 65_536


def test_a_stop_ends_the_wait_for_a_writer_that_says_nothing():
    handover, token = Handover(), CancelToken()
    thread = threading.Thread(target=token.set)
    thread.start()
    assert list(until_end(handover, token, 30.0)) == []
    thread.join()
    handover.close()
    token.close()


def test_a_token_without_a_descriptor_is_never_set():
    class Never:
        is_set = staticmethod(lambda: False)
        fileno = staticmethod(lambda: -1)

    handover = Handover()
    handover.put(b"x")
    handover.end()
    assert list(until_end(handover, Never(), 30.0)) == [b"x"]
    assert handover.wait(Never(), 30.0)
    handover.close()


def test_nothing_at_all_is_a_time_out(cancel):
    handover = Handover()
    with pytest.raises(TimeoutError):
        list(until_end(handover, cancel, 0.01))
    handover.close()
    handover.close()
    handover.end()  # a writer that is late touches no descriptor
