"""A rollback as people and programs use it: through `execution` and `opsx`, with its records."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import sys
import time
from pathlib import Path

import pytest

import execution
from acting import rollback, rollback_request
from cli import opsx
from guard.bound import Consent
from guard.clock import RandomIds, SystemClock
from guard.errors import NotPermitted, NoWayBack, SnapshotImpossible, StateBusy, UsageError
from guard.hands.liveness import ProcLiveness
from guard.ledger.answers import ToApprove
from guard.ledger.plans import snapshot_plan
from guard.ledger.store import NullLedger, open_ledger
from guard.redact import Redactor
from guard.saved import RollbackAsked
from guard.types import Captured, Level, PlanItem, Request, Status
from tests.fakes import FakeResult, FakeTarget, FixedClock
from tests.snapshot.test_snapshot_crash import in_child

AS_PERSON = str(Path(__file__).with_name("as_person.py"))


@pytest.fixture
def guard():
    ledger = open_ledger(clock=SystemClock(), ids=RandomIds(), redact=Redactor().text, liveness=ProcLiveness())
    return execution.Guard(FakeTarget(), ledger, Redactor(), FixedClock())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "one").write_text("alpha\n")
    return tmp_path / "etc"


def save(guard, folder, **more):
    return execution.snapshot(snapshot_plan((), cwd=str(folder), files=["."], **more), guard, cwd=str(folder))


def apply(guard, plan, **more):
    request = Request(execution.rollback_request(plan), cwd="/", actor="person")
    return execution.apply_rollback(plan, request, guard, **{"consent": "tty", **more})


def kinds(guard, execution_id):
    return [entry["kind"] for entry in guard.ledger.show(execution_id).entries]


@pytest.mark.guarantee("G-ROLLBACK-UNDO")
def test_a_day_of_changes_goes_back_and_forth(guard, folder):
    saved = save(guard, folder)
    (folder / "one").write_text("beta\n")
    (folder / "one").chmod(0o600)
    done = apply(guard, execution.plan_rollback(saved, guard))
    assert (done.status, (folder / "one").read_text()) == (Status.SUCCEEDED, "alpha\n")
    assert kinds(guard, done.execution) == ["snapshot", "started", "rollback_planned", "rollback_step", "ended"]
    shown = guard.ledger.show(done.execution).execution
    assert (shown.status, shown.level, shown.snapshot) == (Status.SUCCEEDED, "R2", done.snapshot)
    assert f"--plan {done.plan.digest}" in shown.command

    again = apply(guard, execution.plan_rollback(done.execution, guard))
    assert ((folder / "one").read_text(), (folder / "one").stat().st_mode & 0o777) == ("beta\n", 0o600)
    back = apply(guard, execution.plan_rollback(again.execution, guard))
    assert back.status == Status.SUCCEEDED
    assert (folder / "one").read_text() == "alpha\n"


def test_nothing_is_touched_without_a_consent(guard, folder):
    saved = save(guard, folder)
    (folder / "one").write_text("beta\n")
    plan = execution.plan_rollback(saved, guard)
    with pytest.raises(NotPermitted):
        apply(guard, plan, consent="")
    assert (folder / "one").read_text() == "beta\n"


@pytest.mark.guarantee("G-ROLLBACK-EXACT")
def test_a_plan_that_is_not_the_plan_any_more_is_not_applied(guard, folder):
    saved = save(guard, folder)
    (folder / "one").write_text("beta\n")
    plan = execution.plan_rollback(saved, guard)
    (folder / "one").write_text("gamma\n")
    with pytest.raises(NotPermitted, match=f"changed since the plan was made: {folder}/one"):
        apply(guard, plan)
    assert (folder / "one").read_text() == "gamma\n"


def test_conflicts_stop_it_before_anything_is_saved_or_begun(guard, folder):
    saved = save(guard, folder)
    (folder / "one").write_text("by the run\n")
    assert execution.record_after(saved, guard) == ""
    (folder / "one").write_text("by hand\n")
    done = apply(guard, execution.plan_rollback(saved, guard))
    assert (done.status, done.execution) == (Status.REFUSED, None)
    assert len(guard.ledger.snapshots.ids()) == 1
    assert (folder / "one").read_text() == "by hand\n"


@pytest.mark.guarantee("G-ROLLBACK-RESUME")
def test_a_killed_rollback_reads_as_unknown_and_goes_on(guard, folder):
    for number in range(3):
        (folder / f"file-{number}").write_text("before")
    saved = save(guard, folder)
    for number in range(3):
        (folder / f"file-{number}").write_text("after")
    execution.record_after(saved, guard)

    def killed_after_one_step():
        count = 0

        def checkpoint(name):
            nonlocal count
            count += name == "recorded"
            if count == 1:
                os._exit(9)

        plan = execution.plan_rollback(saved, guard_again())
        request = Request(execution.rollback_request(plan), cwd="/", actor="person")
        rollback.apply(plan, request, guard_again(), consent="tty", checkpoint=checkpoint)

    assert in_child(killed_after_one_step) == 9
    (unknown,) = guard.ledger.executions(status=Status.UNKNOWN).executions
    assert sorted(path.read_text() for path in folder.glob("file-*")) == ["after", "after", "before"]

    done = apply(guard, execution.plan_rollback(saved, guard))
    assert done.status == Status.SUCCEEDED
    assert {path.read_text() for path in folder.glob("file-*")} == {"before"}
    assert guard.ledger.show(unknown.id).execution.resolution == "done"


def guard_again():
    ledger = open_ledger(clock=SystemClock(), ids=RandomIds(), redact=Redactor().text, liveness=ProcLiveness())
    return execution.Guard(FakeTarget(), ledger, Redactor(), FixedClock())


def test_two_rollbacks_of_one_snapshot_do_not_run_at_once(guard, folder, monkeypatch):
    saved = save(guard, folder)
    (folder / "one").write_text("beta\n")
    plan = execution.plan_rollback(saved, guard)
    from guard.hands import restore

    def meanwhile(*arguments, **options):
        with pytest.raises(StateBusy, match="is going on"):
            execution.plan_rollback(saved, guard_again())
        return ()

    monkeypatch.setattr(restore, "apply", meanwhile)
    assert apply(guard, plan).status == Status.SUCCEEDED


def test_ids_with_nothing_behind_them(guard):
    for of, error in (("e-none", NoWayBack), ("s-none", NoWayBack), ("a-none", UsageError), ("../x", UsageError)):
        with pytest.raises(error):
            execution.plan_rollback(of, guard)


def test_what_reads_say_is_kept_byte_for_byte(folder):
    class Saying(FakeTarget):
        def run(self, command, *, on_output=None, **options):
            on_output("stdout", b"-A INPUT \xff\n")
            on_output("stderr", b"not this")
            return FakeResult(stdout=Captured("x", 11), exit_code=self.ends_with)

    target = Saying()
    target.ends_with = 0
    ledger = open_ledger(clock=SystemClock(), ids=RandomIds(), redact=Redactor().text, liveness=ProcLiveness())
    guard = execution.Guard(target, ledger, Redactor(), FixedClock())
    saved = save(guard, folder, commands=["disk::df -h"])
    manifest = ledger.snapshots.load(saved)
    with ledger.snapshots.contents(manifest) as pack:
        assert pack.read(manifest.outputs[0].sha256, 1000) == b"-A INPUT \xff\n"
    target.ends_with = 3
    with pytest.raises(SnapshotImpossible, match="ended with 3"):
        save(guard, folder, commands=["disk::df -h"])


def test_the_state_folder_is_never_part_of_a_snapshot(guard, tmp_path, folder):
    execution.snapshot(snapshot_plan((), cwd="/", files=[str(folder)]), guard, cwd="/")
    whole = execution.snapshot(snapshot_plan((), cwd="/", files=[str(tmp_path)]), guard, cwd="/")
    manifest = guard.ledger.snapshots.load(whole)
    assert not any("/state" in node.path for node in manifest.nodes)
    (folder / "one").write_text("beta\n")
    done = apply(guard, execution.plan_rollback(whole, guard))
    assert done.status == Status.SUCCEEDED
    assert guard.ledger.verify().ok


def test_a_plan_says_when_a_secret_would_be_lost(guard, folder, monkeypatch):
    from guard.hands import capture

    saved = save(guard, folder)
    (folder / "one").write_text("beta\n")
    monkeypatch.setattr(capture, "secret_by_mask", lambda: lambda path: path.endswith("/one"))
    plan = execution.plan_rollback(saved, guard)
    assert plan.notes == (f"{folder}/one is on the list of secrets: what is there now is not kept",)


def test_only_reads_may_be_run_to_save_something(guard, folder):
    with pytest.raises(UsageError, match="only reads"):
        save(guard, folder, commands=["x::touch /tmp/x"])
    for wrong in ("df -h", "::df", "x::", "a b::df"):
        with pytest.raises(UsageError, match="NAME::CMD"):
            save(guard, folder, commands=[wrong])


def test_the_digest_of_a_snapshot_plan_names_things_and_no_sizes(folder):
    def digest(**more):
        return snapshot_plan([PlanItem("file", "/etc/one")], cwd=str(folder), **more).digest

    assert digest() == digest(files=["/etc/one"]) != digest(files=["two"])
    assert len({digest(), digest(leave_out=["/etc/one"]), digest(commands=["a::df"]), digest(commands=["a::ls"])}) == 4


def test_an_unusable_state_folder_saves_nothing(folder, monkeypatch):
    monkeypatch.setenv("OPSAGENT_HOME", "relative")
    guard = guard_again()
    assert isinstance(guard.ledger, NullLedger)
    with pytest.raises(type(guard.ledger.error)):
        save(guard, folder)


def test_snapshots_of_unresolved_runs_outlive_the_others(guard, folder):
    from tests.ledger.world import Judged

    plan = snapshot_plan((), cwd=str(folder), files=["."])
    ids = {}
    for name in ("lost", "ended", "never-began"):
        ids[name] = guard.ledger.new_execution()
        saved = execution.snapshot(plan, guard, cwd="/", execution=ids[name], reason="exec")
        ids[name + "-snapshot"] = saved

    def begin(name, *, end):
        def work():
            ledger = guard_again().ledger
            judged = Judged("touch x", Level.R1)
            request = Request("touch x", cwd="/", actor="person")
            ledger.begin(request, judged, profile="none", enforced="none", execution=ids[name])
            if end:
                from guard.types import Outcome

                ledger.end(ids[name], Outcome(Status.SUCCEEDED, execution=ids[name], exit_code=0))

        assert in_child(work) == 0

    begin("lost", end=False)
    begin("ended", end=True)
    removed = guard.ledger.prune_snapshots(keep=0)
    assert set(removed) == {ids["ended-snapshot"], ids["never-began-snapshot"]}
    assert guard.ledger.prune_snapshots(keep=0, only_when_many=True) == ()


# ── opsx ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def opsx_json(capsys, *argv):
    code = opsx.main([argv[0], "--json", *argv[1:]])
    return code, json.loads(capsys.readouterr().out)


def test_opsx_saves_lists_shows_verifies_and_prunes(folder, capsys):
    code, made = opsx_json(capsys, "snapshot", "create", str(folder))
    assert code == 0
    code, listed = opsx_json(capsys, "snapshot", "list")
    assert [(one["id"], one["paths"], one["roots"]) for one in listed["snapshots"]] == [
        (made["snapshot"], 2, [str(folder)])
    ]
    code, shown = opsx_json(capsys, "snapshot", "show", made["snapshot"])
    assert [node["path"] for node in shown["nodes"]] == [str(folder), f"{folder}/one"]
    assert opsx_json(capsys, "snapshot", "verify") == (0, {"format": 1, "verified": 1, "problems": {}})
    assert opsx_json(capsys, "snapshot", "prune") == (0, {"format": 1, "removed": []})
    pack = os.path.join(os.environ["OPSAGENT_HOME"], "snapshots", made["snapshot"], "pack")
    os.truncate(pack, 1)
    code, found = opsx_json(capsys, "snapshot", "verify", made["snapshot"])
    assert (code, list(found["problems"])) == (7, [made["snapshot"]])


def test_opsx_says_what_cannot_be_saved_with_exit_code_5(folder, capsys):
    os.mkfifo(folder / "pipe")
    code, said = opsx_json(capsys, "snapshot", "create", str(folder / "pipe"))
    assert (code, said["error"]["code"]) == (5, "snapshot.impossible")
    assert f"--no-snapshot-of {folder}/pipe" in said["error"]["hint"]


def test_an_agent_gets_a_kept_request_and_changes_nothing(folder, capsys):
    _, made = opsx_json(capsys, "snapshot", "create", str(folder))
    (folder / "one").write_text("beta\n")
    code, said = opsx_json(capsys, "rollback", made["snapshot"])
    assert (code, said["status"], said["next"]) == (3, "needs_stamp", f"opsx approve {said['request']}")
    assert "-beta" in said["steps"][0]["diff"]
    assert (folder / "one").read_text() == "beta\n"
    _, pending = opsx_json(capsys, "pending")
    assert said["digest"] in json.dumps(pending)
    assert opsx_json(capsys, "rollback", made["snapshot"])[1]["request"] == said["request"]


def test_a_stamp_for_the_plan_lets_an_agent_take_it_back_once(folder, guard, capsys):
    saved = save(guard, folder)
    (folder / "one").write_text("beta\n")
    _, asked = opsx_json(capsys, "rollback", saved)
    kept = guard.ledger.request(asked["request"])
    wanted = rollback_request.asked(kept.command)
    plan = execution.plan_rollback(wanted.of, guard)
    assert wanted == RollbackAsked(saved, plan.digest)
    item = ToApprove(
        kept.request(), rollback_request.judged(plan), rollback_request.binding_of(plan, kept.request()), kept.id
    )
    (stamp,) = guard.ledger.answers.approve([item], Consent("tty", "0" * 64))
    code, done = opsx_json(capsys, "rollback", saved)
    assert (code, done["status"], (folder / "one").read_text()) == (0, "succeeded", "alpha\n")
    assert guard.ledger.stamps.show(stamp.id).used_by == (done["execution"],)

    (folder / "one").write_text("beta\n")
    assert opsx_json(capsys, "rollback", saved)[0] == 3
    assert (folder / "one").read_text() == "beta\n"


def test_only_our_own_command_line_asks_for_a_rollback(guard, folder):
    (folder / "it's $(odd)").write_text("x")
    saved = save(guard, folder)
    (folder / "it's $(odd)").write_text("by the run")
    execution.record_after(saved, guard)
    (folder / "it's $(odd)").write_text("by hand")
    path = str(folder / "it's $(odd)")
    plan = execution.plan_rollback(saved, guard, overruled=[path], leave_conflicts=True)
    assert rollback_request.asked(rollback_request.request_of(plan)) == RollbackAsked(saved, plan.digest, (path,), True)
    for other in ("opsx rollback s-1", "opsx rollback s-1 --plan", "ls", "opsx rollback s-1 --plan x --json", "'"):
        assert rollback_request.asked(other) is None


def test_opsx_stops_at_conflicts_and_shows_the_lines(folder, capsys, guard):
    saved = save(guard, folder)
    (folder / "one").write_text("by the run\n")
    execution.record_after(saved, guard)
    (folder / "one").write_text("by hand\n")
    assert opsx.main(["rollback", saved]) == 1
    shown = capsys.readouterr()
    assert "CHANGED SINCE" in shown.out
    assert "-by hand" in shown.out
    assert "--leave-conflicts" in shown.err
    assert opsx_json(capsys, "rollback", saved)[1]["conflicts"] == [f"{folder}/one"]


def test_an_agent_cannot_throw_snapshots_away(folder, capsys):
    opsx_json(capsys, "snapshot", "create", str(folder))
    code, said = opsx_json(capsys, "snapshot", "prune", "--keep", "0")
    assert (code, said["error"]["code"]) == (4, "not_permitted")


def on_a_terminal(argv, typed, *, early=b""):
    """Runs opsx as a person on a terminal; types `early` at once and `typed` when it is asked. (exit code, screen)"""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, AS_PERSON, *argv])
    if early:
        os.write(terminal, early)
    screen, asked_at = b"", None
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                data = os.read(terminal, 4096)
            except OSError:
                break
            if not data:
                break
            screen += data
        if asked_at is None and b"changes nothing:" in screen:
            asked_at = time.monotonic()
        if asked_at is not None and typed and time.monotonic() - asked_at > 0.7:
            os.write(terminal, typed)
            typed = b""
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), re.sub(r"\x1b\[\?2004[hl]", "", screen.decode())


@pytest.mark.parametrize(
    ("typed", "early"),
    [
        (b"\n", b""),
        (b"y\n", b""),
        (b"YES\n", b""),
        (b"yes please\n", b""),
        (b"\x1b\n", b""),
        (b"\x1b[200~yes\x1b[201~\n", b""),
        (b"\x04", b""),
        (b"\n", b"yes\n"),
    ],
    ids=["enter", "y", "shouted", "more-words", "esc", "pasted", "end-of-input", "typed-too-early"],
)
def test_anything_but_the_word_changes_nothing(folder, guard, typed, early):
    saved = save(guard, folder)
    (folder / "one").write_text("beta\n")
    code, screen = on_a_terminal(["rollback", saved], typed, early=early)
    assert code == 3, screen
    assert (folder / "one").read_text() == "beta\n"


def test_the_word_takes_it_back(folder, guard):
    saved = save(guard, folder)
    (folder / "one").write_text("beta\n")
    code, screen = on_a_terminal(["rollback", saved], b"yes\n")
    assert code == 0, screen
    assert "back and verified: 1 of 1 path" in screen
    assert (folder / "one").read_text() == "alpha\n"


def test_names_with_line_feeds_and_escapes_stay_on_their_line(folder, guard, capsys):
    wicked = folder / "x\n\x1b[2Jdelete  all"
    wicked.write_text("beta\n")
    saved = save(guard, folder)
    wicked.write_text("gamma\n")
    assert opsx.main(["rollback", saved]) == 3
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert not any(line.startswith("delete") for line in shown.splitlines())


def test_empty_file_that_came_or_went_has_no_lines_that_differ(guard, folder):
    (folder / "gone").touch()
    saved = save(guard, folder)
    (folder / "gone").unlink()
    plan = execution.plan_rollback(saved, guard)
    told = {os.path.basename(step.path): text for step, text in execution.rollback_differences(plan, guard)}
    assert told["gone"] == "absent → file"
    assert [reason.text for reason in execution.rollback_assessment(plan).reasons] == ["takes back 1 path"]
