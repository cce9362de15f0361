"""A caller that can ask its person: what they see is complete, what they say is recorded, and only their yes acts."""

from __future__ import annotations

import pytest

from capabilities import ops
from capabilities.approvals import approve_tool, resolve_tool
from capabilities.jobs import Jobs
from capabilities.snapshots import rollback_tool, snapshot_tool
from dialogue.confirm import (
    APPROVED,
    CANCELLED,
    COMMAND,
    DENIED,
    EXPIRED,
    RESOLVE,
    ROLLBACK,
    UNANSWERED,
    Answer,
    NobodyThere,
)
from execution import assess
from guard.errors import ApprovalChanged, NotPermitted, UsageError
from guard.hands.cancel import CancelToken
from tests.capabilities.world import asked, call_in, guard_in

pytestmark = pytest.mark.guarantee("G-MCP-CONSENT")


class Person:
    """Answers every ask the same way, and remembers what was shown."""

    def __init__(self, outcome=APPROVED, *, consent="rpc", before=lambda: None, **more):
        self.answer = Answer(outcome, consent, "a" * 64, **more)
        self.before = before
        self.asks = []

    def ask(self, ask, *, timeout_s):
        self.asks.append(ask)
        self.timeout_s = timeout_s
        self.before()
        return self.answer


def entries(guard, kind):
    return [entry for entry in guard.ledger.entries() if entry["kind"] == kind]


def run(guard, call, command):
    tools = {tool.name: tool for tool in ops.tools(guard, call, Jobs())}
    return asked(tools["ops_exec"], command=command)


def unknown(guard, tmp_path, command="touch x"):
    """A run whose owner is gone and whose end is not on record."""
    request = call_in(tmp_path).request(command)
    return guard.ledger.begin(request, assess(request, guard), profile="none", enforced="none", owner=(2**22 + 1, "0"))


@pytest.mark.parametrize("consent", ["tty", "rpc", "acp"])
def test_a_yes_is_recorded_with_how_it_was_given_and_what_was_shown(tmp_path, consent):
    guard, person = guard_in(tmp_path), Person(consent=consent)
    call = call_in(tmp_path, confirm=person)
    got = asked(approve_tool(guard, call), command="touch x", why="to have it")
    assert (got["status"], got["stamp"]["consent"], got["stamp"]["uses"]) == ("approved", consent, 1)
    (entry,) = entries(guard, "approved")
    assert (entry["consent"], entry["rendered_sha256"], entry["actor"]) == (consent, "a" * 64, "person")
    assert (entry["shell"], entry["client"], entry["session"], entry["call_id"]) == ("mcp", "tests 7", "c-1", "toolu_1")
    assert run(guard, call, "touch x")["status"] == "succeeded"
    assert run(guard, call, "touch x")["status"] == "needs_stamp"


def test_the_ask_is_complete(tmp_path):
    guard, person = guard_in(tmp_path), Person(UNANSWERED)
    (tmp_path / "fix.sh").write_text("touch y\n")
    lost = unknown(guard, tmp_path, "bash fix.sh")
    asked(approve_tool(guard, call_in(tmp_path, confirm=Person(DENIED, reason="not today"))), command="bash fix.sh")
    got = asked(approve_tool(guard, call_in(tmp_path, confirm=person)), command="bash fix.sh", why="to mend it")
    (ask,) = person.asks
    assert (ask.id, ask.kind, ask.target, ask.cwd) == (got["request"], COMMAND, "local", str(tmp_path))
    assert (ask.command, ask.level, ask.why, ask.must_type) == ("bash fix.sh", "R2", "to mend it", "")
    assert ask.host and "uid" in ask.user and ask.reasons and ask.holds == "one run within 15 min"
    assert (ask.resolves, len(ask.digest)) == ((lost,), 64)
    assert any(lost in remark for remark in ask.remarks) and any("not today" in remark for remark in ask.remarks)
    assert "a part of it is not understood" in ask.sensitive
    assert (ask.expires_at > guard.clock.utc(), person.timeout_s) == (True, 300.0)
    assert ask.asked_by == "agent (tests 7) through mcp"


