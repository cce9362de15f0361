"""A change that changed our own configuration, rules, hooks or log is told in its outcome and on record."""

from __future__ import annotations

import os

import pytest

import execution
from acting import approving, own_files
from guard.bound import Consent
from guard.ledger.answers import ToApprove
from guard.types import Request
from tests.edits.world import answered
from tests.ledger.world import ledger_in


@pytest.fixture
def environ(tmp_path):
    for folder in ("state/config/rules", "home/.claude"):
        (tmp_path / folder).mkdir(parents=True, mode=0o700)
    os.chmod(tmp_path / "state", 0o700)
    os.chmod(tmp_path / "state" / "config", 0o700)
    (tmp_path / "state" / "config" / "config.toml").write_text("")
    (tmp_path / "state" / "config" / "rules" / "a.toml").write_text("")
    (tmp_path / "home" / ".claude" / "settings.json").write_text("{}")
    return {"OPSAGENT_HOME": str(tmp_path / "state"), "HOME": str(tmp_path / "home")}


@pytest.fixture
def ledger(tmp_path, environ):
    ledger = ledger_in(tmp_path / "state")
    ledger.record("notice", text="a first line")
    return ledger


CHANGES = {
    "config.toml was changed": lambda root: (root / "state/config/config.toml").write_text("[policy]\nmode = 'lab'\n"),
    "config.toml is gone": lambda root: (root / "state/config/config.toml").unlink(),
    "allowed_signers appeared": lambda root: (root / "state/config/allowed_signers").write_text("x"),
    "a.toml was changed": lambda root: (root / "state/config/rules/a.toml").chmod(0o666),
    "b.toml appeared": lambda root: (root / "state/config/rules/b.toml").write_text(""),
    "settings.json was changed": lambda root: (root / "home/.claude/settings.json").write_text("[]"),
}


@pytest.mark.parametrize("said", CHANGES)
def test_what_changed_is_named(tmp_path, environ, ledger, said):
    before = own_files.watch(ledger, environ)
    assert own_files.differences(before, ledger, environ) == ()
    CHANGES[said](tmp_path)
    (text,) = own_files.differences(before, ledger, environ)
    assert f"{said} while it ran" in text


def test_file_that_was_written_with_what_it_held_is_no_change(tmp_path, environ, ledger):
    before = own_files.watch(ledger, environ)
    settings = tmp_path / "home" / ".claude" / "settings.json"
    settings.unlink()
    settings.write_text("{}")
    assert own_files.differences(before, ledger, environ) == ()


def test_log_that_only_grew_is_no_change_and_one_that_was_edited_is(tmp_path, environ, ledger):
    before = own_files.watch(ledger, environ)
    ledger.record("notice", text="more")
    assert own_files.differences(before, ledger, environ) == ()
    path = tmp_path / "state" / "log" / "000001.jsonl"
    path.write_bytes(path.read_bytes().replace(b"first", b"other"))
    (text,) = own_files.differences(before, ledger, environ)
    assert "the log was changed while it ran" in text


def test_folder_in_the_place_of_a_file_stops_nothing(tmp_path, environ, ledger):
    before = own_files.watch(ledger, environ)
    os.unlink(tmp_path / "state" / "config" / "config.toml")
    os.mkfifo(tmp_path / "state" / "config" / "config.toml")
    assert len(own_files.differences(before, ledger, environ)) == 1


@pytest.mark.guarantee("G-BEGIN")
def test_approved_script_that_edits_our_configuration_is_told_and_on_record(tmp_path, monkeypatch, environ):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    work = tmp_path / "work"
    work.mkdir()
    (work / "fix.sh").write_text(f"echo '[policy]' >> {environ['OPSAGENT_HOME']}/config/config.toml\n")
    guard = execution.open_guard()
    request = Request("bash fix.sh", cwd=str(work), actor="person")
    assessment = execution.assess(request, guard)
    item = ToApprove(request, assessment, approving.bind(request, assessment, guard))
    guard.ledger.answers.approve([item], Consent("tty", "0" * 64))
    outcome = execution.run(request, guard).outcome
    assert outcome.status == "succeeded"
    said = f"opsagent's own {environ['OPSAGENT_HOME']}/config/config.toml was changed while it ran"
    assert said in outcome.notes
    noted = [entry for entry in guard.ledger.entries() if entry.get("code") == "own-files-changed"]
    assert [(entry["execution"], entry["text"]) for entry in noted] == [(outcome.execution, said)]
    assert said in guard.ledger.show(outcome.execution).execution.notes


@pytest.mark.guarantee("G-BEGIN")
def test_file_change_and_its_rollback_that_touch_a_hosts_settings_are_told_and_on_record(
    tmp_path, monkeypatch, environ
):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    guard = execution.open_guard()
    settings = tmp_path / "home" / ".claude" / "settings.json"
    said = f"opsagent's own {settings} was changed while it ran"
    done = answered(guard, settings.parent, settings.name, b'{"hooks": {}}')
    assert done.status == "succeeded" and said in done.notes
    plan = execution.plan_rollback(done.execution, guard)
    request = Request(execution.rollback_request(plan), cwd="/", actor="person")
    back = execution.apply_rollback(plan, request, guard, consent="tty")
    assert back.status == "succeeded" and said in back.notes and settings.read_text() == "{}"
    noted = [entry for entry in guard.ledger.entries() if entry.get("code") == "own-files-changed"]
    assert [(entry["execution"], entry["text"]) for entry in noted] == [(done.execution, said), (back.execution, said)]
