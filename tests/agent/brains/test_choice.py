"""Which brains a conversation gets: configuration, environment, and what a person names."""

from __future__ import annotations

import pytest

from agent.brains import choice
from agent.brains.choice import NOTHING, RUNBOOKS, Without
from agent.brains.entries import BadBrains, Entry
from guard.redact import Redactor

REDACT = Redactor().text
KEY = {"OPENAI_API_KEY": "k"}


def configured(table, origin="/etc/opsagent/config.toml"):
    return choice.configured(table, redact=REDACT, origin=origin)


def chain(known=NOTHING, environ=None, **named):
    return choice.chain(known, environ or {}, redact=REDACT, **named)


def names(links):
    return [link.name for link in links]


TWO = configured(
    {
        "order": ["near", "anthropic"],
        "near": {"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m"},
    }
)


def test_without_anything_the_runbooks_answer():
    assert chain() == (RUNBOOKS,)


@pytest.mark.parametrize(
    ("environ", "first"),
    [
        ({"OPENAI_API_KEY": "k"}, "openai"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}, "openai"),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic"),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, "anthropic"),
    ],
)
def test_a_key_in_the_environment_is_enough_and_only_one_company_is_asked(environ, first):
    assert names(chain(environ=environ)) == [first, "offline"]


def test_an_empty_variable_is_no_key():
    assert chain(environ={"OPENAI_API_KEY": " "}) == (RUNBOOKS,)


def test_the_configured_order_holds_and_the_runbooks_come_last():
    assert names(chain(TWO, KEY)) == ["near", "anthropic", "offline"]
    explicit = configured({"order": ["anthropic", "offline"]})
    assert names(chain(explicit, KEY)) == ["anthropic", "offline"]


def test_a_brain_that_was_named_stands_alone():
    assert names(chain(TWO, KEY, named="anthropic")) == ["anthropic"]
    assert chain(TWO, KEY, named="offline") == (RUNBOOKS,)
    (scripted,) = chain(named="script:/tmp/a.toml")
    assert isinstance(scripted, Without) and scripted.script == "/tmp/a.toml" and RUNBOOKS.script == ""


def test_a_named_model_is_the_first_brains():
    first, *rest = chain(TWO, KEY, model="other")
    assert isinstance(first, Entry) and first.model == "other" and first.origins["model"] == "--model"
    assert rest[0].model != "other"
    with pytest.raises(BadBrains, match="offline asks none"):
        chain(model="other")


def test_the_environments_address_takes_its_own_key_along_and_no_guessed_model():
    (got, _) = chain(environ={"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1/", **KEY})
    assert (got.base_url, got.key_env, got.model) == ("http://127.0.0.1:8000/v1", "OPENAI_API_KEY", "")
    (got, _) = chain(environ={"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1", "OPENAI_MODEL": "qwen3"})
    assert got.model == "qwen3" and got.origins["model"] == "OPENAI_MODEL"


@pytest.mark.parametrize(
    "table",
    [
        {"base_url": "https://mine.example.org/v1", "key_env": "MINE"},
        {"key_file": "/run/secrets/key"},
        {"key_command": ["pass", "show", "openai"]},
        {"key_env": "WORK_KEY"},
    ],
)
def test_no_variable_leads_a_configured_key_to_another_address(table):
    known = configured({"openai": table})
    got = choice.entry("openai", known, {"OPENAI_BASE_URL": "http://elsewhere.example:1/v1"}, redact=REDACT)
    assert "elsewhere" not in got.base_url


def test_a_later_file_replaces_a_brain_whole_and_keeps_the_others():
    later = configured({"near": {"kind": "anthropic"}, "order": ["near"]}, origin="/home/x/config.toml")
    both = TWO.then(later)
    got = choice.entry("near", both, {}, redact=REDACT)
    assert (got.kind, got.model, got.origin) == ("anthropic", "claude-sonnet-4-6", "/home/x/config.toml")
    assert both.order == ("near",)
    assert TWO.then(NOTHING).order == ("near", "anthropic")


@pytest.mark.parametrize(
    "table",
    [
        {"order": []},
        {"order": "local"},
        {"order": ["a", "a"]},
        {"order": ["offline", "openai"]},
        {"order": ["Not A Name"]},
        {"ordre": ["a"]},
        {"default": "a"},
        [],
    ],
)
def test_a_wrong_order_is_an_error(table):
    with pytest.raises(BadBrains):
        configured(table)


def test_a_name_that_no_brain_has_is_told_the_ones_there_are():
    with pytest.raises(BadBrains) as raised:
        chain(TWO, named="nearr")
    assert "near, anthropic, openai, offline" in raised.value.hint
    with pytest.raises(BadBrains):
        chain(configured({"order": ["nearr"]}))
    with pytest.raises(BadBrains, match="script"):
        chain(named="script:")


def test_every_brain_can_be_listed_with_where_it_comes_from():
    got = choice.entries(TWO, KEY, redact=REDACT)
    assert {name: entry.origin for name, entry in got.items()} == {
        "near": "/etc/opsagent/config.toml",
        "anthropic": "built in",
        "openai": "environment",
    }
