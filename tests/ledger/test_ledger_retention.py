"""The oldest part of the log may go: behind a checkpoint, never what is needed, and whole at every moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from guard.errors import StateDamaged
from guard.ledger.house import House
from guard.ledger.index import INDEX_NAME
from guard.ledger.retention import DAY_S, Limits
from guard.types import Level, Status
from tests.ledger.world import (
    BOOT,
    CountingIds,
    FakeLiveness,
    FixedClock,
    Judged,
    approved,
    asked,
    bound,
    change_of,
    done,
    ledger_in,
    read_of,
    segment,
)

SEGMENT = 4096
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Owners(FakeLiveness):
    """Runs whose owner is named in `gone` are over without an end."""

    def __init__(self, boot=BOOT):
        super().__init__(boot)
        self.gone = set()

    def alive(self, boot, pid, start):
        return boot == self.boot and pid not in self.gone


@pytest.fixture
def clock():
    return FixedClock(boot_s=400.0 * DAY_S)


@pytest.fixture(params=[1 << 30, -1], ids=["folded", "indexed"])
def opened(tmp_path, clock, request):
    """Opens the same folder with small segments, with and without an index."""
    ids, owners = CountingIds(), Owners()

    def open_it(**house):
        ledger = ledger_in(
            tmp_path / "state",
            clock=clock,
            ids=ids,
            liveness=owners,
            segment_bytes=SEGMENT,
            small_log_bytes=request.param,
            house=House(**house),
        )
        ledger.owners = owners
        return ledger

    return open_it


def begin(ledger, command, *, stamp="", pid=7, level=Level.R2):
    request = asked(command)
    judged = change_of(command, level)
    return ledger.begin(
        request,
        judged,
        profile="none",
        enforced="none",
        stamp=stamp,
        binding=bound(command, level.name) if stamp else None,
        owner=(pid, f"start-{pid}"),
    )


def reads(ledger, count):
    for number in range(count):
        begun = ledger.begin_read(
            asked(f"df -h /{number}"), read_of(f"df -h /{number}"), profile="local", enforced="strict"
        )
        ledger.end(begun.execution, done())


def segments(tmp_path):
    return sorted(name for name in os.listdir(tmp_path / "state" / "log") if name.endswith(".jsonl"))


def kinds(ledger):
    return [entry["kind"] for entry in ledger.entries()]


def let_go(ledger, limits):
    plan = ledger.retention.plan(limits)
    ledger.retention.apply(plan)
    return plan


@pytest.mark.guarantee("G-RETENTION")
def test_log_that_began_long_ago_is_whole_behind_its_checkpoint(tmp_path, opened, clock):
    ledger = opened()
    reads(ledger, 20)
    clock.pass_s(40 * DAY_S)
    reads(ledger, 10)
    before = ledger.verify()
    assert before.first_seq == 1
    plan = let_go(ledger, Limits(keep_days=30))
    report = ledger.verify()
    assert report.ok
    assert report.first_seq == plan.segments[-1].last_seq + 1
    assert report.entries == before.entries - plan.entries + 1
    (checkpoint,) = [entry for entry in ledger.entries() if entry["kind"] == "checkpoint"]
    assert (checkpoint["through_seq"], checkpoint["removed_entries"]) == (plan.segments[-1].last_seq, plan.entries)
    assert segments(tmp_path)[0] == f"{checkpoint['first_segment']:06d}.jsonl"
    assert [run.status for run in ledger.executions().executions[:10]] == [Status.SUCCEEDED] * 10
    # A later one goes on from there, also over the old checkpoint itself.
    clock.pass_s(40 * DAY_S)
    reads(ledger, 20)
    clock.pass_s(40 * DAY_S)
    again = let_go(ledger, Limits(keep_days=30))
    assert again.segments[-1].last_seq > checkpoint["seq"]
    report = ledger.verify()
    assert report.ok
    last = [entry for entry in ledger.entries() if entry["kind"] == "checkpoint"][-1]
    assert last["removed_entries"] == plan.entries + again.entries == report.first_seq - 1


@pytest.mark.guarantee("G-RETENTION")
def test_nothing_that_is_needed_goes(tmp_path, opened, clock):
    ledger = opened()
    unknown = begin(ledger, "touch /srv/unknown", pid=99)
    resolved = begin(ledger, "touch /srv/resolved", pid=98)
    running = begin(ledger, "touch /srv/running", pid=50)
    lost_read = ledger.begin_read(asked("df"), read_of("df"), profile="local", enforced="strict").execution
    refused = ledger.keep_request(asked("rm /srv/asked"), change_of("rm /srv/asked"))
    ledger.answers.deny(asked("rm /srv/denied"), assessment=Judged("rm /srv/denied", Level.R2), reason="never")
    stamp = approved(ledger, uses=3, ttl_s=86_400)
    used_by = begin(ledger, "systemctl restart nginx", stamp=stamp.id)
    ledger.end(used_by, done())
    dead = approved(ledger, asked("reboot"), change_of("reboot"), bound("reboot"), ttl_s=1)
    ledger.answers.freeze("an audit", actor="person")
    ledger.owners.gone = {98, 99}
    ledger.answers.resolve(resolved, "done")
    clock.pass_s(1800)
    reads(ledger, 40)
    plan = let_go(ledger, Limits(keep_bytes=2 * SEGMENT))
    assert len(segments(tmp_path)) <= 4
    assert plan.segments[0].segment == 1

    assert ledger.verify().ok
    about = {run.id: run for run in ledger.executions(limit=1000).executions}
    assert about[unknown].status == Status.UNKNOWN
    assert about[running].status == Status.RUNNING
    assert about[used_by].status == Status.SUCCEEDED
    assert lost_read in about  # its owner is this very process, which lives
    assert resolved not in about
    judged = Judged("touch /srv/unknown", Level.R2)
    assert [run.id for run, _ in ledger.answers.unresolved(asked("touch /srv/unknown"), judged)] == [unknown]
    assert ledger.request(refused).command == "rm /srv/asked"
    assert [entry["kind"] for entry in ledger.show(refused).entries] == ["requested"]
    assert ledger.answers.denial_of(asked("rm /srv/denied"), Judged("rm /srv/denied", Level.R2)).reason == "never"
    assert "an audit" in ledger.answers.frozen()
    ledger.answers.thaw()
    live = ledger.stamps.find(bound())
    assert (live.id, live.used_by, live.uses_left) == (stamp.id, (used_by,), 2)
    assert ledger.stamps.show(dead.id) is None
    begin(ledger, "systemctl restart nginx", stamp=stamp.id)
    assert ledger.stamps.show(stamp.id).uses_left == 1
    # And all of it again when the lines that carried it are old themselves.
    clock.pass_s(60)
    reads(ledger, 60)
    let_go(ledger, Limits(keep_bytes=2 * SEGMENT))
    assert ledger.verify().ok
    assert [run.id for run, _ in ledger.answers.unresolved(asked("touch /srv/unknown"), judged)] == [unknown]
    assert ledger.stamps.show(stamp.id).uses_left == 1
    assert len(ledger.stamps.listed()) == 1
    ledger.answers.resolve(unknown, "not_done")
    assert ledger.answers.unresolved(asked("touch /srv/unknown"), judged) == ()


def test_what_is_younger_and_what_is_written_now_stays(tmp_path, opened, clock):
    ledger = opened()
    reads(ledger, 20)
    there = segments(tmp_path)
    assert let_go(ledger, Limits(keep_days=1)).segments == ()
    assert let_go(ledger, Limits(keep_bytes=1 << 30)).segments == ()
    assert let_go(ledger, Limits()).segments == ()
    assert segments(tmp_path) == there
    clock.pass_s(1000 * DAY_S)
    let_go(ledger, Limits(keep_days=1))
    assert segments(tmp_path) == there[-1:]


def test_clock_that_jumps_forward_makes_nothing_old(tmp_path, opened, clock):
    """Within a boot no more time can have passed than the boot clock says."""
    ledger = opened()
    clock.seconds = 5000.0
    reads(ledger, 20)
    there = segments(tmp_path)
    clock.utc_ms += 400 * DAY_S * 1000
    clock.seconds += 60
    assert let_go(ledger, Limits(keep_days=30)).segments == ()
    assert segments(tmp_path) == there


def test_clock_that_jumps_back_makes_nothing_old(tmp_path, opened, clock):
    ledger = opened()
    reads(ledger, 20)
    clock.utc_ms -= 400 * DAY_S * 1000
    assert let_go(ledger, Limits(keep_days=1)).segments == ()


def test_damaged_segment_is_evidence_and_stays(tmp_path, opened, clock):
    ledger = opened()
    reads(ledger, 30)
    clock.pass_s(40 * DAY_S)
    path = segment(tmp_path / "state", 2)
    with open(path, "r+b") as file:
        file.seek(100)
        file.write(b"\x00")
    there = segments(tmp_path)
    with pytest.raises(StateDamaged, match="segment 2"):
        ledger.retention.plan(Limits(keep_days=30))
    assert segments(tmp_path) == there


def test_two_that_let_go_at_once_do_it_once(tmp_path, opened, clock):
    ledger, other = opened(), opened()
    reads(ledger, 30)
    clock.pass_s(40 * DAY_S)
    limits = Limits(keep_days=30)
    mine, theirs = ledger.retention.plan(limits), other.retention.plan(limits)
    ledger.retention.apply(mine)
    other.retention.apply(theirs)
    assert kinds(ledger).count("checkpoint") == 1
    assert ledger.verify().ok


@pytest.mark.guarantee("G-RETENTION")
def test_log_that_was_cut_at_its_beginning_is_still_found_out(tmp_path, opened, clock):
    ledger = opened()
    reads(ledger, 40)
    clock.pass_s(40 * DAY_S)
    reads(ledger, 20)
    let_go(ledger, Limits(keep_days=30))
    os.unlink(tmp_path / "state" / "log" / segments(tmp_path)[0])
    report = ledger.verify()
    assert [problem.code for problem in report.problems] == ["segment-missing", "missing"]
    assert report.first_bad_seq == 1


def test_log_cut_without_a_checkpoint_is_still_found_out(tmp_path, opened):
    ledger = opened()
    reads(ledger, 40)
    os.unlink(segment(tmp_path / "state", 1))
    assert [problem.code for problem in ledger.verify().problems] == ["segment-missing", "missing"]


def test_new_segment_lets_the_old_ones_go_by_itself(tmp_path, opened):
    ledger = opened(limits=Limits(keep_bytes=3 * SEGMENT))
    reads(ledger, 100)
    assert len(segments(tmp_path)) <= 5
    assert ledger.verify().ok
    assert kinds(ledger).count("checkpoint") >= 1
    assert "notice" not in kinds(ledger)


def test_retention_that_cannot_is_noted_and_runs_go_on(tmp_path, opened):
    ledger = opened()
    reads(ledger, 40)
    with open(segment(tmp_path / "state", 1), "r+b") as file:
        file.write(b"\x00")
    ledger = opened(limits=Limits(keep_bytes=SEGMENT))
    reads(ledger, 40)
    assert ledger.executions(limit=1).executions[0].status == Status.SUCCEEDED
    noted = [entry for entry in ledger.entries() if entry.get("code") == "retention-failed"]
    assert noted and "segment 1" in noted[0]["text"]
    assert segments(tmp_path)[0] == "000001.jsonl"


def test_index_forgets_what_went(tmp_path, clock):
    ledger = ledger_in(tmp_path / "state", clock=clock, segment_bytes=SEGMENT, small_log_bytes=-1)
    reads(ledger, 40)
    oldest = ledger.executions(limit=1000).executions[-1].id
    made = os.stat(tmp_path / "state" / INDEX_NAME).st_ino
    clock.pass_s(40 * DAY_S)
    reads(ledger, 10)
    let_go(ledger, Limits(keep_days=30))
    assert oldest not in [run.id for run in ledger.executions(limit=1000).executions]
    assert ledger.show(oldest).entries == ()
    assert os.stat(tmp_path / "state" / INDEX_NAME).st_ino == made, "the index was built again"


CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
path, dies_at = sys.argv[2], int(sys.argv[3])
steps = 0


def step(real):
    def wrapped(*arguments, **named):
        global steps
        steps += 1
        if steps == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)
    return wrapped


from guard.ledger import log, segments
from guard.ledger.retention import DAY_S, Limits
from tests.ledger.world import FixedClock, START_MS, ledger_in
clock = FixedClock(START_MS + 40 * DAY_S * 1000, 440.0 * DAY_S)
ledger = ledger_in(path, clock=clock, segment_bytes=4096)
retention = ledger.retention
plan = retention.plan(Limits(keep_days=30))
for module, names in ((os, ("write", "unlink", "fsync", "fdatasync", "pwrite", "ftruncate")),):
    for name in names:
        setattr(module, name, step(getattr(module, name)))
log._sync_data = os.fdatasync
retention.apply(plan)
print(steps)
"""


