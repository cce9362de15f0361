"""Slash commands: which there are, what they do, and that a word that is none is never sent."""

from __future__ import annotations

import os
import re
import types
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import execution
from agent.repl import commands, dock, goals
from agent.repl.attach import MOST_BYTES, attached, paths_in
from agent.repl.composer import Words
from agent.repl.goals import Ended, Goal
from capabilities.call import Call
from capabilities.going_back import nothing_named
from capabilities.ops import exec_tool
from cli.opsx_records import execution_row
from dialogue.screen import screen_of
from guard.errors import UsageError
from guard.types import Actor, Request
from tests.repl.desks import Seat

NAMES = [
    "help",
    "resume",
    "sessions",
    "new",
    "fork",
    "export",
    "model",
    "brain",
    "status",
    "list",
    "pending",
    "approve",
    "stamps",
    "executions",
    "show",
    "rollback",
    "audit",
    "outputs",
    "copy",
    "goal",
    "compact",
    "usage",
    "freeze",
    "thaw",
    "config",
    "doctor",
    "clear",
    "exit",
]


@pytest.fixture
def seat(tmp_path):
    seats = []

    def sit(*replies, **more):
        seats.append(Seat(tmp_path, *replies, **more))
        return seats[-1]

    yield sit
    for one in seats:
        one.close()


def test_there_are_these_commands_and_help_names_them_all():
    assert [one.name for one in commands.COMMANDS] == NAMES
    assert all(f"/{name}" in commands.help_text() for name in NAMES)
    assert all(one.summary in commands.help_text(one.name) for one in commands.COMMANDS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/help", True),
        ("/frobnicate now", True),
        ("/", True),
        ("/etc/hosts is wrong", False),
        ("see /help", False),
        (" /help", False),
        ("", False),
        ("!ls", False),
    ],
)
def test_what_is_a_command(text, expected):
    assert commands.is_command(text) is expected


def test_unknown_word_is_an_error_with_a_hint():
    with pytest.raises(commands.UnknownCommand) as caught:
        commands.found("/res now")
    assert caught.value.message == "unknown command /res" and caught.value.hint == "/resume"
    with pytest.raises(commands.UnknownCommand) as caught:
        commands.found("/\x1b[2J")
    assert "\x1b" not in caught.value.message


def test_unknown_word_is_not_sent(seat):
    one = seat({"text": "never asked"})
    one.say("/frobnicate the disk")
    assert "unknown command /frobnicate" in one.shown() and one.world.brain.sent == []


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("/pending", ["opsx", "pending"]),
        ("/stamps", ["opsx", "stamps"]),
        ("/executions --status unknown", ["opsx", "executions", "--status", "unknown"]),
        ("/show e-1", ["opsx", "show", "e-1"]),
        ("/audit", ["opsx", "audit"]),
        ("/usage", ["opsagent", "usage"]),
        ("/config", ["opsagent", "config", "show", "--origin"]),
        ("/doctor", ["opsagent", "doctor"]),
        ("/sessions", ["opsagent", "sessions", "list"]),
    ],
)
def test_lists_are_those_of_the_command_line(seat, text, verb):
    one = seat({"text": "never asked"})
    assert f"{' '.join(verb)} said this" in one.say(text)
    assert one.world.verbs == [verb]


def test_show_wants_one_record(seat):
    one = seat({"text": "never asked"})
    one.say("/show")
    assert "name one record" in one.shown() and one.world.verbs == []


def test_copy_takes_the_last_answer_and_touches_no_clipboard_itself(seat):
    one = seat({"text": "first\n\nsecond"})
    one.say("/copy")
    assert "there is no answer yet" in one.shown() and one.copied == []
    one.say("hello")
    one.say("/copy")
    assert one.copied == ["first\n\nsecond"]


def test_freeze_and_thaw_reach_the_record(seat):
    one = seat({"text": "never asked"})
    one.say("/freeze maintenance")
    assert one.world.guard.ledger.answers.frozen() and "maintenance" in one.shown()
    one.say("/thaw")
    assert not one.world.guard.ledger.answers.frozen()


def test_only_a_person_thaws(seat):
    one = seat({"text": "never asked"}, person=False)
    one.say("/freeze")
    one.say("/thaw")
    assert one.world.guard.ledger.answers.frozen() and "the stop holds" in one.shown()


