"""`ops_snapshot` and `ops_rollback`: what is saved can be planned back, and no word of a model applies a plan."""

from __future__ import annotations

import pytest

import execution
from acting import rollback_request
from capabilities.registry import BadArguments
from capabilities.snapshots import rollback_tool, snapshot_tool
from guard.bound import Consent
from guard.errors import GuardError, NotPermitted, UsageError
from guard.ledger.answers import ToApprove
from guard.types import Mode, Policy
from tests.capabilities.world import asked, call_in, guard_in


@pytest.fixture
def place(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "app.conf").write_text("port 80\n")
    return work


def tools(tmp_path, place, **more):
    guard = guard_in(tmp_path, **more)
    call = call_in(place)
    return guard, snapshot_tool(guard, call), rollback_tool(guard, call)


def test_what_was_saved_can_be_planned_back_and_is_asked_for_not_done(tmp_path, place):
    guard, save, back = tools(tmp_path, place)
    snapshot = asked(save, files=["app.conf"], cmds=[{"name": "who", "command": "echo me"}])["snapshot"]
    (place / "app.conf").write_text("port 8080\n")
    plan = asked(back, id=snapshot)
    assert plan["status"] == "planned"
    assert [step["path"] for step in plan["steps"]] == [str(place / "app.conf")]
    assert "-port 8080" in plan["steps"][0]["diff"] and "+port 80" in plan["steps"][0]["diff"]
    for _ in range(2):
        answer = asked(back, id=snapshot, confirm=True)
        assert answer["status"] == "needs_stamp"
        assert answer["next"] == f"opsx approve {answer['request']}"
    assert (place / "app.conf").read_text() == "port 8080\n"
    waiting = guard.ledger.pending()
    assert [kept.id for kept in waiting] == [answer["request"]]
    assert plan["digest"] in waiting[0].command


def test_a_plan_that_a_person_approved_elsewhere_is_applied_once(tmp_path, place):
    guard, save, back = tools(tmp_path, place)
    snapshot = asked(save, files=["app.conf"])["snapshot"]
    (place / "app.conf").write_text("port 8080\n")
    kept = guard.ledger.request(asked(back, id=snapshot, confirm=True)["request"])
    plan = execution.plan_rollback(snapshot, guard)
    binding, assessment = rollback_request.binding_of(plan, kept.request()), execution.rollback_assessment(plan)
    guard.ledger.answers.approve([ToApprove(kept.request(), assessment, binding, kept.id)], Consent("tty", "0" * 64))
    done = asked(back, id=snapshot, confirm=True)
    assert (done["status"], [one["result"] for one in done["results"]]) == ("succeeded", ["done"])
    assert (place / "app.conf").read_text() == "port 80\n"
    (place / "app.conf").write_text("port 8080\n")
    assert asked(back, id=snapshot, confirm=True)["status"] == "needs_stamp"


def test_a_plan_with_nothing_to_do_is_done(tmp_path, place):
    _, save, back = tools(tmp_path, place)
    snapshot = asked(save, files=[str(place / "app.conf")])["snapshot"]
    assert asked(back, id=snapshot, confirm=True)["status"] == "succeeded"


def test_absence_is_saved_too(tmp_path, place):
    _, save, back = tools(tmp_path, place)
    snapshot = asked(save, files=["new.conf"])["snapshot"]
    (place / "new.conf").write_text("x")
    steps = asked(back, id=snapshot)["steps"]
    assert [(step["path"], step["action"]) for step in steps] == [(str(place / "new.conf"), "delete")]


def test_nothing_to_save_is_an_error(tmp_path, place):
    _, save, _ = tools(tmp_path, place)
    for arguments in ({}, {"files": []}, {"files": [], "cmds": []}):
        with pytest.raises(UsageError):
            asked(save, **arguments)


def test_only_reads_are_run_to_save_what_they_say(tmp_path, place):
    guard, save, _ = tools(tmp_path, place)
    with pytest.raises(GuardError):
        asked(save, cmds=[{"name": "x", "command": "touch made"}])
    assert not (place / "made").exists() and guard.target.asked == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"files": "app.conf"},
        {"files": ["a\0b"]},
        {"cmds": ["echo x"]},
        {"cmds": [{"name": "a::b", "command": "echo x"}]},
        {"cmds": [{"name": "a", "command": "echo x", "level": "R0"}]},
        {"paths": ["app.conf"]},
    ],
)
def test_arguments_that_do_not_fit_are_an_error(tmp_path, place, arguments):
    with pytest.raises(BadArguments):
        asked(tools(tmp_path, place)[1], **arguments)


@pytest.mark.parametrize("arguments", [{"confirm": "yes"}, {"confirm": True, "force": True}, {"confirm": 1}])
def test_no_spelling_of_consent_is_taken(tmp_path, place, arguments):
    _, save, back = tools(tmp_path, place)
    snapshot = asked(save, files=["app.conf"])["snapshot"]
    with pytest.raises(BadArguments):
        asked(back, id=snapshot, **arguments)


def test_a_read_only_target_keeps_no_request_to_go_back(tmp_path, place):
    _, save, _ = tools(tmp_path, place)
    snapshot = asked(save, files=["app.conf"])["snapshot"]
    (place / "app.conf").write_text("port 8080\n")
    guard, _, back = tools(tmp_path, place, policy=Policy(mode=Mode.READ_ONLY))
    assert asked(back, id=snapshot)["status"] == "planned"
    with pytest.raises(NotPermitted):
        asked(back, id=snapshot, confirm=True)
    assert guard.ledger.pending() == []


def test_going_back_to_nothing_is_an_error(tmp_path, place):
    with pytest.raises(GuardError):
        asked(tools(tmp_path, place)[2], id="s-nothing")