def test_what_is_irreversible_is_asked_with_what_has_to_be_typed_and_its_stamp_is_forced(tmp_path):
    guard, person = guard_in(tmp_path), Person()
    (tmp_path / "folder").mkdir()
    call = call_in(tmp_path, confirm=person)
    got = asked(approve_tool(guard, call), command="rm -rf folder")
    assert person.asks[0].must_type == str(tmp_path / "folder")
    assert (got["status"], got["stamp"]["forced"], got["stamp"]["level"]) == ("approved", True, "R3")
    assert run(guard, call, "rm -rf folder")["status"] == "succeeded"
    assert not (tmp_path / "folder").exists()


def test_a_yes_that_says_that_the_person_looked_settles_the_unknown_run(tmp_path):
    guard = guard_in(tmp_path)
    lost = unknown(guard, tmp_path)
    call = call_in(tmp_path, confirm=Person())
    assert asked(approve_tool(guard, call), command="touch x")["status"] == "approved"
    assert guard.ledger.show(lost).execution.resolution == "looked"
    assert run(guard, call, "touch x")["status"] == "succeeded"


def test_a_yes_for_several_runs_is_one_stamp_with_so_many_uses(tmp_path):
    guard, call = guard_in(tmp_path), call_in(tmp_path, confirm=Person(uses=2))
    assert asked(approve_tool(guard, call), command="touch x")["stamp"]["uses"] == 2
    assert [run(guard, call, "touch x")["status"] for _ in range(3)] == ["succeeded", "succeeded", "needs_stamp"]


@pytest.mark.parametrize(
    ("person", "status"),
    [
        (Person(DENIED), "denied"),
        (Person(EXPIRED), "expired"),
        (Person(CANCELLED), "cancelled"),
        (Person(UNANSWERED), "unanswered"),
        (Person(UNANSWERED, reason="it does not fit"), "needs_stamp"),
        (Person("yes"), "unanswered"),
        (Person(APPROVED, consent=""), "unanswered"),
        (NobodyThere(), "needs_stamp"),
        (None, "needs_stamp"),
    ],
)
def test_everything_but_a_yes_approves_nothing(tmp_path, person, status):
    guard = guard_in(tmp_path)
    call = call_in(tmp_path, confirm=person)
    got = asked(approve_tool(guard, call), command="touch x")
    assert got["status"] == status
    if status == "denied":
        assert guard.ledger.pending() == [] and len(entries(guard, "denied")) == 1
    else:
        assert got["next"] == f"opsx approve {got['request']}"
        assert [kept.id for kept in guard.ledger.pending()] == [got["request"]]
    assert entries(guard, "approved") == []
    assert run(guard, call, "touch x")["status"] == "needs_stamp"


def test_a_yes_after_the_caller_gave_up_approves_nothing(tmp_path):
    guard, token = guard_in(tmp_path), CancelToken()
    call = call_in(tmp_path, confirm=Person(before=token.set), cancel=token)
    assert asked(approve_tool(guard, call), command="touch x")["status"] == "cancelled"
    assert entries(guard, "approved") == []
    token.close()


def test_what_changes_while_the_person_reads_is_not_approved(tmp_path):
    guard = guard_in(tmp_path)
    (tmp_path / "fix.sh").write_text("touch y\n")
    call = call_in(tmp_path, confirm=Person(before=lambda: (tmp_path / "fix.sh").write_text("touch z\n")))
    with pytest.raises(ApprovalChanged):
        asked(approve_tool(guard, call), command="bash fix.sh")
    assert entries(guard, "approved") == []


@pytest.mark.parametrize(("command", "error"), [("ls", UsageError), ("opsx approve a-1", NotPermitted)])
def test_what_nobody_can_approve_is_never_asked_and_never_kept(tmp_path, command, error):
    guard, person = guard_in(tmp_path), Person()
    with pytest.raises(error):
        asked(approve_tool(guard, call_in(tmp_path, confirm=person)), command=command)
    assert person.asks == [] and guard.ledger.pending() == []


def test_a_command_that_differs_from_its_request_is_an_error(tmp_path):
    guard, person = guard_in(tmp_path), Person()
    call = call_in(tmp_path, confirm=person)
    kept = run(guard, call, "touch x")["request"]
    with pytest.raises(UsageError):
        asked(approve_tool(guard, call), request=kept, command="touch y")
    assert person.asks == []
    assert asked(approve_tool(guard, call), request=kept, command="touch x")["status"] == "approved"


@pytest.fixture
def changed(tmp_path):
    """A guard, and a snapshot of a file that was changed since."""
    guard = guard_in(tmp_path)
    (tmp_path / "app.conf").write_text("port 80\n")
    snapshot = asked(snapshot_tool(guard, call_in(tmp_path)), files=["app.conf"])["snapshot"]
    (tmp_path / "app.conf").write_text("port 8080\n")
    return guard, snapshot


