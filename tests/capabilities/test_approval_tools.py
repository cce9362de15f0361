"""What a model may do with approvals: take one back, and propose. Never give one."""

from __future__ import annotations

import pytest

from capabilities import ops
from capabilities.approvals import resolve_tool, revoke_tool
from capabilities.jobs import Jobs
from capabilities.registry import BadArguments
from execution import assess
from guard.bound import Binding, Consent
from guard.errors import UsageError
from guard.ledger.answers import ToApprove
from tests.capabilities.world import asked, call_in, guard_in


def approved(guard, tmp_path, command="touch x"):
    request = call_in(tmp_path).request(command)
    binding = Binding({"command": command, "target": "local", "level": "R1"})
    items = [ToApprove(request, assess(request, guard), binding)]
    (stamp,) = guard.ledger.answers.approve(items, Consent("tty", "0" * 64))
    return stamp


def unknown(guard, tmp_path):
    """A run whose owner is gone and whose end is not on record."""
    request = call_in(tmp_path).request("touch x")
    return guard.ledger.begin(request, assess(request, guard), profile="none", enforced="none", owner=(2**22 + 1, "0"))


def listed(guard, tmp_path):
    tools = {tool.name: tool for tool in ops.tools(guard, call_in(tmp_path), Jobs())}
    return asked(tools["ops_list"])["stamps"]


def test_an_approval_is_listed_and_can_be_taken_back_once(tmp_path):
    guard = guard_in(tmp_path)
    stamp = approved(guard, tmp_path)
    assert [(one["id"], one["state"], one["command"]) for one in listed(guard, tmp_path)] == [
        (stamp.id, "live", "touch x")
    ]
    got = asked(revoke_tool(guard, call_in(tmp_path)), stamp=stamp.id)
    assert (got["status"], got["stamp"]["id"]) == ("revoked", stamp.id)
    assert listed(guard, tmp_path) == []
    assert [entry["actor"] for entry in guard.ledger.entries() if entry["kind"] == "revoked"] == ["agent"]
    for id in (stamp.id, "t-nothing"):
        with pytest.raises(UsageError):
            asked(revoke_tool(guard, call_in(tmp_path)), stamp=id)


def test_an_unknown_run_gets_a_proposal_and_stays_unknown(tmp_path):
    guard = guard_in(tmp_path)
    run = unknown(guard, tmp_path)
    tool = resolve_tool(guard, call_in(tmp_path))
    got = asked(tool, id=run, outcome="not_done", evidence="ls shows no file x in the folder")
    assert (got["status"], got["next"]) == ("proposed", f"for the person: opsx resolve {run} --not-done")
    found = guard.ledger.show(run).execution
    assert (found.status, found.resolution) == ("unknown", "")
    notice = [entry for entry in guard.ledger.entries() if entry["kind"] == "notice"]
    assert [(entry["actor"], entry["execution"]) for entry in notice] == [("agent", run)]
    assert "ls shows no file" in notice[0]["text"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"outcome": "looked", "evidence": "I looked at it closely"},
        {"outcome": "done", "evidence": "short"},
        {"outcome": "done"},
        {"outcome": "done", "evidence": "I looked at it closely", "confirm": True},
    ],
)
def test_a_proposal_without_evidence_or_with_a_decision_in_it_is_an_error(tmp_path, arguments):
    guard = guard_in(tmp_path)
    with pytest.raises(BadArguments):
        asked(resolve_tool(guard, call_in(tmp_path)), id=unknown(guard, tmp_path), **arguments)
    assert [entry for entry in guard.ledger.entries() if entry["kind"] == "notice"] == []


def test_nothing_is_proposed_for_a_run_that_ended_or_never_was(tmp_path):
    guard = guard_in(tmp_path)
    tools = {tool.name: tool for tool in ops.tools(guard, call_in(tmp_path), Jobs())}
    ended = asked(tools["ops_exec"], command="echo x")["execution"]
    for id, error in ((ended, UsageError), ("e-nothing", ops.NoSuchRecord)):
        with pytest.raises(error):
            asked(resolve_tool(guard, call_in(tmp_path)), id=id, outcome="done", evidence="I looked at it closely")
