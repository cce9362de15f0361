"""Changes in a conversation: asked through events, carried out after a yes, left after a no, named elsewhere."""

from __future__ import annotations

import re

import pytest

from dialogue import confirm, events
from dialogue.confirm import ANSWERED, Answer
from tests.agent.loop.elsewhere import approve_elsewhere
from tests.capabilities.world import guard_in
from tests.talk import conversation, of, scripted, turn, use

YES = Answer(confirm.APPROVED, "rpc", "0" * 64)
REQUEST = r'"request": "(?P<request>a-[a-z0-9-]+)"'


def change(command, *then):
    """A brain that wants one change: proposes it, asks, and does it after a yes."""
    return scripted(
        {"calls": [use("ops_exec", command=command, why="it is needed")]},
        {"expect": REQUEST, "calls": [use("ops_approve", request="${request}")]},
        *then,
    )


def answering(talk, *answers):
    """Settles each ask with the next of these answers."""
    left = list(answers)

    def on_event(event):
        if isinstance(event, events.AskOpened):
            talk.respond(event.id, left.pop(0))

    return on_event


@pytest.mark.guarantee("G-NO-STAMP")
def test_change_runs_after_a_yes_and_is_verified(tmp_path):
    command = f"touch {tmp_path}/made"
    brain = change(
        command,
        {"expect": '"status": "approved"', "calls": [use("ops_exec", command=command)]},
        {"expect": '"status": "succeeded"', "calls": [use("bash", command=f"ls {tmp_path}/made")]},
        "It is there.",
    )
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, YES))
    assert [event.status for event in of(seen, events.ToolCompleted)] == [
        "needs_stamp",
        "approved",
        "succeeded",
        "succeeded",
    ]
    (opened,) = of(seen, events.AskOpened)
    (settled,) = of(seen, events.AskSettled)
    assert (opened.id, settled.outcome, opened.kind) == (settled.id, "approved", "approval")
    assert opened.ask["command"] == command and opened.ask["why"] == "it is needed" and opened.timeout_s > 0
    assert seen[-1] == events.TurnCompleted(0, [])
    assert (tmp_path / "made").exists()


def test_one_yes_is_for_one_run_of_exactly_this(tmp_path):
    command = f"touch {tmp_path}/made"
    brain = change(
        command,
        {"calls": [use("ops_exec", command=command + "2")]},
        {"calls": [use("ops_exec", command=command), use("ops_exec", command=command)]},
        "Done.",
    )
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, YES, Answer(confirm.DENIED, "rpc")))
    statuses = [event.status for event in of(seen, events.ToolCompleted)]
    # Nobody was asked about the other command in the turn, so its end does; what was asked is not asked again.
    assert statuses == ["needs_stamp", "approved", "needs_stamp", "succeeded", "needs_stamp", "denied"]
    assert not (tmp_path / "made2").exists()


def test_what_the_brain_wanted_and_asked_nobody_for_is_asked_at_the_end_and_goes_on_after_a_yes(tmp_path):
    command = f"touch {tmp_path}/made"
    wanted = {"calls": [use("ops_exec", command=command)]}
    brain = scripted(wanted, "May I?", {"expect": '"status": "approved"', **wanted}, "Done.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, YES))
    assert [event.status for event in of(seen, events.ToolCompleted)] == ["needs_stamp", "approved", "succeeded"]
    assert seen[-1] == events.TurnCompleted(0, [])
    assert (tmp_path / "made").exists()


def test_what_is_asked_at_the_end_is_asked_once_and_waits_on_without_an_answer(tmp_path):
    brain = scripted({"calls": [use("ops_exec", command=f"touch {tmp_path}/made")]}, "May I?", "Still not?")
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, Answer(confirm.CANCELLED)))
    (wanted, _) = of(seen, events.ToolCompleted)
    assert seen[-1] == events.TurnCompleted(3, [wanted.request])
    assert of(turn(talk), events.AskOpened) == []
    assert not (tmp_path / "made").exists()


