"""The desk: turns, asks, the queue, runs by hand, goals. With a real conversation and a real guard."""

from __future__ import annotations

import os

import pytest

from acting import deadman
from agent.messages import User
from agent.repl import dock
from guard.errors import UsageError
from guard.ledger import claims
from tests.deadman.armed import waits
from tests.repl.desks import Seat


@pytest.fixture
def seat(tmp_path):
    seats = []

    def sit(*replies, **more):
        seats.append(Seat(tmp_path, *replies, **more))
        return seats[-1]

    yield sit
    for one in seats:
        one.close()


def change(command):
    return (
        {"calls": [{"tool": "ops_exec", "arguments": {"command": command}}]},
        {
            "expect": '"request": "(?P<request>a-[a-z0-9]+)"',
            "calls": [{"tool": "ops_approve", "arguments": {"request": "${request}"}}],
        },
        {"calls": [{"tool": "ops_exec", "arguments": {"command": command}}]},
        {"text": "Finished."},
    )


def made(one, name):
    return os.path.exists(os.path.join(one.world.cwd, name))


def test_words_go_to_the_brain_and_its_answer_comes_back(seat):
    one = seat({"expect": "^hello$", "text": "Hi **there**."})
    assert one.say("hello") == ["", "› hello", "", "Hi there."]


def test_yes_in_the_dock_runs_the_change_once(seat):
    one = seat(*change("touch made"))
    assert one.asked("please").ask.command == "touch made"
    one.answer("yes")
    one.pump()
    assert made(one, "made") and "yes to a-" in one.shown() and not one.desk.dock.waiting


def test_no_with_a_reason_reaches_the_brain(seat):
    ask = change("touch made")[:2]
    one = seat(*ask, {"expect": "said no: use systemctl", "text": "I see."})
    one.asked("please")
    one.answer("no use systemctl")
    one.pump()
    assert not made(one, "made") and "I see." in one.shown()


def test_edited_command_goes_back_to_the_brain_word_for_word(seat):
    ask = change("touch made")[:2]
    one = seat(*ask, {"expect": "exactly this command instead: touch other", "text": "I see."})
    one.asked("please")
    one.answer("edit")
    assert one.edited == "touch made" and not one.desk.ask_is_open()
    one.desk.submit("touch other")
    one.pump()
    assert one.edited is None and "I see." in one.shown() and not made(one, "made")
    assert one.world.guard.ledger.pending() == [], "what was asked for first waits no more"
    assert "replaced by what you wrote" in one.shown() and "goes on waiting" not in one.shown()
    assert "opsx approve" not in one.shown()
    (gone,) = (entry for entry in one.world.guard.ledger.entries() if entry["kind"] == "withdrawn")
    assert gone["actor"] == "person" and "touch other" in gone["reason"]
    assert [one.id for one in one.world.guard.ledger.stamps.listed(every=True)] == []


def test_an_edited_run_by_hand_ends_its_request_and_asks_for_the_new_one(seat):
    one = seat({"text": "never asked"})
    one.asked("!touch 旧")
    one.answer("edit")
    assert one.edited == "touch 旧"
    one.desk.submit("touch 新")
    one.asked()
    assert [kept.command for kept in one.world.guard.ledger.pending()] == ["touch 新"]
    one.answer("yes")
    one.pump()
    assert made(one, "新") and not made(one, "旧") and one.world.guard.ledger.pending() == []
    assert "replaced by what you wrote" in one.shown() and "opsx approve" not in one.shown()


def test_a_question_that_was_only_closed_still_waits(seat):
    one = seat(*change("touch made")[:2], {"text": "I see."})
    one.asked("please")
    one.desk.press(dock.Key(dock.ESCAPE))
    one.pump()
    assert len(one.world.guard.ledger.pending()) == 1


