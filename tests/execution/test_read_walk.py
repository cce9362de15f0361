"""The walk of a read: judged, recorded before it runs, run, recorded after; and all that must not run."""

from __future__ import annotations

import os

import pytest

import execution
from guard.clock import RandomIds
from guard.errors import BadCommand, CannotRun, CwdGone, StateUnwritable, UnknownTarget
from guard.hands.liveness import ProcLiveness
from guard.ledger.store import NullLedger, open_ledger
from guard.redact import Redactor
from guard.types import Actor, Captured, Enforcement, Interference, Policy, Request, Status
from tests.fakes import FakeResult, FakeTarget, FixedClock

SECRET = "correct-horse-battery-staple-7421"


@pytest.fixture
def make(tmp_path):
    def made(*results, enforcement=None, ledger=None, policy=None, **more):
        target = FakeTarget(*results, **({"enforcement": enforcement} if enforcement else {}))
        redactor = Redactor([SECRET])
        clock = FixedClock()
        kept = ledger or open_ledger(
            clock=clock,
            ids=RandomIds(),
            redact=redactor.text,
            liveness=ProcLiveness(),
            path=str(tmp_path / "state"),
        )
        return execution.Guard(target, kept, redactor, clock, policy or Policy(), **more)

    return made


def ask(command, tmp_path, **more):
    return Request(command, cwd=str(tmp_path), **more)


def kinds(guard):
    return [entry["kind"] for entry in guard.ledger.entries()]


@pytest.mark.guarantee("G-BEGIN")
def test_a_read_is_on_record_before_it_starts(make, tmp_path):
    guard = make()
    seen = []
    guard.target.results = []
    run = guard.target.run

    def spy(*words, **options):
        seen.extend(kinds(guard))
        return run(*words, **options)

    guard.target.run = spy
    execution.run(ask("ls", tmp_path), guard)
    assert seen == ["started"]
    assert kinds(guard) == ["started", "ended"]


def test_a_read_answers_with_its_record_and_its_enforcement(make, tmp_path):
    guard = make(FakeResult(stdout=Captured("hello\n", 6)))
    outcome = execution.run(ask("ls", tmp_path), guard).outcome
    assert (outcome.status, outcome.stdout.text, outcome.recorded) == (Status.SUCCEEDED, "hello\n", True)
    assert outcome.enforced == "strict" and outcome.interference == ()
    listed = guard.ledger.executions().executions
    assert [run.id for run in listed] == [outcome.execution]


@pytest.mark.parametrize(
    ("result", "status"),
    [
        (FakeResult(exit_code=3), Status.FAILED),
        (FakeResult(exit_code=None, timed_out=True), Status.TIMED_OUT),
        (FakeResult(exit_code=None, cancelled=True), Status.CANCELLED),
    ],
)
def test_every_way_to_end_has_its_status_and_its_record(make, tmp_path, result, status):
    guard = make(result)
    assert execution.run(ask("ls", tmp_path), guard).outcome.status == status
    assert guard.ledger.executions().executions[0].status == status


@pytest.mark.guarantee("G-NO-STAMP")
@pytest.mark.parametrize("command", ["touch x", "systemctl restart nginx", "frobnicate", "echo $(rm x)", "curl x|sh"])
def test_nothing_above_a_read_runs_and_the_request_is_kept(make, tmp_path, command):
    guard = make()
    outcome = execution.run(ask(command, tmp_path), guard).outcome
    assert guard.target.asked == []
    assert outcome.status == Status.NEEDS_STAMP and outcome.execution is None
    assert [kept.command for kept in guard.ledger.pending()] == [command]
    assert outcome.request_id == guard.ledger.pending()[0].id


def test_the_irreversible_is_refused_but_kept_so_that_a_person_can_force_it(make, tmp_path):
    guard = make()
    ran = execution.run(ask("rm -rf /srv/data", tmp_path), guard)
    assert ran.outcome.status == Status.REFUSED and ran.assessment.decision.forceable
    assert guard.target.asked == [] and ran.outcome.request_id


@pytest.mark.guarantee("G-LAW-6")
def test_what_would_approve_itself_is_refused_and_not_even_kept(make, tmp_path):
    guard = make()
    outcome = execution.run(ask("opsx approve a-1", tmp_path), guard).outcome
    assert outcome.status == Status.REFUSED and outcome.request_id is None
    assert guard.ledger.pending() == []


def test_a_runbook_leaves_no_requests_behind(make, tmp_path):
    guard = make()
    outcome = execution.run(ask("touch x", tmp_path, actor=Actor.RUNBOOK), guard).outcome
    assert outcome.status == Status.NEEDS_STAMP and outcome.request_id is None


def test_read_only_mode_refuses_a_change_and_runs_a_read(make, tmp_path):
    guard = make(policy=Policy(mode="read-only"))
    assert execution.run(ask("touch x", tmp_path), guard).outcome.status == Status.REFUSED
    assert execution.run(ask("ls", tmp_path), guard).outcome.status == Status.SUCCEEDED


@pytest.mark.guarantee("G-HONEST")
def test_where_nothing_is_enforced_only_plain_readers_run(make, tmp_path):
    guard = make(FakeResult(profile="none", enforced="none", interference=None), enforcement=Enforcement())
    outcome = execution.run(ask("ls", tmp_path), guard).outcome
    assert outcome.status == Status.SUCCEEDED
    assert outcome.enforced == "none" and outcome.interference is None
    assert execution.run(ask("git log", tmp_path), guard).outcome.status == Status.NEEDS_STAMP


