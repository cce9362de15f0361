"""How long a change still waits for its confirmation, in every shell."""

from __future__ import annotations

import queue
from dataclasses import replace

import pytest

import execution
from acting import deadman
from capabilities import countdown
from capabilities.jobs import Jobs
from capabilities.ops import list_tool, status_tool
from guard.clock import utc_text
from guard.ledger import claims
from tests.deadman.armed import waits

CONNECTION = "192.0.2.1 50000 192.0.2.2 22"


class Clock:
    """A clock that a test moves."""

    def __init__(self, clock):
        self._clock, self.now_s = clock, 1_800_000_000.0

    def utc(self):
        return utc_text(int(self.now_s * 1000))

    def boot_s(self):
        return self.now_s


@pytest.fixture
def guard():
    guard = replace(execution.open_guard(), connection=CONNECTION)
    return replace(guard, clock=Clock(guard.clock))


@pytest.fixture
def told():
    return queue.SimpleQueue()


@pytest.fixture
def watch(guard, told):
    watch = countdown.Watch(guard, told.put, tick_s=0.01)
    yield watch
    watch.close()


def next_of(told):
    return told.get(timeout=20)


def test_it_is_told_at_once_and_again_at_its_stages(guard, told, watch):
    run = waits(guard)
    watch.look(run)
    said = [next_of(told)]
    for left_s in (60, 30, 10):
        guard.clock.now_s = 1_800_000_000.0 + 120 - left_s
        said.append(next_of(told))
    assert [one.seconds_left for one in said] == [120, 60, 30, 10]
    assert {(one.execution, one.state) for one in said} == {(run, "waiting")}
    assert all(f"opsx confirm {run}" in one.text for one in said)
    assert [one.execution for one in watch.now()] == [run]


ENDS = {
    claims.CONFIRMED: "is confirmed and stays",
    claims.STOOD_DOWN: "never began",
}


@pytest.mark.parametrize("outcome", ENDS)
def test_its_end_is_told_and_nothing_waits_then(outcome, guard, told, watch):
    run = waits(guard)
    watch.look(run)
    next_of(told)
    claims.claim(guard.ledger.answers.folder, run, outcome)
    last = next_of(told)
    assert (last.state, last.seconds_left) == (outcome, 0)
    assert ENDS[outcome] in last.text
    assert watch.now() == ()


@pytest.mark.parametrize(
    ("result", "said"), [("succeeded", "is taken back: nobody"), ("failed", "not be taken back whole")]
)
def test_taking_it_back_is_told_when_it_begins_and_when_it_is_over(result, said, guard, told, watch):
    run = waits(guard)
    watch.look(run)
    next_of(told)
    claims.claim(guard.ledger.answers.folder, run, claims.FIRED)
    guard.ledger.note(deadman.FIRED, execution=run, result=deadman.BEGINS)
    first = next_of(told)
    assert (first.state, "it is being taken back" in first.text) == (claims.FIRED, True)
    guard.ledger.note(deadman.FIRED, execution=run, result=result)
    assert said in next_of(told).text


def test_one_that_does_not_fire_is_told_to_be_lost(guard, told, watch):
    run = waits(guard)
    watch.look(run)
    next_of(told)
    guard.clock.now_s += 120 + countdown.OVERDUE_S + 1
    last = next(one for one in iter(lambda: next_of(told), None) if one.state != countdown.WAITING)
    assert (last.state, last.seconds_left) == (countdown.LOST, 0)
    assert "is not watched any more" in last.text
    assert countdown.as_object(run, guard)["state"] == "lost"
    assert watch.now() == ()


def test_each_is_told_once_however_often_a_shell_looks(guard, told, watch):
    run, other = waits(guard), waits(guard, 60)
    for _ in range(3):
        watch.look(run)
        watch.look_at_all()
    assert {next_of(told).execution, next_of(told).execution} == {run, other}
    assert [one.execution for one in watch.now()] == [other, run]
    assert told.empty()


def test_what_has_no_dead_man_is_not_told_of(guard, told, watch):
    guard.ledger.note("notice", text="the folder exists")
    for one in (None, "", "e-22222222222"):
        watch.look(one)
    assert watch.now() == ()
    assert countdown.as_object("e-22222222222", guard) is None
    assert countdown.waiting(guard) == ()
    assert countdown.in_short((), guard) == ""


def test_the_status_line_counts_the_next_one(guard):
    run, other = waits(guard), waits(guard, 60)
    guard.clock.now_s += 15
    assert countdown.in_short(countdown.waiting(guard), guard) == (
        f"back in 45 s (and 1 more): opsx confirm {other} over a NEW connection"
    )
    claims.claim(guard.ledger.answers.folder, other, claims.CONFIRMED)
    assert countdown.in_short(countdown.waiting(guard), guard).startswith(f"back in 105 s: opsx confirm {run}")


def test_programs_are_told_when_they_look(guard):
    run = waits(guard)
    jobs = Jobs(guard)
    wanted = {
        "state": "waiting",
        "deadline_at": utc_text(int((guard.clock.now_s + 120) * 1000)),
        "seconds_left": 120,
        "confirm": f"opsx confirm {run}",
    }
    assert status_tool(guard, jobs).run({"id": run})["dead_man"] == wanted
    assert list_tool(guard).run({})["dead_men"] == [{"execution": run, **wanted}]
    claims.claim(guard.ledger.answers.folder, run, claims.CONFIRMED)
    assert status_tool(guard, jobs).run({"id": run})["dead_man"] == {
        **wanted,
        "state": "confirmed",
        "seconds_left": 0,
        "confirm": None,
    }
    assert "dead_men" not in list_tool(guard).run({})
