"""What is said of a snapshot or rollback is so: what was not saved, what cannot come back, what a yes would save."""

from __future__ import annotations

import json
import os

import pytest

import execution
from acting import snapshots
from capabilities.approvals import approve_tool
from capabilities.consent import FormConfirm
from capabilities.rollback_shapes import foreseen_words
from capabilities.snapshots import rollback_tool, snapshot_tool
from cli import opsx
from guard.clock import RandomIds, SystemClock
from guard.errors import NoWayBack
from guard.hands import capture
from guard.hands.liveness import ProcLiveness
from guard.ledger.plans import snapshot_plan
from guard.ledger.store import open_ledger
from guard.redact import Redactor
from guard.saved import State
from guard.types import Level, Outcome, PlanItem, Request, Status
from tests.approvals.terminal import Terminal
from tests.approvals.terminal import opsx as argv_of
from tests.capabilities.world import asked, call_in
from tests.fakes import FakeTarget, FixedClock
from tests.ledger.world import Judged


@pytest.fixture
def guard():
    ledger = open_ledger(clock=SystemClock(), ids=RandomIds(), redact=Redactor().text, liveness=ProcLiveness())
    return execution.Guard(FakeTarget(), ledger, Redactor(), FixedClock())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a file `one` and a secret `key`."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "one").write_text("alpha\n")
    (tmp_path / "etc" / "key").write_text("the words of the key\n")
    monkeypatch.setattr(capture, "secret_by_mask", lambda: lambda path: path.endswith("/key"))
    return tmp_path / "etc"


def said(capsys, *argv):
    """(exit code, standard output, standard error)"""
    code = opsx.main(list(argv))
    return (code, *capsys.readouterr())


def said_json(capsys, *argv):
    code, out, _ = said(capsys, argv[0], "--json", *argv[1:])
    return code, json.loads(out)


def save(guard, *files, **more):
    return execution.snapshot(snapshot_plan((), cwd="/", files=[str(file) for file in files], **more), guard, cwd="/")


def apply(guard, plan):
    request = Request(execution.rollback_request(plan), cwd="/", actor="person")
    return execution.apply_rollback(plan, request, guard, consent="tty")


# ── a new snapshot ───────────────────────────────────────────────────────────────────────────────────────────────


def test_secret_alone_is_said_to_be_not_saved(folder, capsys):
    code, out, err = said(capsys, "snapshot", "create", str(folder / "key"))
    assert code == 0
    assert f"NOT saved: the content of {folder}/key" in err
    assert "nothing was saved that can be put back" in err
    assert "back to it" not in err
    assert out.startswith("s-")


def test_secret_beside_others_is_named_and_the_others_counted(folder, capsys):
    _, _, err = said(capsys, "snapshot", "create", str(folder))
    assert f"NOT saved: the content of {folder}/key" in err
    assert "saved: 2 paths; back to it: " in err
    assert "opsx rollback s-" in err
    _, shape = said_json(capsys, "snapshot", "create", str(folder))
    assert (shape["paths"], shape["not_saved"], shape["absent"]) == (2, [f"{folder}/key"], [])


@pytest.mark.parametrize(("name", "missing"), [("nofile", "nofile"), ("no/such/file", "no")])
def test_name_of_nothing_is_said_to_be_one_and_goes_again(folder, capsys, guard, name, missing):
    code, out, err = said(capsys, "snapshot", "create", str(folder / name))
    assert code == 0
    assert f"{folder}/{missing} does not exist: its absence is recorded, and a rollback would remove it" in err
    assert "saved:" not in err
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("made later")
    assert apply(guard, execution.plan_rollback(out.strip(), guard)).status == Status.SUCCEEDED
    assert not (folder / missing).exists()


def test_what_is_left_out_of_a_folder_is_said_then_and_at_the_rollback(folder, capsys):
    left = str(folder / "one")
    _, out, err = said(capsys, "snapshot", "create", str(folder), "--no-snapshot-of", left)
    assert f"NOT saved: {left}: it is left out" in err
    code, shown, _ = said(capsys, "rollback", out.strip())
    assert code == 0
    assert f"{left} was left out when it was saved" in shown
    assert "everything is as it was" not in shown


def test_many_absences_are_counted_not_listed(folder, capsys):
    _, _, err = said(capsys, "snapshot", "create", *(f"{folder}/no{number}" for number in range(30)))
    assert err.count("does not exist") == 20
    assert "and 10 more that are not saved: " in err
    assert "opsx snapshot show s-" in err


def test_tool_says_what_it_did_not_save(folder, guard):
    answer = asked(snapshot_tool(guard, call_in(folder)), files=["key", "nofile", "one"])
    assert (answer["paths"], answer["not_saved"], answer["absent"]) == (1, [f"{folder}/key"], [f"{folder}/nofile"])


