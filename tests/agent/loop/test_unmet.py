"""What became of what a brain wanted, as a turn's end tells it: approvals not used, reads not allowed, denials."""

from __future__ import annotations

import pytest

from dialogue import confirm, events
from dialogue.confirm import Answer
from tests.agent.loop.test_approvals import REQUEST, YES, answering, change
from tests.capabilities.world import guard_in
from tests.talk import conversation, of, scripted, turn, use


@pytest.mark.guarantee("G-DENIED")
@pytest.mark.parametrize(
    "again",
    [
        use("write", path="../{name}/keep", content="second\n"),
        use("edit", path="keep", old="x", new="third"),
        use("write", path="{dir}/keep", content="x\nfourth\n"),
    ],
    ids=["other words", "another tool", "another path"],
)
def test_second_denial_of_a_file_change_ends_the_turn_in_whatever_words(tmp_path, again):
    (tmp_path / "keep").write_text("x")
    names = {"name": tmp_path.name, "dir": str(tmp_path)}
    again["arguments"]["path"] = again["arguments"]["path"].format(**names)
    ask = {"expect": REQUEST, "calls": [use("ops_approve", request="${request}")]}
    brain = scripted(
        {"calls": [use("write", path="keep", content="first\n")]}, ask, {"calls": [again]}, ask, "never said"
    )
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    no = Answer(confirm.DENIED, "rpc")
    seen = turn(talk, on_event=answering(talk, no, no))
    assert seen[-1].exit_code == 4 and of(seen, events.Text) == []
    assert (tmp_path / "keep").read_text() == "x"


@pytest.mark.guarantee("G-DENIED")
def test_second_denial_of_a_plan_ends_the_turn_though_its_steps_are_worded_anew(tmp_path):
    (tmp_path / "keep").write_text("x")

    def plan(*commands):
        return {"calls": [use("ops_plan", steps=[{"command": command} for command in commands])]}

    brain = scripted(
        plan(f"rm {tmp_path}/keep", f"touch {tmp_path}/keep"),
        plan(f"touch {tmp_path}/other", f"rm -f -- {tmp_path}/keep"),
        "never said",
    )
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True, plans=True)
    no = Answer(confirm.DENIED, "repl")
    seen = turn(talk, on_event=answering(talk, no, no))
    assert [event.status for event in of(seen, events.ToolCompleted)] == ["denied", "denied"]
    assert seen[-1].exit_code == 4 and of(seen, events.Text) == []


def test_one_denial_of_a_plan_is_one_though_its_steps_touch_the_same(tmp_path):
    steps = [{"command": f"touch {tmp_path}/one"}, {"command": f"rm {tmp_path}/one"}]
    steps.append({"command": f"touch {tmp_path}/one"})
    brain = scripted({"calls": [use("ops_plan", steps=steps)]}, "Left.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True, plans=True)
    seen = turn(talk, on_event=answering(talk, Answer(confirm.DENIED, "repl")))
    assert of(seen, events.Text)[-1].text == "Left."


def test_denials_of_different_files_end_no_turn(tmp_path):
    ask = {"expect": REQUEST, "calls": [use("ops_approve", request="${request}")]}
    calls = [{"calls": [use("write", path=name, content="x")]} for name in ("one", "two")]
    brain = scripted(calls[0], ask, calls[1], ask, "Left.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    no = Answer(confirm.DENIED, "rpc")
    seen = turn(talk, on_event=answering(talk, no, no))
    assert of(seen, events.Text)[-1].text == "Left."


def test_change_that_was_approved_and_not_carried_out_is_not_done(tmp_path):
    talk = conversation(guard_in(tmp_path), change(f"touch {tmp_path}/made", "Done!"), tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, YES))
    assert seen[-1] == events.TurnCompleted(1, [])
    assert any("was not carried out" in event.text for event in of(seen, events.Notice))
    assert not (tmp_path / "made").exists()


def test_approval_of_another_process_s_request_leaves_no_doubt_about_its_run(tmp_path):
    command, guard = f"touch {tmp_path}/made", guard_in(tmp_path)
    turn(conversation(guard, scripted({"calls": [use("ops_exec", command=command)]}, "Ask."), tmp_path))
    (kept,) = guard.ledger.pending()
    brain = scripted(
        {"calls": [use("ops_approve", request=kept.id)]}, {"calls": [use("ops_exec", command=command)]}, "Done."
    )
    talk = conversation(guard, brain, tmp_path, asks=True)
    assert turn(talk, on_event=answering(talk, YES))[-1] == events.TurnCompleted(0, [])
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize("tool", ["bash", "ops_exec", "read"])
def test_read_that_needs_an_approval_ends_the_turn_with_its_request(tmp_path, tool):
    (tmp_path / ".env").write_text("A=b\n")
    looks = {"command": "curl -s http://example.org/x"} if tool != "read" else {"path": ".env"}
    guard = guard_in(tmp_path)
    seen = turn(conversation(guard, scripted({"calls": [use(tool, **looks)]}, "I cannot see it."), tmp_path))
    (kept,) = guard.ledger.pending()
    assert seen[-1] == events.TurnCompleted(3, [kept.id])


def test_read_that_ran_after_all_needs_no_approval(tmp_path):
    command = "curl -s http://example.org/x"
    guard = guard_in(tmp_path)
    ask = {"expect": REQUEST, "calls": [use("ops_approve", request="${request}")]}
    brain = scripted({"calls": [use("bash", command=command)]}, ask, "I leave it.")
    talk = conversation(guard, brain, tmp_path, asks=True)
    assert turn(talk, on_event=answering(talk, YES))[-1].exit_code == 1
    (stamp,) = guard.ledger.stamps.listed()
    assert stamp.command == command


def test_change_that_a_read_only_tool_sends_elsewhere_is_refused_by_nobody(tmp_path):
    brain = scripted({"calls": [use("bash", command=f"touch {tmp_path}/made")]}, "Then not.")
    assert turn(conversation(guard_in(tmp_path), brain, tmp_path))[-1] == events.TurnCompleted(0, [])
