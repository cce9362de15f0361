"""Events as updates: what a client is told, and what of others' words cannot do in it."""

from __future__ import annotations

import pytest

from agent.acp.updates import Told, text_content, title_of
from dialogue import events


def told(*sent, notices=True, window=0):
    """The updates of these events, and what was told them."""
    one = Told("/srv", notices=notices, window_tokens=window)
    return [update for event in sent for update in one.updates(event)], one


def test_how_full_the_window_is_counts_the_last_request_alone():
    updates, _ = told(events.TurnStarted("go"), events.Usage(1000, 50), events.Usage(2200, 80), window=8000)
    assert [(one["used"], one["size"]) for one in updates] == [(1050, 8000), (1230, 8000)]


def test_without_a_known_window_nothing_is_said_of_it():
    assert told(events.Usage(1000, 50))[0] == []


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        ("turn.limit", 1, "max_turn_requests"),
        ("brain.refused", 1, "refusal"),
        ("brain.unreachable", 1, "end_turn"),
        ("", 130, "cancelled"),
        ("", 3, "end_turn"),
    ],
)
def test_why_a_turn_ended(error, code, reason):
    sent = [events.Error(error, "it went wrong", "nothing was run", "ask again")] if error else []
    _, one = told(events.TurnStarted("go"), *sent, events.TurnCompleted(code))
    assert (one.stop_reason, one.exit_code) == (reason, code)


def test_a_reason_does_not_outlive_its_turn():
    first = (events.TurnStarted("go"), events.Error("turn.limit", "x", "", ""), events.TurnCompleted(1))
    _, one = told(*first, events.TurnStarted("again"), events.TurnCompleted(0))
    assert (one.stop_reason, one.exit_code) == ("end_turn", 0)


def test_an_error_is_told_with_its_three_parts():
    (notice,), _ = told(events.Error("x", "it went wrong", "nothing was run", "ask again"))
    assert notice == {
        "sessionUpdate": "notice",
        "severity": "error",
        "title": "it went wrong",
        "description": "nothing was run\nhint: ask again",
    }
    (chunk,), _ = told(events.Error("x", "it went wrong", "nothing was run", ""), notices=False)
    assert chunk["content"]["text"] == "[opsagent: it went wrong\nnothing was run]\n\n"


def test_an_output_cannot_close_the_fence_around_it():
    text = text_content("```\n**not ours**\n````\n")["content"]["text"]
    fence = text.partition("\n")[0]
    assert fence == "`````"
    assert text.endswith(f"\n{fence}")
    assert text.count(fence) == 2


def test_what_is_invisible_is_shown_in_titles_and_texts():
    assert "\u202e" not in title_of("bash", {"command": "rm \u202e-rf"})
    assert "\n" not in title_of("bash", {"command": "echo one\nrm two"})
    (chunk,), _ = told(events.TextDelta("a\u202eb"))
    assert "\u202e" not in chunk["content"]["text"]


def test_a_long_title_is_cut_and_the_command_is_whole_in_the_call():
    command = "echo " + "x" * 5000
    (call,), _ = told(events.ToolRequested("t-1", "ops_exec", {"command": command}))
    assert len(call["title"]) == 200
    assert call["rawInput"] == {"command": command}


@pytest.mark.parametrize(
    ("status", "shown"),
    [("succeeded", "completed"), ("failed", "failed"), ("needs_stamp", "failed"), ("running", "completed")],
)
def test_the_end_of_a_call_is_done_or_failed(status, shown):
    updates, one = told(
        events.ToolRequested("t-1", "bash", {"command": "x"}),
        events.ToolStarted("t-1"),
        events.ToolProgress("t-1", 2500, "half way"),
        events.ToolCompleted("t-1", status, output="out"),
    )
    assert updates[2]["content"][0]["content"]["text"] == "```\n2 s: half way\n```"
    assert updates[3]["status"] == shown
    assert one.asking is None


def test_whatever_is_asked_is_asked_by_the_call_that_is_at_work():
    _, one = told(
        events.ToolRequested("t-1", "ops_exec", {"command": "x"}),
        events.ToolRequested("t-2", "ops_approve", {"request": "a-1"}),
        events.ToolStarted("t-1"),
        events.ToolCompleted("t-1", "needs_stamp"),
        events.ToolStarted("t-2"),
    )
    assert one.asking.id == "t-2"


def test_a_path_is_told_whole():
    (call,), _ = told(events.ToolRequested("t-1", "read", {"path": "etc/../conf"}))
    assert call["locations"] == [{"path": "/srv/conf"}]


def test_a_block_that_differs_from_what_was_streamed_takes_its_place():
    updates, _ = told(events.TextDelta("one secret\n"), events.Text("one [masked]\n"))
    texts = [one["content"]["text"] for one in updates]
    assert texts == ["one secret\n", "\n\n(that reply broke off and does not count)\n\n", "one [masked]\n"]
    assert updates[-1]["messageId"] != updates[0]["messageId"]
