"""Answers are cut to a size; what is missing is said; what fits is untouched."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from capabilities.bounded import ANSWER_BYTES, LEFT_OUT, cut_text, fitted, json_text, largest_page, wire_bytes

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=30,
)


@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=8), st.integers(200, 3000))
@settings(max_examples=200, deadline=None)
def test_an_object_that_fits_is_itself_and_any_other_is_made_to_fit(value, budget):
    cut = fitted(value, budget_bytes=budget)
    assert wire_bytes(cut) <= budget
    if wire_bytes(value) <= budget:
        assert cut is value


def test_the_size_is_that_of_structure_and_text_together():
    value = {"a": 'quote " and \\ and \n and 界'}
    text = json.dumps(value, ensure_ascii=False)
    frame = json.dumps({"structuredContent": value, "text": text}, ensure_ascii=False).encode()
    assert wire_bytes(value) == len(frame) - len(b'{"structuredContent": , "text": }')


def test_a_cut_text_keeps_head_and_tail_and_says_how_much_is_missing():
    text = "".join(f"{number}\n" for number in range(10_000))
    cut = cut_text(text, 3000)
    assert cut.startswith(text[:2000]) and cut.endswith(text[-1000:])
    assert f"{len(text) - 3000:,} characters left out" in cut
    assert cut_text("short", 5) == "short"


def test_a_cut_list_says_how_many_are_missing():
    value = {"format": 1, "entries": [{"text": "x" * 400} for _ in range(1000)]}
    cut = fitted(value)
    assert wire_bytes(cut) <= ANSWER_BYTES
    assert len(cut["entries"]) + cut[LEFT_OUT]["entries"] == 1000
    assert cut["format"] == 1


def test_the_biggest_page_that_fits_is_taken_and_even_the_smallest_comes_back():
    def make(size):
        return {"text": "x" * size}

    assert len(largest_page(make, 10_000)["text"]) == 10_000
    page = largest_page(make, 100_000)
    assert wire_bytes(page) <= ANSWER_BYTES < wire_bytes(make(len(page["text"]) * 2))
    assert largest_page(lambda size: {"text": "x" * 90_000}, 5) == {"text": "x" * 90_000}


def test_lone_surrogates_become_replacement_characters():
    assert json.loads(json_text({"a": "\ud800"})) == {"a": "\ufffd"}
