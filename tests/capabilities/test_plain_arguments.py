"""Single values are let through without the schema library only where the library would let them through."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agent.asking import Asks
from agent.toolset import Toolset
from capabilities.registry import _plainly_fits, fitting, parameters
from tests.capabilities.world import guard_in
from tests.sources import ROOT

KEYWORDS = {
    "description": st.just("words"),
    "minLength": st.integers(0, 4),
    "maxLength": st.integers(0, 4),
    "pattern": st.sampled_from(("^[a-z]+$", "^[^\\u0000]*$", "a|^$", "x")),
    "minimum": st.integers(-3, 3),
    "maximum": st.integers(-3, 3),
    "enum": st.lists(st.one_of(st.integers(-2, 2), st.text("abx", max_size=2)), min_size=1),
    "const": st.integers(-1, 1),
    "exclusiveMinimum": st.integers(-3, 3),
    "multipleOf": st.integers(1, 3),
    "not": st.just({"type": "string"}),
}
TYPES = st.sampled_from(("string", "integer", "number", "boolean", "array", "object", "null", ["string", "integer"]))
SCHEMAS = st.fixed_dictionaries({}, optional={"type": TYPES, **KEYWORDS})
VALUES = st.one_of(
    st.text("abx\0\n", max_size=6),
    st.integers(-5, 5),
    st.floats(),
    st.booleans(),
    st.none(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


@given(SCHEMAS, VALUES)
def test_what_is_let_through_at_once_the_library_lets_through(schema, value):
    if _plainly_fits(schema, value):
        assert Draft202012Validator(schema).is_valid(value), (schema, value)


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"type": "string", "minLength": 1, "maxLength": 2, "description": "x"}, "ab", True),
        ({"type": "string", "minLength": 1}, "", False),
        ({"type": "string", "maxLength": 1}, "ab", False),
        ({"type": "string", "pattern": "^[a-z]$"}, "A", False),
        ({"type": "string", "format": "date"}, "x", False),
        ({"type": "integer", "minimum": 1, "maximum": 3}, 3, True),
        ({"type": "integer", "minimum": 1}, 0, False),
        ({"type": "integer"}, True, False),
        ({"type": "number", "maximum": 3}, 4, False),
        ({"type": "boolean"}, True, True),
        ({"type": "boolean"}, 1, False),
        ({}, "x", False),
    ],
)
def test_only_a_plain_yes_is_given(schema, value, fits):
    assert _plainly_fits(schema, value) is fits


def test_one_command_or_one_path_needs_no_library(tmp_path):
    """Each tool's own schema, with the shortest call that a model makes."""
    asks = Asks(lambda event: None, stopped=lambda: False, elsewhere=lambda request: None)
    hands = Toolset(guard_in(tmp_path), cwd=str(tmp_path), shell="oneshot", session="c-1", asks=asks, plans=True)
    schemas = {tool.name: tool.parameters for tool in hands.tools}
    calls = {
        "bash": {"command": "df -h /", "timeout_s": 5},
        "ops_exec": {"command": "systemctl restart x", "why": "it hangs"},
        "read": {"path": "/etc/hosts", "limit": 10},
        "edit": {"path": "/etc/hosts", "old": "a", "new": ""},
        "ops_rollback": {"id": "s-1", "confirm": True},
    }
    code = (
        f"import sys; sys.path[:0] = {[str(ROOT), *sys.path]!r}; from capabilities.registry import fitting\n"
        f"for name, arguments in {calls!r}.items(): fitting(name, {schemas!r}[name], arguments)\n"
        "print('jsonschema' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_lists_are_the_librarys(tmp_path):
    schema = parameters({"files": {"type": "array", "items": {"type": "string"}}})
    assert fitting("x", schema, {"files": ["a"]}) == {"files": ["a"]}
