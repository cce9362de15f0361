"""The ledger's face: what is recorded, what is read back, and what a sick folder changes."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from guard.clock import RandomIds
from guard.errors import StateDamaged, StateError, StateUnsafe
from guard.ledger import index
from guard.ledger.segments import lines_from
from guard.ledger.store import Ledger, NullLedger, open_ledger
from guard.ledger.verify import verify
from guard.types import Begun, Effect, Interference, Level, Recorded, Status
from tests.ledger.world import (
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
    unchanged,
)


@pytest.fixture
def state(tmp_path):
    return str(tmp_path / "state")


def run_read(ledger, command="df -h", outcome=None):
    begun = ledger.begin_read(asked(command), read_of(command), profile="local", enforced="strict")
    return begun.execution, ledger.end(begun.execution, outcome or done())


def test_read_is_recorded_with_who_asked_and_how_it_ended(state):
    ledger = ledger_in(state)
    interference = (Interference("unlinkat", "/etc/hosts"),)
    execution, recorded = run_read(ledger, outcome=done(Status.FAILED, 3, interference=interference, notes=("cut",)))
    assert recorded == Recorded(True)
    (found,) = ledger.executions().executions
    assert found.id == execution
    assert (found.status, found.exit_code, found.level) == ("failed", 3, "R0")
    assert (found.command, found.cwd, found.target) == ("df -h", "/srv/www", "local")
    assert (found.actor, found.shell, found.client, found.call_id) == ("agent", "opsx", "codex 1.2", "t1")
    assert (found.uid, found.pid, found.stdout_bytes) == (os.geteuid(), os.getpid(), 3)
    assert found.interference == (("unlinkat", "/etc/hosts"),)
    assert found.notes == ("cut",)
    assert found.started_at == found.ended_at == "2026-12-01T04:40:00.000Z"


def test_unknown_interference_is_not_read_as_none_happened(state):
    ledger = ledger_in(state)
    run_read(ledger, outcome=done(interference=None))
    run_read(ledger, outcome=done(interference=()))
    assert [found.interference for found in ledger.executions().executions] == [(), None]


@pytest.mark.guarantee("G-BEGIN")
def test_missing_end_reads_as_running_while_the_owner_lives_and_unknown_after(state):
    liveness = FakeLiveness()
    ledger = ledger_in(state, liveness=liveness)
    begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
    assert ledger.executions().executions[0].status == Status.RUNNING
    liveness.dead = True
    assert [found.id for found in ledger.executions(status=Status.UNKNOWN).executions] == [begun.execution]
    assert ledger.executions(status=Status.RUNNING).executions == ()
    assert ledger.show(begun.execution).execution.status == Status.UNKNOWN


@pytest.mark.guarantee("G-BEGIN")
def test_missing_end_from_before_a_reboot_is_unknown(state):
    ledger_in(state).begin_read(asked(), read_of(), profile="local", enforced="strict")
    after = ledger_in(state, liveness=FakeLiveness("another-boot"))
    assert after.executions().executions[0].status == Status.UNKNOWN


@pytest.mark.guarantee("G-BEGIN")
def test_change_is_durable_and_names_its_stamp_and_effects(state):
    ledger = ledger_in(state)
    stamp = approved(ledger)
    execution = ledger.begin(
        asked("systemctl restart nginx"), change_of(), profile="none", enforced="none", stamp=stamp.id, binding=bound()
    )
    assert verify(ledger.folder).head_seq == 2
    ledger.end(execution, done())
    (found,) = ledger.executions().executions
    assert (found.stamp, found.level, found.effects) == (stamp.id, "R2", (("service", "nginx"),))


def test_begin_of_a_change_goes_through_the_log_once(state, monkeypatch):
    ledger = ledger_in(state)
    run_read(ledger)
    ways = []
    monkeypatch.setattr(index, "lines_from", lambda folder: ways.append(folder) or lines_from(folder))
    ledger.begin(asked("touch f"), change_of(Level.R1), profile="none", enforced="none")
    assert len(ways) == 1


@pytest.mark.parametrize("small_log_bytes", [1 << 30, -1], ids=["folded", "indexed"])
def test_newest_entry_of_each_group_is_found(state, small_log_bytes):
    ledger = ledger_in(state)
    assert index.last_of(ledger.folder, (("frozen", "thawed"), ("signing",)), small_log_bytes=small_log_bytes) == [
        None,
        None,
    ]
    for kind in ("frozen", "thawed", "signing", "frozen", "ended"):
        ledger.record(kind, reason=kind)
    stop, signing = index.last_of(ledger.folder, (("frozen", "thawed"), ("signing",)), small_log_bytes=small_log_bytes)
    assert [(entry["kind"], entry["seq"]) for entry in (stop, signing)] == [("frozen", 4), ("signing", 3)]


def test_detached_change_stays_running_until_its_end(state):
    liveness = FakeLiveness()
    ledger = ledger_in(state, liveness=liveness)
    execution = ledger.begin(asked(), change_of(), profile="none", enforced="none")
    ledger.end(execution, done(Status.RUNNING, None))
    assert ledger.executions().executions[0].status == Status.RUNNING
    ledger.end(execution, done())
    liveness.dead = True
    assert ledger.executions().executions[0].status == Status.SUCCEEDED


def test_first_end_stands(state):
    ledger = ledger_in(state)
    execution, _ = run_read(ledger)
    ledger.end(execution, done(Status.FAILED, 1))
    assert ledger.executions().executions[0].status == Status.SUCCEEDED


def test_listing_is_newest_first_and_takes_status_since_and_limit(state):
    clock = FixedClock()
    ledger = ledger_in(state, clock=clock)
    ids = []
    for number in range(5):
        status = Status.FAILED if number % 2 else Status.SUCCEEDED
        ids.append(run_read(ledger, outcome=done(status, number % 2))[0])
        clock.pass_s(60)
    listed = [found.id for found in ledger.executions().executions]
    assert listed == ids[::-1]
    assert [found.id for found in ledger.executions(limit=2).executions] == ids[:2:-1]
    assert [found.id for found in ledger.executions(status="failed").executions] == [ids[3], ids[1]]
    assert [found.id for found in ledger.executions(since="2026-12-01T04:43:00.000Z").executions] == ids[:2:-1]


def test_show_gives_all_entries_of_one_id(state):
    ledger = ledger_in(state)
    first, _ = run_read(ledger)
    run_read(ledger)
    shown = ledger.show(first)
    assert [entry["kind"] for entry in shown.entries] == ["started", "ended"]
    assert shown.execution.id == first
    assert ledger.show("e-nothing").entries == ()


def test_audit_gives_the_last_entries_oldest_first_across_segments(state):
    ledger = ledger_in(state, segment_bytes=600)
    for _ in range(6):
        run_read(ledger)
    assert [entry["seq"] for entry in ledger.audit(5)] == [8, 9, 10, 11, 12]
    assert [entry["seq"] for entry in ledger.audit(100)] == list(range(1, 13))
    assert ledger.audit(0) == ()


@pytest.mark.guarantee("G-REDACT")
def test_secrets_are_redacted_in_every_field_and_bound_by_a_keyed_digest(state):
    def redact(text):
        return text.replace("hunter2", "[REDACTED]")

    ledger = ledger_in(state, redact=redact)
    request = asked("curl -u me:hunter2 x", cwd="/hunter2", why="hunter2", client="hunter2", call_id="hunter2")
    begun = ledger.begin_read(request, read_of("curl -u me:hunter2 x"), profile="net", enforced="strict")
    outcome = done(notes=("hunter2",), interference=(Interference("open", "/hunter2"),), output_file="/o/hunter2")
    ledger.end(begun.execution, outcome)
    ledger.note("notice", text="hunter2", more=["hunter2", {"hunter2": ("hunter2",)}])
    with open(segment(state), "rb") as file:
        assert b"hunter2" not in file.read()
    digests = {entry["command_hmac"] for entry in ledger.entries() if "command_hmac" in entry}
    ledger_in(state).begin_read(request, read_of(), profile="net", enforced="strict")
    assert {entry["command_hmac"] for entry in ledger.entries() if "command_hmac" in entry} == digests
    assert len(digests.pop()) == 64


def test_every_entry_has_the_common_fields(state):
    ledger = ledger_in(state)
    run_read(ledger)
    ledger.keep_request(asked("rm x"), change_of("rm x", Level.R1))
    ledger.note("notice", text="x")
    for entry in ledger.entries():
        assert {"format", "seq", "at", "boot", "prev", "kind"} <= entry.keys()
        assert {"shell", "client", "call_id", "session", "actor", "uid"} <= entry.keys()


def test_unknown_kinds_are_kept_chained_and_skipped(state):
    ledger = ledger_in(state)
    run_read(ledger)
    ledger.note("something_of_2031", execution="e-1", status="vaporised")
    run_read(ledger)
    assert [found.status for found in ledger.executions().executions] == ["succeeded", "succeeded"]
    assert ledger.verify().ok
    assert [entry["kind"] for entry in ledger.audit(3)] == ["something_of_2031", "started", "ended"]


def test_unreadable_line_is_said_and_the_rest_is_still_listed(state):
    ledger = ledger_in(state)
    run_read(ledger)
    run_read(ledger)
    with open(segment(state), "r+b") as file:
        file.write(b"#")
    listing = ledger.executions()
    assert len(listing.executions) == 1
    assert listing.notes == ("1 line of the log cannot be read and may be executions: opsx audit verify",)
    assert next(iter(ledger.entries()))["kind"] == "unreadable"


@pytest.mark.guarantee("G-SICK-STATE")
def test_read_goes_on_when_the_log_is_damaged_and_change_does_not(state):
    ledger = ledger_in(state)
    run_read(ledger)
    os.truncate(segment(state), 100)
    begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
    assert begun.recorded == Recorded(False, "the log is shorter than its head says: entry 2 is cut off")
    assert ledger.end(begun.execution, done()).because == begun.recorded.because
    with pytest.raises(StateDamaged):
        ledger.begin(asked(), change_of(), profile="none", enforced="none")
    with pytest.raises(StateDamaged):
        ledger.keep_request(asked(), change_of())
    assert ledger.pending() == []


def test_begin_that_could_not_be_written_goes_out_with_the_end(state):
    ledger = ledger_in(state)
    log = os.path.join(state, "log")
    with open(log, "w"):
        pass
    begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
    assert isinstance(begun, Begun) and not begun.recorded.ok
    os.unlink(log)
    assert ledger.end(begun.execution, done()) == Recorded(True)
    assert [entry["kind"] for entry in ledger.entries()] == ["started", "ended"]
    assert ledger.executions().executions[0].status == "succeeded"


def test_threads_of_one_process_share_a_ledger(state):
    ledger = ledger_in(state, ids=RandomIds(), segment_bytes=3000)

    def work(_):
        return [run_read(ledger) for _ in range(10)]

    with ThreadPoolExecutor(6) as pool:
        results = [one for many in pool.map(work, range(6)) for one in many]
    assert all(recorded.ok for _, recorded in results)
    listed = ledger.executions().executions
    assert sorted(found.id for found in listed) == sorted(name for name, _ in results)
    assert {found.status for found in listed} == {"succeeded"}
    assert ledger.verify().ok


def test_end_that_could_not_be_written_goes_out_with_a_later_one(state):
    clock = FixedClock()
    ledger = ledger_in(state, clock=clock)
    first = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict").execution
    clock.pass_s(5)
    os.rename(os.path.join(state, "log"), os.path.join(state, "gone"))
    with open(os.path.join(state, "log"), "w"):
        pass
    assert not ledger.end(first, done()).ok
    second, recorded = run_read(ledger)
    assert not recorded.ok
    os.unlink(os.path.join(state, "log"))
    os.rename(os.path.join(state, "gone"), os.path.join(state, "log"))
    clock.pass_s(60)
    third, recorded = run_read(ledger)
    assert recorded.ok
    found = {execution.id: execution for execution in ledger.executions().executions}
    assert {name: execution.status for name, execution in found.items()} == dict.fromkeys(
        (first, second, third), "succeeded"
    )
    assert found[first].ended_at == "2026-12-01T04:40:05.000Z"
    assert found[second].started_at == "2026-12-01T04:40:05.000Z"
    assert [entry["kind"] for entry in ledger.entries()] == ["started", "ended"] * 3


def test_ends_that_wait_are_bounded(state, monkeypatch):
    monkeypatch.setattr("guard.ledger.store.LATE_LIMIT", 4)
    ledger = ledger_in(state)
    ledger.folder.key()
    with open(os.path.join(state, "log"), "w"):
        pass
    runs = [run_read(ledger)[0] for _ in range(5)]
    os.unlink(os.path.join(state, "log"))
    last, _ = run_read(ledger)
    assert [found.id for found in ledger.executions().executions] == [last, runs[4], runs[3]]


@pytest.mark.guarantee("G-SICK-STATE")
def test_held_lock_delays_a_read_only_so_long_and_its_record_comes_with_the_end(state, monkeypatch):
    import fcntl

    monkeypatch.setattr("guard.ledger.store.READ_BEGIN_WAIT_S", 0.01)
    monkeypatch.setattr("guard.ledger.store.READ_END_WAIT_S", 0.01)
    ledger = ledger_in(state)
    run_read(ledger)
    with open(os.path.join(state, "lock"), "r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        first, recorded = run_read(ledger)
        assert recorded == Recorded(False, "another process has held the log's lock for 0.01 s")
        begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
        assert not begun.recorded.ok
    assert ledger.end(begun.execution, done()).ok
    assert [found.id for found in ledger.executions(status="succeeded").executions][:2] == [begun.execution, first]


@pytest.mark.guarantee("G-SICK-STATE")
@pytest.mark.parametrize("name", ["log", "lock", "key", "log/head", "log/000001.jsonl"])
@pytest.mark.parametrize("trap", ["symlink", "foreign kind"])
def test_strange_thing_in_the_folder_stops_changes_and_no_read(state, tmp_path, name, trap):
    run_read(ledger_in(state))
    path = os.path.join(state, name)
    os.rename(path, tmp_path / "aside")
    before = os.stat(tmp_path / "aside")
    if trap == "symlink":
        os.symlink(tmp_path / "aside", path)
    else:
        os.mkfifo(path, 0o600)
    ledger = ledger_in(state)
    begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
    assert not begun.recorded.ok and begun.recorded.because
    assert not ledger.end(begun.execution, done()).ok
    with pytest.raises(StateError):
        ledger.begin(asked(), change_of(), profile="none", enforced="none")
    after = os.stat(tmp_path / "aside")
    assert (after.st_size, after.st_mtime_ns, after.st_mode) == (before.st_size, before.st_mtime_ns, before.st_mode)


@pytest.mark.parametrize("character", ["\udcff", "中", "\x00", "\U0010ffff"])
def test_longest_possible_entry_fits_a_line(state, character):
    ledger = ledger_in(state)
    long = character * 70_000
    request = asked(character * 65_536, cwd=long, why=long, client=long, call_id=long)
    effects = [Effect("write", long)] * 1000
    execution = ledger.begin(request, Judged(request.command, Level.R2, effects), profile="none", enforced="none")
    refused = (Interference("openat", long),) * 1000
    assert ledger.end(execution, done(notes=(long,) * 1000, interference=refused, output_file=long)).ok
    started, ended = ledger.audit(2)
    assert (len(started["effects"]), started["effects_total"], len(ended["interference"])) == (50, 1000, 50)
    assert ended["interference_total"] == 1000
    assert started["command"] == request.command


def test_removed_state_folder_is_noticed_not_written_into_blindly(state):
    import shutil

    ledger = ledger_in(state)
    run_read(ledger)
    shutil.rmtree(state)
    begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
    assert not begun.recorded.ok
    assert not os.path.exists(state)


@pytest.mark.guarantee("G-SICK-STATE")
def test_unusable_folder_gives_a_ledger_that_answers_with_the_reason(tmp_path):
    os.symlink(tmp_path, tmp_path / "state")
    ledger = open_ledger(clock=FixedClock(), ids=CountingIds(), redact=unchanged, liveness=FakeLiveness())
    assert isinstance(ledger, NullLedger)
    assert isinstance(ledger.error, StateUnsafe)
    begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
    assert begun == Begun("e-1", Recorded(False, ledger.error.message))
    assert ledger.end("e-1", done()) == ledger.note("notice") == begun.recorded
    for action in (
        lambda: ledger.begin(asked(), change_of(), profile="none", enforced="none"),
        lambda: ledger.keep_request(asked(), change_of()),
        ledger.pending,
        ledger.executions,
        ledger.entries,
        ledger.audit,
        ledger.verify,
        lambda: ledger.show("e-1"),
        lambda: ledger.request("a-1"),
    ):
        with pytest.raises(StateError):
            action()


def test_open_ledger_uses_the_named_folder(tmp_path):
    ledger = open_ledger(clock=FixedClock(), ids=CountingIds(), redact=unchanged, liveness=FakeLiveness())
    assert isinstance(ledger, Ledger)
    assert ledger.folder.path == str(tmp_path / "state")
    other = open_ledger(
        clock=FixedClock(), ids=CountingIds(), redact=unchanged, liveness=FakeLiveness(), path=str(tmp_path / "other")
    )
    run_read(other)
    assert json.loads((tmp_path / "other" / "log" / "000001.jsonl").read_bytes().split(b"\n")[0])["seq"] == 1