def test_rollback_shows_its_plan_asks_and_goes_back(seat):
    one = seat({"text": "never asked"})
    path = os.path.join(one.world.cwd, "note")
    Path(path).write_text("before\n")
    one.asked("!echo after > note")
    one.answer("yes")
    one.pump()
    execution = one.desk.transcript.tools[-1].execution
    ask = one.asked(f"/rollback {execution}").ask
    assert ask.kind == "rollback" and any("-after" in row for row in ask.details)
    one.answer("yes")
    one.pump()
    assert Path(path).read_text() == "before\n" and f"rollback of {execution}: succeeded" in one.shown()


def test_rollback_that_is_refused_changes_nothing(seat):
    one = seat({"text": "never asked"})
    path = os.path.join(one.world.cwd, "note")
    one.asked("!echo after > note")
    one.answer("yes")
    one.pump()
    one.asked(f"/rollback {one.desk.transcript.tools[-1].execution}")
    one.answer("no")
    one.pump()
    assert Path(path).read_text() == "after\n" and "denied" in one.shown()


def test_rollback_without_an_id_takes_the_newest_change_that_is_not_back_yet(seat):
    one = seat({"text": "never asked"})
    for name in ("first", "second"):
        one.asked(f"!touch {name}")
        one.answer("yes")
        one.pump()
    one.say("!ls")
    for gone, left in (("second", ["first"]), ("first", [])):
        assert nothing_named(one.world.guard).hint.endswith(f"takes back the newest change: touch {gone}")
        one.asked("/rollback")
        assert f"touch {gone}" in one.rows[-1]
        one.answer("yes")
        one.pump()
        assert os.listdir(one.world.cwd) == left
    one.say("/rollback")
    assert "nothing that ran can be taken back" in one.shown()


def test_rollback_without_an_id_says_what_is_in_the_way_and_takes_no_older_change_instead(seat):
    one = seat({"text": "never asked"})
    for command in ("touch older", "echo ours > newer"):
        one.asked(f"!{command}")
        one.answer("yes")
        one.pump()
    newer = Path(one.world.cwd, "newer")
    newer.write_text("theirs\n")
    one.say("/rollback")
    newest = one.desk.transcript.tools[-1].execution
    assert f"not back yet: {newest}  echo ours > newer" in one.shown()
    assert f"inthewaychangedsince:{newer}" in re.sub(r"[\s,]", "", one.shown()) and "--leave-conflicts" in one.shown()
    assert newer.read_text() == "theirs\n" and Path(one.world.cwd, "older").exists()


def test_a_rollback_is_asked_for_by_path_and_difference_and_not_by_its_digest(seat):
    one = seat({"text": "never asked"})
    one.asked("!echo ours > newer")
    one.answer("yes")
    one.pump()
    ask = one.asked(f"/rollback {one.desk.transcript.tools[-1].execution}").ask
    shown = screen_of([ask], 400)
    path = os.path.join(one.world.cwd, "newer")
    assert ask.command == f"opsx rollback {one.desk.transcript.tools[-1].execution}" and "--plan" not in shown
    assert [row for row in shown.split("\n") if row.endswith(f"delete {path}")] == [f"    delete {path}"]
    assert "-ours" in shown
    one.answer("yes")
    one.pump()
    assert not os.path.exists(path)
    (rollback,) = [run for run in one.world.guard.ledger.executions(limit=9).executions if "rollback" in run.command]
    assert "--plan" in rollback.command and "--plan" not in execution_row(rollback)


def test_what_was_taken_back_is_not_offered_again_though_its_file_was_changed_since(seat):
    one = seat({"text": "never asked"})
    for command in ("touch older", "echo ours > newer"):
        one.asked(f"!{command}")
        one.answer("yes")
        one.pump()
    one.asked("/rollback")
    one.answer("yes")
    one.pump()
    Path(one.world.cwd, "newer").write_text("by hand\n")
    assert nothing_named(one.world.guard).hint.endswith("takes back the newest change: touch older")


