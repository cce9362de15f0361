"""The walk of an approved change, with the real hands, a real witness and a real state folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import execution
from acting import approving, change
from capabilities.shapes import exec_object
from guard.bound import NO_OPTIONS, Consent, SnapshotOptions
from guard.clock import RandomIds, SystemClock
from guard.errors import NotApproved
from guard.hands.cancel import CancelToken
from guard.hands.liveness import ProcLiveness, process_start
from guard.hands.targets.local import LocalTarget
from guard.ledger.answers import ToApprove
from guard.ledger.store import open_ledger
from guard.redact import Redactor
from guard.types import Actor, Level, Policy, Request, Status
from tests.waiting import until

CONSENT = Consent(how="tty", rendered_sha256="0" * 64)


@pytest.fixture
def guard(tmp_path):
    redactor = Redactor()
    ledger = open_ledger(
        clock=SystemClock(),
        ids=RandomIds(),
        redact=redactor.text,
        liveness=ProcLiveness(),
        path=str(tmp_path / "state"),
    )
    return execution.Guard(LocalTarget(), ledger, redactor, SystemClock(), Policy(), hidden=(str(tmp_path / "state"),))


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def ask(command, work, **more):
    return Request(command, cwd=str(work), **more)


def approve(request, guard, *, options=NO_OPTIONS, forced=False, **terms):
    assessment = execution.assess(request, guard)
    binding = approving.bind(request, assessment, guard, options)
    stamps = guard.ledger.answers.approve([ToApprove(request, assessment, binding, forced=forced)], CONSENT, **terms)
    return stamps[0]


def kinds(guard):
    return [entry["kind"] for entry in guard.ledger.entries()]


def test_an_approved_change_is_saved_begun_run_and_ended_in_that_order(guard, work):
    (work / "f").write_text("before\n")
    request = ask("echo after > f; echo said; echo wrong >&2", work)
    stamp = approve(request, guard)
    ran = execution.run(request, guard)
    outcome = ran.outcome
    assert (outcome.status, outcome.exit_code, outcome.stamp) == (Status.SUCCEEDED, 0, stamp.id), outcome
    assert (outcome.stdout.text, outcome.stderr.text, outcome.recorded) == ("said\n", "wrong\n", True)
    assert (work / "f").read_text() == "after\n"
    assert [kind for kind in kinds(guard) if kind != "snapshot"] == ["approved", "started", "ended"]
    assert kinds(guard).index("snapshot") < kinds(guard).index("started")
    assert outcome.snapshot and guard.ledger.executions().executions[0].snapshot == outcome.snapshot


def test_a_stamp_is_used_once(guard, work):
    request = ask("echo x >> f", work)
    approve(request, guard)
    assert execution.run(request, guard).outcome.status == Status.SUCCEEDED
    again = execution.run(request, guard).outcome
    assert again.status == Status.NEEDS_STAMP and (work / "f").read_text() == "x\n"
    assert any("used" in note for note in again.notes)


def test_a_script_that_changed_by_one_byte_after_the_approval_does_not_run(guard, work):
    (work / "fix.sh").write_text("touch done1\n")
    request = ask("bash fix.sh", work)
    approve(request, guard)
    (work / "fix.sh").write_text("touch done2\n")
    outcome = execution.run(request, guard).outcome
    assert outcome.status == Status.NEEDS_STAMP and not list(work.glob("done*"))
    assert any("changed since approval" in note and "fix.sh" in note for note in outcome.notes)


def test_another_folder_needs_another_approval(guard, work, tmp_path):
    approve(ask("touch made", work), guard)
    other = tmp_path / "other"
    other.mkdir()
    assert execution.run(ask("touch made", other), guard).outcome.status == Status.NEEDS_STAMP
    assert not (other / "made").exists()


def test_the_irreversible_runs_only_when_forced_and_the_record_names_what_was_saved(guard, work):
    (work / "d").mkdir()
    (work / "d/f").write_text("x")
    request = ask("rm -rf d", work)
    assert execution.run(request, guard).outcome.status == Status.REFUSED and (work / "d").exists()
    approve(request, guard, forced=True)
    ran = execution.run(request, guard)
    assert ran.outcome.status == Status.SUCCEEDED and not (work / "d").exists()
    assert ran.assessment.level == Level.R3


def test_what_cannot_be_saved_is_not_run_and_the_stamp_still_stands(guard, work):
    os.mkfifo(work / "pipe")
    options = SnapshotOptions(files=("pipe",))
    request = ask("touch made", work)
    approve(request, guard, options=options)
    outcome = execution.run(request, guard, save=options).outcome
    if outcome.status == Status.SNAPSHOT_FAILED:
        assert not (work / "made").exists()
        assert [stamp.state for stamp in guard.ledger.stamps.listed()] == ["live"]
    else:  # a FIFO is recorded without content; then it holds
        assert outcome.status == Status.SUCCEEDED


def test_a_snapshot_too_big_for_the_disk_leaves_everything_as_it_was(guard, work, monkeypatch):
    from guard.errors import SnapshotImpossible

    (work / "f").write_text("before")
    request = ask("echo after > f", work)
    approve(request, guard)

    def impossible(*_, **__):
        raise SnapshotImpossible("no space for the snapshot of f", hint="--no-snapshot-of f")

    monkeypatch.setattr("acting.act.snapshot", impossible)
    outcome = execution.run(request, guard).outcome
    assert outcome.status == Status.SNAPSHOT_FAILED and (work / "f").read_text() == "before"
    assert [stamp.state for stamp in guard.ledger.stamps.listed()] == ["live"]
    assert any("--no-snapshot-of" in note for note in outcome.notes)


def test_a_failed_change_keeps_its_code_and_its_output(guard, work):
    request = ask("touch made; echo no >&2; exit 7", work)
    approve(request, guard)
    outcome = execution.run(request, guard).outcome
    assert (outcome.status, outcome.exit_code, outcome.stderr.text) == (Status.FAILED, 7, "no\n")


def test_a_change_outlives_the_shell_that_asked_and_its_end_is_on_record(guard, work, tmp_path):
    """The asking process is killed while the change runs."""
    request = ask("touch begun; sleep 1; touch finished", work)
    approve(request, guard)
    root = str(Path(__file__).resolve().parents[2])
    script = (
        f"import sys; sys.path[:0] = [{root!r}]\n"
        "import execution\nfrom guard.types import Request\n"
        f"execution.run(Request({request.command!r}, cwd={str(work)!r}), execution.open_guard())\n"
    )
    asking = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "OPSAGENT_HOME": str(tmp_path / "state"), "PATH": os.defpath},
        stdin=subprocess.DEVNULL,
    )
    until((work / "begun").exists)  # killed before its gate is open, nothing would run (and that is recorded)
    asking.send_signal(signal.SIGKILL)
    asking.wait()
    until(lambda: guard.ledger.executions().executions[0].status == Status.SUCCEEDED)
    assert (work / "finished").exists()


def test_a_witness_that_is_killed_reads_as_unknown_and_blocks_the_same_change(guard, work):
    request = ask("echo x >> f; sleep 30", work)
    approve(request, guard, uses=2)
    seen = []

    def begun(execution_id):
        seen.append(execution_id)

    def kill_soon(stream, data):
        run = guard.ledger.show(seen[0]).execution
        os.kill(run.pid, signal.SIGKILL)

    request = ask("echo x >> f; echo go; sleep 30", work)
    approve(request, guard, uses=2)
    outcome = execution.run(request, guard, on_begin=begun, on_output=kill_soon).outcome
    assert outcome.status == Status.UNKNOWN
    blocked = execution.run(request, guard).outcome
    assert blocked.status == Status.UNKNOWN and blocked.execution is None
    assert any("opsx resolve" in note for note in blocked.notes)
    assert (work / "f").read_text() == "x\n"


def test_a_cancelled_change_is_ended_and_recorded_as_cancelled(guard, work):
    request = ask("touch f; echo go; sleep 30", work)
    approve(request, guard)
    token = CancelToken()
    outcome = execution.run(request, guard, cancel=token, on_output=lambda *_: token.set()).outcome
    assert outcome.status == Status.CANCELLED
    assert guard.ledger.executions().executions[0].status == Status.CANCELLED


def test_what_is_unsafe_to_interrupt_goes_on_and_is_said(guard, work, monkeypatch):
    monkeypatch.setitem(change.UNSAFE_TO_INTERRUPT, "touch", "a file half touched")
    request = ask("touch f; echo go; sleep 1; touch finished", work)
    approve(request, guard)
    token = CancelToken()
    outcome = execution.run(request, guard, cancel=token, on_output=lambda *_: token.set()).outcome
    assert outcome.status == Status.RUNNING and any("half touched" in note for note in outcome.notes)
    until(lambda: guard.ledger.executions().executions[0].status == Status.SUCCEEDED)
    assert (work / "finished").exists()


def test_a_gate_that_closes_without_an_order_runs_nothing(guard, work, monkeypatch):
    request = ask("touch made", work)
    approve(request, guard)

    def refused(*_, **__):
        raise NotApproved("revoked in the meantime")

    monkeypatch.setattr(type(guard.ledger), "begin", refused)
    with pytest.raises(NotApproved):
        execution.run(request, guard)
    assert not (work / "made").exists() and kinds(guard) == ["approved", "snapshot"]


def test_a_four_kilobyte_command_survives_byte_for_byte(guard, work):
    text = "你好 'single' \"double\" $HOME `tick` \\n " * 110
    (work / "want").write_text(text)
    request = ask(f"cat > got <<'END OF IT'\n{text}\nEND OF IT", work)
    assert len(request.command.encode()) > 4000
    approve(request, guard)
    assert execution.run(request, guard).outcome.status == Status.SUCCEEDED
    assert (work / "got").read_text() == text + "\n"


def test_an_agents_own_approval_is_never_asked_for(guard, work):
    outcome = execution.run(ask("opsx approve --force -- rm -rf /", work, actor=Actor.AGENT), guard).outcome
    assert outcome.status == Status.REFUSED and outcome.request_id is None


def test_a_child_of_the_change_does_not_see_the_witness_pipes(guard, work):
    request = ask("ls /proc/self/fd | wc -l > fds; cat > stdin", work)
    approve(request, guard)
    assert execution.run(request, guard).outcome.status == Status.SUCCEEDED
    assert int((work / "fds").read_text()) <= 4 and (work / "stdin").read_text() == ""


def test_process_start_tells_processes_apart():
    assert process_start(os.getpid()) and process_start(0) == 0


def test_the_output_of_a_running_change_can_be_followed_redacted(guard, work, tmp_path):
    secret = "ghp_" + "a1B2c3D4e5" * 4
    request = ask(f"echo first; echo token {secret}; sleep 1; echo last; touch f", work)
    approve(request, guard)
    seen = []

    def look(stream, data):
        seen.append((tmp_path / "state/outputs").glob("*.stdout.txt"))

    outcome = execution.run(request, guard, on_output=look).outcome
    assert seen and outcome.output_file
    text = Path(outcome.output_file).read_text()
    assert text.startswith("first\n") and text.endswith("last\n") and secret not in text


def test_a_begin_without_an_order_is_recorded_as_nothing_ran(guard, work):
    """The owner dies between the recorded begin and the open gate."""
    execution_id = guard.ledger.new_execution()
    witness = change._start_witness(execution_id)
    request = ask("touch made", work)
    assessment = execution.assess(request, guard)
    guard.ledger.begin(
        request,
        assessment,
        profile="none",
        enforced="none",
        execution=execution_id,
        owner=(witness.pid, str(witness.start)),
    )
    witness.close_gate()
    recorded = guard.ledger.show(execution_id).execution
    assert recorded.status == Status.CANCELLED and "nothing ran" in recorded.notes[0]
    assert not (work / "made").exists()


def test_asker_is_told_of_a_denial_once_more(guard, work):
    request = ask("echo x > f", work)
    first = execution.run(request, guard).outcome
    assert not any("denied" in note for note in first.notes)
    guard.ledger.answers.deny(request, request_id=first.request_id, reason="not on friday, token=abcdEFGH12345678")
    outcome = execution.run(request, guard).outcome
    (note,) = [note for note in outcome.notes if note.startswith("you denied this at 2")]
    assert "not on friday" in note and "abcdEFGH12345678" not in note
    assert not execution.run(ask("echo x > g", work), guard).outcome.notes


@pytest.mark.parametrize(
    ("command", "options", "saved", "reversible"),
    [
        ("./r.sh", SnapshotOptions(), [], "no"),
        ("./r.sh", SnapshotOptions(files=("f",)), [("file", "f")], "partial"),
        ("./r.sh", SnapshotOptions(commands=("list::ls",)), [("command", "list")], "no"),
        ("echo x > f", SnapshotOptions(), [("file", "f")], "yes"),
        ("echo x > f", SnapshotOptions(files=("g",)), [("file", "f"), ("file", "g")], "yes"),
        ("echo x > f", SnapshotOptions(leave_out=("f",)), [], "partial"),
        ("echo x > f", SnapshotOptions(leave_out=("elsewhere",)), [("file", "f")], "yes"),
        ("echo x > f; echo x > g", SnapshotOptions(leave_out=("f",)), [("file", "g")], "partial"),
    ],
)
def test_shape_tells_what_is_saved_with_what_the_asker_adds_and_leaves_out(
    guard, work, command, options, saved, reversible
):
    (work / "r.sh").write_text("#!/bin/sh\necho x > f\n")
    (work / "r.sh").chmod(0o755)
    request = ask(command, work)
    asked = exec_object(execution.run(request, guard, save=options))
    approve(request, guard, options=options)
    ran = exec_object(execution.run(request, guard, save=options))
    assert (asked["status"], ran["status"]) == (Status.NEEDS_STAMP, Status.SUCCEEDED)
    for shape in (asked, ran):
        told = [(item["kind"], os.path.basename(item["object"])) for item in shape["snapshot_plan"]]
        assert (told, shape["reversible"]) == (saved, reversible)
    assert bool(ran["snapshot"]) == bool(saved)


def test_shape_of_a_read_names_nothing_that_is_saved(guard, work):
    (work / "f").write_text("")
    read = exec_object(execution.run(ask("ls", work), guard, save=SnapshotOptions(files=("f",))))
    assert (read["status"], read["snapshot_plan"], read["snapshot"]) == (Status.SUCCEEDED, [], None)
