"""`opsagent sessions` as a person and a script see it."""

from __future__ import annotations

import json
import os

import pytest

from agent.messages import Assistant, Note, Result, ToolCall, User
from agent.sessions.store import Sessions
from cli.opsagent import main
from guard.redact import Redactor

STORY = (
    User("why is nginx slow?\nsecond line", ("a log with ``` in it\n\x1b[2Jand colours",)),
    Assistant("# I look", (ToolCall("call_1", "bash", {"command": "df -h"}),), "anthropic", "a-model"),
    Result("call_1", "bash", "/dev/sda1 100%", "succeeded", "e-7k2m4p9qrst", untrusted=True),
    Note("the request a-7k2m4p was denied"),
    Assistant("", (ToolCall("call_2", "write", {"path": "/x", "content": "y"}),), "anthropic"),
    Result("call_2", "write", "needs a stamp", "needs_stamp"),
    Assistant("The disk is full."),
    User("thanks"),
)
MARKDOWN = """\
# Conversation {id}

- began {at}
- folder `/srv`
- brain `anthropic a-model`

## Person · {times[0]}

> why is nginx slow?
> second line

Attached:

````
a log with ``` in it
⟨ESC⟩[2Jand colours
````

## anthropic a-model · {times[1]}

> # I look

Tool `bash` (`call_1`)

```
df -h
```

### Result of `bash` (`call_1`): succeeded, `e-7k2m4p9qrst`

```
/dev/sda1 100%
```

### opsagent · {times[3]}

> the request a-7k2m4p was denied

## anthropic · {times[4]}

Tool `write` (`call_2`)

```
{{
  "path": "/x",
  "content": "y"
}}
```

### Result of `write` (`call_2`): needs_stamp

```
needs a stamp
```

## Brain · {times[6]}

> The disk is full.

## Person · {times[7]}

> thanks
"""


@pytest.fixture
def sessions():
    return Sessions.open(Redactor())


@pytest.fixture
def session(sessions):
    transcript = sessions.create(cwd="/srv", brain="anthropic", model="a-model")
    for message in STORY:
        transcript.append(message)
    transcript.close()
    return transcript.id


def said(capsys, *arguments, code=0):
    """What the verb wrote on stdout and stderr; it has to end with `code`."""
    assert main(["sessions", *arguments]) == code
    return tuple(capsys.readouterr())


def test_without_conversations_the_list_says_so(capsys):
    assert said(capsys) == ("", "there is no conversation yet\n")
    out, _ = said(capsys, "list", "--json")
    assert json.loads(out) == {"format": 1, "sessions": []}


def test_list_has_a_row_for_each_and_marks_what_is_open(capsys, sessions, session):
    other = sessions.create(cwd="/")
    other.append(User("磁盘 \x1b[31mred " + "long " * 40))
    out, _ = said(capsys, "list")
    rows = out.splitlines()
    assert len(rows) == 2
    assert rows[0].startswith(f"* {other.id}")
    assert "⟨ESC⟩[31mred" in rows[0]
    assert rows[0].endswith("⟨…⟩")
    assert rows[1].startswith(f"  {session}")
    assert rows[1].endswith("anthropic    why is nginx slow?")
    assert said(capsys, "list", "--limit", "1")[0].splitlines() == rows[:1]
    assert said(capsys)[0] == out
    other.close()


def test_list_as_json_has_every_field(capsys, sessions, session):
    out, _ = said(capsys, "list", "--json")
    (row,) = json.loads(out)["sessions"]
    (summary,) = sessions.listing()
    assert row == {
        "id": session,
        "at": summary.at,
        "used_at": summary.used_at,
        "first_line": "why is nginx slow?",
        "size_bytes": summary.size_bytes,
        "brain": "anthropic",
        "model": "a-model",
        "cwd": "/srv",
        "open": False,
        "fault": None,
    }


@pytest.mark.parametrize("words", [("show",), ("export",)])
def test_markdown_is_the_whole_conversation_and_no_fence_is_closed_from_inside(capsys, sessions, session, words):
    read = sessions.read(session)
    out, _ = said(capsys, *words, session)
    assert out == MARKDOWN.format(id=session, at=read.header.at, times=read.times)