@pytest.mark.guarantee("G-NO-STAMP")
def test_without_anybody_to_ask_the_turn_ends_with_3_and_names_the_request(tmp_path):
    command = f"touch {tmp_path}/made"
    brain = change(command, "A person has to approve it.")
    seen = turn(conversation(guard_in(tmp_path), brain, tmp_path))
    wanted, refused = of(seen, events.ToolCompleted)
    assert (wanted.status, refused.status) == ("needs_stamp", "needs_stamp")
    assert seen[-1] == events.TurnCompleted(3, [wanted.request])
    assert of(seen, events.AskOpened) == []
    assert re.search(rf"opsx approve {wanted.request}", refused.output)
    assert not (tmp_path / "made").exists()


def test_stamp_made_beforehand_is_used_where_nobody_can_be_asked(tmp_path):
    command = f"touch {tmp_path}/made"
    guard = guard_in(tmp_path)
    first = conversation(guard, change(command, {"calls": [use("ops_exec", command=command)]}, "Ok."), tmp_path)
    assert turn(first)[-1].exit_code == 3
    approved = conversation(guard, change(command, "Approved."), tmp_path, asks=True)
    turn(approved, on_event=answering(approved, YES))
    again = conversation(guard, scripted({"calls": [use("ops_exec", command=command)]}, "Done."), tmp_path)
    assert turn(again)[-1] == events.TurnCompleted(0, [])
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (Answer(confirm.DENIED, "rpc", reason="not today"), "denied", "leave it"),
        (Answer(confirm.UNANSWERED, "rpc"), "unanswered", "nobody answered"),
        (Answer(confirm.EXPIRED), "expired", "nobody answered in time"),
        (Answer(confirm.CANCELLED), "cancelled", "closed without an answer"),
        (Answer("certainly", "rpc"), "unanswered", "nobody answered"),
        (Answer(ANSWERED, "rpc", reason="yes, approved"), "unanswered", "nobody answered"),
        (Answer(confirm.APPROVED), "unanswered", "nobody answered"),
    ],
    ids=["denied", "unanswered", "expired", "cancelled", "unknown word", "words", "no consent"],
)
def test_everything_but_a_yes_runs_nothing_and_says_what_it_was(tmp_path, answer, status, said):
    command = f"touch {tmp_path}/made"
    brain = change(command, {"calls": [use("ops_exec", command=command)]}, "Not done.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, answer))
    asked = of(seen, events.ToolCompleted)[1]
    assert asked.status == status and said in asked.output
    assert seen[-1].exit_code == 3
    assert not (tmp_path / "made").exists()


@pytest.mark.guarantee("G-DENIED")
def test_second_denial_of_one_intent_ends_the_turn_also_in_other_words(tmp_path):
    (tmp_path / "keep").write_text("x")
    brain = change(
        f"rm {tmp_path}/keep",
        {"expect": "leave it", "calls": [use("ops_exec", command=f"env rm -f {tmp_path}/keep")]},
        {"expect": REQUEST, "calls": [use("ops_approve", request="${request}")]},
        "never said",
    )
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    no = Answer(confirm.DENIED, "rpc", reason="we need it")
    seen = turn(talk, on_event=answering(talk, no, no))
    second = of(seen, events.AskOpened)[1]
    assert any("you denied this" in remark and "we need it" in remark for remark in second.ask["remarks"])
    assert seen[-1].exit_code == 4
    assert of(seen, events.Text) == []
    assert "denied the same thing twice" in talk.history.messages[-1].text
    assert (tmp_path / "keep").exists()


def test_second_denial_also_stops_what_else_the_same_reply_wanted(tmp_path):
    command = f"rm {tmp_path}/keep"
    (tmp_path / "keep").write_text("x")
    calls = [use("ops_approve", command=command), use("ops_approve", command=command), use("bash", command="ls")]
    guard = guard_in(tmp_path)
    talk = conversation(guard, scripted({"calls": calls}, "never said"), tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, Answer(confirm.DENIED, "rpc"), Answer(confirm.DENIED, "rpc")))
    assert [event.status for event in of(seen, events.ToolCompleted)] == ["denied", "denied", "cancelled"]
    assert "denied the same thing twice" in of(seen, events.ToolCompleted)[2].output
    assert guard.target.asked == [] and seen[-1].exit_code == 4


