"""Several dead men over one state that is no file: what nobody confirmed comes back with none of them."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

import core
import execution
from acting import deadman, rollback
from guard.ledger import claims
from guard.ledger.plans import snapshot_plan
from guard.types import Actor, Outcome, PlanItem, Profile, Request, Status
from tests.waiting import until

CONNECTION = "192.0.2.1 50000 192.0.2.2 22"


@pytest.fixture
def guard():
    return replace(execution.open_guard(), connection=CONNECTION)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def git(folder, *words):
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


def branches(folder):
    return git(folder, "for-each-ref", "--format=%(refname:short)")


class Changes:
    """Branches that are made as changes with a dead man each, and the helpers that wait for them."""

    def __init__(self, folder, guard):
        self.folder, self.guard, self.made = folder, guard, []

    def make(self, *names, status=Status.SUCCEEDED, seconds=60):
        """One change; returns its (execution, snapshot)."""
        plan = snapshot_plan([PlanItem("state", f"git {self.folder}")], cwd="/")
        run = self.guard.ledger.new_execution()
        snapshot = execution.snapshot(plan, self.guard, cwd="/", execution=run, reason="exec")
        self.made.append(deadman.arm(run, snapshot, seconds, plan, self.guard))
        request, judged = Request("git branch x", cwd="/", actor=Actor.PERSON), core.check("git branch x", cwd="/")
        self.guard.ledger.begin(request, judged, profile=Profile.NONE, enforced="none", execution=run)
        for name in names:
            git(self.folder, "branch", name)
        execution.record_after(snapshot, self.guard)
        self.guard.ledger.end(run, Outcome(status, execution=run, exit_code=0))
        return run, snapshot

    def fire(self, *changes):
        for change in changes:
            deadman.at_deadline(*change)

    def settle(self, change, outcome):
        claims.claim(self.guard.ledger.answers.folder, change[0], outcome)

    def close(self):
        for armed in self.made:
            deadman.stand_down(armed.execution, self.guard)
        until(lambda: not any(deadman.is_alive(armed) for armed in self.made))


@pytest.fixture
def changes(repository, guard):
    made = Changes(repository, guard)
    yield made
    made.close()


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED])
def test_a_later_change_does_not_put_back_what_an_earlier_one_was_taken_back_for(status, changes, repository):
    first = changes.make("cut")
    second = changes.make(*(["other"] if status == Status.SUCCEEDED else []), status=status)
    changes.fire(first)
    assert branches(repository) == ["main"]
    changes.fire(second)
    assert branches(repository) == ["main"]


def test_it_reaches_back_through_every_change_that_nobody_confirmed(changes, repository):
    changes.fire(*[changes.make(name) for name in ("cut", "second", "third")])
    assert branches(repository) == ["main"]


def test_what_is_taken_back_goes_back_to_what_a_confirmed_change_left(changes, repository):
    first, second = changes.make("kept"), changes.make("other")
    changes.settle(first, claims.CONFIRMED)
    changes.fire(second)
    assert branches(repository) == ["kept", "main"]


def test_a_change_that_was_whole_back_before_counts_no_more(changes, repository):
    first = changes.make("cut")
    changes.fire(first)
    git(repository, "branch", "by-somebody")
    second = changes.make("other")
    changes.fire(second)
    assert branches(repository) == ["by-somebody", "main"]


def test_one_that_still_waits_goes_by_its_own_deadline(changes, repository):
    first, second = changes.make("cut"), changes.make("other")
    changes.fire(second)
    assert branches(repository) == ["cut", "main"]
    changes.fire(first)
    assert branches(repository) == ["main"]


def test_one_that_is_taken_back_while_a_later_one_is_comes_not_back_with_it(changes, repository, monkeypatch):
    """The later one's plan was made before the earlier one's end."""
    monkeypatch.setattr(deadman, "AGAIN_S", 0.0)
    first, second = changes.make("cut"), changes.make("other")
    between, done = [first], rollback.apply

    def apply(plan, *rest, **more):
        if plan.of == second[1] and between:
            changes.fire(between.pop())
            plan = rollback.plan(plan.of, changes.guard, overruled=[f"git {repository}"], leave_conflicts=True)
        return done(plan, *rest, **more)

    monkeypatch.setattr(rollback, "apply", apply)
    changes.fire(second)
    assert branches(repository) == ["main"]
