"""The helper that takes a change back: armed before it, settled once, whoever dies in between."""

from __future__ import annotations

import os
import pathlib
import shutil
import threading
from dataclasses import replace

import pytest

import core
import execution
from acting import confirming, deadman, rollback_request
from guard.errors import CannotRun, NotPermitted
from guard.hands.connection import Connection
from guard.ledger import claims
from guard.ledger.plans import snapshot_plan
from guard.types import Actor, Outcome, PlanItem, Profile, Request, Status
from tests.deadman.armed import CONNECTION, changed
from tests.fakes import FakeTarget
from tests.waiting import until


@pytest.fixture
def guard():
    return replace(execution.open_guard(), connection=CONNECTION)


def connection(guard, *, since_s=1.0, text="192.0.2.1 50001 192.0.2.2 22", is_live=True, is_own=False):
    return Connection(1, guard.clock.boot_s() + since_s, text, is_live, is_own)


def come_in_by(monkeypatch, connection, inside=""):
    monkeypatch.setattr("guard.hands.connection.connection_of", lambda pid: connection)
    monkeypatch.setattr("guard.hands.connection.multiplexer_of", lambda pid: inside)


def kinds(guard):
    return [entry["kind"] for entry in guard.ledger.entries()]


def test_unconfirmed_change_is_taken_back_once_by_a_process_of_its_own(guard, tmp_path):
    file = tmp_path / "sshd_config"
    file.write_text("before")
    armed = changed(guard, file, 2)
    assert deadman.is_alive(armed)
    assert os.getsid(armed.pid) != os.getsid(0)
    until(lambda: deadman.ended_as(armed.execution, guard))
    until(lambda: not deadman.is_alive(armed))
    assert file.read_text() == "before"
    assert deadman.ended_as(armed.execution, guard) == claims.FIRED
    assert kinds(guard).count("rollback_planned") == 1
    with pytest.raises(NotPermitted, match="settled already: fired"):
        confirming.confirm(armed.execution, guard, actor=Actor.PERSON, pid=os.getpid())


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


def test_what_keeps_a_change_from_beginning_stands_it_down(guard, tmp_path):
    armed = changed(guard, tmp_path / "f", 60)
    with deadman.stood_down_unless_begun(None, guard), deadman.stood_down_unless_begun(armed, guard):
        pass
    assert deadman.ended_as(armed.execution, guard) == ""
    with pytest.raises(KeyboardInterrupt), deadman.stood_down_unless_begun(armed, guard):
        raise KeyboardInterrupt
    assert deadman.ended_as(armed.execution, guard) == claims.STOOD_DOWN
    until(lambda: not deadman.is_alive(armed))


def test_confirmed_change_stays(guard, tmp_path, monkeypatch):
    file = tmp_path / "f"
    file.write_text("before")
    armed = changed(guard, file, 30)
    come_in_by(monkeypatch, connection(guard))
    confirming.confirm(armed.execution, guard, actor=Actor.PERSON, pid=os.getpid())
    until(lambda: not deadman.is_alive(armed))
    assert file.read_text() == "changed"
    assert kinds(guard)[-1] == deadman.CONFIRMED


NOT_CONFIRMING = {
    "an agent": ({"actor": Actor.AGENT}, "only a person"),
    "a console": ({"none": True}, "no ssh connection"),
    "tmux": ({"none": True, "inside": "tmux"}, "belongs to tmux"),
    "what does not stand": ({"is_live": False}, "no ssh connection that stands"),
    "the old one": ({"since_s": -60}, "opened before the change ended"),
    "the same one": ({"text": CONNECTION}, "opened before the change ended"),
    "this machine": ({"is_own": True}, "from this machine itself"),
}