def test_approve_asks_about_what_this_conversation_left_waiting(seat):
    call = {"tool": "ops_exec", "arguments": {"command": "touch made"}}
    one = seat({"calls": [call]}, {"text": "It waits."}, {"calls": [call]}, {"text": "Made."})
    assert one.asked("please").ask.command == "touch made", "the end of the turn asks by itself"
    one.desk.press(dock.Key(dock.ESCAPE))
    one.pump()
    (kept,) = one.world.guard.ledger.pending()
    assert f"it waits for an approval: /approve {kept.id}" in one.shown()
    assert completed(one, "/approve ") == [kept.id]
    assert "touch made" in one.asked("/approve").ask.command
    one.answer("yes")
    one.pump()
    assert not os.listdir(one.world.cwd), "an approval runs nothing"
    one.say("go on")
    assert os.listdir(one.world.cwd) == ["made"]
    one.say("/approve")
    assert "nothing of this conversation or folder waits" in one.shown()


def kept_by_another_client(one, command, cwd, *, actor=Actor.AGENT):
    return exec_tool(one.world.guard, Call(cwd, "mcp", actor)).run({"command": command})["request"]


def test_approve_takes_what_another_client_asked_for_elsewhere_by_its_id_only(seat, tmp_path):
    one = seat({"text": "never asked"})
    ledger = one.world.guard.ledger
    for name in ("theirs", "others"):
        kept_by_another_client(one, f"touch {name}", str(tmp_path))
    one.say("/approve")
    assert "nothing of this conversation or folder waits" in one.shown()
    theirs = ledger.pending()[0]
    assert one.asked(f"/approve {theirs.id}").ask.command == theirs.command
    one.answer("no not now")
    one.pump()
    assert [kept.id for kept in ledger.pending()] != [theirs.id] and "the person said no: not now" in one.shown()
    one.say("/approve a-none")
    assert "a-none does not wait" in one.shown()


@pytest.mark.parametrize("typed", ["!touch made", "/approve"])
def test_what_another_client_asked_for_in_this_folder_is_asked_here_too(seat, typed):
    one = seat({"text": "never asked"})
    id = kept_by_another_client(one, "touch made", one.world.cwd, actor=Actor.PERSON)
    assert one.asked(typed).ask.id == id
    one.answer("yes")
    one.pump()
    assert os.listdir(one.world.cwd) == (["made"] if typed.startswith("!") else [])


def test_clear_and_exit_are_the_screens(seat):
    one = seat({"text": "never asked"})
    one.say("/clear")
    one.say("/exit")
    assert one.cleared and one.left


# ── conversations ────────────────────────────────────────────────────────────────────────────────────────────────


def test_resume_shows_the_end_and_goes_on_without_running_anything_again(seat):
    text = "**The disk is full.**\n\n- one\n- two\n\n```\ndf -h\n```\n"
    one = seat({"text": text, "calls": []}, {"text": "never"})
    one.say("why is it slow")
    drawn = one.shown()
    first = one.desk.opened.id
    one.say("/new")
    assert one.desk.opened.id != first
    one.rows.clear()
    one.say("/resume last")
    assert "› why is it slow" in one.shown() and "The disk is full." in one.shown()
    assert "**" not in one.shown() and "- one" not in one.shown(), "as it was shown the first time"
    assert one.desk.opened.id == first and one.desk.opened.messages()[0].text == "why is it slow"
    assert drawn.strip() in one.shown()
    assert one.world.brain.sent == [], "nothing is asked of the brain by itself"


def test_resume_shows_what_was_used_with_its_status_and_not_its_output(seat):
    one = seat({"calls": [{"tool": "bash", "arguments": {"command": "echo 你好"}}]}, {"text": "It says 你好."})
    one.say("look")
    one.say("/new")
    one.rows.clear()
    one.say("/resume last")
    (row,) = (row for row in one.rows if "echo 你好" in row)
    assert "bash" in row
    assert "It says 你好." in one.shown()


@pytest.mark.parametrize(("answer", "where"), [("1", "here"), ("2", "there"), ("3", "not"), ("", "not")])
def test_resume_in_another_folder_is_asked_first(seat, tmp_path, answer, where):
    one = seat({"text": "x"})
    one.say("hello")
    first, there = one.desk.opened.id, one.world.cwd
    here = one.world.cwd = str(tmp_path)
    one.say("/new")
    asked = one.asked("/resume last")
    assert there in asked.question and here in asked.question
    assert asked.options == ("go on here", "go on in its folder", "leave it")
    if answer:
        one.answer(answer)
    else:
        one.desk.press(dock.Key(dock.ESCAPE))
    one.pump()
    assert (one.desk.opened.id == first) == (where != "not")
    assert one.world.cwd == (there if where == "there" else here)