@pytest.mark.parametrize("words", [("show", "last", "--json"), ("export", "last", "--format", "json")])
def test_json_is_the_whole_conversation(capsys, sessions, session, words):
    found = json.loads(said(capsys, *words)[0])
    assert found["id"] == session
    assert [message["kind"] for message in found["messages"]] == [
        {User: "user", Assistant: "assistant", Result: "result", Note: "note"}[type(message)] for message in STORY
    ]
    assert found["messages"][1]["calls"] == [{"id": "call_1", "name": "bash", "arguments": {"command": "df -h"}}]


def test_fork_prints_the_new_id_alone_on_stdout(capsys, sessions, session):
    out, err = said(capsys, "fork", session[:6], "--turns", "1")
    copy = out.strip()
    assert out == f"{copy}\n"
    assert err == f"opsagent: 7 messages of {session} were copied\n"
    assert sessions.read(copy).messages == STORY[:-1]
    found = json.loads(said(capsys, "fork", session, "--json")[0])
    assert found == {"format": 1, "id": found["id"], "forked_from": session, "messages": 8, "notes": []}


def test_prune_deletes_what_is_beyond_and_old(capsys, sessions, session, tmp_path):
    for number in range(3):
        transcript = sessions.create(cwd="/")
        transcript.append(User(str(number)))
        transcript.close()
    file = tmp_path / "state" / "sessions" / f"{session}.jsonl"
    os.utime(file, (1_000_000_000, 1_000_000_000))
    assert said(capsys, "prune") == ("", "0 deleted\n")
    assert said(capsys, "prune", "--older-than", "30d") == (f"{session}\n", "1 deleted\n")
    assert not file.exists()
    assert len(json.loads(said(capsys, "prune", "--keep", "1", "--json")[0])["deleted"]) == 2


def test_rm_deletes_those_that_are_named_and_none_that_is_open(capsys, sessions, session, tmp_path):
    others = []
    for number in range(3):
        transcript = sessions.create(cwd="/")
        transcript.append(User(str(number)))
        others.append(transcript)
    for transcript in others[:2]:
        transcript.close()
    first, second, third = (transcript.id for transcript in others)
    _, err = said(capsys, "rm", first, "c-none", code=2)
    assert "there is no conversation c-none" in err and len(sessions.listing()) == 4, "all of it or nothing"
    _, err = said(capsys, "rm", third, code=7)
    assert "error[state.busy]" in err and len(sessions.listing()) == 4
    assert said(capsys, "rm", first, first) == (f"{first}\n", "1 deleted\n")
    assert json.loads(said(capsys, "rm", "--json", second)[0]) == {"format": 1, "deleted": [second]}
    assert {row.id for row in sessions.listing()} == {session, third}
    others[2].close()


def test_damaged_file_is_in_the_list_and_says_how_to_go_on(capsys, sessions, session, tmp_path):
    file = tmp_path / "state" / "sessions" / f"{session}.jsonl"
    file.write_bytes(file.read_bytes().replace(b"100%", b"001%"))
    assert said(capsys, "list")[0].startswith(f"  {session}")
    out, err = said(capsys, "show", session, code=7)
    assert out == ""
    assert f"error[state.damaged]: line 4 of {session}.jsonl is damaged" in err
    assert f"opsagent sessions fork {session}" in err
    _, err = said(capsys, "fork", session)
    assert "line 4 is damaged" in err
    file.write_bytes(b"x")
    (row,) = [row for row in said(capsys, "list")[0].splitlines() if session in row]
    assert row.startswith(f"! {session}")
    assert "line 1" in row
    found = json.loads(said(capsys, "show", session, "--json", code=7)[0])
    assert found["error"]["code"] == "state.damaged"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("show",), "say list, show ID"),
        (("frobnicate",), "say list, show ID"),
        (("show", "a", "b"), "say list, show ID"),
        (("show", "c-none"), "there is no conversation c-none"),
        (("show", "../x"), "is not the id"),
        (("list", "--keep", "3"), "sessions list has no option --keep"),
        (("export", "last", "--format", "pdf"), "there is no form"),
        (("fork", "last", "--turns", "0"), "--turns takes a whole number"),
        (("prune", "--older-than", "soon"), "is not an age"),
        (("prune", "--older-than", "0d"), "is not an age"),
        (("prune", "--keep", "-1"), "--keep takes a whole number"),
    ],
)
def test_wrong_words_are_usage_and_change_nothing(capsys, sessions, session, arguments, why):
    out, err = said(capsys, *arguments, code=2)
    assert out == ""
    assert why in err
    assert [row.id for row in sessions.listing()] == [session]