@pytest.mark.parametrize("way", NOT_CONFIRMING)
def test_no_other_word_confirms(way, guard, tmp_path, monkeypatch):
    more, why = NOT_CONFIRMING[way]
    actor, inside = more.pop("actor", Actor.PERSON), more.pop("inside", "")
    file = tmp_path / "f"
    file.write_text("before")
    armed = changed(guard, file, 60)
    come_in_by(monkeypatch, None if more.pop("none", False) else connection(guard, **more), inside)
    with pytest.raises(NotPermitted, match=why):
        confirming.confirm(armed.execution, guard, actor=actor, pid=os.getpid())
    assert deadman.ended_as(armed.execution, guard) == ""
    deadman.stand_down(armed.execution, guard)
    until(lambda: not deadman.is_alive(armed))


def test_whoever_always_comes_through_this_machine_confirms_through_it(guard, tmp_path, monkeypatch):
    guard = replace(guard, connection="127.0.0.1 40000 127.0.0.1 22")
    file = tmp_path / "f"
    file.write_text("before")
    armed = changed(guard, file, 60)
    come_in_by(monkeypatch, connection(guard, is_own=True))
    confirming.confirm(armed.execution, guard, actor=Actor.PERSON, pid=os.getpid())
    assert deadman.ended_as(armed.execution, guard) == claims.CONFIRMED
    until(lambda: not deadman.is_alive(armed))


def test_a_change_whose_end_nobody_could_record_is_confirmed_by_nothing(guard, tmp_path, monkeypatch):
    monkeypatch.setattr(deadman, "change_ended", lambda execution, guard: None)
    file = tmp_path / "f"
    file.write_text("before")
    armed = changed(guard, file, 60)
    come_in_by(monkeypatch, connection(guard))
    with pytest.raises(NotPermitted, match="has not ended yet"):
        confirming.confirm(armed.execution, guard, actor=Actor.PERSON, pid=os.getpid())
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
    plan = snapshot_plan([PlanItem("state", "network")], cwd="/", leave_out=["network"])
    snapshot = execution.snapshot(plan, guard, cwd="/")
    with pytest.raises(CannotRun, match="could not be taken back"):
        deadman.arm("e-22222222222", snapshot, 60, plan, guard)
    assert deadman.ARMED not in kinds(guard)


@pytest.mark.parametrize(
    ("command", "connection", "seconds", "said"),
    [
        ("nft flush ruleset", CONNECTION, 120, ["taken back by itself"]),
        ("nft flush ruleset", "", 0, []),
        ("touch /srv/x", CONNECTION, 0, []),
        ("bash fw.sh", CONNECTION, 0, ["nothing is known that could bring it back"]),
        ("bash fw.sh", "", 0, []),
        ("pkill sshd", CONNECTION, 0, ["the ssh server's processes"]),
        ("nft -f f; pkill sshd", CONNECTION, 120, ["taken back by itself", "the ssh server's processes"]),
    ],
)
def test_on_by_default_over_ssh_and_only_for_what_can_cut_it(command, connection, seconds, said, guard):
    guard = replace(guard, connection=connection)
    assessment = core.check(command, cwd="/")
    assert deadman.seconds_for(assessment, guard) == seconds
    words = deadman.words(assessment, guard)
    assert len(words) == len(said)
    assert all(part in line for part, line in zip(said, words, strict=True))


@pytest.mark.parametrize("spared", [False, True])
def test_a_file_that_decides_who_comes_in_and_is_not_kept_lets_nothing_run(guard, spared, monkeypatch, tmp_path):
    name = tmp_path / "sshd_config"
    name.write_text("before")
    monkeypatch.setattr("guard.judge.cutpaths.PATHS", (str(name),))
    beside = tmp_path / "other"
    beside.write_text("before")
    plan = snapshot_plan((), cwd="/", files=[str(name), str(beside)], leave_out=[str(name)] if spared else [])
    snapshot = execution.snapshot(plan, guard, cwd="/")
    if not spared:
        assert deadman._not_saved(snapshot, plan, guard) == ""
        return
    with pytest.raises(CannotRun, match="left out of what is saved"):
        deadman.arm("e-22222222222", snapshot, 60, plan, guard)
    assert deadman.ARMED not in kinds(guard)


def keys_in(folder):
    """A file that decides who comes in, and is nobody's."""
    file = folder / ".ssh" / "authorized_keys"
    file.parent.mkdir()
    file.write_text("before")
    return file