def test_editing_can_be_left_and_the_question_is_there_again(seat):
    one = seat(*change("touch made"))
    one.asked("please")
    one.answer("edit")
    one.desk.stop_editing()
    assert one.desk.ask_is_open()
    one.answer("edit")
    one.desk.submit("touch made")  # unchanged: nothing was answered
    assert one.desk.ask_is_open()
    one.answer("yes")
    one.pump()
    assert made(one, "made")


def test_without_a_person_nothing_is_asked(seat):
    one = seat(*change("touch made")[:1], {"text": "It waits."}, person=False)
    one.say("please")
    assert one.desk.transcript.exit_code == 3 and "waits for an approval" in one.shown() and not made(one, "made")


def test_interrupting_closes_the_question_and_keeps_what_was_queued(seat):
    one = seat(*change("touch made"))
    one.asked("please")
    one.desk.submit("next")
    assert one.desk.queued == ["next"]
    one.desk.press(dock.Key(dock.INTERRUPT))
    one.pump()
    assert one.composed == "next" and one.desk.queued == [] and "interrupted" in one.shown()
    assert not made(one, "made")


def test_what_was_queued_goes_next_in_order(seat):
    one = seat({"wait": "gate", "text": "1"}, {"expect": "^b$", "text": "2"}, {"expect": "^c$", "text": "3"})
    for text in ("a", "b", "c", "d"):
        one.desk.submit(text)
    assert one.desk.take_back() == "d"
    one.world.brain.release("gate")
    assert [row for row in one.pump() if row] == ["› a", "1", "› b", "2", "› c", "3"]


def test_run_by_hand_is_a_persons_and_asks_them(seat):
    one = seat({"text": "never asked"})
    one.say("!echo out; echo err >&2")
    assert "│ out" in one.shown() and one.desk.transcript.tools[-1].output == "out\nerr"
    ask = one.asked("!touch made").ask
    assert ask.asked_by.startswith("person")
    one.answer("yes")
    one.pump()
    assert made(one, "made") and "opsx rollback e-" in one.shown()


def test_edited_run_by_hand_is_judged_and_asked_anew(seat):
    one = seat({"text": "never asked"})
    one.asked("!touch made")
    one.answer("edit")
    one.desk.submit("rm -rf made-not")
    assert one.asked().ask.level == "R3"
    one.answer("no")
    one.pump()
    assert not made(one, "made")


def test_run_that_may_not_be_says_why(seat):
    one = seat({"text": "never asked"})
    one.say("!")
    assert "✗" in one.shown()
    assert one.say("!echo fine")[-1].strip("│ ") == "fine", "the conversation goes on"


def test_attached_file_goes_with_the_words_as_data(seat, tmp_path):
    one = seat({"text": "read"}, {"text": "read"})
    (tmp_path / "work" / "app.log").write_text("password=hunter2secret\nERROR 磁盘\n")
    one.say("look at @app.log please")
    user = next(message for message in one.desk.opened.messages() if isinstance(message, User))
    assert user.text == "look at @app.log please" and "ERROR 磁盘" in user.attachments[0]
    assert "hunter2secret" not in user.attachments[0]


def test_attachment_that_cannot_be_read_sends_nothing(seat):
    one = seat({"text": "never asked"})
    one.say("see @./missing.log")
    assert "there is no file ./missing.log" in one.shown() and one.composed == "see @./missing.log"
    assert not one.desk.opened.messages()


def test_a_fault_of_ours_does_not_end_the_conversation(seat, monkeypatch):
    one = seat({"text": "still here"})
    monkeypatch.setattr(one.desk.opened.session, "send_turn", lambda turn: 1 / 0)
    one.say("hello")
    assert "a fault in opsagent itself: ZeroDivisionError" in one.shown()
    monkeypatch.undo()
    assert "still here" in "\n".join(one.say("again"))


# ── goals ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_goal_goes_on_by_itself_until_it_is_reached(seat):
    one = seat({"text": "first"}, {"expect": "round 2 of 6", "text": "all is done\nGOAL REACHED"}, {"text": "never"})
    one.say("/goal clean the disk")
    assert "reached after round 2" in one.shown() and "never" not in one.shown() and one.desk.goal is None