# ── going back ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_changed_secret_differs_and_the_rollback_ends_with_1(folder, guard, capsys):
    saved = save(guard, folder / "key")
    assert said(capsys, "rollback", saved)[:1] == (0,)
    (folder / "key").write_text("others\n")
    code, out, _ = said(capsys, "rollback", saved)
    assert code == 1
    assert f"{folder}/key  (DIFFERS AND CANNOT BE PUT BACK" in out
    assert "1 path differs and cannot be put back" in out
    assert "nothing to do: nothing can be put back" in out
    assert "as it was" not in out
    code, shape = said_json(capsys, "rollback", saved)
    assert (code, shape["status"], shape["not_saved"]) == (1, "failed", [f"{folder}/key"])
    answer = asked(rollback_tool(guard, call_in(folder)), id=saved)
    assert (answer["status"], answer["not_saved"]) == ("failed", [f"{folder}/key"])
    assert "cannot be put back" in answer["next"]


@pytest.mark.parametrize("change", ["write", "unlink"])
def test_rest_goes_back_and_the_secret_makes_it_a_failure(folder, guard, capsys, change):
    saved = save(guard, folder)
    (folder / "one").write_text("beta\n")
    (folder / "key").write_text("others\n") if change == "write" else (folder / "key").unlink()
    plan = execution.plan_rollback(saved, guard)
    done = apply(guard, plan)
    assert done.status == Status.FAILED
    assert [(result.path, result.result) for result in done.results] == [(f"{folder}/one", "done")]
    assert (folder / "one").read_text() == "alpha\n"
    recorded = guard.ledger.show(done.execution).execution
    assert (recorded.status, recorded.exit_code) == (Status.FAILED, 1)
    code, out, _ = said(capsys, "rollback", saved)
    assert code == 1
    assert "all that can be put back is as it was" in out


def test_secret_that_others_changed_is_no_conflict_to_overrule(folder, guard):
    """No choice brings it back: it neither stops the rest nor can it be overruled into a rollback."""
    saved = save(guard, folder)
    for name in ("one", "key"):
        (folder / name).write_text("by the run\n")
    execution.record_after(saved, guard)
    (folder / "key").write_text("by hand\n")
    plan = execution.plan_rollback(saved, guard)
    assert plan.conflicts == ()
    assert [(step.path, step.state) for step in plan.lost] == [(f"{folder}/key", State.NOT_SAVED)]
    assert apply(guard, plan).status == Status.FAILED
    assert ((folder / "one").read_text(), (folder / "key").read_text()) == ("alpha\n", "by hand\n")


def test_mode_of_a_secret_comes_back_without_its_content(folder, guard):
    (folder / "key").chmod(0o600)
    saved = save(guard, folder / "key")
    (folder / "key").chmod(0o644)
    plan = execution.plan_rollback(saved, guard)
    assert plan.lost == ()
    assert apply(guard, plan).status == Status.SUCCEEDED
    assert (folder / "key").stat().st_mode & 0o777 == 0o600


def test_it_is_all_as_before_is_said_only_when_it_is(folder, guard, capsys):
    whole = save(guard, folder / "one")
    assert "nothing to do: everything is as it was" in said(capsys, "rollback", whole)[1]
    with_service = execution.snapshot(
        snapshot_plan(
            [PlanItem("service", "nginx")], cwd="/", files=[str(folder / "one")], leave_out=["service nginx"]
        ),
        guard,
        cwd="/",
    )
    out = said(capsys, "rollback", with_service)[1]
    assert "the state of service nginx was left out by choice: it has no way back" in out
    assert "everything is" not in out
    parent = save(guard, folder)
    (folder / "appeared").write_text("")
    out = said(capsys, "rollback", parent)[1]
    assert "appeared since; stays" in out
    assert "everything is" not in out


def test_id_that_never_was_is_told_from_a_run_that_saved_nothing(guard, capsys):
    with pytest.raises(NoWayBack, match="there is no record of e-nope"):
        execution.plan_rollback("e-nope", guard)
    code, _, err = said(capsys, "rollback", "e-nope")
    assert code == 1
    assert "nothing was saved" not in err
    request = Request("touch x", cwd="/", actor="person")
    run = guard.ledger.new_execution()
    guard.ledger.begin(request, Judged("touch x", Level.R1), profile="none", enforced="none", execution=run)
    guard.ledger.end(run, Outcome(Status.SUCCEEDED, execution=run, exit_code=0))
    with pytest.raises(NoWayBack, match=f"nothing was saved for {run}"):
        execution.plan_rollback(run, guard)


# ── what a yes would save ────────────────────────────────────────────────────────────────────────────────────────