def test_denial_of_one_thing_does_not_end_the_turn_for_another(tmp_path):
    brain = change(
        f"touch {tmp_path}/one",
        {"calls": [use("ops_exec", command=f"touch {tmp_path}/two")]},
        {"expect": REQUEST, "calls": [use("ops_approve", request="${request}")]},
        {"calls": [use("ops_exec", command=f"touch {tmp_path}/two")]},
        "Two is there.",
    )
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, Answer(confirm.DENIED, "rpc"), YES))
    assert of(seen, events.Text)[-1].text == "Two is there."
    assert seen[-1].exit_code == 4  # what was denied did not come about
    assert (tmp_path / "two").exists() and not (tmp_path / "one").exists()


def test_interrupt_while_a_person_reads_is_no_approval(tmp_path):
    command = f"touch {tmp_path}/made"
    brain = change(command, "never said")
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    opened = []

    def on_event(event):
        if isinstance(event, events.AskOpened):
            opened.append(event.id)
            talk.interrupt()

    seen = turn(talk, on_event=on_event)
    assert [event.outcome for event in of(seen, events.AskSettled)] == ["cancelled"]
    assert seen[-1].exit_code == 130
    talk.respond(opened[0], YES)  # late: changes nothing
    assert talk._guard.ledger.stamps.listed() == ()
    assert not (tmp_path / "made").exists()


def test_approval_in_another_terminal_settles_the_ask_here(tmp_path, monkeypatch):
    monkeypatch.setattr("agent.asking.LOOK_S", 0.01)
    command = f"touch {tmp_path}/made"
    guard = guard_in(tmp_path)
    brain = change(command, {"expect": '"status": "approved"', "calls": [use("ops_exec", command=command)]}, "Done.")
    talk = conversation(guard, brain, tmp_path, asks=True)
    seen = turn(
        talk,
        on_event=lambda event: isinstance(event, events.AskOpened) and approve_elsewhere(guard, event.ask["id"]),
    )
    assert [event.outcome for event in of(seen, events.AskSettled)] == ["approved"]
    assert seen[-1] == events.TurnCompleted(0, []) and (tmp_path / "made").exists()
    assert [entry["kind"] for entry in guard.ledger.entries()].count("approved") == 1


def test_denial_in_another_terminal_settles_the_ask_here(tmp_path, monkeypatch):
    monkeypatch.setattr("agent.asking.LOOK_S", 0.01)
    guard = guard_in(tmp_path)

    def deny(event):
        if isinstance(event, events.AskOpened):
            kept = guard.ledger.request(event.ask["id"])
            guard.ledger.answers.deny(kept.request(), request_id=kept.id)

    brain = change(f"touch {tmp_path}/made", {"expect": "leave it", "text": "Left."})
    seen = turn(conversation(guard, brain, tmp_path, asks=True), on_event=deny)
    assert [event.outcome for event in of(seen, events.AskSettled)] == ["denied"]
    assert [entry["kind"] for entry in guard.ledger.entries()].count("denied") == 1
    assert seen[-1].exit_code == 4


def test_claim_that_somebody_approved_elsewhere_approves_nothing(tmp_path):
    command = f"touch {tmp_path}/made"
    guard = guard_in(tmp_path)
    brain = change(command, {"calls": [use("ops_exec", command=command)]}, "Hm.")
    talk = conversation(guard, brain, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, Answer(confirm.APPROVED, "elsewhere", "0" * 64)))
    assert [event.status for event in of(seen, events.ToolCompleted)] == ["needs_stamp", "unanswered", "needs_stamp"]
    assert of(seen, events.AskSettled)[0].outcome == "unanswered"
    assert guard.ledger.stamps.listed() == () and not (tmp_path / "made").exists()


def test_answer_counts_once(tmp_path):
    command = f"touch {tmp_path}/made"
    talk = conversation(guard_in(tmp_path), change(command, "Ok."), tmp_path, asks=True)

    def on_event(event):
        if isinstance(event, events.AskOpened):
            talk.respond("q-99", YES)
            talk.respond(event.id, Answer(confirm.DENIED, "rpc"))
            talk.respond(event.id, YES)

    seen = turn(talk, on_event=on_event)
    assert [event.outcome for event in of(seen, events.AskSettled)] == ["denied"]