def retained(path, dies_at):
    return subprocess.run(
        [sys.executable, "-I", "-c", CHILD, ROOT, str(path), str(dies_at)], capture_output=True, timeout=60
    )


def story(path):
    """A log with old segments, one unknown run, one live stamp."""
    clock = FixedClock(boot_s=400.0 * DAY_S)
    ledger = ledger_in(path, clock=clock, segment_bytes=SEGMENT)
    unknown = begin(ledger, "touch /srv/unknown", pid=99)
    reads(ledger, 20)
    clock.pass_s(40 * DAY_S - 30)
    stamp = approved(ledger)
    reads(ledger, 4)
    return unknown, stamp.id


@pytest.mark.guarantee("G-RETENTION")
def test_killed_between_any_two_steps_the_log_is_whole_and_the_next_one_finishes(tmp_path):
    story(tmp_path / "whole")
    complete = retained(tmp_path / "whole", 0)
    assert complete.returncode == 0, complete.stderr
    steps = int(complete.stdout)
    assert steps >= 8
    wanted = segments_of(tmp_path / "whole")
    for dies_at in range(1, steps + 1):
        path = tmp_path / f"killed-{dies_at}"
        unknown, stamp = story(path)
        assert retained(path, dies_at).returncode == -signal.SIGKILL
        assert_whole(path, unknown, stamp)
        assert retained(path, 0).returncode == 0
        assert_whole(path, unknown, stamp)
        assert segments_of(path)[:1] == wanted[:1], dies_at
        total = [entry for entry in reader(path).entries() if entry["kind"] == "checkpoint"]
        assert total[-1]["removed_entries"] == reader(path).verify().first_seq - 1


def reader(path):
    owners = Owners()
    owners.gone = {99}
    return ledger_in(path, clock=FixedClock(FixedClock().utc_ms + 40 * DAY_S * 1000, 440.0 * DAY_S), liveness=owners)


def segments_of(path):
    return sorted(name for name in os.listdir(path / "log") if name.endswith(".jsonl"))


def assert_whole(path, unknown, stamp):
    ledger = reader(path)
    report = ledger.verify()
    assert report.ok, report.problems
    (found,) = [run for run in ledger.executions(limit=1000).executions if run.id == unknown]
    assert found.status == Status.UNKNOWN
    assert [one.id for one in ledger.stamps.listed()] == [stamp]
    assert ledger.stamps.find(bound()).uses_left == 1


def test_carried_line_that_is_none_stands_for_itself(tmp_path):
    ledger = ledger_in(tmp_path / "state")
    for inner in (None, 7, {}, {"seq": "1"}, {"seq": 1, "kind": "started"}):
        ledger.record("carried", entry=inner)
    assert ledger.executions().executions == ()
    assert ledger.verify().ok
    assert json.loads(json.dumps([entry["kind"] for entry in ledger.entries()])) == ["carried"] * 5
