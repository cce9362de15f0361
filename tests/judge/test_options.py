"""Option grammars: how programs read their own words, and which of them are not known."""

from __future__ import annotations

import pytest

from guard.judge.classify import check
from guard.judge.options import Grammar
from guard.judge.shell.syntax import Word
from guard.types import Level

GRAMMAR = "-t -v -o:!write -mod,--mod:!R2 -toolexec:!exec --name:"


def parsed(text: str, grammar: str = GRAMMAR):
    return Grammar(grammar).parse([Word((0, 0), word) for word in text.split()])


@pytest.mark.parametrize(
    ("text", "options", "unknown"),
    [
        ("-tv x", ["-t", "-v"], []),
        ("-toolexec=x y", ["-toolexec"], []),
        ("-mod=mod", ["-mod"], []),
        ("-mod mod", ["-mod"], []),
        ("-tz", ["-t"], ["-tz"]),
        ("-tmod=x", ["-t"], ["-tmod=x"]),
        ("-o=x", ["-o"], []),
        ("--na=x", ["--name"], []),
        ("-x=y", [], ["-x=y"]),
    ],
)
def test_a_long_name_with_one_dash_takes_its_value_behind_an_equals_sign(text, options, unknown):
    found = parsed(text)
    assert [option.name for option in found.options] == options
    assert [word.value for word in found.unknown] == unknown


def test_the_value_behind_the_equals_sign_is_the_options_own():
    (option,) = parsed("-toolexec=rm x").options
    assert option.value is not None and option.value.value == "rm"


@pytest.mark.parametrize(
    "command", ["docker compose ps", "docker compose logs web", "svn log", "svn status", "hg diff"]
)
def test_a_closed_list_takes_no_short_option_that_it_lacks(command):
    assert check(f"{command} -q").level == Level.R0
    for option in ("-Z", "-qZ", "-Zx"):
        judged = check(f"{command} {option}")
        assert judged.level == Level.R2, judged.command
        assert any(reason.rule.endswith("unknown-option") for reason in judged.reasons)
    assert check(f"{command} -- -Z").level == Level.R0, "behind -- no option stands"


def test_what_a_command_inside_takes_is_its_own_business():
    assert check("docker compose exec -T web ls -Z").level == check("docker compose exec web ls -Z").level
