"""Whoever looks on gets everything at the pace of people, and of a flood its beginning and end, never a secret."""

from __future__ import annotations

import re
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from acting import following
from acting.following import BURST_BYTES, BYTES_PER_S, CONTEXT_BYTES, KEPT_BYTES, Followed, Onlooker
from acting.world import Sink
from guard.redact import Redactor
from tests.capabilities.world import guard_in

GAP = re.compile(rb"\n\[\xe2\x80\xa6 ([\d,]+) bytes left out \xe2\x80\xa6\]\n")


class Clock:
    def __init__(self):
        self.seconds = 100.0

    def boot_s(self):
        return self.seconds


@given(st.lists(st.binary(max_size=200), max_size=30), st.booleans())
@settings(max_examples=100, deadline=None)
def test_what_is_no_flood_is_shown_as_any_other_stream_shows_it(pieces, with_secret):
    redactor = Redactor(["hunter2hunter2"])
    if with_secret:
        pieces = [*pieces, b"the key is hunter2", b"hunter2 and no more\n"]
    plain, followed = redactor.byte_stream(), Followed(redactor, Clock())
    expected = b"".join(plain.feed(piece) for piece in pieces) + plain.flush()
    assert b"".join(followed.feed(piece) for piece in pieces) + followed.flush() == expected


def line(number: int) -> bytes:
    return b"%09d\n" % number


def numbers(count: int):
    """So many lines, in pieces of 1000."""
    for first in range(0, count, 1000):
        yield b"".join(line(number) for number in range(first, min(count, first + 1000)))


def test_of_a_flood_the_beginning_and_the_end_are_shown_and_what_is_missing_is_counted():
    count = 1_000_000
    followed = Followed(Redactor(), Clock())
    shown = b"".join(followed.feed(piece) for piece in numbers(count)) + followed.flush()
    (gap,) = GAP.finditer(shown)
    head, tail = shown[: gap.start() + 1], shown[gap.end() :]
    assert head.startswith(line(0)) and BURST_BYTES - 20_000 < len(head) <= BURST_BYTES
    assert tail.endswith(line(count - 1)) and len(tail) > KEPT_BYTES - 20_000
    assert len(head) - 1 + int(gap[1].replace(b",", b"")) + len(tail) == count * 10
    assert int(tail[:9]) * 10 == count * 10 - len(tail)


def test_a_flood_that_slows_down_is_followed_again():
    clock = Clock()
    followed = Followed(Redactor(), clock)
    for piece in numbers(500_000):
        followed.feed(piece)
    clock.seconds += (KEPT_BYTES + 2 * CONTEXT_BYTES) / BYTES_PER_S + 1
    shown = followed.feed(b"and on\n")
    assert GAP.search(shown) and shown.endswith(b"and on\n")
    clock.seconds += 1
    assert followed.feed(b"at once\n") == b"at once\n"


def test_what_is_held_of_a_flood_is_bounded():
    followed = Followed(Redactor(), Clock())
    for piece in numbers(1_000_000):
        followed.feed(piece)
    held = sum(sys.getsizeof(piece) for piece in followed._late)
    assert held < KEPT_BYTES + CONTEXT_BYTES + 40_000


def test_a_key_that_began_in_the_gap_is_not_shown_after_it():
    """The part that is read and not shown knows that a key is open."""
    body = b"".join(b"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ%06d\n" % number for number in range(200))
    followed = Followed(Redactor(), Clock())
    for piece in numbers(300_000):
        followed.feed(piece)
    followed.feed(b"-----BEGIN PRIVATE KEY-----\n" + body)
    # So many bytes that the gap ends inside of the key.
    for _ in range((KEPT_BYTES + CONTEXT_BYTES - len(body) // 2) // 1000):
        followed.feed(b"x" * 999 + b"\n")
    shown = followed.flush()
    assert b"MIIEvQ" not in shown[GAP.search(shown).end() :]


def test_only_an_onlooker_does_without_the_middle(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "BURST_BYTES", 1000)
    monkeypatch.setattr(following, "KEPT_BYTES", 1000)
    monkeypatch.setattr(following, "CONTEXT_BYTES", 100)
    guard = guard_in(tmp_path)
    sizes = {}
    for name in ("all", "looks on"):
        got = []
        taker = lambda stream, data, got=got: got.append(data)  # noqa: E731
        sink = Sink(guard, f"e-{len(sizes)}", taker if name == "all" else Onlooker(taker))
        for piece in numbers(5000):
            sink("stdout", piece)
        sink.close([])
        sizes[name] = len(b"".join(got))
    assert sizes["all"] == 50_000
    assert sizes["looks on"] < 20_000
