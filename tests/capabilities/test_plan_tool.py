"""`ops_plan`: one answer for all steps; what runs, what does not, and what is left afterwards."""

from __future__ import annotations

import pytest

from agent.held import why_not_here
from capabilities.plans import plan_tool
from capabilities.registry import BadArguments
from dialogue.confirm import APPROVED, CANCELLED, DENIED, Answer
from guard.errors import ApprovalChanged, NotPermitted
from tests.capabilities.world import asked, call_in, guard_in


class Person:
    """Answers once, and remembers what was shown."""

    def __init__(self, outcome=APPROVED, *, meanwhile=lambda: None, reason=""):
        self.answer = Answer(outcome, "tty", "a" * 64, reason=reason)
        self.meanwhile, self.asks = meanwhile, []

    def ask(self, ask, *, timeout_s):
        self.asks.append(ask)
        self.meanwhile()
        return self.answer


def plan(guard, tmp_path, person, *commands):
    steps = [{"command": command, "why": f"step {number}"} for number, command in enumerate(commands, 1)]
    return asked(plan_tool(guard, call_in(tmp_path, confirm=person)), steps=steps)


def kinds(guard):
    return [entry["kind"] for entry in guard.ledger.entries()]


def test_all_steps_are_shown_at_once_and_run_in_order_after_one_answer(tmp_path):
    guard, person = guard_in(tmp_path), Person()
    done = plan(guard, tmp_path, person, "touch a", "ls -d /etc", "touch b")
    (ask,) = person.asks
    assert [one.command for one in (ask, *ask.also)] == ["touch a", "touch b"], "a read needs no answer"
    assert (done["status"], [step["status"] for step in done["steps"]]) == ("succeeded", ["succeeded"] * 3)
    assert done["output"].startswith("1. succeeded e-") and done["not_run"] == [] and done["next"] is None
    assert (tmp_path / "a").exists() and (tmp_path / "b").exists()


def test_failing_step_stops_the_plan_and_names_the_way_back_newest_first(tmp_path):
    guard = guard_in(tmp_path)
    (tmp_path / "there").mkdir()
    done = plan(guard, tmp_path, Person(), "touch a", "touch b", "mkdir there", "touch c", "touch d")
    first, second, third = done["steps"]
    assert (done["status"], third["status"], done["not_run"]) == ("failed", "failed", ["touch c", "touch d"])
    assert not (tmp_path / "c").exists() and (tmp_path / "b").exists(), "nothing is undone by itself"
    ways = done["next"].removeprefix("to go back, newest first: ops_rollback for ").split(", ")
    assert ways[-2:] == [second["execution"], first["execution"]]
    assert guard.ledger.stamps.listed() == (), "approvals of what was not run are taken back"
    assert kinds(guard).count("approved") == 5 and kinds(guard).count("revoked") == 2


@pytest.mark.parametrize(("outcome", "reason"), [(DENIED, "the person said no: too much"), (CANCELLED, "too much")])
def test_without_a_yes_nothing_runs(tmp_path, outcome, reason):
    guard = guard_in(tmp_path)
    done = plan(guard, tmp_path, Person(outcome, reason="too much"), "touch a", "touch b")
    assert (done["status"], done["because"], done["steps"]) == (outcome, reason, [])
    assert not (tmp_path / "a").exists() and "approved" not in kinds(guard)
    assert kinds(guard).count("denied") == (2 if outcome == DENIED else 0)


def test_where_nobody_can_be_asked_it_says_so(tmp_path):
    done = plan(guard_in(tmp_path), tmp_path, None, "touch a", "touch b")
    assert (done["status"], done["next"]) == ("needs_stamp", "ask for the steps one by one: ops_exec")


def test_what_changed_while_it_was_shown_approves_nothing_at_all(tmp_path):
    guard = guard_in(tmp_path)
    (tmp_path / "fix.sh").write_text("touch y\n")
    person = Person(meanwhile=lambda: (tmp_path / "fix.sh").write_text("touch z\n"))
    with pytest.raises(ApprovalChanged):
        plan(guard, tmp_path, person, "touch a", "bash fix.sh")
    assert not (tmp_path / "a").exists() and "approved" not in kinds(guard)


def test_what_no_yes_allows_is_no_part_of_a_plan(tmp_path):
    guard, person = guard_in(tmp_path), Person()
    with pytest.raises(NotPermitted):
        plan(guard, tmp_path, person, "touch a", "opsx approve a-1")
    assert person.asks == [] and not (tmp_path / "a").exists()


def test_an_irreversible_step_is_asked_with_what_it_destroys_and_runs_in_its_place(tmp_path):
    guard, person = guard_in(tmp_path), Person()
    (tmp_path / "old").mkdir()
    done = plan(guard, tmp_path, person, "touch a", "rm -rf old", "touch b")
    (ask,) = person.asks
    assert [one.must_type for one in (ask, *ask.also)] == ["", str(tmp_path / "old"), ""]
    assert done["status"] == "succeeded" and not (tmp_path / "old").exists() and (tmp_path / "b").exists()


def test_a_client_that_cannot_type_several_gets_the_steps_one_by_one(tmp_path):
    class Wire(Person):
        def ask(self, ask, *, timeout_s):
            return Answer("unanswered", "rpc", reason=why_not_here(ask))

    (tmp_path / "old").mkdir()
    done = plan(guard_in(tmp_path), tmp_path, Wire(), "touch a", "rm -rf old")
    assert (done["status"], done["next"]) == ("unanswered", "ask for the steps one by one: ops_exec")
    assert "alone" in done["because"] and (tmp_path / "old").exists() and not (tmp_path / "a").exists()


def test_plan_of_reads_asks_nobody(tmp_path):
    person = Person()
    done = plan(guard_in(tmp_path), tmp_path, person, "ls -d /etc", "ls -d /usr")
    assert done["status"] == "succeeded" and person.asks == []


@pytest.mark.parametrize("steps", [[], [{"command": "ls"}], [{"command": "ls"}, {"x": "ls"}], ["ls", "ls"]])
def test_plan_that_is_none(tmp_path, steps):
    with pytest.raises(BadArguments):
        asked(plan_tool(guard_in(tmp_path), call_in(tmp_path)), steps=steps)
