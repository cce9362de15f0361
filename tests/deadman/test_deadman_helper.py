"""The helper that takes a change back: armed before it, settled once, whoever dies in between."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace

import pytest

import core
import execution
from acting import deadman
from guard.errors import CannotRun, NotPermitted
from guard.hands.connection import connection_of
from guard.ledger import claims
from guard.ledger.plans import snapshot_plan
from guard.types import Actor, Outcome, PlanItem, Profile, Request, Status
from tests.fakes import FakeTarget
from tests.waiting import until

CONNECTION = "192.0.2.1 50000 192.0.2.2 22"


@pytest.fixture
def guard():
    return replace(execution.open_guard(), connection=CONNECTION)


def armed_change(guard, file, seconds):
    """A file saved, a dead man armed for it, and a run that changed it on record."""
    plan = snapshot_plan((), cwd="/", files=[str(file)])
    run = guard.ledger.new_execution()
    snapshot = execution.snapshot(plan, guard, cwd="/", execution=run, reason="exec")
    armed = deadman.arm(run, snapshot, seconds, plan, guard)
    request = Request("touch x", cwd="/", actor=Actor.PERSON)
    guard.ledger.begin(request, core.check("touch x", cwd="/"), profile=Profile.NONE, enforced="none", execution=run)
    file.write_text("changed")
    execution.record_after(snapshot, guard)
    guard.ledger.end(run, Outcome(Status.SUCCEEDED, execution=run, exit_code=0))
    return armed


def kinds(guard):
    return [entry["kind"] for entry in guard.ledger.entries()]


def test_unconfirmed_change_is_taken_back_once_by_a_process_of_its_own(guard, tmp_path):
    file = tmp_path / "sshd_config"
    file.write_text("before")
    armed = armed_change(guard, file, 2)
    assert deadman.is_alive(armed)
    assert os.getsid(armed.pid) != os.getsid(0)
    until(lambda: deadman.ended_as(armed.execution, guard))
    until(lambda: not deadman.is_alive(armed))
    assert file.read_text() == "before"
    assert deadman.ended_as(armed.execution, guard) == claims.FIRED
    assert kinds(guard).count("rollback_planned") == 1
    with pytest.raises(NotPermitted, match="settled already: fired"):
        deadman.confirm(armed.execution, guard, actor=Actor.PERSON, environ={"SSH_CONNECTION": "x"}, pid=os.getpid())


def test_change_that_outlasts_the_wait_is_taken_back_again_when_it_has_ended(guard, tmp_path):
    file = tmp_path / "f"
    file.write_text("before")
    plan = snapshot_plan((), cwd="/", files=[str(file)])
    run = guard.ledger.new_execution()
    snapshot = execution.snapshot(plan, guard, cwd="/", execution=run, reason="exec")
    armed = deadman.arm(run, snapshot, 1, plan, guard)
    request = Request("touch x", cwd="/", actor=Actor.PERSON)
    guard.ledger.begin(request, core.check("touch x", cwd="/"), profile=Profile.NONE, enforced="none", execution=run)
    file.write_text("first")
    until(lambda: file.read_text() == "before")
    until(lambda: any(entry.get("result") == Status.SUCCEEDED for entry in guard.ledger.entries()))
    file.write_text("second")
    execution.record_after(snapshot, guard)
    guard.ledger.end(run, Outcome(Status.SUCCEEDED, execution=run, exit_code=0))
    until(lambda: not deadman.is_alive(armed))
    assert file.read_text() == "before"
    assert kinds(guard).count("rollback_planned") == 2


def test_change_that_never_began_is_not_taken_back(guard, tmp_path):
    file = tmp_path / "f"
    file.write_text("before")
    plan = snapshot_plan((), cwd="/", files=[str(file)])
    run = guard.ledger.new_execution()
    snapshot = execution.snapshot(plan, guard, cwd="/", execution=run, reason="exec")
    armed = deadman.arm(run, snapshot, 1, plan, guard)
    file.write_text("by somebody else")
    until(lambda: not deadman.is_alive(armed))
    assert deadman.ended_as(run, guard) == claims.STOOD_DOWN
    assert file.read_text() == "by somebody else"


def test_confirmed_change_stays(guard, tmp_path, monkeypatch):
    file = tmp_path / "f"
    file.write_text("before")
    armed = armed_change(guard, file, 30)
    connection = type("Connection", (), {"opened_at_s": time.time() + 1})()
    monkeypatch.setattr("guard.hands.connection.connection_of", lambda pid: connection)
    deadman.confirm(
        armed.execution, guard, actor=Actor.PERSON, environ={"SSH_CONNECTION": "192.0.2.1 50001 192.0.2.2 22"}, pid=1
    )
    until(lambda: not deadman.is_alive(armed))
    assert file.read_text() == "changed"
    assert kinds(guard)[-1] == deadman.CONFIRMED


@pytest.mark.parametrize(
    ("actor", "opened", "environ", "why"),
    [
        (Actor.AGENT, 1, {"SSH_CONNECTION": "other"}, "only a person"),
        (Actor.PERSON, None, {"SSH_CONNECTION": "other"}, "no ssh connection"),
        (Actor.PERSON, 1, {}, "no ssh connection"),
        (Actor.PERSON, -60, {"SSH_CONNECTION": "other"}, "opened before the change ended"),
        (Actor.PERSON, 1, {"SSH_CONNECTION": CONNECTION}, "opened before the change ended"),
    ],
)
def test_no_other_word_confirms(actor, opened, environ, why, guard, tmp_path, monkeypatch):
    file = tmp_path / "f"
    file.write_text("before")
    armed = armed_change(guard, file, 60)
    connection = None if opened is None else type("Connection", (), {"opened_at_s": time.time() + opened})()
    monkeypatch.setattr("guard.hands.connection.connection_of", lambda pid: connection)
    with pytest.raises(NotPermitted, match=why):
        deadman.confirm(armed.execution, guard, actor=actor, environ=environ, pid=os.getpid())
    assert deadman.ended_as(armed.execution, guard) == ""
    deadman.stand_down(armed.execution, guard)
    until(lambda: not deadman.is_alive(armed))


def test_one_of_many_claims_wins(guard):
    guard.ledger.note("notice", text="the folder exists")
    won = []

    def claim(outcome):
        if claims.claim(guard.ledger.answers.folder, "e-22222222222", outcome):
            won.append(outcome)

    threads = [threading.Thread(target=claim, args=(outcome,)) for outcome in sorted(claims.OUTCOMES) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert claims.outcome_of(guard.ledger.answers.folder, "e-22222222222") == won[0]


def test_without_a_saved_state_nothing_runs(guard):
    guard = replace(guard, target=FakeTarget())
    plan = snapshot_plan([PlanItem("state", "network")], cwd="/")
    snapshot = execution.snapshot(plan, guard, cwd="/")
    with pytest.raises(CannotRun, match="could not be taken back"):
        deadman.arm("e-22222222222", snapshot, 60, plan, guard)
    assert deadman.ARMED not in kinds(guard)


@pytest.mark.parametrize(
    ("command", "connection", "seconds"),
    [("nft flush ruleset", CONNECTION, 120), ("nft flush ruleset", "", 0), ("touch /srv/x", CONNECTION, 0)],
)
def test_on_by_default_over_ssh_and_only_for_what_can_cut_it(command, connection, seconds, guard):
    guard = replace(guard, connection=connection)
    assert deadman.seconds_for(core.check(command, cwd="/"), guard) == seconds
    assert bool(deadman.words(core.check(command, cwd="/"), guard)) == bool(seconds)


def test_process_without_an_ssh_server_above_it_has_no_connection():
    assert connection_of(1) is None