def test_words_of_earlier_conversations_are_in_the_history(seat):
    one = seat({"text": "a"}, {"text": "b"})
    one.say("first words")
    one.say("more words")
    one.say("/new")
    one.desk.begin()
    one.pump()
    assert one.remembered == ("first words", "more words")


def test_resume_of_the_same_or_of_nothing_is_an_error(seat):
    one = seat({"text": "x"})
    one.say("hello")
    one.say(f"/resume {one.desk.opened.id}")
    one.say("/resume c-nothing")
    one.say("/resume last")
    assert one.shown().count("✗ usage") == 3


def test_fork_goes_on_in_a_copy(seat):
    one = seat({"text": "x"}, {"text": "y"})
    one.say("/fork")
    assert "nothing was said yet" in one.shown()
    one.say("hello")
    first = one.desk.opened.id
    one.say("/fork")
    assert one.desk.opened.id != first and f"is a copy of {first}" in one.shown()
    assert [message.text for message in one.desk.opened.messages()] == ["hello", "x"]


def test_another_brain_goes_on_with_the_same_conversation(seat):
    one = seat(scripts={"one": [{"text": "from one"}], "two": [{"expect": "^and now$", "text": "from two"}]})
    one.say("hello")
    id = one.desk.opened.id
    one.say("/brain two")
    one.say("and now")
    assert one.desk.opened.id == id and "from two" in one.shown() and one.desk.status().brain == "two"


def test_brain_that_does_not_exist_leaves_the_old_one(seat):
    one = seat({"text": "a"}, {"text": "b"})
    one.say("hello")
    one.say("/brain nobody")
    assert "there is no brain nobody" in one.shown() and one.desk.opened.brain == "one"
    one.say("go on")
    assert one.desk.transcript.exit_code == 0, "the old brain answers"


def test_some_commands_need_a_still_conversation(seat):
    one = seat({"wait": "gate", "text": "x"})
    one.desk.submit("hello")
    one.desk.submit("/new")
    one.desk.submit("/pending")
    one.pump(lambda: one.world.verbs)
    assert "needs a still conversation" in one.shown()
    one.world.brain.release("gate")
    one.pump()


def test_export_writes_a_new_file_and_never_over_one(seat, tmp_path):
    one = seat({"text": "x"})
    one.say("hello")
    one.say("/export notes.md")
    file = tmp_path / "work" / "notes.md"
    assert "sessions export" in file.read_text() and file.stat().st_mode & 0o777 == 0o600
    one.say("/export notes.md")
    assert "nothing was written" in one.shown()


def test_compact_makes_what_is_sent_smaller_at_once_and_keeps_the_file(seat):
    one = seat(*({"text": f"reply {number} " + "x" * 2_000} for number in range(8)), {"text": "the end"})
    for number in range(8):
        one.say(f"question {number}")
    before = one.desk.record.context
    one.say("/compact")
    assert "characters were sent, from now on" in one.shown() and "its file has all of it" in one.shown()
    assert 0 < one.desk.record.context < before
    one.say("and now?")
    sent = one.world.brain.sent[-1].messages
    assert "question 0" in sent[0].text and len(str(sent)) < 14_000 < 16_000 < len(str(one.desk.opened.messages()))
    assert "reply 7" in str(sent) and "the end" in one.shown()


def test_compact_with_nothing_to_shorten_says_so(seat):
    one = seat({"text": "x"})
    one.say("hello")
    one.say("/compact")
    assert re.search(r"nothing to shorten: \d+ characters are sent", one.shown())


def test_status_and_help_are_answered_here(seat):
    one = seat({"text": "never asked"})
    one.say("/status")
    one.say("/help rollback")
    assert "conversation c-" in one.shown() and "/rollback [ID]" in one.shown() and one.world.verbs == []


# ── goals, attachments, completion: pure ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("words", "goal"),
    [("clean up", Goal("clean up")), ("a --rounds 20", Goal("a", 20)), ("a --rounds=1", Goal("a", 1))],
)
def test_goal_in_words(words, goal):
    assert goals.goal_of(words) == goal


@pytest.mark.parametrize("words", ["", "--rounds 3", "a --rounds 0", "a --rounds 21", "a --rounds", "a --rounds x"])
def test_goal_that_is_none(words):
    with pytest.raises(UsageError):
        goals.goal_of(words)


