"""The index gives the log's own answer, faster; whatever is wrong with it changes no answer and raises nothing."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat

import pytest

from guard.ledger import index as index_module
from guard.types import Status
from tests.ledger.world import (
    CountingIds,
    FakeLiveness,
    FixedClock,
    asked,
    change_of,
    done,
    ledger_in,
    read_of,
    segment,
)

FINALS = [Status.SUCCEEDED, Status.FAILED, Status.TIMED_OUT, Status.CANCELLED]
STATUSES = [None, *FINALS, Status.RUNNING, Status.UNKNOWN, "no such status"]


class Pair:
    """The same folder read through the index and without it."""

    def __init__(self, path):
        self.clock, self.ids, self.liveness = FixedClock(), CountingIds(), FakeLiveness()
        common = {"clock": self.clock, "ids": self.ids, "liveness": self.liveness, "segment_bytes": 3000}
        self.indexed = ledger_in(path, small_log_bytes=-1, **common)
        self.plain = ledger_in(path, small_log_bytes=1 << 60, **common)
        self.path = path

    def fill(self, count, seed=1):
        chance = random.Random(seed)
        ledger = self.plain
        for _ in range(count):
            self.clock.pass_s(chance.choice([1, 60, -30]))
            if chance.random() < 0.2:
                ledger.keep_request(asked(f"rm {chance.random()}", client=""), change_of())
            execution = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict").execution
            if chance.random() < 0.8:
                ledger.end(execution, done(chance.choice(FINALS), 0))
                if chance.random() < 0.1:
                    ledger.end(execution, done(Status.FAILED, 9))

    def agree(self):
        records = []
        for status in STATUSES:
            for since in (None, "2026-12-01T04:45:00.000Z"):
                for limit in (1, 7, 1000):
                    answer = self.plain.executions(status=status, since=since, limit=limit)
                    assert self.indexed.executions(status=status, since=since, limit=limit) == answer
                    records.append(answer)
        for found in records[2].executions[::5]:
            assert self.indexed.show(found.id) == self.plain.show(found.id)
        for kept in self.plain.pending()[:3]:
            assert self.indexed.show(kept.id) == self.plain.show(kept.id)
            assert self.indexed.show(kept.id).request == kept
        assert self.indexed.show("e-none") == self.plain.show("e-none")

    @property
    def file(self):
        return os.path.join(self.path, "index.db")


@pytest.fixture
def pair(tmp_path):
    pair = Pair(str(tmp_path / "state"))
    pair.fill(40)
    return pair


@pytest.fixture
def no_folding(monkeypatch):
    """From here on an answer that comes from folding the whole log is a failure."""

    def folded(*arguments):
        raise AssertionError("the log was folded")

    return lambda: monkeypatch.setattr(index_module, "entries_of", folded)


def test_index_and_log_give_the_same_answers(pair, no_folding):
    pair.agree()
    assert stat.S_IMODE(os.stat(pair.file).st_mode) == 0o600
    pair.liveness.dead = True
    pair.agree()
    pair.fill(15, seed=2)
    pair.agree()
    no_folding()
    assert pair.indexed.executions(limit=3).executions


STRANGE = [None, 3, True, "x", "\udcff", "\0", "中", [], {}, ["failed"], 1.5, 2**70]


def test_entries_with_fields_of_a_wrong_type_change_no_answer(pair):
    known = pair.plain.executions(limit=1).executions[0].id
    for wrong in STRANGE:
        for kind in ("started", "ended", "reconciled", "running", "resolved", "requested"):
            pair.plain.note(kind, execution=wrong, request=wrong, stamp=wrong)
            pair.plain.note(kind, execution=known, status=wrong, began_at=wrong, exit_code=wrong, notes=wrong)
            pair.plain.note(kind, execution=f"e-{kind}-{STRANGE.index(wrong)}", began_at=wrong, pid=wrong)
    pair.agree()


@pytest.mark.parametrize("asked_for", ["\udcff", "中", "\0", "", "' OR 1=1 --", "e-1' --", "x" * 100_000])
def test_strange_questions_get_the_logs_answer(pair, asked_for):
    assert pair.indexed.show(asked_for) == pair.plain.show(asked_for)
    for question in ({"status": asked_for}, {"since": asked_for}):
        assert pair.indexed.executions(**question) == pair.plain.executions(**question)


def test_small_log_makes_no_index(pair):
    pair.plain.executions()
    assert not os.path.exists(pair.file)


def test_long_log_is_taken_in_batches(pair, monkeypatch, no_folding):
    monkeypatch.setattr(index_module, "BATCH_LINES", 7)
    pair.agree()
    no_folding()
    assert len(pair.indexed.executions().executions) == 40


def test_deleted_index_is_made_again(pair):
    pair.agree()
    os.unlink(pair.file)
    pair.agree()
    assert os.path.exists(pair.file)


@pytest.mark.parametrize("harm", ["garbage", "cut", "empty", "other-format", "older", "flip-places", "no-table"])
def test_corrupt_index_is_replaced(pair, harm, no_folding):
    pair.indexed.executions()
    for name in ("-wal", "-shm"):
        assert not os.path.exists(pair.file + name)
    if harm == "garbage":
        with open(pair.file, "r+b") as file:
            file.write(b"\xff" * 5000)
    elif harm == "cut":
        os.truncate(pair.file, 4096)
    elif harm == "empty":
        os.truncate(pair.file, 0)
    else:
        statement = {
            "older": "CREATE TABLE old AS SELECT 2 AS format, sha256, segment, start, end, unreadable FROM meta;"
            "DROP TABLE meta; ALTER TABLE old RENAME TO meta;",
            "other-format": "UPDATE meta SET format = 99",
            "flip-places": "UPDATE places SET start = start + 1",
            "no-table": "DELETE FROM meta",
        }[harm]
        database = sqlite3.connect(pair.file)
        with database:
            database.executescript(statement)
        database.close()
    pair.agree()
    no_folding()
    assert pair.indexed.executions(limit=1000).executions


def test_locked_index_is_no_error(pair, monkeypatch):
    monkeypatch.setattr(index_module, "LOCK_WAIT_S", 0.01)
    pair.indexed.executions()
    pair.fill(3, seed=3)
    database = sqlite3.connect(pair.file, isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    pair.agree()
    database.execute("ROLLBACK")
    database.close()
    pair.agree()


@pytest.mark.parametrize("thing", ["folder", "symlink", "fifo"])
def test_strange_thing_in_place_of_the_index_is_no_error_and_untouched(pair, tmp_path, thing):
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    if thing == "folder":
        os.mkdir(pair.file)
    elif thing == "symlink":
        os.symlink(target, pair.file)
    else:
        os.mkfifo(pair.file, 0o600)
    pair.agree()
    assert target.read_bytes() == b"precious"


def test_index_of_another_log_is_not_believed(pair, tmp_path):
    other = Pair(str(tmp_path / "other"))
    other.fill(30, seed=9)
    other.indexed.executions()
    shutil.copy(other.file, pair.file)
    pair.agree()


def test_index_ahead_of_a_cut_log_is_not_believed(pair):
    pair.indexed.executions()
    os.unlink(segment(pair.path, max(int(n[:6]) for n in os.listdir(pair.path + "/log") if n.endswith("jsonl"))))
    pair.agree()


def test_unreadable_lines_are_counted_through_the_index_too(pair):
    with open(segment(pair.path, 2), "r+b") as file:
        file.write(b"#")
    pair.agree()
    assert pair.indexed.executions().notes == (
        "1 line of the log cannot be read and may be executions: opsx audit verify",
    )
