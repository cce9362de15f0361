"""Texts at the limits are judged, in bounded work, without an exception."""

import pytest

from guard.judge.classify import check
from guard.types import Level

HUGE = {
    "nested subshells": "( " * 10_000 + "ls" + " )" * 10_000,
    "nested parentheses": "(" * 10_000 + "ls" + ")" * 10_000,
    "nested substitutions": "$(" * 8_000 + "ls" + ")" * 8_000,
    "nested conditions": "if a; then " * 3_000,
    "nested functions": "f(){ " * 3_000 + "ls" + "; }" * 3_000,
    "open braces": "echo " + "{" * 30_000,
    "backticks": "`" * 30_000,
    "quotes": "'" * 65_001,
    "dollars": "$" * 60_000,
    "parameters": "${x:-" * 6_000,
    "continuations": "\\\n" * 30_000,
    "here-documents": "cat <<E\n" * 3_000,
    "sudo": "sudo " * 10_000 + "ls",
    "eval": "eval " * 10_000 + "ls",
    "variables that grow": ";".join(f"v{i}=$v{i - 1}$v{i - 1}" for i in range(1, 2_000)) + ";$v1999",
    "nested shells": "bash -c " * 8_000,
}
DEEP = (
    "nested subshells",
    "nested substitutions",
    "nested conditions",
    "nested functions",
    "backticks",
    "sudo",
    "eval",
    "variables that grow",
)


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_text_is_judged_without_an_exception(name):
    assert check(HUGE[name]).level in (Level.R0, Level.R1, Level.R2, Level.R3)


@pytest.mark.parametrize("name", DEEP)
def test_what_is_nested_too_deeply_is_not_a_read(name):
    assert check(HUGE[name]).level >= Level.R2


@pytest.mark.parametrize("joint", ["|", " && ", ";", "\n"])
def test_five_thousand_commands_in_a_row_are_all_read(joint):
    assert check(joint.join(["cat"] * 5_000)).level == Level.R0
    assert check(joint.join(["cat"] * 5_000 + ["rm -r x"])).level == Level.R3


def test_a_line_of_65536_bytes_is_read_to_its_end():
    text = "echo " + "a" * 65_510 + "; rm -rf /srv/x"
    assert check(text).level == Level.R3


def test_brace_expansion_is_bounded():
    assert check("rm -r {1..100000}{1..100000}").level == Level.R3
    assert check("{1..100000}{1..100000}").level >= Level.R2
