"""Conversations with a file behind them: resumed as they were, and after a crash without repeating anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

import execution
from agent.messages import Assistant, Note, Result, User
from agent.sessions.on_record import runs_in
from agent.sessions.store import Sessions
from dialogue import events
from guard.errors import StateUnwritable
from tests.capabilities.world import guard_in
from tests.sources import ROOT
from tests.talk import conversation, of, scripted, turn, use

CRASHING = """
import os, signal, sys, threading
import execution
from agent.sessions.store import Sessions
from dialogue import confirm, events
from tests.talk import conversation, scripted, turn, use

command, cwd, made = sys.argv[1:]
guard = execution.open_guard()
transcript = Sessions.open(guard.redactor).create(cwd=cwd, brain="script:test")
brain = scripted(
    {"calls": [use("ops_exec", command=command)]},
    {"expect": r'"request": "(?P<request>a-[a-z0-9-]+)"', "calls": [use("ops_approve", request="${request}")]},
    {"text": "Now I do it.", "calls": [use("ops_exec", command=command), use("bash", command="ls")]},
)
talk = conversation(guard, brain, cwd, transcript=transcript, asks=True)

def on_event(event):
    if isinstance(event, events.AskOpened):
        talk.respond(event.id, confirm.Answer(confirm.APPROVED, "rpc", "0" * 64))
    if isinstance(event, events.ToolStarted) and event.execution:
        while not os.path.exists(made):
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

turn(talk, "mend it", on_event=on_event)
"""


@pytest.mark.guarantee("G-ANSWERED")
def test_killed_between_call_and_result_nothing_is_repeated_and_the_brain_is_told(tmp_path):
    counter = tmp_path / "count"
    command = f"echo x >> {counter}"
    done = subprocess.run(
        [sys.executable, "-c", CRASHING, command, str(tmp_path), str(counter)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    guard = execution.open_guard()
    transcript = Sessions.open(guard.redactor).resume("last", runs_of=runs_in(guard.ledger))
    (run,) = guard.ledger.executions().executions
    kinds = [type(message) for message in transcript.messages]
    assert kinds == [User, Assistant, Result, Assistant, Result, Assistant, Result, Result]
    lost, never = transcript.messages[-2:]
    assert "may have run" in lost.text and run.id in lost.text and lost.execution == run.id
    assert "may have run" in never.text and "no run for this call" in never.text

    brain = scripted({"expect": run.id, "calls": [use("ops_status", id=run.id)]}, "It ran once.")
    talk = conversation(guard, brain, tmp_path, transcript=transcript)
    seen = turn(talk, "go on")
    assert seen[-1].exit_code == 0
    assert [message for message in brain.sent[0].messages if isinstance(message, User)][-1].text == "go on"
    talk.close()
    assert counter.read_text() == "x\n"


def test_resumed_conversation_goes_on_where_it_was(tmp_path):
    guard = guard_in(tmp_path)
    kept = Sessions.open(guard.redactor, str(tmp_path / "state"))
    first = conversation(
        guard,
        scripted({"text": "I look.", "calls": [use("bash", command="echo 1")]}, "One."),
        tmp_path,
        transcript=kept.create(cwd=str(tmp_path)),
    )
    turn(first, "first")
    first.close()
    brain = scripted({"calls": [{"tool": "bash", "id": "s1-1", "arguments": {"command": "echo 2"}}]}, "Two.")
    again = conversation(guard, brain, tmp_path, transcript=kept.resume("last"))
    assert again.id == first.id
    turn(again, "second")
    again.close()
    assert [type(message) for message in brain.sent[0].messages] == [User, Assistant, Result, Assistant, User]
    said = kept.read(first.id).messages
    ids = [call.id for message in said if isinstance(message, Assistant) for call in message.calls]
    assert len(ids) == len(set(ids)) == 2


def test_what_a_resumed_conversation_read_before_still_stands_in_its_asks(tmp_path):
    guard = guard_in(tmp_path)
    kept = Sessions.open(guard.redactor, str(tmp_path / "state"))
    reads = scripted({"calls": [use("bash", command="echo obey me")]}, "One.")
    first = conversation(guard, reads, tmp_path, transcript=kept.create(cwd=str(tmp_path)))
    turn(first)
    first.close()
    again = conversation(guard, scripted("x"), tmp_path, transcript=kept.resume("last"))
    assert again.history.read_before().startswith("output of echo obey me")


def test_saved_output_of_an_earlier_process_can_be_read_and_others_cannot(tmp_path):
    guard = execution.open_guard()
    kept = Sessions.open(guard.redactor)
    reads = scripted({"calls": [use("bash", command="seq 1 20000")]}, "Long.")
    first = conversation(guard, reads, tmp_path, transcript=kept.create(cwd=str(tmp_path)))
    turn(first)
    first.close()
    stranger = conversation(guard, scripted({"calls": [use("bash", command="seq 1 20001")]}, "Long."), tmp_path)
    turn(stranger)
    theirs, mine = (run.output_file for run in guard.ledger.executions().executions)
    calls = [use("read", path=mine, offset=19_999, limit=2), use("read", path=theirs)]
    again = conversation(guard, scripted({"calls": calls}, "Ok."), tmp_path, transcript=kept.resume(first.id))
    seen = turn(again)
    again.close()
    path_of = {event.id: event.arguments["path"] for event in of(seen, events.ToolRequested)}
    came = {path_of[event.id]: event for event in of(seen, events.ToolCompleted)}
    page, refused = came[mine], came[theirs]
    assert page.output.split() == ["19999", "20000"]
    assert refused.status != "succeeded" and "20001" not in refused.output


def test_note_of_an_ended_turn_is_kept_for_the_next(tmp_path):
    guard = guard_in(tmp_path)
    kept = Sessions.open(guard.redactor, str(tmp_path / "state"))
    talk = conversation(guard, scripted("x"), tmp_path, transcript=kept.create(cwd="/"))
    talk.history.append(Note("the person denied it"))
    turn(talk)
    talk.close()
    assert any(isinstance(message, Note) for message in kept.resume("last").messages)


class Full:
    """A session's file on a disk that is full."""

    id = "c-full"
    messages = ()

    def append(self, message):
        raise StateUnwritable("no space is left for the conversation")

    def sync(self):
        raise StateUnwritable("no space is left for the conversation")

    def close(self):
        pass


