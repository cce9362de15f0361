"""Two versions at once, and clocks that jump: an older program reads what a newer one wrote and adds nothing to it."""

from __future__ import annotations

import os

import pytest

from guard.bound import EXPIRED, Stamp
from guard.errors import StateUnsafe, StateUnwritable
from guard.types import Level, Status
from tests.ledger.world import (
    FakeLiveness,
    FixedClock,
    approved,
    asked,
    bound,
    change_of,
    done,
    ledger_in,
    read_of,
    segment,
)


def tree(path):
    """Every file of the folder with what it holds, but for the empty lock."""
    found = {}
    for folder, _, files in os.walk(path):
        for name in files:
            if name != "lock":
                with open(os.path.join(folder, name), "rb") as file:
                    found[os.path.join(folder, name)] = file.read()
    return found


@pytest.mark.parametrize("already_open", [True, False], ids=["before the newer one", "after it"])
@pytest.mark.parametrize("small_log_bytes", [1 << 30, -1], ids=["folded", "indexed"])
def test_older_program_reads_a_newer_folder_and_writes_nothing(tmp_path, already_open, small_log_bytes):
    path = tmp_path / "state"
    ledger = ledger_in(path, small_log_bytes=small_log_bytes)
    run = ledger.begin(asked("touch a"), change_of("touch a", Level.R1), profile="none", enforced="none")
    ledger.end(run, done())
    stamp = approved(ledger)
    waiting = ledger.keep_request(asked("touch b"), change_of("touch b"))
    ledger.executions()
    (path / "format").write_text("2\n")
    before = tree(path)
    if not already_open:
        ledger = ledger_in(path, small_log_bytes=small_log_bytes)

    assert [(found.id, found.status) for found in ledger.executions().executions] == [(run, Status.SUCCEEDED)]
    assert isinstance(ledger.stamps.find(bound()), Stamp)
    assert [kept.id for kept in ledger.pending()] == [waiting]
    assert ledger.verify().ok
    assert ledger.show(run).entries

    begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
    recorded = ledger.end(begun.execution, done())
    assert (recorded.ok, "has format 2" in recorded.because) == (False, True)
    for write in (
        lambda: ledger.begin(
            asked("systemctl restart nginx"),
            change_of(),
            profile="none",
            enforced="none",
            stamp=stamp.id,
            binding=bound(),
        ),
        lambda: ledger.keep_request(asked("touch c"), change_of("touch c")),
        lambda: approved(ledger),
        lambda: ledger.answers.revoke(stamp.id),
        lambda: ledger.answers.freeze("why", actor="person"),
        lambda: ledger.answers.deny(asked("touch b"), request_id=waiting),
        lambda: ledger.record("notice", text="x"),
        lambda: ledger.prune_snapshots(keep=0),
    ):
        with pytest.raises(StateUnwritable, match="has format 2"):
            write()
    assert tree(path) == before


def test_newer_entry_with_unknown_kinds_and_fields_changes_nothing_that_is_known(tmp_path):
    ledger = ledger_in(tmp_path / "state")
    run = ledger.begin(asked("touch a"), change_of("touch a", Level.R1), profile="none", enforced="none")
    ledger.record("thought_of_later", execution=run, format_of_it=2, status="failed")
    ledger.end(run, done())
    ledger.record("ended", execution=run, status="hibernating")
    assert ledger.executions().executions[0].status == Status.SUCCEEDED
    assert ledger.verify().ok


@pytest.mark.guarantee("G-STAMP-ENDS")
@pytest.mark.parametrize("jump_s", [-86_400, -3600, 3600, 86_400, 20 * 365 * 86_400, -20 * 365 * 86_400])
def test_wall_clock_that_jumps_moves_no_approval_and_no_request(tmp_path, jump_s):
    clock = FixedClock()
    ledger = ledger_in(tmp_path / "state", clock=clock)
    stamp = approved(ledger, ttl_s=60)
    request = ledger.keep_request(asked("touch b"), change_of("touch b"))
    clock.utc_ms += jump_s * 1000
    assert ledger.stamps.find(bound()).id == stamp.id
    assert [kept.id for kept in ledger.pending()] == [request]
    clock.seconds += 61
    assert ledger.stamps.find(bound()).code == EXPIRED
    clock.seconds += 86_400
    assert ledger.pending() == []
    ledger.record("notice", text="after the jump")
    assert ledger.verify().ok


@pytest.mark.guarantee("G-STAMP-ENDS")
@pytest.mark.parametrize(("passed_s", "state"), [(30, "live"), (61, "expired"), (-1, "expired")])
def test_after_a_reboot_the_wall_clock_counts_and_one_before_the_approval_ends_it(tmp_path, passed_s, state):
    approved(ledger_in(tmp_path / "state"), ttl_s=60)
    clock = FixedClock()
    clock.utc_ms += passed_s * 1000
    clock.seconds = 5.0
    after = ledger_in(tmp_path / "state", clock=clock, liveness=FakeLiveness("another-boot"))
    assert [stamp.state for stamp in after.stamps.listed(every=True)] == [state]


@pytest.mark.guarantee("G-SICK-STATE")
def test_log_with_a_file_of_another_user_is_not_used(tmp_path, monkeypatch):
    """The owner is real as root, and pretended by our own uid otherwise."""
    ledger = ledger_in(tmp_path / "state")
    ledger.record("notice", text="x")
    path = segment(tmp_path / "state")
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(StateUnsafe, match="belongs to user"):
        ledger.record("notice", text="y")
    begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
    assert "belongs to user" in begun.recorded.because
