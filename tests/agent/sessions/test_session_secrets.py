"""Secrets of every kind, planted wherever a conversation holds text: none of them reaches the disk."""

from __future__ import annotations

import json

import pytest

from agent.messages import Assistant, Note, Result, ToolCall, User
from guard.redact import MASK, Redactor
from tests.agent.sessions.stories import file_of, sessions_in, told
from tests.redact.secret_forms import FORMS


def planted(text):
    """The text in every place that a message has for one."""
    call = ToolCall(
        "call_1", "ops_exec", {"command": text, "why": "x", "snapshot_cmds": [{"name": "n", "command": text}]}
    )
    return (
        User(text, (text, f"before\n{text}\nafter")),
        Assistant(text, (call, ToolCall("call_2", "write", fault=f"no JSON:\n{text}")), "openai", "m"),
        Assistant("", (ToolCall("call_3", text),), text, text),
        Result("call_3", text, "", "error"),
        Result("call_1", "ops_exec", text, "failed"),
        Result("call_2", "write", text, "error"),
        Note(text),
    )


def readable(secret, shown):
    """Pieces of a secret's lines that can still be read in a text."""
    return [
        line for line in secret.split("\n") if len(line) >= 3 and (line in shown or json.dumps(line)[1:-1] in shown)
    ]


@pytest.mark.guarantee("G-REDACT")
def test_no_kind_of_secret_reaches_a_session_file(tmp_path):
    sessions = sessions_in(tmp_path / "state")
    told(sessions, [message for _, text, _ in FORMS for message in planted(text)])
    shown = file_of(tmp_path / "state", "c-1").read_text()
    beside = "".join(json.dumps(text.replace(secret, "\0")) for _, text, secret in FORMS)
    found = {name: readable(secret, shown) for name, _, secret in FORMS}
    assert {name: pieces for name, pieces in found.items() if any(piece not in beside for piece in pieces)} == {}
    assert shown.count(MASK) >= 8 * len(FORMS)


@pytest.mark.parametrize(
    "arguments",
    [
        {"password": "Zx9-qq12LL"},
        {"env": [{"name": "DB_PASSWORD", "value": "Zx9-qq12LL"}]},
        {"env": {"MYSQL_ROOT_PASSWORD": "Zx9-qq12LL"}},
        {"content": "user=root\npassword=Zx9-qq12LL\n"},
        {"command": "mysql -uroot -pZx9-qq12LL -e x"},
        {"mysql -uroot -pZx9-qq12LL": 1},
    ],
)
def test_secret_in_arguments_is_cut_out_and_the_rest_stays_an_object(tmp_path, arguments):
    sessions = sessions_in(tmp_path / "state")
    call = ToolCall("c", "ops_exec", {"keep": ["me", 1, None], **arguments})
    told(sessions, [Assistant("", (call,)), Result("c", "ops_exec", "x", "failed")])
    assert "Zx9-qq12LL" not in file_of(tmp_path / "state", "c-1").read_text()
    (kept,) = sessions.read("c-1").messages[0].calls
    assert kept.fault == ""
    assert kept.arguments["keep"] == ["me", 1, None]


def test_number_behind_a_secret_label_is_cut_out(tmp_path):
    sessions = sessions_in(tmp_path / "state")
    told(sessions, [Assistant("", (ToolCall("c", "x", {"password": 12345678, "port": 5432}),))])
    (kept,) = sessions.read("c-1").messages[0].calls
    assert kept.arguments == {"password": MASK, "port": 5432}


def test_known_value_is_cut_out_of_the_header_too(tmp_path):
    sessions = sessions_in(tmp_path / "state", redactor=Redactor(["open-sesame-77"]))
    told(sessions, [User("x")], cwd="/srv/open-sesame-77", title="open-sesame-77", model="open-sesame-77")
    assert "open-sesame-77" not in file_of(tmp_path / "state", "c-1").read_text()


def test_ids_that_look_like_secrets_stay_pairs(tmp_path):
    sessions = sessions_in(tmp_path / "state", redactor=Redactor(["call-known-value-1"]))
    ids = ["call-known-value-1", "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "with blanks and \n", "x" * 999]
    calls = tuple(ToolCall(one, "bash", {"command": "id"}) for one in ids)
    told(sessions, [Assistant("", calls), *(Result(one, "bash", one[:4], "succeeded") for one in ids)])
    read = sessions.read("c-1")
    assert read.notes == ()
    assert len({call.id for call in read.messages[0].calls}) == len(ids)
    text = file_of(tmp_path / "state", "c-1").read_text()
    assert "call-known-value-1" not in text
    assert "4eC39HqLyjWDarjtT1zdp7dc" not in text