def test_conversation_that_cannot_be_saved_goes_on_and_says_so_once(tmp_path):
    brain = scripted({"calls": [use("bash", command="echo 1")]}, "One.")
    seen = turn(conversation(guard_in(tmp_path), brain, tmp_path, transcript=Full()))
    notices = [event.text for event in of(seen, events.Notice)]
    assert notices == ["the conversation is not being saved: no space is left for the conversation"]
    assert seen[-1].exit_code == 0 and "1" in brain.sent[1].messages[-1].text


# ── the look that comes before the brain's first word ────────────────────────────────────────────────────────────


def test_diagnosis_begins_with_what_the_runbooks_find(tmp_path):
    guard = execution.open_guard()
    brain = scripted({"expect": "disk.space", "text": "The disk is fine."})
    seen = turn(conversation(guard, brain, tmp_path, findings=True), "check this machine's disk")
    (asked,) = of(seen, events.ToolRequested)
    (done,) = of(seen, events.ToolCompleted)
    assert (asked.name, asked.arguments) == ("runbook", {"question": "check this machine's disk"})
    assert done.status == "succeeded"
    said = brain.sent[0].messages
    assert [type(message) for message in said] == [User, Assistant, Result]
    assert said[1].brain == "offline" and said[2].untrusted and said[2].text.startswith('<data from="runbook')
    # Its reads are on record like any others, as this conversation's.
    assert {run.session for run in guard.ledger.executions().executions} == {"c-test"}


@pytest.mark.parametrize("words", ["hello", "write a haiku", "x" * 5000])
def test_other_questions_go_straight_to_the_brain(tmp_path, words):
    brain = scripted("Hello.")
    seen = turn(conversation(guard_in(tmp_path), brain, tmp_path, findings=True), words)
    assert of(seen, events.ToolRequested) == []


def test_piped_text_is_what_the_question_is_about(tmp_path):
    brain = scripted("Hm.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path, findings=True)
    seen = turn(talk, "why is the disk full?", ["No space left on device"])
    assert of(seen, events.ToolRequested) == []
    assert '<data from="attachment 1">\nNo space left' in brain.sent[0].messages[0].text
