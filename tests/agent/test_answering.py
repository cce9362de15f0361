"""One answer from a turn's events, whatever order they come in."""

from __future__ import annotations

from agent.answering import Answering
from dialogue import events


def told(*some):
    answering = Answering("near", "m")
    for event in some:
        answering.take(event)
    return answering


def test_the_answer_is_the_last_whole_text_and_the_rest_is_counted_once():
    got = told(
        events.TurnStarted("why?"),
        events.TextDelta("I lo"),
        events.Text("I look."),
        events.ToolRequested("t-1", "bash", {"command": "df"}),
        events.ToolStarted("t-1", "e-1"),
        events.ToolCompleted("t-1", "succeeded", "e-1", "out"),
        events.ToolCompleted("t-2", "succeeded", "e-1", "out"),
        events.ToolCompleted("t-3", "needs_stamp", request="a-1"),
        events.Usage(10, 2),
        events.Text("It is full."),
        events.Usage(20, 5, 0.5),
        events.TurnCompleted(3, ["a-1"]),
    )
    row = got.as_json(host="h", at="2026-12-01T00:00:00.000Z", session="c-1")
    assert (row["answer"], row["executions"], row["requests"]) == ("It is full.", ["e-1"], ["a-1"])
    assert (row["exit_code"], row["next"]) == (3, "opsx approve a-1")
    assert row["usage"] == {"input_tokens": 20, "output_tokens": 5, "cost": 0.5}
    assert row["error"] is None


def test_a_switch_changes_who_answered_and_is_said():
    got = told(events.BrainSwitched("far", "near is down"), events.Text("ok"), events.TurnCompleted(0))
    assert (got.brain, got.model, got.notices) == ("far", "", ["far answers now: near is down"])


def test_a_turn_that_never_ended_is_no_success():
    assert told(events.Text("ok")).code == 1


def test_an_error_has_its_three_parts():
    got = told(events.Error("brain.key", "no key", "nothing was sent", "set one"), events.TurnCompleted(1))
    assert got.error == {"code": "brain.key", "message": "no key", "not_done": "nothing was sent", "hint": "set one"}
    assert got.next == ""