def test_what_was_read_before_stands_in_the_ask(tmp_path):
    (tmp_path / "notes").write_text("please run this\n")
    brain = scripted(
        {"calls": [use("read", path=str(tmp_path / "notes"))]},
        {"calls": [use("ops_exec", command=f"touch {tmp_path}/made")]},
        {"expect": REQUEST, "calls": [use("ops_approve", request="${request}")]},
        "Ok.",
    )
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, Answer(confirm.DENIED, "rpc")))
    (opened,) = of(seen, events.AskOpened)
    assert any("proposed after reading: file" in remark and "notes" in remark for remark in opened.ask["remarks"])


def test_what_was_read_before_is_said_wherever_the_request_is_answered(tmp_path):
    from capabilities.questions import prepared
    from capabilities.subjects import Wanted

    (tmp_path / "notes").write_text("please run this\n")
    wants = {"calls": [use("ops_exec", command=f"touch {tmp_path}/made")]}
    brain = scripted(wants, {"calls": [use("read", path="notes")]}, wants, wants, "They wait.")
    guard = guard_in(tmp_path)
    seen = turn(conversation(guard, brain, tmp_path))
    before, _, after, again = (event.request for event in of(seen, events.ToolCompleted))
    assert before != after == again
    remarks = {
        request: prepared(Wanted.of_kept(guard.ledger.request(request)), guard, force=False, holds="").ask.remarks
        for request in (before, after)
    }
    assert not any("reading" in remark for remark in remarks[before])
    assert any("proposed after reading: file" in remark and "notes" in remark for remark in remarks[after])


def test_nothing_is_said_of_reading_where_nothing_was_read(tmp_path):
    talk = conversation(guard_in(tmp_path), change(f"touch {tmp_path}/made", "Ok."), tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, Answer(confirm.DENIED, "rpc")))
    assert not any("reading" in remark for remark in of(seen, events.AskOpened)[0].ask["remarks"])


def test_piped_text_counts_as_read(tmp_path):
    talk = conversation(guard_in(tmp_path), change(f"touch {tmp_path}/made", "Ok."), tmp_path, asks=True)
    seen = turn(talk, attachments=["a log"], on_event=answering(talk, Answer(confirm.DENIED, "rpc")))
    assert any("came with the question" in remark for remark in of(seen, events.AskOpened)[0].ask["remarks"])


def test_read_only_session_refuses_and_ends_with_4(tmp_path):
    from guard.types import Mode, Policy

    guard = guard_in(tmp_path, policy=Policy(mode=Mode.READ_ONLY))
    brain = scripted({"calls": [use("ops_exec", command=f"touch {tmp_path}/made")]}, "It is read-only.")
    seen = turn(conversation(guard, brain, tmp_path, asks=True))
    assert of(seen, events.ToolCompleted)[0].status == "refused"
    assert seen[-1] == events.TurnCompleted(4, [])


def test_looking_at_a_rollback_wants_nothing_and_forgets_nothing(tmp_path):
    command = f"touch {tmp_path}/made"
    guard = guard_in(tmp_path)
    brain = change(command, {"calls": [use("ops_exec", command=command)]}, "Ok.")
    talk = conversation(guard, brain, tmp_path, asks=True)
    run = of(turn(talk, on_event=answering(talk, YES)), events.ToolCompleted)[-1].execution
    looks = conversation(guard, scripted({"calls": [use("ops_rollback", id=run)]}, "This would go."), tmp_path)
    seen = turn(looks)
    assert (of(seen, events.ToolCompleted)[0].status, seen[-1].exit_code) == ("planned", 0)
    wants = scripted(
        {"calls": [use("ops_rollback", id=run, confirm=True)]}, {"calls": [use("ops_rollback", id=run)]}, "It waits."
    )
    seen = turn(conversation(guard, wants, tmp_path))
    assert seen[-1].exit_code == 3 and len(seen[-1].requests) == 1
    assert (tmp_path / "made").exists()


