"""Kept requests: exact bytes for a day, one id for one question."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from guard.clock import ID_ALPHABET, RandomIds
from guard.errors import StateDamaged, StateError
from guard.ledger.approvals import REQUEST_TTL_S
from guard.types import Level, Verdict
from tests.ledger.world import CountingIds, FakeLiveness, FixedClock, Judged, asked, change_of, ledger_in, segment


@pytest.fixture
def clock():
    return FixedClock()


@pytest.fixture
def state(tmp_path):
    return str(tmp_path / "state")


@pytest.fixture
def ledger(state, clock):
    return ledger_in(state, clock=clock)


AWKWARD = "printf '%s' \"$HOME\" `id`\n\ttwo\r\n\u202e中文\u2028 \\'\x07" + "x" * 4000


def test_request_comes_back_byte_for_byte_with_everything_that_was_asked(ledger):
    request = asked(AWKWARD, cwd="/srv/\udcff", why="因为", session="c-1", actor="runbook")
    kept = ledger.request(ledger.keep_request(request, change_of(AWKWARD)))
    assert kept.request() == request
    assert (kept.level, kept.decision, kept.forceable, kept.uid) == ("R2", "needs_stamp", False, os.geteuid())
    assert kept.decision_text == "it changes something"


def test_forceable_refusal_is_kept_as_such(ledger):
    judged = Judged("rm -rf /srv/x", Level.R3, verdict=Verdict.REFUSE, forceable=True)
    kept = ledger.request(ledger.keep_request(asked("rm -rf /srv/x"), judged))
    assert (kept.decision, kept.forceable) == ("refuse", True)


def test_file_is_for_the_owner_only_and_the_log_has_it_redacted(state, clock):
    ledger = ledger_in(state, clock=clock, redact=lambda text: text.replace("hunter2", "[REDACTED]"))
    request_id = ledger.keep_request(asked("mysql -phunter2"), change_of())
    path = os.path.join(state, "requests", request_id + ".json")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(segment(state), "rb") as file:
        assert b"hunter2" not in file.read()
    (entry,) = ledger.audit(5)
    assert (entry["kind"], entry["request"], entry["command"]) == ("requested", request_id, "mysql -p[REDACTED]")
    assert entry["expires_at"] == "2026-12-02T04:40:00.000Z"
    assert entry["effects"] == [["service", "nginx"]]
    assert ledger.request(request_id).command == "mysql -phunter2"


def test_same_question_has_one_id_and_one_entry(ledger):
    first = ledger.keep_request(asked("rm x"), change_of())
    assert ledger.keep_request(asked("rm x", why="other words", call_id="t2"), change_of()) == first
    assert [entry["kind"] for entry in ledger.entries()] == ["requested"]
    others = ({"command": "rm  x"}, {"cwd": "/"}, {"actor": "person"}, {"target": "ssh:a"})
    for number, other in enumerate(others):
        other = asked(**{"command": "rm x", **other}, session=f"c-{number}")
        assert ledger.keep_request(other, change_of()) != first
    assert len(ledger.pending()) == 5


def test_same_question_from_many_at_once_has_one_id(state, clock):
    ids = CountingIds()

    def ask(_):
        return ledger_in(state, clock=clock, ids=ids).keep_request(asked("rm x"), change_of())

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(ask, range(12)))) == 1


def test_pending_is_oldest_first(ledger, clock):
    ids = []
    for number in range(3):
        ids.append(ledger.keep_request(asked(f"rm {number}"), change_of()))
        clock.pass_s(1)
    assert [kept.id for kept in ledger.pending()] == ids


def test_request_is_over_after_a_day_and_its_bytes_are_gone(ledger, clock, state):
    request_id = ledger.keep_request(asked("rm x"), change_of())
    clock.pass_s(REQUEST_TTL_S - 1)
    assert ledger.request(request_id) is not None
    clock.pass_s(1)
    assert ledger.request(request_id) is None
    assert ledger.pending() == []
    assert os.listdir(state + "/requests") == []
    assert ledger.keep_request(asked("rm x"), change_of()) != request_id


@pytest.mark.parametrize("step_s", [-10 * 86400, 10 * 86400])
def test_changed_wall_clock_moves_nothing_within_a_boot(ledger, clock, step_s):
    request_id = ledger.keep_request(asked("rm x"), change_of())
    clock.utc_ms += step_s * 1000
    assert ledger.request(request_id) is not None
    clock.seconds += REQUEST_TTL_S
    assert ledger.request(request_id) is None


@pytest.mark.parametrize(("passed_s", "waits"), [(60, True), (REQUEST_TTL_S, False), (-60, False)])
def test_after_a_reboot_the_wall_clock_decides(state, clock, passed_s, waits):
    request_id = ledger_in(state, clock=clock).keep_request(asked("rm x"), change_of())
    later = FixedClock(clock.utc_ms + passed_s * 1000, boot_s=3.0)
    after = ledger_in(state, clock=later, liveness=FakeLiveness("another-boot"))
    assert (after.request(request_id) is not None) == waits


@pytest.mark.parametrize("name", ["command", "cwd", "level"])
def test_changed_file_is_damage_when_its_command_changed_or_a_field_is_gone(ledger, state, name):
    request_id = ledger.keep_request(asked("rm x"), change_of())
    path = os.path.join(state, "requests", request_id + ".json")
    with open(path) as file:
        fields = json.load(file)
    if name == "command":
        fields["command"] = "rm -rf /"
    else:
        del fields[name]
    with open(path, "w") as file:
        json.dump(fields, file)
    with pytest.raises(StateDamaged):
        ledger.request(request_id)
    assert ledger.pending() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("command", 3),
        ("cwd", None),
        ("uid", "0"),
        ("uid", True),
        ("created_boot_s", "x"),
        ("created_at", "yesterday"),
        ("forceable", 1),
        ("format", 2),
        ("id", ["a-1"]),
        ("new_field", ""),
    ],
)
def test_field_of_another_type_is_damage(ledger, state, name, value):
    request_id = ledger.keep_request(asked("rm x"), change_of())
    path = os.path.join(state, "requests", request_id + ".json")
    with open(path) as file:
        fields = json.load(file)
    with open(path, "w") as file:
        json.dump({**fields, name: value}, file)
    with pytest.raises(StateDamaged):
        ledger.request(request_id)
    assert ledger.pending() == []


def test_file_that_was_moved_to_another_id_is_damage(ledger, state):
    request_id = ledger.keep_request(asked("rm x"), change_of())
    os.rename(os.path.join(state, "requests", request_id + ".json"), os.path.join(state, "requests", "a-zzz.json"))
    with pytest.raises(StateDamaged):
        ledger.request("a-zzz")
    assert ledger.request(request_id) is None


def test_damaged_file_goes_after_a_day_too(ledger, state, clock):
    request_id = ledger.keep_request(asked("rm x"), change_of())
    path = os.path.join(state, "requests", request_id + ".json")
    with open(path, "w") as file:
        file.write("{")
    os.utime(path, (clock.utc_ms / 1000, clock.utc_ms / 1000))
    ledger.pending()
    assert os.path.exists(path)
    clock.pass_s(REQUEST_TTL_S)
    ledger.pending()
    assert not os.path.exists(path)


@pytest.mark.parametrize("request_id", ["", "a-", "../key", "a-/../../key", "a-\0", "e-1", "a-" + "x" * 100, "A-1"])
def test_strange_id_finds_nothing_and_makes_no_path(ledger, request_id):
    ledger.keep_request(asked("rm x"), change_of())
    assert ledger.request(request_id) is None


def test_request_whose_entry_cannot_be_written_is_not_kept(ledger, state):
    ledger.keep_request(asked("rm x"), change_of())
    os.truncate(segment(state), 50)
    with pytest.raises(StateError):
        ledger.keep_request(asked("rm y"), change_of())
    assert [kept.command for kept in ledger.pending()] == ["rm x"]


def test_ids_have_no_characters_that_look_alike():
    ids = {RandomIds().new("a") for _ in range(200)} | {RandomIds().new("e") for _ in range(200)}
    assert len(ids) == 400
    assert not set("01iloqu") & set("".join(name[2:] for name in ids)) - {"q"}
    assert {len(name) for name in ids} == {8, 13}
    assert len(set(ID_ALPHABET)) == len(ID_ALPHABET) == 29