def test_a_rollback_is_asked_for_with_exactly_this_plan_and_done_at_once(tmp_path, changed):
    guard, snapshot = changed
    person = Person()
    got = asked(rollback_tool(guard, call_in(tmp_path, confirm=person)), id=snapshot, confirm=True)
    assert (got["status"], (tmp_path / "app.conf").read_text()) == ("succeeded", "port 80\n")
    (ask,) = person.asks
    assert (ask.kind, ask.command) == (ROLLBACK, f"opsx rollback {snapshot}")
    assert any(row.strip() == "-port 8080" for row in ask.details)
    assert any(row.strip() == "+port 80" for row in ask.details)
    (approved,) = entries(guard, "approved")
    assert (approved["consent"], approved["rendered_sha256"]) == ("rpc", "a" * 64)
    (stamp,) = guard.ledger.stamps.listed(every=True)
    assert (stamp.state, stamp.used_by) == ("used", (got["execution"],))
    assert guard.ledger.pending() == []


@pytest.mark.parametrize("outcome", [DENIED, EXPIRED, CANCELLED, UNANSWERED])
def test_a_rollback_without_a_yes_changes_nothing(tmp_path, changed, outcome):
    guard, snapshot = changed
    got = asked(rollback_tool(guard, call_in(tmp_path, confirm=Person(outcome))), id=snapshot, confirm=True)
    assert (got["status"], (tmp_path / "app.conf").read_text()) == (outcome, "port 8080\n")
    assert entries(guard, "approved") == []


def test_a_plan_that_changes_while_the_person_reads_is_not_carried_out(tmp_path, changed):
    guard, snapshot = changed
    person = Person(before=lambda: (tmp_path / "app.conf").write_text("port 9090\n"))
    with pytest.raises(ApprovalChanged):
        asked(rollback_tool(guard, call_in(tmp_path, confirm=person)), id=snapshot, confirm=True)
    assert (tmp_path / "app.conf").read_text() == "port 9090\n"


def test_without_confirm_nobody_is_asked_to_take_anything_back(tmp_path, changed):
    guard, snapshot = changed
    person = Person()
    assert asked(rollback_tool(guard, call_in(tmp_path, confirm=person)), id=snapshot)["status"] == "planned"
    assert person.asks == []


def test_a_person_settles_how_an_unknown_run_ended(tmp_path):
    guard, person = guard_in(tmp_path), Person(consent="tty")
    lost = unknown(guard, tmp_path)
    tool = resolve_tool(guard, call_in(tmp_path, confirm=person))
    got = asked(tool, id=lost, outcome="not_done", evidence="ls shows no file x in the folder")
    assert (got["status"], guard.ledger.show(lost).execution.resolution) == ("resolved", "not_done")
    (ask,) = person.asks
    assert (ask.kind, ask.id, ask.resolves, ask.command) == (RESOLVE, lost, (lost,), "touch x")
    assert ask.why == "ls shows no file x in the folder"
    assert any("nothing is run" in remark and "not done" in remark for remark in ask.remarks)
    (entry,) = entries(guard, "resolved")
    assert (entry["consent"], entry["actor"], entry["outcome"]) == ("tty", "person", "not_done")


@pytest.mark.parametrize(("outcome", "status"), [(DENIED, "denied"), (UNANSWERED, "proposed"), (CANCELLED, "proposed")])
def test_a_proposal_that_nobody_confirms_settles_nothing(tmp_path, outcome, status):
    guard = guard_in(tmp_path)
    lost = unknown(guard, tmp_path)
    tool = resolve_tool(guard, call_in(tmp_path, confirm=Person(outcome)))
    got = asked(tool, id=lost, outcome="done", evidence="ls shows the file x in the folder")
    assert (got["status"], guard.ledger.show(lost).execution.resolution) == (status, "")


@pytest.mark.parametrize(
    ("person", "field", "words"),
    [
        (Person(DENIED, reason="reload it"), "next", "the person said no: reload it: leave it"),
        (Person(CANCELLED, reason="touch y instead"), "because", "touch y instead"),
    ],
)
def test_the_persons_words_reach_whoever_asked(tmp_path, person, field, words):
    got = asked(approve_tool(guard_in(tmp_path), call_in(tmp_path, confirm=person)), command="touch x")
    assert got[field] == words
