"""What has changed since the last run, and the file that remembers it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import runbooks
from cli import runbook_memory
from guard.ledger.state import StateFolder, state_path
from runbooks.model import Severity, Words
from runbooks.names import NAMES, name_of
from runbooks.since import PIPED, changes, kept_of
from tests.runbooks.replay import CASES
from tests.runbooks.test_wording import finding, report

AT = "2026-12-01T02:10:00.000Z"


def kept(*findings):
    return json.loads(json.dumps(kept_of(report(*findings).replace(at=AT))))


def said(before, *findings, lang="en", **named):
    return [words.of(lang) for words in changes(before, report(*findings).replace(**named))]


def test_the_first_time_says_nothing():
    assert said({}, finding(Severity.CRIT)) == []


def test_a_severity_that_changed_is_named_with_both():
    before = kept(finding(Severity.OK, "/var", number=81), finding(Severity.OK, "/"))
    (line,) = said(before, finding(Severity.WARN, "/var", number=91), finding(Severity.OK, "/", number=99))
    assert line.startswith("Changed since 2026-12-01 ")
    assert line.endswith(": space on /var: ok before, now a warning.")
    (line,) = said(before, finding(Severity.CRIT, "/var"), finding(Severity.OK, "/"), lang="zh")
    assert line.endswith("/var 的空间由正常变为严重。")


def test_what_is_new_or_gone_is_named_only_when_it_is_bad():
    before = kept(finding(Severity.WARN, "/old"), finding(Severity.OK, "/fine"))
    (line,) = said(before, finding(Severity.CRIT, "/new"), finding(Severity.OK, "/other"))
    assert line.endswith(": new: space on /new (critical); gone: space on /old (a warning before).")


def test_what_was_not_looked_at_is_not_gone():
    before = kept(finding(Severity.WARN, "/old"))
    assert said(before, finding(Severity.OK), finding(Severity.NOT_CHECKED))[0].startswith("No change since ")
    assert said(before, finding(Severity.OK), light=True)[0].startswith("No change since ")


def test_every_id_of_the_program_has_a_name_in_words_and_no_other_has():
    ids = {
        row["id"]
        for case in CASES
        for row in json.loads((case / "expected.json").read_text("utf-8"))
        if row["severity"] != Severity.NOT_CHECKED
    }
    for module in Path(runbooks.__file__).parent.rglob("*.py"):
        ids |= set(re.findall(r'(?:Finding\(\s*|_row\(|id=|FOR_PATH = )"([a-z]+\.[a-z-]+)"', module.read_text("utf-8")))
    ids = {id for id in ids if not id.startswith("piped.")}
    assert ids == set(NAMES)
    for id in ids:
        name = name_of(id, "SUBJECT")
        assert id not in name.en + name.zh
        assert ("SUBJECT" in name.en) == ("SUBJECT" in name.zh)


def test_a_users_runbook_is_named_by_its_title_even_when_its_file_is_gone():
    title = Words("Shop queue", "商店队列")
    assert name_of("shop-queue.waiting", "orders", title).en == "Shop queue (waiting, orders)"
    assert name_of("shop-queue.value", "", title).zh == "商店队列"
    before = kept(finding(Severity.WARN, "/var"))
    before["disk"]["findings"].append({"id": "old-queue.depth", "subject": "", "severity": "crit"})
    (line,) = said(before, finding(Severity.WARN, "/var"))
    assert line.endswith(": gone: old-queue (depth) (critical before).")


def test_a_path_that_was_asked_for_once_is_not_gone_the_next_time():
    asked = finding(Severity.WARN, "/snap/x", id="disk.path")
    assert said(kept(asked, finding(Severity.OK)), finding(Severity.OK))[0].startswith("No change since ")
    assert said(kept(finding(Severity.OK)), finding(Severity.OK), asked)[0].startswith("No change since ")


def test_without_a_change_the_time_is_said():
    assert said(kept(finding(Severity.OK)), finding(Severity.OK, number=51))[0].startswith(
        "No change since 2026-12-01 "
    )


def test_several_runbooks_without_a_change_say_so_once_and_a_change_hides_it():
    before = kept(finding(Severity.OK), finding(Severity.OK, "memory", id="memory.available"))
    before["memory"]["at"] = "2026-12-01T03:00:00.000Z"
    same = finding(Severity.OK), finding(Severity.OK, "memory", id="memory.available")
    assert [line[:30] for line in said(before, *same)] == ["No change since 2026-12-01 02:"]
    worse = finding(Severity.OK), finding(Severity.CRIT, "memory", id="memory.available")
    assert [line[:33] for line in said(before, *worse)] == ["Changed since 2026-12-01 03:00 +0"]


def test_no_change_is_not_said_of_what_is_looked_at_for_the_first_time():
    first = finding(Severity.CRIT, "cpu", id="cpu.load")
    assert said(kept(finding(Severity.OK)), finding(Severity.OK), first) == []
    piped = finding(Severity.NOTE, PIPED, id="piped.errors")
    assert said(kept(finding(Severity.OK)), finding(Severity.OK), piped)[0].startswith("No change since ")
    assert said(kept(finding(Severity.OK)), finding(Severity.WARN), first)[0].startswith("Changed since ")


def test_kept_entries_that_are_not_ours_are_left_out():
    for before in (
        {"disk": None},
        {"disk": {"format": 2, "at": AT, "findings": []}},
        {"disk": {"format": 1, "at": 7, "findings": []}},
        {"disk": {"format": 1, "at": "yesterday", "findings": []}},
        {"disk": {"format": 1, "at": AT, "findings": {}}},
    ):
        assert said(before, finding(Severity.WARN)) == [], before
    odd = {"disk": {"format": 1, "at": AT, "findings": [7, {"id": "disk.space", "subject": "/", "severity": "odd"}]}}
    assert said(odd, finding(Severity.OK))[0].startswith("No change")


def test_the_memory_keeps_each_runbook_and_is_private():
    StateFolder.open(state_path())
    assert runbook_memory.recall() == {}
    runbook_memory.remember(report(finding(Severity.WARN)))
    runbook_memory.remember(report(finding(Severity.OK, "memory", id="memory.available")))
    assert set(runbook_memory.recall()) == {"disk", "memory"}
    path = Path(state_path()) / runbook_memory.FOLDER / runbook_memory.FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == [runbook_memory.FILE]


def test_a_memory_that_cannot_be_read_or_written_is_no_error(monkeypatch):
    StateFolder.open(state_path())
    runbook_memory.remember(report(finding(Severity.OK)))
    path = Path(state_path()) / runbook_memory.FOLDER / runbook_memory.FILE
    for damage in (b"", b"{", b"[]", b'{"format": 9}', b"\xff", b"[" * 100_000):
        path.write_bytes(damage)
        assert runbook_memory.recall() == {}
    runbook_memory.remember(report(finding(Severity.OK)))
    assert set(runbook_memory.recall()) == {"disk"}
    monkeypatch.setenv("OPSAGENT_HOME", "/proc/self/nowhere")
    runbook_memory.remember(report(finding(Severity.OK)))
    assert runbook_memory.recall() == {}


def test_a_full_disk_leaves_the_old_memory_and_no_scrap(monkeypatch):
    StateFolder.open(state_path())
    runbook_memory.remember(report(finding(Severity.OK)))

    def full(fd, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("guard.ledger.state.write_all", full)
    runbook_memory.remember(report(finding(Severity.OK, "memory", id="memory.available")))
    assert set(runbook_memory.recall()) == {"disk"}
    assert os.listdir(Path(state_path()) / runbook_memory.FOLDER) == [runbook_memory.FILE]


def test_a_link_in_the_memorys_place_is_not_followed(tmp_path):
    StateFolder.open(state_path())
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = Path(state_path()) / runbook_memory.FOLDER
    folder.mkdir(mode=0o700)
    (folder / runbook_memory.FILE).symlink_to(victim)
    assert runbook_memory.recall() == {}
    runbook_memory.remember(report(finding(Severity.OK)))
    assert victim.read_text() == "precious"
    assert set(runbook_memory.recall()) == {"disk"}
