"""A stop is what the log says: a note that is gone, or a log that cannot be used, lets nothing above R0 begin."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import execution
from cli import surroundings
from guard.clock import SystemClock
from guard.errors import StateDamaged
from guard.hands.targets.local import LocalTarget
from guard.ledger import stop
from guard.ledger.carried import carried
from guard.ledger.formats import encoded
from guard.redact import Redactor
from guard.types import Actor, Enforcement, Mode, Policy, Profile, Request, Status
from tests.ledger.world import ledger_in, segment

LAB = Policy(mode=Mode.LAB)


@pytest.fixture
def ledger(tmp_path):
    ledger = ledger_in(tmp_path / "state")
    ledger.record("notice", text='"kind":"thawed"')
    return ledger


@pytest.fixture
def guard(ledger):
    return execution.Guard(LocalTarget(), ledger, Redactor(), SystemClock(), LAB, hidden=(ledger.folder.path,))


def without_note(ledger):
    os.unlink(os.path.join(ledger.folder.path, "frozen"))


def touch(guard, tmp_path):
    return execution.run(Request("touch made", cwd=str(tmp_path), actor=Actor.PERSON), guard).outcome


@pytest.mark.guarantee("G-FREEZE")
@pytest.mark.parametrize("light_bytes", [stop.LIGHT_BYTES, 0])
def test_last_word_of_the_log_about_a_stop_counts(ledger, monkeypatch, light_bytes):
    monkeypatch.setattr(stop, "LIGHT_BYTES", light_bytes)
    path = ledger.folder.path
    assert stop.stop_of(path) == ""
    ledger.answers.freeze("first", actor="person")
    without_note(ledger)
    assert stop.stop_of(path).startswith("first (since")
    assert ledger.answers.thaw()
    ledger.record("notice", text="more")
    assert stop.stop_of(path) == ""
    ledger.record("frozen", reason='a "second"\nöne')
    assert stop.stop_of(path) == 'a "second"\nöne'
    ledger.record("thawed")
    frozen = next(entry for entry in ledger.entries() if entry["kind"] == "frozen")
    ledger._log.append([carried({**frozen, "seq": 1000})], durable=True)
    assert stop.stop_of(path).startswith("first (since"), "a stop that was carried on from an old segment"


def test_half_a_line_ends_no_stop(ledger):
    ledger.record("frozen", reason="a storm")
    with open(segment(ledger.folder.path), "ab") as file:
        file.write(encoded({"kind": "thawed"})[:-1])
    assert stop.stop_of(ledger.folder.path) == "a storm"


def test_new_folder_and_a_log_moved_aside_stop_nothing(ledger, tmp_path):
    assert stop.stop_of(str(tmp_path / "none")) == ""
    os.rename(tmp_path / "state" / "log", tmp_path / "aside")
    assert stop.stop_of(ledger.folder.path) == ""


@pytest.mark.guarantee("G-FREEZE")
def test_stop_whose_note_is_gone_holds_in_every_shell_and_gets_its_note_again(guard, tmp_path, monkeypatch):
    guard.ledger.answers.freeze("a storm", actor="person")
    without_note(guard.ledger)
    monkeypatch.setenv("OPSAGENT_HOME", guard.ledger.folder.path)
    told = surroundings.judged(
        "touch made", cwd=str(tmp_path), actor=Actor.AGENT, enforcement=Enforcement(), policy=LAB
    )
    assert (told.decision.verdict, told.decision.code) == ("refuse", "frozen")
    outcome = touch(guard, tmp_path)
    assert (outcome.status, outcome.decision.code) == (Status.REFUSED, "frozen")
    assert not (tmp_path / "made").exists()
    assert guard.ledger.frozen_note().startswith("a storm (since")
    assert guard.ledger.answers.thaw()
    assert touch(guard, tmp_path).status == Status.SUCCEEDED


def cut(path):
    os.truncate(segment(path), 0)


def shorter(path):
    os.truncate(segment(path), os.path.getsize(segment(path)) - 1)


def without_segment(path):
    os.unlink(segment(path))


def unreadable(path):
    os.unlink(segment(path))
    os.mkdir(segment(path))


@pytest.mark.guarantee("G-SICK-STATE")
@pytest.mark.parametrize("ruin", [cut, shorter, without_segment, unreadable])
def test_log_that_cannot_be_used_lets_reads_run_and_nothing_else(guard, tmp_path, monkeypatch, ruin):
    path = guard.ledger.folder.path
    ruin(path)
    monkeypatch.setenv("OPSAGENT_HOME", path)
    for command, verdict in (("touch made", "refuse"), ("ls", "run")):
        enforcement = Enforcement(profiles=[Profile.LOCAL], mechanism="userns")
        told = surroundings.judged(
            command, cwd=str(tmp_path), actor=Actor.AGENT, enforcement=enforcement, policy=Policy()
        )
        assert told.decision.verdict == verdict
    with pytest.raises(StateDamaged) as raised:
        touch(guard, tmp_path)
    assert (raised.value.exit_code, raised.value.not_done) == (7, "nothing was run")
    file = Request("", cwd=str(tmp_path), actor=Actor.PERSON)
    with pytest.raises(StateDamaged):
        execution.change_file(file, "made", lambda _: b"x", guard)
    assert not (tmp_path / "made").exists()
    read = execution.run(Request("ls", cwd=str(tmp_path)), guard).outcome
    assert read.recorded is False and read.not_recorded_because


def test_waiting_request_does_not_hide_that_the_log_was_cut(guard, tmp_path):
    """The same request is kept once, so that asking again wrote nothing and noticed nothing."""
    asked = Request("rm -r there", cwd=str(tmp_path))
    assert execution.run(asked, guard).outcome.request_id
    cut(guard.ledger.folder.path)
    with pytest.raises(StateDamaged, match="shorter than its head"):
        execution.run(asked, guard)


def test_a_read_asks_the_log_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(stop, "stop_of", lambda path: pytest.fail("the log was read"))
    told = surroundings.judged("ls", cwd=str(tmp_path), actor=Actor.AGENT, enforcement=Enforcement(), policy=LAB)
    assert told.level == 0


def test_what_the_head_names_is_read_as_the_log_reads_it(ledger):
    """The light reader and the strict one agree on each head that the log writes."""
    path = ledger.folder.path
    for number in range(5):
        head = ledger.head()
        known = [place for place in stop._slots(path) if place]
        assert (head.seq, head.segment, head.end) == max(known)
        ledger.record("notice", text=str(number))
    assert Path(path, "log", "head").stat().st_size == 512