def test_goal_ends_after_its_rounds(seat):
    one = seat(*({"text": f"step {number}"} for number in range(5)))
    one.say("/goal clean the disk --rounds 3")
    assert "stops after its 3 rounds" in one.shown() and "step 2" in one.shown() and "step 3" not in one.shown()


def test_goal_stops_at_the_first_ask(seat):
    one = seat(*change("touch made"), {"text": "never"})
    one.asked("/goal make it")
    one.answer("yes")
    one.pump()
    assert made(one, "made") and "a person was asked" in one.shown() and "never" not in one.shown()


def test_goal_stops_when_it_is_interrupted(seat):
    one = seat({"wait": "gate", "text": "x"}, {"text": "never"})
    one.desk.submit("/goal make it")
    one.pump(lambda: one.desk.goal and one.desk.goal.round == 1)
    one.desk.interrupt()
    assert "never" not in "\n".join(one.pump()) and one.desk.goal is None


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_closing_with_an_open_question_answers_no_and_is_on_record(seat):
    one = seat(*change("touch made"))
    one.asked("please")
    one.close()
    assert not made(one, "made")
    assert [kept.command for kept in one.world.guard.ledger.pending()] == ["touch made"], "it goes on waiting"
    assert [
        entry["kind"] for entry in one.world.guard.ledger.entries() if entry["kind"] in ("approved", "denied")
    ] == []


def test_status_tells_what_a_person_must_not_miss(seat):
    one = seat({"text": "hi", "tokens": {"input": 1500, "output": 20}})
    one.say("hello")
    one.world.guard.ledger.answers.freeze("maintenance", actor="person")
    one.desk.begin()
    one.pump()
    status = one.desk.status()
    assert (status.tokens, status.frozen, status.mode, status.brain) == (1520, True, "guarded", "one")


def test_nothing_of_another_world_is_left_open(seat):
    one = seat({"text": "hi"})
    with pytest.raises(UsageError):
        one.world.open(brain="nobody")


def test_an_edit_shows_its_difference_before_and_after_the_yes(seat):
    edit = {"tool": "write", "arguments": {"path": "app.conf", "content": "workers=4\n"}}
    one = seat(
        {"calls": [edit]},
        {
            "expect": '"request": "(?P<request>a-[a-z0-9]+)"',
            "calls": [{"tool": "ops_approve", "arguments": {"request": "${request}"}}],
        },
        {"calls": [edit]},
        {"text": "Finished."},
    )
    with open(os.path.join(one.world.cwd, "app.conf"), "w") as file:
        file.write("workers=0\n")
    one.asked("please")
    one.answer("yes")
    one.pump()
    assert one.shown().count("  │ -workers=0\n  │ +workers=4") == 2, one.shown()
    assert one.desk.transcript.tools[-1].status == "succeeded"


def test_a_change_that_waits_for_a_confirmation_is_counted_down_through_further_turns_and_its_end_is_told(seat):
    seat = seat({"text": "first"}, {"text": "second"})
    run = waits(seat.world.guard, seconds=600)
    desk = seat.desk
    desk.begin()
    seat.pump(lambda: desk.watch.now())
    assert f"opsx confirm {run} over a NEW connection" in desk.status().waits
    seat.say("one")
    seat.pump()
    seat.say("two")
    rows = seat.pump()
    assert desk.status().waits.startswith("back in ")
    assert any(f"opsx confirm {run}" in row for row in rows)
    claims.claim(seat.world.guard.ledger.answers.folder, run, claims.FIRED)
    seat.world.guard.ledger.note(deadman.FIRED, execution=run, result="succeeded")
    rows = seat.pump(lambda: any("is taken back: nobody confirmed it" in row for row in seat.rows))
    assert desk.status().waits == ""
