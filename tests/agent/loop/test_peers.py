"""Machines that a person names may be asked by reads; machines that anything else names may not."""

from __future__ import annotations

import pytest

from agent.peers import MOST, named_peers
from dialogue import events
from guard.types import Captured
from tests.capabilities.world import guard_in
from tests.fakes import FakeResult
from tests.talk import conversation, of, scripted, turn, use


@pytest.mark.parametrize(
    ("words", "peers"),
    [
        ("is https://shop.example.com/health up?", {"shop.example.com:443"}),
        ("look at http://Web1:8080, and http://web2.", {"web1:8080", "web2:80"}),
        ("看看 https://shop.example.com/健康。", {"shop.example.com:443"}),
        ("(http://10.0.0.7:9100/metrics)", {"10.0.0.7:9100"}),
        ("http://[2001:db8::1]:9100/", {"2001:db8::1:9100"}),
        ("http://good.example?x=@evil.example", {"good.example:80"}),
        ("why is app.py on node.js slow? see shop.example.com", set()),
        ("http://good.example@evil.example/", set()),
        ("http://user:pw@evil.example/", set()),
        ("http://good.example\\@evil.example/", set()),
        ("http://good.example\u3002evil.example/", {"good.example:80"}),
        ("http://x:999999/", set()),
        ("http://$(id).example/", set()),
        ("http://*.example/", set()),
        ("ftp://files.example/ and xhttp://no.example/", set()),
        (" ".join(f"http://h{number}.example/" for number in range(MOST + 1)), set()),
    ],
)
def test_only_whole_addresses_are_named(words, peers):
    assert named_peers(words) == peers


def asked(guard):
    return [command for command, _ in guard.target.asked]


def test_read_may_ask_a_machine_that_the_person_named(tmp_path):
    command = "curl -s http://web1.example:8080/health"
    guard = guard_in(tmp_path, FakeResult(stdout=Captured("ok", 2)))
    brain = scripted({"calls": [use("bash", command=command)]}, "Up.")
    seen = turn(conversation(guard, brain, tmp_path), "is http://web1.example:8080/ up?")
    assert of(seen, events.ToolCompleted)[0].status == "succeeded" and asked(guard) == [command]


@pytest.mark.parametrize(
    "command",
    ["curl -s http://web2.example:8080/", "curl -s http://web1.example/", "curl -d x http://web1.example:8080/"],
    ids=["another host", "another port", "a body"],
)
def test_nothing_else_is_asked_because_of_it(tmp_path, command):
    guard = guard_in(tmp_path)
    brain = scripted({"calls": [use("bash", command=command), use("ops_exec", command=command)]}, "Hm.")
    seen = turn(conversation(guard, brain, tmp_path), "is http://web1.example:8080/ up?")
    assert {event.status for event in of(seen, events.ToolCompleted)} <= {"needs_stamp", "refused"}
    assert asked(guard) == []


@pytest.mark.guarantee("G-DATA")
def test_address_that_comes_after_reading_others_words_is_not_taken_as_named(tmp_path):
    guard = guard_in(tmp_path)
    brain = scripted(
        {"calls": [use("bash", command="echo see http://evil.example/")]},
        "It names http://evil.example/",
        {"calls": [use("bash", command="curl -s http://evil.example/")]},
        "Hm.",
    )
    talk = conversation(guard, brain, tmp_path)
    turn(talk, "read the note")
    seen = turn(talk, "then do what it says: http://evil.example/")
    assert of(seen, events.ToolCompleted)[0].status == "needs_stamp"
    assert asked(guard) == ["echo see http://evil.example/"]


def test_address_in_an_attached_text_names_nothing(tmp_path):
    guard = guard_in(tmp_path)
    brain = scripted({"calls": [use("bash", command="curl -s http://evil.example/")]}, "Hm.")
    seen = turn(conversation(guard, brain, tmp_path), "why?", ["GET http://evil.example/ failed"])
    assert of(seen, events.ToolCompleted)[0].status == "needs_stamp" and asked(guard) == []
