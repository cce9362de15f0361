"""A tool's arguments are checked before its handler sees them."""

from __future__ import annotations

import pytest

from capabilities.registry import BadArguments, Registry, Tool, UnknownTool, checked, hints_of, parameters
from guard.types import Level


def tool(run=lambda arguments: {"got": arguments}):
    return Tool(
        "ops_look",
        "Looks.",
        parameters({"command": {"type": "string"}}, {"limit": {"type": "integer", "minimum": 1}}),
        hints_of(Level.R0),
        run,
    )


def test_arguments_that_fit_reach_the_handler():
    assert Registry([tool()]).call("ops_look", {"command": "ls", "limit": 3}) == {"got": {"command": "ls", "limit": 3}}


@pytest.mark.parametrize("arguments", [None, [], "x", 3, True, [{"command": "ls"}]])
def test_arguments_that_are_no_object_are_an_error_the_model_can_read(arguments):
    with pytest.raises(BadArguments) as caught:
        checked(tool(), arguments)
    assert "takes an object" in caught.value.message
    assert caught.value.hint == "ops_look{command [limit]}"


def test_an_unknown_argument_is_named():
    with pytest.raises(BadArguments, match="'force'"):
        checked(tool(), {"command": "ls", "force": True})


def test_a_missing_argument_is_named():
    with pytest.raises(BadArguments, match="needs command"):
        checked(tool(), {})


@pytest.mark.parametrize("bad", [{"command": 3}, {"command": "ls", "limit": 0}, {"command": "ls", "limit": "3"}])
def test_a_value_of_the_wrong_kind_never_reaches_the_handler(bad):
    def run(arguments):
        raise AssertionError("the handler was called")

    with pytest.raises(BadArguments):
        Registry([tool(run)]).call("ops_look", bad)


def test_an_unknown_tool_names_those_that_exist():
    with pytest.raises(UnknownTool) as caught:
        Registry([tool()]).call("ops_\u202elook", {})
    assert "ops_look" in caught.value.hint
    assert "\u202e" not in caught.value.message


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two tools"):
        Registry([tool(), tool()])


def test_a_tool_that_would_take_unknown_arguments_is_refused():
    loose = Tool("x", "", {"type": "object", "properties": {}, "required": []}, hints_of(Level.R0), dict)
    with pytest.raises(ValueError, match="unknown arguments"):
        Registry([loose])


def test_hints_follow_from_the_level():
    assert hints_of(Level.R0).read_only and not hints_of(Level.R0).destructive
    assert not hints_of(Level.R1).read_only
    assert hints_of(Level.R3).destructive