def test_foreseen_is_what_is_then_saved(folder, guard):
    (folder / "below").mkdir()
    (folder / "link").symlink_to("one")
    plan = snapshot_plan(
        [PlanItem("container", "web")], cwd="/", files=[str(folder), f"{folder}/../nofile"], commands=["disk::df -h"]
    )
    foreseen = snapshots.foreseen(plan, guard)
    saved, missed = foreseen_words(foreseen)
    assert saved == (
        f"folder {folder} and 3 paths in it",
        f"that {folder.parent}/nofile does not exist",
        "what the read disk says",
    )
    assert missed == (
        f"the content of {folder}/key: a secret, so only a hash is kept",
        "the state of container web is not saved",
    )
    manifest = guard.ledger.snapshots.load(snapshots.save(plan, guard))
    assert len(manifest.nodes) - len(manifest.hash_only) == foreseen.paths == 5


def test_foreseeing_reads_nothing_and_keeps_nothing(folder, guard, monkeypatch):
    read = []
    monkeypatch.setattr(capture, "read_file", lambda *arguments, **more: read.append(arguments))
    assert snapshots.foreseen(snapshot_plan((), cwd="/", files=[str(folder)]), guard).paths == 2
    assert read == []
    assert guard.ledger.snapshots.listed() == ()


def test_what_cannot_be_saved_is_foreseen_with_its_reason(folder, guard):
    os.mkfifo(folder / "pipe")
    foreseen = snapshots.foreseen(snapshot_plan((), cwd="/", files=[str(folder / "pipe")]), guard)
    assert (foreseen.roots, foreseen.paths) == ((), 0)
    saved, (missed,) = foreseen_words(foreseen)
    assert saved == ()
    assert missed.startswith("nothing can be saved, so it would not run: ")
    assert f"{folder}/pipe is a FIFO" in missed


# ── a person's answer from another terminal ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def person(tmp_path):
    opened = []

    def start(*arguments):
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        opened.append(Terminal(argv_of(*arguments), env=env, cwd=str(tmp_path), columns=200, rows=200))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.mark.guarantee("G-PERSON")
def test_kept_rollback_is_approved_by_its_id_and_done_once(folder, guard, capsys, person):
    saved = save(guard, folder)
    (folder / "one").write_text("beta\n")
    code, waiting = said_json(capsys, "rollback", saved)
    assert code == 3
    terminal = person("approve", waiting["request"])
    terminal.wait_for("anything else is no: ")
    for text in ("-beta", "+alpha", f"saved first file {folder}/one", "undo        yes, what is saved first (1 path)"):
        assert text in terminal.text
    terminal.answer("yes\r")
    assert terminal.end() == 0, terminal.text
    assert (folder / "one").read_text() == "beta\n"
    code, done = said_json(capsys, "rollback", saved)
    assert (code, done["status"], (folder / "one").read_text()) == (0, "succeeded", "alpha\n")


@pytest.mark.guarantee("G-PERSON")
def test_kept_rollback_of_a_plan_that_is_none_any_more_is_not_approved(folder, guard, capsys, person):
    saved = save(guard, folder)
    (folder / "one").write_text("beta\n")
    _, waiting = said_json(capsys, "rollback", saved)
    (folder / "one").write_text("gamma\n")
    terminal = person("approve", waiting["request"])
    assert terminal.end() == 3
    assert "what is there has changed since" in terminal.text
    assert "nothing was approved" in terminal.text
    assert guard.ledger.stamps.listed() == ()


def test_screen_of_a_destroying_command_says_what_comes_back_and_it_does(folder, guard, capsys, person):
    tree = folder / "tree"
    (tree / "below").mkdir(parents=True)
    (tree / "below" / "file").write_text("kept\n")
    terminal = person("approve", "--force", "--", f"rm -rf {tree}")
    terminal.wait_for("is no.\r\n> ")
    assert "only what is saved first (3 paths): opsx rollback" in terminal.text
    assert f"saved first folder {tree} and 2 paths in it" in terminal.text
    for wrong in ("no known way back", "annot be undone", "file " + str(tree)):
        assert wrong not in terminal.text
    terminal.answer("yes\r")
    assert terminal.end() == 3
    assert guard.ledger.stamps.listed() == ()


def test_form_of_a_host_says_the_same(folder, guard):
    shown = []

    def asker(name, text, form, state, timeout_s):
        shown.append(text)
        return {"action": "cancel"}, state

    tool = approve_tool(guard, call_in(folder, confirm=FormConfirm(asker)))
    asked(tool, command=f"tee {folder}/key {folder}/one")
    asked(tool, command="systemctl restart nginx")
    lines = [text.split("\n") for text in shown]
    assert f"saved first file {folder}/one" in lines[0]
    assert f"NOT saved   the content of {folder}/key: a secret, so only a hash is kept" in lines[0]
    assert (
        "NOT saved   nothing can be saved, so it would not run: the state of service nginx cannot be read "
        "(systemctl says nothing about nginx); to go on without a way back for it: --no-snapshot-of 'service nginx'"
    ) in lines[1]
    assert not any(line.startswith("saved first") for line in lines[1])
