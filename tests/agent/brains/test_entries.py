"""Entries of brains: what a table may say, and that a key never stands in one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.brains.entries import HOMES, MODELS, SETTINGS, BadBrains, entry_of
from guard.redact import Redactor

REDACT = Redactor().text
LOCAL = {"kind": "openai", "base_url": "http://127.0.0.1:8000/v1", "model": "qwen3"}


def entry(name="local", **table):
    return entry_of(name, {**LOCAL, **table}, redact=REDACT)


def test_an_entry_says_what_its_table_says():
    got = entry(key_env="LOCAL_KEY", window_tokens=32768, price_in=0.5, price_out=2, stream=False, timeout_s=30)
    assert (got.name, got.kind, got.base_url, got.model) == ("local", "openai", "http://127.0.0.1:8000/v1", "qwen3")
    assert (got.key_env, got.window_tokens, got.price_in, got.price_out) == ("LOCAL_KEY", 32768, 0.5, 2.0)
    assert (got.stream, got.timeout_s) == (False, 30.0)


def test_a_server_of_ones_own_is_sent_no_key_that_was_not_named():
    assert entry().key_env == ""
    assert entry_of("cloud", {"kind": "openai"}, redact=REDACT).key_env == "OPENAI_API_KEY"


@pytest.mark.parametrize("kind", HOMES)
def test_a_standard_brain_needs_no_settings(kind):
    got = entry_of(kind, {}, redact=REDACT)
    assert (got.base_url, got.model, got.key_env) == (HOMES[kind], MODELS[kind], f"{kind.upper()}_API_KEY")


def test_an_unknown_model_elsewhere_is_asked_for_not_guessed():
    assert entry_of("x", {"kind": "openai", "base_url": "http://h:1/v1"}, redact=REDACT).model == ""


@pytest.mark.parametrize(
    "address", ["https://api.example.org", "https://api.example.org/v1", "https://api.example.org/v1/"]
)
def test_an_address_of_messages_is_the_same_with_and_without_the_version(address):
    assert (
        entry_of("x", {"kind": "anthropic", "base_url": address}, redact=REDACT).base_url == "https://api.example.org"
    )


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"modle": "x"}, "modle"),
        ({"kind": "gemini"}, "kind"),
        ({"base_url": "ftp://h/v1"}, "base_url"),
        ({"base_url": "http://"}, "base_url"),
        ({"base_url": "http://h/v1?key=1"}, "base_url"),
        ({"base_url": "http://h:99999/v1"}, "base_url"),
        ({"base_url": 3}, "base_url"),
        ({"model": ""}, "model"),
        ({"model": "a\nb"}, "model"),
        ({"key_env": "not a name"}, "key_env"),
        ({"key_env": "A", "key_file": "/k"}, "key_env and key_file"),
        ({"key_command": "pass show x"}, "key_command"),
        ({"key_command": []}, "key_command"),
        ({"key_command": [""]}, "key_command"),
        ({"key_command": ["a", 3]}, "key_command"),
        ({"key_file": "relative"}, "key_file"),
        ({"ca_bundle": "ca.pem"}, "ca_bundle"),
        ({"window_tokens": True}, "window_tokens"),
        ({"window_tokens": 1.5}, "window_tokens"),
        ({"window_tokens": 0}, "window_tokens"),
        ({"price_in": -1}, "price_in"),
        ({"price_out": float("nan")}, "price_out"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_a_wrong_setting_is_an_error_that_names_it(table, named):
    with pytest.raises(BadBrains) as raised:
        entry(**table)
    assert named in raised.value.message and "[brains.local]" in raised.value.message
    assert raised.value.exit_code == 2 and raised.value.not_done == "nothing was asked of any brain"


def test_an_unknown_setting_is_told_the_ones_there_are():
    with pytest.raises(BadBrains) as raised:
        entry(temperature=1)
    assert all(setting in raised.value.message for setting in SETTINGS)


SECRET = "sk-" + "proj-4f8Kd02mZqL7xW1nVb9TcYh3RjE6uPgA"


@pytest.mark.parametrize(
    "table",
    [
        {"key": "x"},
        {"api_key": SECRET},
        {"API-KEY": SECRET},
        {"token": "x"},
        {"model": SECRET},
        {"key_command": ["echo", SECRET]},
        {"base_url": f"https://h/{SECRET}/v1"},
        {"base_url": "https://ops:hunter2hunter2@h/v1"},
        {"base_url": "https://ops@h/v1"},
    ],
)
def test_a_key_in_the_file_is_refused_with_the_way_to_do_it_and_is_not_shown(table):
    with pytest.raises(BadBrains) as raised:
        entry(**table)
    assert "key_env" in raised.value.hint and "key_file" in raised.value.hint
    said = f"{raised.value.message} {raised.value.hint}"
    assert SECRET not in said and "hunter2" not in said


@pytest.mark.parametrize("name", ["offline", "Local", "a b", "", "-x", "x" * 64, "script:x"])
def test_a_name_that_could_mean_something_else_is_refused(name):
    with pytest.raises(BadBrains):
        entry_of(name, LOCAL, redact=REDACT)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 10**12),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["openai", "anthropic", "http://h:1/v1", "https://[::1]/", "~/x", "/x", "http://[", "http://h:x/"]),
    st.lists(st.one_of(st.text(max_size=5), st.integers()), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.text(max_size=5), st.sampled_from(["openai", "near"])),
    st.one_of(VALUES, st.dictionaries(st.one_of(st.sampled_from(SETTINGS), st.text(max_size=5)), VALUES, max_size=6)),
)
def test_any_table_is_an_entry_or_an_error_with_words(name, table):
    try:
        got = entry_of(name, table, redact=str)
    except BadBrains as error:
        assert error.message and error.hint
    else:
        assert got.base_url.startswith(("http://", "https://")) and got.kind in HOMES and got.timeout_s >= 1
