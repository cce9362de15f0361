"""Bounded capture: head and tail, what was cut, bad bytes, memory."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from guard.hands.output import HEAD_CHARACTERS, KEPT_CHARACTERS, TAIL_CHARACTERS, Capture, cut_marker


def captured(data, size):
    capture = Capture()
    for start in range(0, len(data), size):
        capture.feed(memoryview(data)[start : start + size])
    return capture.captured()


@settings(database=None, deadline=None)
@given(st.binary(max_size=3000), st.integers(1, 700))
def test_short_output_is_whole_and_bad_bytes_are_counted_however_it_is_cut_into_chunks(data, size):
    result = captured(data, size)
    assert result.text == data.decode("utf-8", "replace")
    assert (result.size_bytes, result.truncated) == (len(data), False)
    assert result.undecodable_bytes == len(data) - len(data.decode("utf-8", "ignore").encode())


@settings(database=None, deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=400), st.integers(1, 9))
def test_good_text_has_no_bad_bytes_however_it_is_cut_into_chunks(text, size):
    result = captured(text.encode(), size)
    assert (result.text, result.undecodable_bytes) == (text, 0)


def test_the_limit_is_in_characters_not_bytes():
    exactly = "é" * KEPT_CHARACTERS
    assert captured(exactly.encode(), 4096).text == exactly
    over = captured((exactly + "x").encode(), 4096)
    assert over.truncated
    assert over.text.startswith("é" * HEAD_CHARACTERS + "\n[... ")
    assert over.text.endswith("...]\n" + "é" * (TAIL_CHARACTERS - 1) + "x")


def test_head_and_tail_are_kept_and_the_cut_is_said_exactly():
    lines = "".join(f"line {number:07}\n" for number in range(100_000)).encode()
    result = captured(lines, 65_536)
    head, marker, tail = result.text.partition("[... ")
    said = int(marker.join(["", tail]).split()[1].replace(",", ""))
    tail = tail.partition("...]\n")[2]
    assert head.removesuffix("\n").encode() == lines[: len(head.removesuffix("\n"))]
    assert lines.endswith(tail.encode())
    assert (len(head.removesuffix("\n")) - 18_000, len(tail)) in ((0, 12_000), (-1, 12_000))
    assert said == len(lines) - 30_000
    assert result.size_bytes == len(lines)


def test_a_cut_never_falls_inside_a_character():
    for shift in range(4):
        data = ("a" * shift + "\U0001f512" * 60_000).encode()
        result = captured(data, 1000)
        assert "�" not in result.text
        assert result.undecodable_bytes == 0


def test_noise_is_counted_and_bounded():
    data = bytes(range(128, 256)) * 8192
    result = captured(data, 65_536)
    assert result.truncated
    assert len(result.text) < KEPT_CHARACTERS + 200
    assert result.undecodable_bytes == len(data) - len(data.decode("utf-8", "ignore").encode())


def test_marker_names_the_file_when_there_is_one():
    assert cut_marker(1234567) == "[... 1,234,567 bytes cut here ...]"
    assert cut_marker(5, "/out/e-1.txt") == "[... 5 bytes cut here; full output: /out/e-1.txt ...]"
