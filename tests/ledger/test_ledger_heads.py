"""The log's head in the machine's own log: sent after each change, and what verify makes of it."""

from __future__ import annotations

import json
import os
import socket

import pytest

from guard.errors import CannotRun
from guard.hands.journal import MESSAGE_ID, SystemLog, heads_sent
from guard.ledger.house import House
from guard.types import Status
from tests.ledger.world import asked, change_of, done, ledger_in, read_of, segment


@pytest.fixture
def places(tmp_path):
    """Sockets as journald and syslog have them."""
    opened = {}
    for name in ("journal", "syslog"):
        opened[name] = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        opened[name].bind(str(tmp_path / name))
        opened[name].setblocking(False)
    yield opened
    for one in opened.values():
        one.close()


def received(place):
    got = []
    while True:
        try:
            got.append(place.recv(65536).decode())
        except BlockingIOError:
            return got


def sink(tmp_path):
    return SystemLog(str(tmp_path / "journal"), str(tmp_path / "syslog"))


def change(ledger):
    run = ledger.begin(asked("touch a"), change_of("touch a"), profile="none", enforced="none")
    ledger.end(run, done())
    return run


def read(ledger):
    begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
    ledger.end(begun.execution, done())


def fields(message):
    return dict(line.split("=", 1) for line in message.splitlines())


def test_head_is_sent_after_each_record_of_a_change_and_never_for_a_read(tmp_path, places):
    ledger = ledger_in(tmp_path / "state", house=House(heads=sink(tmp_path)))
    read(ledger)
    assert received(places["journal"]) == []
    change(ledger)
    sent = [fields(message) for message in received(places["journal"])]
    assert [one["OPSAGENT_SEQ"] for one in sent] == ["3", "4"]
    assert {one["OPSAGENT_STATE"] for one in sent} == {str(tmp_path / "state")}
    assert {(one["MESSAGE_ID"], one["SYSLOG_IDENTIFIER"]) for one in sent} == {(MESSAGE_ID, "opsagent")}
    heads = {int(one["OPSAGENT_SEQ"]): one["OPSAGENT_SHA256"] for one in sent}
    report = ledger.verify(heads)
    assert (report.ok, report.compared) == (True, 2)
    assert received(places["syslog"]) == []


def test_syslog_gets_it_where_there_is_no_journal(tmp_path, places):
    ledger = ledger_in(
        tmp_path / "state", house=House(heads=SystemLog(str(tmp_path / "none"), str(tmp_path / "syslog")))
    )
    change(ledger)
    first, second = received(places["syslog"])
    assert first.startswith("<85>")
    assert f"opsagent[{os.getpid()}]: log of '{tmp_path}/state': entry 2 is " in second


def test_machine_without_either_is_noted_once_a_boot(tmp_path):
    ledger = ledger_in(tmp_path / "state", house=House(heads=sink(tmp_path)))
    for _ in range(3):
        change(ledger)
    noted = [entry["text"] for entry in ledger.entries() if entry.get("code") == "head-not-sent"]
    assert len(noted) == 1
    assert "kept beside the log only" in noted[0]
    assert [run.status for run in ledger.executions().executions] == [Status.SUCCEEDED] * 3
    again = ledger_in(tmp_path / "state", house=House(heads=sink(tmp_path)))
    change(again)
    assert sum(entry.get("code") == "head-not-sent" for entry in again.entries()) == 1


def test_journal_that_takes_nothing_more_does_not_stop_a_change(tmp_path, places):
    ledger = ledger_in(
        tmp_path / "state", house=House(heads=SystemLog(str(tmp_path / "journal"), str(tmp_path / "none")))
    )
    for _ in range(40):
        change(ledger)  # nobody reads: the socket's queue is soon full
    assert len(received(places["journal"])) < 80
    assert len(ledger.executions().executions) == 40


def written_anew(tmp_path):
    """The log of somebody with our uid who takes the last change out, with a chain and a head that fit."""
    path = segment(tmp_path / "state")
    with open(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    with open(path, "wb") as file:
        file.writelines(lines[:-2])
    os.unlink(tmp_path / "state" / "log" / "head")
    ledger = ledger_in(tmp_path / "state")
    ledger.record("notice", text="nothing happened here")
    return ledger


@pytest.mark.guarantee("G-CHAIN")
def test_log_that_was_written_anew_with_its_head_is_told_by_what_was_sent(tmp_path, places):
    ledger = ledger_in(tmp_path / "state", house=House(heads=sink(tmp_path)))
    for _ in range(3):
        change(ledger)
    sent = [fields(message) for message in received(places["journal"])]
    heads = {int(one["OPSAGENT_SEQ"]): one["OPSAGENT_SHA256"] for one in sent}
    ledger = written_anew(tmp_path)
    assert [problem.code for problem in ledger.verify().problems] == ["head-lost"], "the chain alone cannot tell more"
    assert ledger.answers.thaw() and ledger.verify().ok
    report = ledger.verify(heads)
    assert [(problem.code, problem.seq) for problem in report.problems] == [("changed", 5), ("changed", 6)]
    assert report.first_bad_seq == 5
    with open(segment(tmp_path / "state"), "rb+") as file:
        file.truncate(0)
    os.unlink(tmp_path / "state" / "log" / "head")
    assert [problem.code for problem in ledger.verify(heads).problems] == ["head-missing", "cut"]


@pytest.mark.parametrize(
    ("newest", "said"),
    [
        (9, "; the log ended at entry 4, and the machine's log knows of entry 9"),
        (2, "; the machine's log knows of no entry after 2"),
        (0, ""),
    ],
)
def test_record_of_a_lost_head_says_what_the_machines_log_knows(tmp_path, newest, said):
    class Sink:
        def send(self, *_):
            return ""

        def newest(self, state):
            assert state == str(tmp_path / "state")
            return newest

    ledger = ledger_in(tmp_path / "state", house=House(heads=Sink()))
    for _ in range(2):
        change(ledger)
    os.unlink(tmp_path / "state" / "log" / "head")
    read(ledger)
    (notice,) = (entry for entry in ledger.entries() if entry.get("code") == "head-rebuilt")
    assert notice["text"] == "the head was missing or unreadable" + said


def journalctl(tmp_path, text, code=0):
    program = tmp_path / "journalctl"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
    program.chmod(0o700)
    return str(program)


def test_only_messages_of_ours_or_roots_about_this_folder_count(tmp_path):
    def row(seq, sha256, state="/s", uid=None):
        uid = os.geteuid() if uid is None else uid
        return json.dumps(
            {"OPSAGENT_STATE": state, "OPSAGENT_SEQ": str(seq), "OPSAGENT_SHA256": sha256, "_UID": str(uid)}
        )

    rows = [row(9, "newest"), row(9, "older"), row(8, "b", uid=0), row(7, "c", uid=4242), row(6, "d", state="/t")]
    rows += ["no json", "{}", row("x", "e"), json.dumps({"OPSAGENT_STATE": "/s", "OPSAGENT_SEQ": None})]
    assert heads_sent("/s", journalctl(tmp_path, "\n".join(rows))) == {9: "newest", 8: "b"}
    assert heads_sent("/t", journalctl(tmp_path, "\n".join(rows))) == {6: "d"}
    with pytest.raises(CannotRun, match="cannot be read"):
        heads_sent("/s", journalctl(tmp_path, "", 1))
    with pytest.raises(CannotRun, match="no journalctl"):
        heads_sent("/s", "no-such-journalctl")
