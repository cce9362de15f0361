"""Every family keeps the promises of its own table."""

import gc
import pkgutil

import pytest

from guard.judge import families, wrappers
from guard.judge.classify import check
from guard.judge.options import Grammar
from guard.judge.suspicion import acts, suspicious

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


def test_no_option_loses_its_action_by_being_listed_twice():
    for name in MODULES:
        families.load(name)
    lost = []
    for grammar in (item for item in gc.get_objects() if isinstance(item, Grammar)):
        seen: dict[str, str] = {}
        for entry in grammar.text.split():
            names, _, action = entry.partition("!")
            for option in names.rstrip(":?").split(","):
                if seen.setdefault(option, action) != action:
                    lost.append((option, grammar.text[:60]))
    assert lost == []


@pytest.mark.parametrize(
    "name", ["exec", "output-to-exec", "post-hook", "in-place-edit", "delete", "force-delete", "upload", "set-level"]
)
def test_option_names_that_say_what_they_do_are_taken_at_their_word(name):
    assert acts(name)


@pytest.mark.parametrize("name", ["no-delete", "dry-run", "show-secrets-count", "format", "since", "name-only", "all"])
def test_option_names_that_only_choose_what_is_shown_are_harmless(name):
    assert not acts(name)


def test_an_output_option_counts_only_when_its_value_is_a_path():
    def words(text):
        return [type("W", (), {"value": item, "prefix": item})() for item in text.split()]

    assert suspicious(words("--output json")) is None
    assert suspicious(words("--output=/srv/x")) is not None
    assert suspicious(words("--output report.txt")) is not None
    assert suspicious(words("-- --delete")) is None


@pytest.mark.parametrize(
    "command", ["kubectl get pods", "docker ps", "systemctl status x", "zpool status", "helm list"]
)
@pytest.mark.parametrize("option", ["--exec=id", "--delete", "--set-context=x", "--upload", "--apply"])
def test_a_reading_verb_with_an_acting_option_is_no_read(command, option):
    assert check(command).level.name == "R0"
    assert check(f"{command} {option}").level.name >= "R2"