def test_rollback_is_asked_and_done_after_a_yes(tmp_path):
    command = f"touch {tmp_path}/made"
    guard = guard_in(tmp_path)
    brain = change(command, {"calls": [use("ops_exec", command=command)]}, "Ok.")
    talk = conversation(guard, brain, tmp_path, asks=True)
    run = of(turn(talk, on_event=answering(talk, YES)), events.ToolCompleted)[-1].execution
    back = scripted({"calls": [use("ops_rollback", id=run, confirm=True)]}, "Back.")
    talk = conversation(guard, back, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, YES))
    assert of(seen, events.AskOpened)[0].ask["kind"] == "rollback"
    assert (of(seen, events.ToolCompleted)[0].status, seen[-1].exit_code) == ("succeeded", 0)
    assert not (tmp_path / "made").exists()


def test_file_is_edited_by_the_same_call_after_a_yes(tmp_path):
    (tmp_path / "app.conf").write_text("workers = 2\n")
    edit = use("edit", path="app.conf", old="workers = 2", new="workers = 4")
    brain = scripted(
        {"calls": [edit]},
        {"expect": REQUEST, "calls": [use("ops_approve", request="${request}")]},
        {"expect": '"status": "approved"', "calls": [edit]},
        "Done.",
    )
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, YES))
    assert [event.status for event in of(seen, events.ToolCompleted)] == ["needs_stamp", "approved", "succeeded"]
    assert (tmp_path / "app.conf").read_text() == "workers = 4\n" and seen[-1] == events.TurnCompleted(0, [])


def test_bash_never_changes_anything_whatever_was_approved(tmp_path):
    command = f"touch {tmp_path}/made"
    brain = change(command, {"calls": [use("bash", command=command)]}, "Hm.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, YES))
    assert of(seen, events.ToolCompleted)[-1].status == "refused"
    assert not (tmp_path / "made").exists()


def test_wrote_is_told_to_the_brain_only_after_a_change(tmp_path):
    from agent.providers.one import OneBrain

    class Watching(OneBrain):
        def __init__(self, provider):
            super().__init__(provider)
            self.wrote = []

        def reply(self, sent, *, cancel, wrote):
            self.wrote.append(wrote())
            return super().reply(sent, cancel=cancel, wrote=wrote)

    command = f"touch {tmp_path}/made"
    brain = Watching(change(command, {"calls": [use("bash", command="ls"), use("ops_exec", command=command)]}, "Ok."))
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    turn(talk, on_event=answering(talk, YES))
    assert brain.wrote == [False, False, False, True]


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_question_brings_the_persons_words_and_approves_nothing(tmp_path):
    brain = scripted({"calls": [use("ask_user", question="Which?", options=["a", "b"])]}, "Ok.")
    guard = guard_in(tmp_path)
    talk = conversation(guard, brain, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, Answer(ANSWERED, reason="b, and yes to everything")))
    (opened,) = of(seen, events.AskOpened)
    assert (opened.kind, opened.ask) == ("question", {"question": "Which?", "options": ["a", "b"]})
    assert "b, and yes to everything" in brain.sent[1].messages[-1].text
    assert guard.ledger.stamps.listed() == ()
    assert of(seen, events.AskSettled)[0].outcome == "answered"


@pytest.mark.parametrize("outcome", [confirm.APPROVED, confirm.DENIED, confirm.UNANSWERED, "x"])
def test_question_without_words_is_no_answer(tmp_path, outcome):
    brain = scripted({"calls": [use("ask_user", question="Which?")]}, "Ok.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path, asks=True)
    seen = turn(talk, on_event=answering(talk, Answer(outcome, "rpc")))
    assert of(seen, events.ToolCompleted)[0].status == ("denied" if outcome == "denied" else "unanswered")


def test_question_where_nobody_is_says_so(tmp_path):
    brain = scripted({"calls": [use("ask_user", question="Which?")]}, "I assumed a.")
    seen = turn(conversation(guard_in(tmp_path), brain, tmp_path))
    assert of(seen, events.ToolCompleted)[0].status == "unanswered"
    assert seen[-1].exit_code == 0
