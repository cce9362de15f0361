"""Changes in a JSON text: they say what they should, keep every other byte, and can be taken back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.install import jsonc

KEYS = st.text(alphabet='ab"\\é/*{', max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='x"\\/,}]', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
INDENTS = st.sampled_from([None, 2, 4, "\t"])


@settings(deadline=None)
@given(OBJECTS, INDENTS)
def test_every_json_text_is_read_as_the_standard_reader_reads_it(value, indent):
    text = json.dumps(value, indent=indent)
    assert jsonc.value_of(text) == value
    node = jsonc.parsed(text)
    for name, (start, child) in node.members.items():
        assert json.loads(text[child.start : child.end]) == value[name]
        assert text[start] == '"'


@settings(deadline=None)
@given(OBJECTS, INDENTS, st.lists(KEYS, min_size=1, max_size=3), VALUES)
def test_a_member_is_put_in_and_taken_out_again(value, indent, path, new):
    text = json.dumps(value, indent=indent)
    known = value
    for key in path[:-1]:
        known = known.get(key, {}) if isinstance(known, dict) else None
    if not isinstance(known, dict):
        with pytest.raises(jsonc.NotJson):
            jsonc.with_member(text, tuple(path), new)
        return
    made = jsonc.with_member(text, tuple(path), new)
    assert jsonc.at(jsonc.value_of(made), tuple(path)) == new
    if path[-1] not in known and jsonc.at(value, tuple(path[:-1])) is not None:
        taken = jsonc.without(made, tuple(path))
        assert jsonc.value_of(taken) == value
        if known and indent is not None:
            assert taken == text


@settings(deadline=None)
@given(st.lists(VALUES, max_size=5), INDENTS, st.integers(0, 4))
def test_an_item_is_taken_out_and_its_neighbours_stay(items, indent, position):
    text = json.dumps({"list": items}, indent=indent)
    left = jsonc.value_of(jsonc.without(text, ("list",), position))
    assert left == {"list": items[:position] + items[position + 1 :]}


@settings(deadline=None)
@given(OBJECTS, INDENTS, KEYS)
def test_a_member_is_taken_out_wherever_it_stands(value, indent, key):
    text = json.dumps(value, indent=indent)
    assert jsonc.value_of(jsonc.without(text, (key,))) == {name: one for name, one in value.items() if name != key}


COMMENTED = """\
\ufeff// top
{
    /* before */ "a": 1, // about a, with a "quote", and a comma
    "list": ["x", /* y, */ "y"],
    "b": {} // about b
}
// end
"""


def test_comments_stay_where_they_are():
    made = jsonc.with_member(COMMENTED, ("b", "c"), {"d": [1]})
    made = jsonc.with_item(made, ("list",), "z")
    made = jsonc.with_member(made, ("new",), True)
    assert jsonc.value_of(made) == {"new": True, "a": 1, "list": ["z", "x", "y"], "b": {"c": {"d": [1]}}}
    for comment in ("// top", "/* before */", '// about a, with a "quote", and a comma', "/* y, */", "// about b"):
        assert comment in made
    assert '\n    "new": true,\n' in made, "with the indentation of the file"
    back = jsonc.without(jsonc.without(jsonc.without(made, ("new",)), ("list",), 0), ("b", "c"))
    assert jsonc.value_of(back) == jsonc.value_of(COMMENTED)
    assert all(line in back for line in COMMENTED.splitlines() if "list" not in line)


def test_the_last_member_goes_without_the_comment_before_it():
    left = jsonc.without('{\n  "a": 1, // one, two\n  "b": 2\n}\n', ("b",))
    assert jsonc.value_of(left) == {"a": 1} and "// one, two\n" in left


def test_line_ends_of_the_file_are_kept():
    made = jsonc.with_member('{\r\n  "a": 1\r\n}\r\n', ("b",), {"c": 2})
    assert "\n" not in made.replace("\r\n", "") and jsonc.value_of(made) == {"b": {"c": 2}, "a": 1}


@pytest.mark.parametrize(
    "text",
    ['{"a": 1,}', '{"a": 1', "[1 2]", '{"a" 1}', '{"a": 1, "a": 2}', "{} {}", '{"a": tru}', '{"a": 01}', "{'a': 1}"],
)
def test_what_the_hosts_do_not_read_either_is_refused(text):
    with pytest.raises(jsonc.NotJson):
        jsonc.with_member(text, ("b",), 1)


def test_something_endlessly_deep_is_refused():
    with pytest.raises(jsonc.NotJson):
        jsonc.value_of("[" * 100_000)
