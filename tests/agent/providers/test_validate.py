"""JSON of strangers: depth, size, numbers and characters."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.providers import validate
from agent.providers.validate import NO_NUMBER, Unreadable

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=30,
)


@given(JSON)
def test_what_python_writes_is_read(value):
    text = json.dumps(value)
    assert validate.parsed(text) == validate.envelope(text) == value


@given(JSON)
def test_depth_of_text_and_value_agree(value):
    text = json.dumps(value)
    assert validate.depth_of_text(text, enough=-1) == validate.depth_of(value)


@given(st.text(alphabet='[]{}",:\\ 1a', max_size=80))
def test_any_text_is_read_or_refused_with_words(text):
    for read in (validate.parsed, validate.envelope):
        try:
            read(text)
        except Unreadable as fault:
            assert str(fault)


@pytest.mark.parametrize("levels", [64, 65, 100, 101, 5_000])
def test_what_lies_too_deep_is_cut_out_of_an_envelope(levels):
    text = '{"a": ' + "[" * levels + '"[{"' + "]" * levels + ', "b": {"c": [1]}}'
    value = validate.envelope(text)
    assert value["b"] == {"c": [1]}
    assert validate.depth_of(value) <= validate.ENVELOPE_DEPTH
    if levels + 1 > validate.DEPTH:
        with pytest.raises(Unreadable, match="deeper than 64"):
            validate.parsed(text)


@pytest.mark.parametrize("text", ["[" * 200_000, "]" * 200_000, '{"' * 100_000, '"' + '\\"' * 500_000, "[{" * 90_000])
def test_unbalanced_megabytes_are_refused(text):
    for read in (validate.parsed, validate.envelope):
        with pytest.raises(Unreadable):
            read(text)


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999", "[1, NaN]"])
def test_numbers_that_are_none_are_refused_in_arguments_and_marked_around_them(text):
    with pytest.raises(Unreadable):
        validate.parsed(text)
    value = validate.envelope(text)
    assert value is NO_NUMBER or NO_NUMBER in value


def test_arguments_given_as_values_are_held_to_the_same():
    assert validate.given_arguments({"a": [1]}) == ({"a": [1]}, "")
    assert validate.given_arguments('{"a": 1}') == ({"a": 1}, "")
    for value, why in [(None, "null"), ([], "a list"), ("x", "a text"), (True, "true or false"), (1.5, "a number")]:
        assert validate.given_arguments(value) == ({}, f"the arguments are {why}, not an object")
    assert "a number that is none" in validate.given_arguments({"a": [NO_NUMBER]})[1]
    deep = {}
    for _ in range(100):
        deep = {"a": deep}
    assert "deeper" in validate.given_arguments(deep)[1]


@given(st.text(alphabet=st.characters(codec=None), max_size=20))
def test_whole_text_can_be_written(text):
    assert validate.whole(text).encode().decode() == validate.whole(text)
    assert validate.whole(validate.whole(text)) == validate.whole(text)


def test_only_real_counts_count():
    assert [validate.count(value) for value in (3, 0, -1, True, 1.5, "7", None, 2**60)] == [3, 0, 0, 0, 0, 0, 0, 0]