def rolled_back(run, guard, seconds):
    plan = execution.plan_rollback(run, guard)
    request = Request(rollback_request.request_of(plan), cwd="/", actor=Actor.PERSON)
    return execution.apply_rollback(plan, request, replace(guard, dead_man_s=seconds), consent="tty")


def test_a_rollback_that_can_keep_a_person_out_is_watched_over_too(guard, tmp_path):
    file = keys_in(tmp_path)
    first = changed(guard, file, 60)
    deadman.stand_down(first.execution, guard)
    done = rolled_back(first.execution, guard, 2)
    assert (done.status, file.read_text()) == (Status.SUCCEEDED, "before")
    assert any(f"opsx confirm {done.execution}" in note for note in done.notes)
    until(lambda: deadman.result_of(done.execution, guard))
    assert file.read_text() == "changed"
    # What it does itself is watched over by nobody.
    assert kinds(guard).count(deadman.ARMED) == 2


def test_a_rollback_goes_on_where_nothing_can_watch_over_it_and_says_so(guard, tmp_path, monkeypatch):
    file = keys_in(tmp_path)
    first = changed(guard, file, 60)
    deadman.stand_down(first.execution, guard)

    def fails(*order):
        raise OSError("no processes left")

    monkeypatch.setattr(deadman, "_start", fails)
    done = rolled_back(first.execution, guard, 60)
    assert (done.status, file.read_text()) == (Status.SUCCEEDED, "before")
    assert any("nothing takes it back by itself" in note for note in done.notes)


@pytest.mark.parametrize(("name", "connection"), [("authorized_keys", ""), ("config", CONNECTION)])
def test_a_rollback_that_keeps_nobody_out_or_is_done_at_a_console_is_not(name, connection, guard, tmp_path):
    file = keys_in(tmp_path).with_name(name)
    file.write_text("before")
    first = changed(guard, file, 60)
    deadman.stand_down(first.execution, guard)
    done = rolled_back(first.execution, replace(guard, connection=connection), 60)
    assert (done.status, file.read_text()) == (Status.SUCCEEDED, "before")
    assert kinds(guard).count(deadman.ARMED) == 1


@pytest.mark.parametrize("confirmed", [False, True])
def test_of_two_changes_of_one_file_none_that_nobody_confirmed_stays(confirmed, guard, tmp_path):
    """The first is not left in place because the second, which nobody confirmed either, wrote over it."""
    file = keys_in(tmp_path)
    first = changed(guard, file, 60)
    second = changed(guard, file, 60, "changed again")
    if confirmed:
        claims.claim(guard.ledger.answers.folder, second.execution, claims.CONFIRMED)
    snapshot = next(str(one["snapshot"]) for one in guard.ledger.entries() if one["kind"] == deadman.ARMED)
    deadman.at_deadline(first.execution, snapshot)
    assert file.read_text() == ("changed again" if confirmed else "before")
    deadman.stand_down(second.execution, guard)
    until(lambda: not deadman.is_alive(first) and not deadman.is_alive(second))


def test_a_later_change_whose_snapshot_is_lost_keeps_none_from_being_taken_back(guard, tmp_path, monkeypatch):
    """What it wrote stays, for nobody knows any more that it did; all else goes back."""
    monkeypatch.setattr(deadman, "AGAIN_S", 0.0)
    file = keys_in(tmp_path)
    other = file.with_name("rc")
    other.write_text("before")
    first = changed(guard, file, 60, also=[other])
    second = changed(guard, file, 60, "changed again")
    saved, lost = (str(one["snapshot"]) for one in guard.ledger.entries() if one["kind"] == deadman.ARMED)
    shutil.rmtree(pathlib.Path(guard.ledger.folder.path, "snapshots", lost))
    deadman.at_deadline(first.execution, saved)
    assert (file.read_text(), other.read_text()) == ("changed again", "before")
    for one in (first, second):
        deadman.stand_down(one.execution, guard)
    until(lambda: not deadman.is_alive(first) and not deadman.is_alive(second))
