"""Every family keeps the promises of its own table."""

import pkgutil

import pytest

from guard.judge import families, wrappers
from guard.judge.classify import check

MODULES = ["wrappers", *(module.name for module in pkgutil.iter_modules(families.__path__))]


def _module(name: str):
    return wrappers if name == "wrappers" else __import__(f"guard.judge.families.{name}", fromlist=["PROGRAMS"])


@pytest.mark.parametrize("name", MODULES)
def test_the_static_list_names_exactly_the_programs_of_the_module(name):
    listed = {program for program, module in families.PROGRAMS.items() if module == name}
    assert listed == set(_module(name).PROGRAMS)


@pytest.mark.parametrize("name", MODULES)
def test_every_example_has_the_level_that_its_family_says(name):
    wrong = [
        (command, level, check(command).level.name)
        for level, commands in _module(name).EXAMPLES.items()
        for command in commands
        if check(command).level.name != level
    ]
    assert wrong == []


@pytest.mark.parametrize("name", MODULES)
def test_every_family_shows_what_it_lets_pass_and_what_it_stops(name):
    examples = _module(name).EXAMPLES
    assert examples.get("R0") and (examples.get("R2") or examples.get("R3"))
