"""A state that cannot be read stops its change, in every shell, until somebody says to go on without it."""

from __future__ import annotations

import json

import pytest

import execution
from acting import snapshots, states
from capabilities.ops import exec_tool
from capabilities.rollback_shapes import foreseen_words
from cli import opsx
from guard.bound import NO_OPTIONS, SnapshotOptions
from guard.ledger.plans import snapshot_plan
from guard.saved import label_of
from guard.types import PlanItem, Status
from tests.capabilities.world import call_in
from tests.execution.test_change_walk import approve, ask, guard, work

__all__ = ["guard", "work"]

COMMAND = "sysctl -w opsagent.nothing=1"
"""Changes nothing anywhere: no kernel has that."""
LABEL = "sysctl opsagent.nothing"
FLAG = f"--no-snapshot-of '{LABEL}'"
LEFT = SnapshotOptions(leave_out=(LABEL,))


@pytest.fixture
def unreadable(monkeypatch):
    """Its program is there and says nothing good, whatever this machine has."""
    monkeypatch.setattr(states.shutil, "which", lambda program, path=None: f"/usr/sbin/{program}")
    monkeypatch.setattr(states, "_answer", lambda read, guard: "sysctl ended with 255")


def live(guard):
    return [stamp.state for stamp in guard.ledger.stamps.listed()]


def test_it_is_not_run_and_the_flag_that_goes_on_is_named(guard, work, unreadable):
    request = ask(COMMAND, work)
    approve(request, guard)
    outcome = execution.run(request, guard).outcome
    assert (outcome.status, outcome.execution, outcome.snapshot) == (Status.SNAPSHOT_FAILED, None, None)
    assert outcome.notes == (
        f"the state of {LABEL} cannot be read (sysctl ended with 255)",
        f"to go on without a way back for it: {FLAG}",
    )
    assert live(guard) == ["live"]
    assert guard.ledger.snapshots.ids() == ()
    assert not guard.ledger.executions().executions


def test_with_the_flag_it_runs_as_it_was_approved(guard, work, unreadable):
    request = ask(COMMAND, work)
    approve(request, guard, options=LEFT)
    assert execution.run(request, guard, save=NO_OPTIONS).outcome.status == Status.NEEDS_STAMP, "another plan"
    outcome = execution.run(request, guard, save=LEFT).outcome
    assert outcome.execution and outcome.snapshot is None
    assert live(guard) == []


def test_a_program_that_is_not_installed_is_a_state_and_no_failure(guard, work, monkeypatch):
    monkeypatch.setattr(states.shutil, "which", lambda program, path=None: None)
    request = ask(COMMAND, work)
    approve(request, guard)
    outcome = execution.run(request, guard).outcome
    assert outcome.execution and outcome.snapshot
    (kept,) = guard.ledger.snapshots.load(outcome.snapshot).outputs
    assert (kept.kind, kept.name) == ("state", LABEL)


def test_who_is_asked_is_told_before_the_yes(guard, unreadable):
    plan = snapshot_plan([PlanItem("state", LABEL)], cwd="/")
    saved, missed = foreseen_words(snapshots.foreseen(plan, guard))
    assert saved == ()
    assert len(missed) == 1 and missed[0].endswith(FLAG) and missed[0].startswith("nothing can be saved, so it would")


def test_what_was_left_out_stands_in_the_snapshot_and_is_bound(guard, work, unreadable):
    items = [PlanItem("state", LABEL), PlanItem("service", "nginx"), PlanItem("state", "iptables")]
    whole = snapshot_plan(items, cwd="/")
    labels = [label_of(item.kind, item.object) for item in items]
    assert labels == [LABEL, "service nginx", "iptables"]
    left = snapshot_plan(items, cwd=str(work), files=["f"], leave_out=labels)
    assert (left.items, left.left_states, left.leave_out) == ((PlanItem("file", f"{work}/f"),), tuple(labels), ())
    assert len({whole.digest, left.digest, snapshot_plan(items[1:], cwd="/", leave_out=labels[2:]).digest}) == 3
    manifest = guard.ledger.snapshots.load(snapshots.save(left, guard))
    assert manifest.unsaved == tuple(f"the state of {label} was left out by choice" for label in labels)


def test_a_name_that_no_state_of_the_plan_has_is_a_path_and_leaves_nothing_out(guard, work):
    plan = snapshot_plan([PlanItem("service", "nginx")], cwd="/srv", leave_out=["nginx", "service redis"])
    assert plan.items == (PlanItem("service", "nginx"),)
    assert (plan.left_states, plan.leave_out) == ((), ("/srv/nginx", "/srv/service redis"))


def test_the_command_line_ends_with_5_and_says_it(guard, work, unreadable, monkeypatch, capsys):
    request = ask(COMMAND, work)
    approve(request, guard)
    monkeypatch.chdir(work)
    monkeypatch.setattr(execution, "open_guard", lambda *_, **__: guard)
    assert opsx.main(["exec", "--json", "--", COMMAND]) == 5
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "snapshot_failed" and any(note.endswith(FLAG) for note in told["notes"])


def test_a_client_over_mcp_is_told_and_can_ask_to_go_on(guard, work, unreadable):
    request = ask(COMMAND, work)
    approve(request, guard)
    tool = exec_tool(guard, call_in(work))
    told = tool.run({"command": COMMAND})
    assert told["status"] == "snapshot_failed" and any(note.endswith(FLAG) for note in told["notes"])
    asked = tool.run({"command": COMMAND, "no_snapshot_of": [LABEL]})
    assert asked["status"] == "needs_stamp", "it is another plan, so a person is asked again"
    assert guard.ledger.request(asked["request"]).no_snapshot_of == (LABEL,)