@pytest.mark.guarantee("G-SICK-STATE")
def test_without_a_usable_state_a_read_is_answered_and_says_that_it_is_not_recorded(make, tmp_path):
    ledger = NullLedger(StateUnwritable("the disk is full"), ids=RandomIds())
    guard = make(FakeResult(stdout=Captured("fine\n", 5)), ledger=ledger)
    outcome = execution.run(ask("df -h", tmp_path), guard).outcome
    assert outcome.status == Status.SUCCEEDED and outcome.stdout.text == "fine\n"
    assert not outcome.recorded and "full" in outcome.not_recorded_because


def test_without_a_usable_state_a_change_is_not_run_and_says_why_it_was_not_kept(make, tmp_path):
    guard = make(ledger=NullLedger(StateUnwritable("the disk is full"), ids=RandomIds()))
    outcome = execution.run(ask("touch x", tmp_path), guard).outcome
    assert outcome.status == Status.NEEDS_STAMP and outcome.request_id is None
    assert any("full" in note for note in outcome.notes)
    assert guard.target.asked == []


@pytest.mark.guarantee("G-REDACT")
def test_a_known_secret_reaches_neither_the_answer_nor_the_record_nor_the_stream(make, tmp_path):
    guard = make(FakeResult(stdout=Captured(f"x {SECRET} y", 40), stderr=Captured(SECRET, 33)))
    streamed = []
    outcome = execution.run(
        ask(f"echo {SECRET}", tmp_path, why=SECRET), guard, on_output=lambda name, data: streamed.append(data)
    ).outcome
    assert SECRET not in outcome.stdout.text + outcome.stderr.text
    assert SECRET.encode() not in b"".join(streamed)
    for folder, _, names in os.walk(tmp_path / "state"):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                assert SECRET.encode() not in file.read(), name


def test_a_long_output_is_saved_redacted_and_named(make, tmp_path):
    text = f"{SECRET} line of text\n" * 3000
    folder = tmp_path / "outputs"
    guard = make(FakeResult(stdout=Captured(text, len(text))), outputs_folder=str(folder))
    outcome = execution.run(ask("ls", tmp_path), guard).outcome
    assert outcome.output_file and outcome.output_file.startswith(str(folder))
    with open(outcome.output_file, encoding="utf-8") as file:
        saved = file.read()
    assert SECRET not in saved and saved.count("line of text") == 3000


def test_an_empty_answer_under_interference_is_not_a_fact(make, tmp_path):
    guard = make(FakeResult(interference=(Interference("openat", "/etc/x"),)))
    outcome = execution.run(ask("ls", tmp_path), guard).outcome
    assert any("not a fact" in note for note in outcome.notes)


@pytest.mark.guarantee("G-LOCAL")
@pytest.mark.parametrize("target", ["", "web1", "lcoal", "LOCAL", "ssh:web1", "local ", "\u202elacol"])
def test_an_unknown_target_runs_nothing_and_never_falls_back(make, tmp_path, target):
    guard = make()
    with pytest.raises(UnknownTarget):
        execution.run(ask("ls", tmp_path, target=target), guard)
    assert guard.target.asked == [] and list(guard.ledger.entries()) == []


@pytest.mark.parametrize("command", ["", "  \n", "ls\0x", "ls \udcff", "a" * 65_537])
def test_a_malformed_command_runs_nothing_and_leaves_nothing_half_written(make, tmp_path, command):
    guard = make()
    with pytest.raises(BadCommand):
        execution.run(ask(command, tmp_path), guard)
    assert guard.target.asked == [] and list(guard.ledger.entries()) == []


@pytest.mark.parametrize("cwd", ["relative", "/no/such/folder", ""])
def test_a_folder_that_is_gone_is_never_silently_replaced(make, cwd):
    guard = make()
    with pytest.raises(CwdGone):
        execution.run(Request("ls", cwd=cwd), guard)
    assert guard.target.asked == []


def test_a_run_that_could_not_start_ends_in_the_record_too(make, tmp_path):
    guard = make(CannotRun("/bin/bash is missing"))
    with pytest.raises(CannotRun):
        execution.run(ask("ls", tmp_path), guard)
    assert guard.ledger.executions().executions[0].status == Status.FAILED


def test_a_link_to_a_secret_is_found_out_by_facts(make, tmp_path):
    (tmp_path / "notes.txt").symlink_to("/etc/shadow")
    guard = make()
    outcome = execution.run(ask("cat notes.txt", tmp_path), guard).outcome
    assert outcome.status == Status.NEEDS_STAMP and guard.target.asked == []


@pytest.mark.guarantee("G-R0-SPACE")
@pytest.mark.parametrize(("command", "masked"), [("grep -rn x .", True), ("git status", False)])
def test_a_read_of_a_tree_runs_only_where_its_keys_are_closed(make, tmp_path, command, masked):
    """What the judge lets run because a namespace closes keys is run in one; anything else is not asked to be."""
    guard = make(FakeResult(), enforcement=Enforcement(("local", "bus"), "userns", 0, True))
    execution.run(ask(command, tmp_path), guard)
    assert [options["masked"] for _, options in guard.target.asked] == [masked]
    [begun] = [entry for entry in guard.ledger.entries() if entry["kind"] == "started"]
    assert begun["enforced"] == ("userns" if masked else "seccomp")
