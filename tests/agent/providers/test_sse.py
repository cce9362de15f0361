"""Server-sent events: the same whatever pieces they come in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.providers import sse
from agent.providers.sse import EventTooLong, ServerEvent, server_events


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places})
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]


STREAM = (
    b"\xef\xbb\xbf: a comment\r\n\r\nevent: first\r\ndata: one\r\n\r\n"
    b'data:two\rdata: \xc3\xbc\xe2\x80\xa8x\r\rid: 7\nretry: 5\ndata\n\nevent: empty\n\ndata: {"a": 1}\nunknown: x\n\n'
)
EVENTS = [
    ServerEvent("first", b"one"),
    ServerEvent("", "two\nü\u2028x".encode()),
    ServerEvent("", b""),
    ServerEvent("", b'{"a": 1}'),
]


@given(st.lists(st.integers(min_value=0), max_size=40))
def test_pieces_do_not_matter(places):
    assert list(server_events(cut(STREAM, places))) == EVENTS


def test_single_bytes_do_not_matter():
    assert list(server_events(bytes([byte]) for byte in STREAM)) == EVENTS


@pytest.mark.parametrize("rest", [b"data: half", b"data: whole line\n", b"event: x\n", b"\n\n"])
def test_what_the_end_cuts_off_is_no_event(rest):
    assert list(server_events([STREAM, rest])) == EVENTS


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_any_bytes_are_events_or_none(pieces):
    for event in server_events(pieces):
        assert b"\r" not in event.data


@pytest.mark.parametrize("piece", [b"x" * 10, b"data: xxxx\n"], ids=["one line", "many lines"])
def test_an_event_without_end_is_not_held(monkeypatch, piece):
    monkeypatch.setattr(sse, "EVENT_BYTES", 1_000)
    read = 0

    def endless():
        nonlocal read
        while True:
            read += len(piece)
            yield piece

    with pytest.raises(EventTooLong):
        list(server_events(endless()))
    assert read < 4_000


def test_comments_without_end_are_not_held(monkeypatch):
    monkeypatch.setattr(sse, "EVENT_BYTES", 1_000)
    assert list(server_events([b": keep-alive\n"] * 10_000)) == []
