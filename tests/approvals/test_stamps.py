"""A stamp is good for exactly one request, for its time, for its uses; the record of the run is what uses it up."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from guard.bound import CHANGED, EXPIRED, MISSING, REVOKED, UNCLEAR, UNFORCED, USED, Binding, Stamp, ttl_of
from guard.errors import (
    ApprovalChanged,
    ApprovalExpired,
    ApprovalRevoked,
    ApprovalUsed,
    Frozen,
    NotApproved,
    NotPermitted,
    StateDamaged,
    StateUnwritable,
    TooManyAsks,
    UsageError,
)
from guard.types import Effect, Level, Status, Verdict
from tests.ledger.world import (
    FakeLiveness,
    FixedClock,
    Judged,
    approved,
    asked,
    bound,
    change_of,
    done,
    ledger_in,
    segment,
)

COMMAND = "systemctl restart nginx"


@pytest.fixture
def clock():
    return FixedClock()


@pytest.fixture(params=[1 << 30, -1], ids=["folded", "indexed"])
def ledger(tmp_path, clock, request):
    """The same answers from the log itself and through its index."""
    return ledger_in(tmp_path / "state", clock=clock, small_log_bytes=request.param)


def begin(ledger, stamp, binding=None, judged=None, **more):
    request = asked(COMMAND)
    return ledger.begin(
        request, judged or change_of(COMMAND), profile="none", enforced="none", stamp=stamp, binding=binding or bound(),
        **more,
    )  # fmt: skip


def code(answer):
    return "live" if isinstance(answer, Stamp) else answer.code


@pytest.mark.guarantee("G-ONE-USE")
def test_stamp_is_used_once_and_names_the_run_that_used_it(ledger):
    stamp = approved(ledger)
    assert ledger.stamps.find(bound()).id == stamp.id
    run = begin(ledger, stamp.id)
    answer = ledger.stamps.find(bound())
    assert (answer.code, answer.stamp) == (USED, stamp.id)
    assert run in answer.text
    with pytest.raises(ApprovalUsed):
        begin(ledger, stamp.id)
    assert [entry["kind"] for entry in ledger.entries()] == ["approved", "started"]
    assert ledger.stamps.show(stamp.id).used_by == (run,)


def test_stamp_of_three_uses_allows_three_runs(ledger):
    stamp = approved(ledger, uses=3)
    for left in (2, 1, 0):
        begin(ledger, stamp.id)
        assert ledger.stamps.show(stamp.id).uses_left == left
    with pytest.raises(ApprovalUsed):
        begin(ledger, stamp.id)


@pytest.mark.guarantee("G-STAMP-ENDS")
def test_expired_stamp_runs_nothing(ledger, clock):
    stamp = approved(ledger, ttl_s=60)
    clock.pass_s(59)
    assert code(ledger.stamps.find(bound())) == "live"
    clock.pass_s(1)
    assert code(ledger.stamps.find(bound())) == EXPIRED
    with pytest.raises(ApprovalExpired):
        begin(ledger, stamp.id)
    assert [entry["kind"] for entry in ledger.entries()] == ["approved"]


@pytest.mark.parametrize("step_s", [-10 * 86400, 10 * 86400])
def test_changed_wall_clock_moves_no_stamp_within_a_boot(ledger, clock, step_s):
    approved(ledger, ttl_s=60)
    clock.utc_ms += step_s * 1000
    assert code(ledger.stamps.find(bound())) == "live"
    clock.seconds += 60
    assert code(ledger.stamps.find(bound())) == EXPIRED


@pytest.mark.parametrize(("passed_s", "expected"), [(30, "live"), (60, EXPIRED), (-30, EXPIRED)])
def test_after_a_reboot_the_wall_clock_ends_a_stamp(tmp_path, clock, passed_s, expected):
    approved(ledger_in(tmp_path / "state", clock=clock), ttl_s=60)
    later = FixedClock(clock.utc_ms + passed_s * 1000, boot_s=2.0)
    after = ledger_in(tmp_path / "state", clock=later, liveness=FakeLiveness("another-boot"))
    assert code(after.stamps.find(bound())) == expected


def test_revoked_stamp_runs_nothing(ledger):
    stamp = approved(ledger)
    assert ledger.answers.revoke(stamp.id).state == REVOKED
    assert code(ledger.stamps.find(bound())) == REVOKED
    with pytest.raises(ApprovalRevoked):
        begin(ledger, stamp.id)
    with pytest.raises(UsageError, match="revoked already"):
        ledger.answers.revoke(stamp.id)
    with pytest.raises(UsageError, match="no stamp"):
        ledger.answers.revoke("t-404")


@pytest.mark.guarantee("G-EXACT")
@pytest.mark.parametrize("name", ["folder", "user", "policy", "file /srv/fix.sh", "ambient kubernetes context"])
def test_each_changed_field_refuses_and_is_named(ledger, name):
    then = Binding({**bound().fields, name: ["a", 1]})
    now = Binding({**bound().fields, name: ["a", 2]})
    stamp = approved(ledger, binding=then)
    answer = ledger.stamps.find(now)
    assert (answer.code, answer.stamp, answer.differences) == (CHANGED, stamp.id, (name,))
    assert answer.text == f"changed since approval: {name}"
    with pytest.raises(ApprovalChanged, match=name):
        begin(ledger, stamp.id, now)
    assert code(ledger.stamps.find(then)) == "live"


def test_field_that_came_or_went_is_a_difference_too(ledger):
    approved(ledger, binding=bound(file_x="1"))
    assert ledger.stamps.find(bound()).differences == ("file x",)
    assert ledger.stamps.find(bound(file_x="1", file_y="2")).differences == ("file y",)
    unbound = Binding(bound(file_x="1").fields, ("a URL",))
    assert ledger.stamps.find(unbound).differences == ("what is not bound",)


def test_other_bytes_are_not_approved_at_all(ledger):
    approved(ledger)
    assert code(ledger.stamps.find(bound(COMMAND + " "))) == MISSING


def test_stamp_without_force_turns_no_r3(ledger):
    binding = bound(COMMAND, "R3")
    forced = Judged(COMMAND, Level.R3, [Effect("delete", "/srv/x")], Verdict.REFUSE, forceable=True)
    with pytest.raises(UsageError):
        approved(ledger, judged=forced, binding=binding)
    unforced = approved(ledger, binding=binding)
    assert code(ledger.stamps.find(binding)) == UNFORCED
    with pytest.raises(NotApproved, match="--force"):
        begin(ledger, unforced.id, binding, forced)
    stamp = approved(ledger, judged=forced, binding=binding, forced=True)
    assert ledger.stamps.find(binding).id == stamp.id
    begin(ledger, stamp.id, binding, forced)


def test_r3_never_begins_without_a_stamp(ledger):
    forced = Judged(COMMAND, Level.R3, [Effect("delete", "/srv/x")], Verdict.REFUSE, forceable=True)
    with pytest.raises(NotApproved):
        ledger.begin(asked(COMMAND), forced, profile="none", enforced="none")
    assert list(ledger.entries()) == []


def test_what_no_approval_changes_is_not_approved(ledger):
    refused = Judged(COMMAND, Level.R2, verdict=Verdict.REFUSE, forceable=False)
    with pytest.raises(NotPermitted):
        approved(ledger, judged=refused)
    assert list(ledger.entries()) == []


def test_stamp_that_ends_first_is_taken_first(ledger):
    long = approved(ledger, ttl_s=900)
    short = approved(ledger, ttl_s=60)
    assert ledger.stamps.find(bound()).id == short.id
    begin(ledger, short.id)
    assert ledger.stamps.find(bound()).id == long.id


def test_log_holds_no_value_of_what_is_bound(tmp_path, clock):
    ledger = ledger_in(tmp_path / "state", clock=clock, redact=lambda text: text.replace("hunter2", "[REDACTED]"))
    approved(
        ledger,
        asked("mysql -phunter2"),
        change_of("mysql -phunter2"),
        Binding({**bound("mysql -phunter2").fields, "file /srv/hunter2": ["hunter2"]}, ("what hunter2 holds",)),
    )
    with open(segment(ledger.folder.path), "rb") as file:
        data = file.read()
    assert b"hunter2" not in data
    entry = json.loads(data)
    assert [name for name, _ in entry["bound"]][-2:] == ["file /srv/[REDACTED]", "what is not bound"]
    assert (entry["actor"], entry["asked_by"], entry["loginuid"], entry["tty"]) == (
        "person",
        "agent",
        1000,
        "/dev/pts/3",
    )


def test_request_is_answered_once(ledger):
    request = asked(COMMAND)
    request_id = ledger.keep_request(request, change_of(COMMAND))
    approved(ledger, request, request_id=request_id)
    assert ledger.request(request_id) is None
    with pytest.raises(NotApproved, match="does not wait any more"):
        approved(ledger, request, request_id=request_id)
    assert [entry["kind"] for entry in ledger.entries()] == ["requested", "approved"]


def test_several_are_approved_all_or_none(ledger):
    from guard.ledger.answers import ToApprove
    from tests.ledger.world import CONSENT

    items = [ToApprove(asked(text), change_of(text), bound(text)) for text in ("touch 1", "touch 2", "touch 3")]
    stamps = ledger.answers.approve(items, CONSENT)
    assert [stamp.command for stamp in stamps] == ["touch 1", "touch 2", "touch 3"]
    with pytest.raises(NotApproved):
        ledger.answers.approve([items[0], ToApprove(*_parts(items[1]), request_id="a-404")], CONSENT)
    assert len(ledger.stamps.listed()) == 3


def _parts(item):
    return item.request, item.assessment, item.binding


@pytest.mark.parametrize("terms", [{"ttl_s": 0}, {"ttl_s": 86_401}, {"uses": 0}, {"uses": 101}])
def test_length_and_uses_have_limits(ledger, terms):
    with pytest.raises(UsageError):
        approved(ledger, **terms)
    assert list(ledger.entries()) == []


def test_lengths_of_time_are_read_in_both_spellings():
    assert [ttl_of(text) for text in ("15m", "900", "900s", "1", "24h", "2h")] == [900, 900, 900, 1, 86_400, 7200]
    for wrong in ("", "m", "0", "-5", "25h", "15 m", "1.5h", "1d", "９", "1e3", "9999999"):
        with pytest.raises(ValueError, match=r"24 h|length"):
            ttl_of(wrong)


def test_stamp_needs_its_binding(ledger):
    stamp = approved(ledger)
    with pytest.raises(ValueError, match="binding"):
        ledger.begin(asked(COMMAND), change_of(COMMAND), profile="none", enforced="none", stamp=stamp.id)
    with pytest.raises(NotApproved, match="no stamp"):
        begin(ledger, "t-404")


def test_owner_of_a_run_can_be_another_process(tmp_path):
    liveness = FakeLiveness()
    ledger = ledger_in(tmp_path / "state", liveness=liveness)
    run = begin(ledger, approved(ledger).id, owner=(4242, "start-4242"))
    assert (ledger.show(run).execution.pid, ledger.show(run).execution.pid_start) == (4242, "start-4242")


def test_failed_begin_leaves_the_stamp_alive(tmp_path, monkeypatch):
    ledger = ledger_in(tmp_path / "state")
    stamp = approved(ledger)

    def full(*_, **__):
        raise StateUnwritable("no space left")

    monkeypatch.setattr("guard.ledger.log.Writer.append", full)
    with pytest.raises(StateUnwritable):
        begin(ledger, stamp.id)
    monkeypatch.undo()
    assert ledger_in(tmp_path / "state").stamps.find(bound()).id == stamp.id


# ── denials ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_denial_is_remembered_for_the_same_bytes_and_the_same_effect(ledger):
    request_id = ledger.keep_request(asked(COMMAND), change_of(COMMAND))
    ledger.answers.deny(asked(COMMAND), request_id=request_id, reason="not today")
    assert ledger.request(request_id) is None
    for text in (COMMAND, "service nginx restart"):
        denial = ledger.answers.denial_of(asked(text), change_of(text))
        assert (denial.request, denial.count, denial.reason) == (request_id, 1, "not today")
    other = Judged("systemctl restart sshd", Level.R2, [Effect("service", "sshd")])
    assert ledger.answers.denial_of(asked("systemctl restart sshd"), other) is None


UNNAMED = [[], [Effect("opaque", "?")], [Effect("exec", "*")], [Effect("write", "")], [Effect("privilege", "root")],
    [Effect("read", "/srv/x")], [Effect("delete", "./*")]]  # fmt: skip


@pytest.mark.parametrize("denied", UNNAMED)
@pytest.mark.parametrize("asked_now", [*UNNAMED, [Effect("write", "/srv/x")]])
def test_nobody_denied_what_was_never_asked(ledger, denied, asked_now):
    ledger.answers.deny(asked("./x"), assessment=Judged("./x", Level.R2, denied))
    assert ledger.answers.denial_of(asked("touch other"), Judged("touch other", Level.R1, asked_now)) is None
    assert ledger.answers.denial_of(asked("./x"), Judged("./x", Level.R2, asked_now)).count == 1


def test_denied_look_at_a_credential_is_denied_through_another_program(ledger):
    shadow = [Effect("secret-read", "/etc/shadow")]
    ledger.answers.deny(asked("cat /etc/shadow"), assessment=Judged("cat /etc/shadow", Level.R2, shadow))
    assert ledger.answers.denial_of(asked("head /etc/shadow"), Judged("head /etc/shadow", Level.R2, shadow))
    touch = Judged("touch never-asked", Level.R1, [Effect("write", "/srv/never-asked")])
    assert ledger.answers.denial_of(asked("touch never-asked"), touch) is None


def test_stop_that_could_not_be_made_says_so(ledger, monkeypatch):
    def full(*_, **__):
        raise StateUnwritable("no space left")

    ledger.record("notice", text="in use")
    monkeypatch.setattr("guard.ledger.state.StateFolder.write_new", full)
    with pytest.raises(StateUnwritable) as raised:
        ledger.answers.freeze("x", actor="person")
    assert raised.value.not_done == "NOT frozen: changes can still run"
    assert ledger.answers.frozen() == ""


def test_stop_without_a_record_holds_and_says_so(ledger, monkeypatch):
    def full(*_, **__):
        raise StateUnwritable("no space left")

    monkeypatch.setattr("guard.ledger.log.Writer.append", full)
    with pytest.raises(StateUnwritable) as raised:
        ledger.answers.freeze("x", actor="person")
    assert "the stop holds" in raised.value.not_done
    assert ledger.answers.frozen().startswith("x (since")


def test_approval_of_the_same_bytes_ends_a_denial(ledger):
    for _ in range(2):
        ledger.answers.deny(asked(COMMAND), assessment=change_of(COMMAND))
    assert ledger.answers.denial_of(asked(COMMAND), change_of(COMMAND)).count == 2
    approved(ledger)
    assert ledger.answers.denial_of(asked(COMMAND), change_of(COMMAND)) is None


def test_caller_has_at_most_three_open_requests(ledger):
    ids = [ledger.keep_request(asked(f"touch {n}", session="c-1"), change_of()) for n in range(3)]
    with pytest.raises(TooManyAsks, match="3 requests"):
        ledger.keep_request(asked("touch 4", session="c-1"), change_of())
    assert ledger.keep_request(asked("touch 0", session="c-1"), change_of()) == ids[0]
    ledger.keep_request(asked("touch 4", session="c-2"), change_of())
    ledger.answers.deny(asked("touch 0", session="c-1"), request_id=ids[0])
    ledger.keep_request(asked("touch 4", session="c-1"), change_of())


# ── stop ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guarantee("G-FREEZE")
def test_frozen_folder_begins_and_approves_nothing_until_a_thaw(ledger):
    stamp = approved(ledger)
    note = ledger.answers.freeze("  the\nmigration ", actor="agent")
    assert note.startswith("the migration (since 2026-")
    with pytest.raises(Frozen, match="the migration"):
        begin(ledger, stamp.id)
    with pytest.raises(Frozen):
        approved(ledger)
    assert ledger.begin_read(asked("df"), Judged("df", Level.R0), profile="local", enforced="strict").recorded.ok
    assert ledger.answers.thaw() is True
    assert ledger.answers.thaw() is False
    begin(ledger, stamp.id)


def test_note_alone_stops_and_the_log_alone_stops(ledger):
    path = os.path.join(ledger.folder.path, "frozen")
    ledger.answers.freeze("", actor="person")
    os.unlink(path)
    assert ledger.answers.frozen().startswith("no reason was given")
    assert ledger.answers.thaw()
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        file.write("by hand\n")
    assert ledger.answers.frozen() == ledger.frozen_note() == "by hand"
    assert ledger.answers.thaw()
    assert ledger.answers.frozen() == ""


def test_note_that_is_a_link_stops(ledger, tmp_path):
    os.symlink("/dev/null", os.path.join(ledger.folder.path, "frozen"))
    assert ledger.answers.frozen() == "its reason cannot be read"


# ── unknown runs ─────────────────────────────────────────────────────────────────────────────────────────────────


def lost(ledger, liveness, command, effects, level=Level.R2):
    run = ledger.begin(asked(command), Judged(command, level, effects), profile="none", enforced="none")
    liveness.dead = True
    return run


WRITE = Effect("write", "/srv/www/a")


@pytest.mark.parametrize(
    ("command", "effects", "shared"),
    [
        ("cp a b", [Effect("package", "x")], "the same command"),
        ("tee", [Effect("write", "/srv/www/a")], "/srv/www/a"),
        ("rm -r", [Effect("delete", "/srv/www")], "/srv/www"),
        ("rm", [Effect("delete", "/srv/www/a/b")], "/srv/www/a/b"),
        ("./x", [Effect("opaque", "?")], "/srv/www/a"),
        ("unknown-thing", [], "/srv/www/a"),
        ("tee", [Effect("write", "/srv/www/ab")], ""),
        ("systemctl", [Effect("service", "/srv/www/a")], ""),
        ("cat", [Effect("read", "/srv/www/a"), Effect("package", "x")], ""),
    ],
)
def test_unknown_run_blocks_what_touches_the_same(tmp_path, command, effects, shared):
    liveness = FakeLiveness()
    ledger = ledger_in(tmp_path / "state", liveness=liveness)
    run = lost(ledger, liveness, "cp a b", [WRITE])
    found = ledger.answers.unresolved(asked(command), Judged(command, Level.R1, effects))
    assert [(one.id, what) for one, what in found] == ([(run, shared)] if shared else [])
    assert ledger.answers.unresolved(asked(command), Judged(command, Level.R0)) == ()
    other = asked(command, target="ssh:web")
    assert ledger.answers.unresolved(other, Judged(command, Level.R1, effects)) == ()


def test_unknown_run_of_unknown_effects_blocks_everything(tmp_path):
    liveness = FakeLiveness()
    ledger = ledger_in(tmp_path / "state", liveness=liveness)
    many = [Effect("write", f"/srv/{number}") for number in range(60)]
    lost(ledger, liveness, "big", many)
    assert ledger.answers.unresolved(asked("tee"), Judged("tee", Level.R1, [Effect("write", "/etc/x")]))


@pytest.mark.parametrize("outcome", ["done", "not_done"])
def test_resolved_run_blocks_no_more(tmp_path, outcome):
    liveness = FakeLiveness()
    ledger = ledger_in(tmp_path / "state", liveness=liveness)
    run = lost(ledger, liveness, "cp a b", [WRITE])
    ledger.answers.resolve(run, outcome, evidence="looked at it")
    assert ledger.answers.unresolved(asked("cp a b"), Judged("cp a b", Level.R2, [WRITE])) == ()
    assert ledger.show(run).execution.resolution == outcome
    assert ledger.show(run).execution.status == Status.UNKNOWN
    with pytest.raises(UsageError, match="nothing to resolve"):
        ledger.answers.resolve(run, outcome)


def test_running_and_ended_runs_are_not_resolved(tmp_path):
    ledger = ledger_in(tmp_path / "state")
    run = ledger.begin(asked("x"), change_of("x"), profile="none", enforced="none")
    with pytest.raises(UsageError, match="is running"):
        ledger.answers.resolve(run, "done")
    ledger.end(run, done())
    with pytest.raises(UsageError, match="is succeeded"):
        ledger.answers.resolve(run, "done")
    with pytest.raises(UsageError, match="no execution"):
        ledger.answers.resolve("e-404", "done")
    with pytest.raises(UsageError, match="no outcome"):
        ledger.answers.resolve(run, "maybe")


def test_approval_that_showed_an_unknown_run_resolves_it(tmp_path):
    liveness = FakeLiveness()
    ledger = ledger_in(tmp_path / "state", liveness=liveness)
    run = lost(ledger, liveness, COMMAND, [Effect("service", "nginx")])
    approved(ledger, resolves=(run,))
    assert ledger.show(run).execution.resolution == "looked"
    assert ledger.answers.unresolved(asked(COMMAND), change_of(COMMAND)) == ()


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────────


DAMAGE = {
    "garbage": lambda raw: b"x" * (len(raw) - 1) + b"\n",
    "zeros": lambda raw: b"\0" * (len(raw) - 1) + b"\n",
    "another record": lambda raw: raw.replace(b'"stamp":"t-', b'"stamp":"t_'),
    "another kind": lambda raw: raw.replace(b'"kind":"started"', b'"kind":"startle"'),
    "no line end": lambda raw: raw[:-1] + b" ",
    "gone": lambda raw: b"",
}


@pytest.mark.guarantee("G-ONE-USE")
@pytest.mark.parametrize("how", list(DAMAGE.values()), ids=list(DAMAGE))
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_unreadable_line_after_an_approval_revives_nothing(ledger, how, warm):
    before = approved(ledger, asked("systemctl restart other"))
    stamp = approved(ledger)
    run = begin(ledger, stamp.id)
    ledger.end(run, done())
    approved(ledger, asked("systemctl restart third"))
    if warm:
        assert code(ledger.stamps.find(bound())) == USED
    path = Path(segment(ledger.folder.path))
    lines = path.read_bytes().splitlines(keepends=True)
    (at,) = [number for number, raw in enumerate(lines) if b'"kind":"started"' in raw]
    path.write_bytes(b"".join((*lines[:at], how(lines[at]), *lines[at + 1 :])))
    answer = ledger.stamps.find(bound())
    assert code(answer) in (UNCLEAR, USED)
    if code(answer) == UNCLEAR:
        assert "opsx audit verify" in answer.text
    with pytest.raises((NotApproved, StateDamaged)):
        begin(ledger, stamp.id)
    assert ledger.stamps.show(before.id).state == UNCLEAR
    assert [one.command for one in ledger.stamps.listed()] in (["systemctl restart third"], [])


def test_damage_before_an_approval_takes_nothing_from_it(ledger):
    ledger.record("notice", text="early")
    ledger.record("notice", text="early too")
    stamp = approved(ledger)
    path = Path(segment(ledger.folder.path))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join((b"x" * (len(lines[0]) - 1) + b"\n", *lines[1:])))
    assert ledger.stamps.find(bound()).id == stamp.id


@pytest.mark.guarantee("G-NO-STAMP")
def test_no_ends_the_yes_that_came_in_another_shell_in_the_same_moment(ledger):
    request_id = ledger.keep_request(asked(COMMAND), change_of(COMMAND))
    stamp = approved(ledger, asked(COMMAND), request_id=request_id)
    other = approved(ledger, asked(COMMAND))
    ledger.answers.deny(asked(COMMAND), request_id=request_id, assessment=change_of(COMMAND))
    assert (ledger.stamps.show(stamp.id).state, ledger.stamps.show(other.id).state) == ("revoked", "live")