@pytest.mark.parametrize(
    ("ended", "over"),
    [
        (Ended(0, "more to do"), ""),
        (Ended(0, "done\n**GOAL REACHED**"), "reached"),
        (Ended(0, "we say GOAL REACHED when it is"), ""),
        (Ended(0, "", asked=True), "asked"),
        (Ended(0, "", unknown=True), "not known"),
        (Ended(3, ""), "asked"),
        (Ended(4, ""), "denied"),
        (Ended(130, ""), "interrupted"),
        (Ended(1, ""), "did not end well"),
    ],
)
def test_what_ends_a_goal(ended, over):
    assert (over in goals.why_over(Goal("g", 6, 2), ended)) if over else goals.why_over(Goal("g", 6, 2), ended) == ""


def test_attachments_are_words_that_begin_with_at():
    assert paths_in('see @a.log, @"b c.log" and me@host or @a.log') == ("a.log", "b c.log")


@pytest.mark.parametrize("kind", ["long", "binary", "folder", "fifo"])
def test_what_cannot_be_attached(tmp_path, kind):
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(b"x" * (MOST_BYTES + 1) if kind == "long" else b"a\0b")
    with pytest.raises(UsageError):
        attached("@x", str(tmp_path), str)


def test_word_with_at_that_names_no_file_stays_a_word(tmp_path):
    assert attached("tell @alice", str(tmp_path), str) == ()


def completed(seat, text):
    found = Words(seat.desk.talk).get_completions(Document(text), CompleteEvent())
    return [completion.text for completion in found]


def test_completion_of_commands_their_choices_and_paths(seat, tmp_path):
    one = seat({"text": "x"})
    assert completed(one, "/sta") == ["status", "stamps"] or completed(one, "/sta") == ["stamps", "status"]
    assert completed(one, "/brain ") == ["one"] and completed(one, "/help roll") == ["rollback"]
    assert completed(one, "no /sta") == []
    (tmp_path / "work" / "app.log").write_text("")
    (tmp_path / "work" / "apps").mkdir()
    assert completed(one, "see @ap") == ["app.log", "apps/"]


def lost_run(one, session):
    """A run of a conversation whose owner is gone and whose end is not on record."""
    request = Request("touch lost", cwd=one.world.cwd, session=session, shell="repl")
    guard = one.world.guard
    return guard.ledger.begin(
        request, execution.assess(request, guard), profile="none", enforced="none", owner=(2**22 + 1, "0")
    )


def test_resume_warns_of_runs_without_an_end_and_the_status_line_counts_them(seat):
    one = seat({"text": "x"})
    one.say("hello")
    lost = lost_run(one, one.desk.opened.id)
    one.say("/new")
    one.say("/resume last")
    assert f"! {lost} began" in one.shown() and "its end is not known" in one.shown()
    one.desk.begin()
    one.pump()
    assert one.desk.status().unknown == 1
    one.world.guard.ledger.answers.resolve(lost, "not_done")
    one.desk.begin()
    one.pump()
    assert one.desk.status().unknown == 0


def test_asking_for_the_same_as_an_unknown_run_says_so_in_the_dock(seat):
    one = seat({"text": "x"})
    lost = lost_run(one, "")
    ask = one.asked("!touch lost").ask
    assert any(lost in remark for remark in ask.remarks)
    one.answer("yes")
    one.pump()
    assert one.world.guard.ledger.show(lost).execution.resolution == "looked"


def test_saved_outputs_are_listed_newest_first(seat, monkeypatch):
    one = seat({"text": "x"})
    one.say("/outputs")
    assert "no output was long enough" in one.shown()
    runs = [
        types.SimpleNamespace(id=f"e-{n}", ended_at="", started_at=f"at {n}", output_file=f"/out/{n}" if n % 2 else "")
        for n in range(60, 0, -1)
    ]
    ledger = one.world.guard.ledger
    monkeypatch.setattr(
        type(ledger), "executions", lambda self, **asked: types.SimpleNamespace(executions=runs), raising=True
    )
    (said,) = commands.BY_NAME["outputs"].run(one.desk.talk(), "")
    said = said.text.split("\n")
    assert len(said) == commands.MOST_OUTPUTS and said[0] == "at 59  e-59  /out/59"
