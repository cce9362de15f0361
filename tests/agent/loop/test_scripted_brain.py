"""The brain that plays a file: its two forms, what it expects, what it takes out of what it is told, its waits."""

from __future__ import annotations

import os
import threading

import pytest

from agent.messages import Result, User
from agent.providers.base import BrainBusy, Reply, RequestRefused, Sent, Tokens
from agent.providers.scripted import BadScript, open_script
from agent.stop import Stop
from capabilities.jobs import Cancelled
from tests.talk import scripted


def ask(brain, *messages, stop=None):
    """All that one reply yields."""
    stop = stop or Stop(lambda: None)
    return list(brain.stream(Sent("", messages or (User("hello"),)), cancel=stop.token))


TOML = """
[[reply]]
expect = "disk of (?P<host>\\\\w+)"
text = "I look at ${host}."
[[reply.calls]]
tool = "bash"
arguments = { command = "df -h ${host}" }

[[reply]]
text = "Done."
tokens = { input = 7 }
"""
JSONL = """# a comment
{"expect": "disk of (?P<host>\\\\w+)", "text": "I look at ${host}.", "calls": [{"tool": "bash", "arguments": {"command": "df -h ${host}"}}]}

{"text": "Done.", "tokens": {"input": 7}}
"""  # noqa: E501 - one line is one reply


@pytest.mark.parametrize(("name", "content"), [("a.toml", TOML), ("a.jsonl", JSONL)])
def test_both_forms_say_the_same(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    brain = open_script(str(path))
    assert brain.name == f"script:{path}"
    delta, first = ask(brain, User("the disk of web1 is full"))
    assert delta == first.text == "I look at web1."
    assert (first.calls[0].name, first.calls[0].arguments, first.stop) == ("bash", {"command": "df -h web1"}, "calls")
    assert ask(brain)[-1] == Reply("Done.", tokens=Tokens(7), model="script")
    with pytest.raises(RequestRefused, match="is over: it has 2 replies"):
        ask(brain)


def test_step_that_was_told_something_else_is_an_error():
    brain = scripted({"expect": "succeeded", "text": "never"})
    with pytest.raises(RequestRefused, match=r"expects 'succeeded', and was told 'x.*failed'"):
        ask(brain, User("x"), Result("1", "bash", "failed", "failed"))


def test_only_what_came_since_the_last_reply_counts():
    from agent.messages import Assistant

    brain = scripted({"expect": "old", "text": "never"})
    with pytest.raises(RequestRefused):
        ask(brain, User("old"), Assistant("said"), User("new"))


def test_names_stay_for_later_replies():
    brain = scripted({"expect": "(?P<id>a-\\w+)", "text": "one"}, "${id} and ${unknown}")
    ask(brain, User("a-7k2"))
    assert ask(brain)[-1].text == "a-7k2 and ${unknown}"


def test_errors_come_as_their_kind():
    brain = scripted({"error": {"kind": "busy", "message": "slow down", "retry_after_s": 3.5}})
    with pytest.raises(BrainBusy, match="slow down") as caught:
        ask(brain)
    assert caught.value.retry_after_s == 3.5


def test_wait_ends_when_it_is_released():
    brain = scripted({"deltas": ["a", {"wait": "go"}, "b"]})
    stream = brain.stream(Sent("", (User("x"),)), cancel=Stop(lambda: None).token)
    assert next(stream) == "a"
    threading.Thread(target=brain.release, args=("go",)).start()
    assert next(stream) == "b"


def test_wait_ends_with_a_byte_on_a_named_pipe(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"wait": "go", "text": "on"}\n')
    os.mkfifo(tmp_path / "go")

    def let_go():
        with open(tmp_path / "go", "w") as pipe:  # waits until the brain reads
            pipe.write("x")

    threading.Thread(target=let_go).start()
    assert ask(open_script(str(path)))[-1].text == "on"


def test_wait_ends_when_the_turn_is_interrupted():
    stop = Stop(lambda: None)
    threading.Thread(target=stop.set).start()
    with pytest.raises(Cancelled):
        ask(scripted({"wait": "never"}), stop=stop)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1]", "reply 1 of the script: it is no object"),
        ('{"txt": "x"}', "it knows no field 'txt'"),
        ('{"text": 7}', "text is a str"),
        ('{"calls": [{"name": "bash"}]}', "a call is"),
        ('{"deltas": [1]}', "a delta is"),
        ('{"error": {"kind": "sad"}}', "the kind of an error"),
        ('{"stop": "now"}', "stop is one of"),
        ('{"wait": "../x"}', "no slash"),
        ('{"expect": "("}', "no regular expression"),
        ('{"text": "a"}\n{"tokens": {"in": 1}}', "reply 2 of the script: tokens has"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("\udcff", "cannot be read"),
    ],
)
def test_malformed_script_is_an_error_that_names_the_reply(tmp_path, content, said):
    path = tmp_path / "a.jsonl"
    path.write_text(content, "utf-8", "surrogateescape")
    with pytest.raises(BadScript) as caught:
        open_script(str(path))
    assert said in caught.value.message


def test_script_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(BadScript, match="No such file"):
        open_script(str(tmp_path / "none.toml"))


def test_toml_of_another_form_is_an_error(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("[brains]\n")
    with pytest.raises(BadScript, match=r"consists of \[\[reply\]\] tables"):
        open_script(str(path))
