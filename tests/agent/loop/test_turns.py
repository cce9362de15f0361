"""A turn from words to its end: replies, tools, and what the brain is told."""

from __future__ import annotations

import threading

import pytest

from agent.loop import Limits
from agent.messages import Assistant, Result, User
from agent.providers.base import Reply, Tokens
from agent.providers.one import OneBrain
from capabilities.jobs import Cancelled
from dialogue import events
from tests.capabilities.world import guard_in
from tests.talk import conversation, of, scripted, turn, use


def test_turn_without_tools_is_text_and_an_end(tmp_path):
    brain = scripted({"deltas": ["Nothing is ", "wrong.\nAll ", "is well."]})
    seen = turn(conversation(guard_in(tmp_path), brain, tmp_path), "hello")
    assert [event.type for event in seen] == ["turn_started", "text_delta", "text", "usage", "turn_completed"]
    assert (seen[1].delta, seen[2].text) == ("Nothing is wrong.\n", "Nothing is wrong.\nAll is well.")
    assert seen[-1] == events.TurnCompleted(0, [])


def test_read_is_run_and_its_output_told_to_the_brain(tmp_path):
    brain = scripted({"text": "I look.", "calls": [use("bash", command="echo 42")]}, "It is 42.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path)
    seen = turn(talk, "what is it?")
    (done,) = of(seen, events.ToolCompleted)
    (started,) = of(seen, events.ToolStarted)
    assert (done.status, done.exit_code, done.output) == ("succeeded", 0, "42")
    assert started.execution == done.execution and done.execution.startswith("e-")
    result = brain.sent[1].messages[-1]
    assert isinstance(result, Result) and result.untrusted
    assert "42" in result.text and done.execution in result.text
    assert [type(message) for message in talk.history.messages] == [User, Assistant, Result, Assistant]


def test_item_has_one_id_from_request_to_result(tmp_path):
    brain = scripted({"text": "I look.", "calls": [use("bash", command="echo 1")]}, "Done.")
    seen = turn(conversation(guard_in(tmp_path), brain, tmp_path))
    kinds = [event.type for event in seen]
    assert kinds == [
        "turn_started",
        "text",
        "tool_requested",
        "usage",
        "tool_started",
        "tool_completed",
        "text",
        "usage",
        "turn_completed",
    ]
    assert len({event.id for event in seen if hasattr(event, "id")}) == 1


class Gate:
    """A stand-in for tools that work until they are let go."""

    def __init__(self, wanted: int) -> None:
        self.barrier = threading.Barrier(wanted, timeout=30)

    def __call__(self, arguments):
        self.barrier.wait()
        return {"format": 1, "status": "succeeded"}


def replace_run(talk, name, run):
    """Gives one tool of a conversation another body."""
    import dataclasses

    hands = talk._hands
    made = hands._made

    def other(call):
        for tool in made(call):
            yield dataclasses.replace(tool, run=run) if tool.name == name else tool

    hands._made = other


def test_five_reads_of_one_reply_run_side_by_side(tmp_path):
    brain = scripted({"calls": [use("probe") for _ in range(5)]}, "Done.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path)
    replace_run(talk, "probe", Gate(5))  # the barrier lets nobody go before all five are there
    seen = turn(talk)
    assert [event.status for event in of(seen, events.ToolCompleted)] == ["succeeded"] * 5
    # They end in any order, but each has its result before the next request.
    assert {message.call_id for message in brain.sent[1].messages if isinstance(message, Result)} == {
        event.id for event in of(seen, events.ToolRequested)
    }


def test_writes_run_one_at_a_time_in_order_and_not_beside_reads(tmp_path):
    order, inside = [], []

    def run(arguments):
        inside.append(1)
        order.append((arguments.get("files", ["read"])[0], len(inside)))
        inside.pop()
        return {"format": 1, "status": "succeeded"}

    calls = [use("ops_snapshot", files=["a"]), use("probe"), use("ops_snapshot", files=["b"]), use("probe")]
    talk = conversation(guard_in(tmp_path), scripted({"calls": calls}, "Done."), tmp_path)
    replace_run(talk, "ops_snapshot", run)
    replace_run(talk, "probe", run)
    turn(talk)
    assert order == [("a", 1), ("read", 1), ("b", 1), ("read", 1)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (None, "object"),
        ([], "object"),
        ("x", "object"),
        ({}, "needs command"),
        ({"command": 7}, "command"),
        ({"command": "ls", "sudo": True}, "does not know 'sudo'"),
    ],
    ids=["null", "list", "text", "empty", "kind", "unknown"],
)
def test_unusable_arguments_are_a_tool_error_and_the_next_turn_works(tmp_path, arguments, said):
    brain = scripted({"calls": [{"tool": "bash", "arguments": arguments}]}, "I see.", "Next.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path)
    (done,) = of(turn(talk), events.ToolCompleted)
    assert done.status == "error" and said in done.output
    assert of(turn(talk), events.Text)[0].text == "Next."


def test_unknown_tool_is_an_error_that_names_those_that_exist(tmp_path):
    brain = scripted({"calls": [use("rm_rf", path="/")]}, "I see.")
    (done,) = of(turn(conversation(guard_in(tmp_path), brain, tmp_path)), events.ToolCompleted)
    assert done.status == "error" and "there is no tool" in done.output and "ops_exec" in done.output


def test_broken_tool_is_an_error_and_not_the_end(tmp_path):
    def run(arguments):
        raise RuntimeError("boom")

    talk = conversation(guard_in(tmp_path), scripted({"calls": [use("probe")]}, "It broke."), tmp_path)
    replace_run(talk, "probe", run)
    seen = turn(talk)
    (done,) = of(seen, events.ToolCompleted)
    assert (done.status, done.output) == ("error", "probe broke: RuntimeError.")
    assert seen[-1].exit_code == 0


def test_reply_cut_by_length_runs_none_of_its_calls(tmp_path):
    brain = scripted({"stop": "length", "calls": [use("bash", command="touch /nowhere/x")]}, "Shorter.")
    guard = guard_in(tmp_path)
    seen = turn(conversation(guard, brain, tmp_path))
    (done,) = of(seen, events.ToolCompleted)
    assert done.status == "error" and "cut by the length limit" in done.output
    assert guard.target.asked == []
    assert "cut by the length limit" in brain.sent[1].messages[-1].text


def test_ids_of_calls_are_unique_within_a_session(tmp_path):
    calls = [{"tool": "probe", "id": "same", "arguments": {"what": "guard"}} for _ in range(2)]
    brain = scripted({"calls": calls}, "One.", {"calls": calls}, "Two.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path)
    asked = [event.id for _ in range(2) for event in of(turn(talk), events.ToolRequested)]
    assert len(set(asked)) == 4
    assert talk.history.open_calls() == ()


def test_failing_brain_is_an_error_and_the_next_turn_works(tmp_path):
    brain = scripted({"deltas": ["half a\n"], "error": {"kind": "unreachable", "message": "gone"}}, "Back.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path)
    seen = turn(talk)
    (error,) = of(seen, events.Error)
    assert (error.code, error.message, seen[-1].exit_code) == ("brain.unreachable", "gone", 1)
    assert [event.exit_code for event in of(turn(talk), events.TurnCompleted)] == [0]
    # Nothing of the broken reply stays.
    assert [type(message) for message in talk.history.messages] == [User, User, Assistant]


@pytest.mark.parametrize(
    ("row", "code"), [({"stop": "refused"}, "brain.refused"), ({}, "brain.empty")], ids=["refused", "empty"]
)
def test_reply_that_says_nothing_is_an_error(tmp_path, row, code):
    seen = turn(conversation(guard_in(tmp_path), scripted(row), tmp_path))
    assert (of(seen, events.Error)[0].code, seen[-1].exit_code) == (code, 1)


def test_turn_ends_after_so_many_replies(tmp_path):
    brain = scripted(*({"calls": [use("probe", what="guard")]} for _ in range(5)))
    seen = turn(conversation(guard_in(tmp_path), brain, tmp_path, limits=Limits(replies=3)))
    assert (of(seen, events.Error)[0].code, seen[-1].exit_code) == ("turn.limit", 1)
    assert len(brain.sent) == 3


def test_usage_is_summed_over_the_turn(tmp_path):
    tokens = {"input": 100, "output": 7}
    brain = scripted({"calls": [use("probe", what="guard")], "tokens": tokens}, {"text": "Done.", "tokens": tokens})
    usage = of(turn(conversation(guard_in(tmp_path), brain, tmp_path)), events.Usage)
    assert usage == [events.Usage(100, 7, None), events.Usage(200, 14, None)]


class Chain:
    """A brain of two links, the first of which breaks off."""

    name = model = "second"

    def reply(self, sent, *, cancel, wrote):
        self.wrote = wrote()
        yield "a line that will not count\n"
        yield events.BrainSwitched("second", "the first is gone")
        yield "what counts\n"
        yield Reply("what counts\n", brain="second", cost=0.25, tokens=Tokens(1, 1))

    def close(self):
        pass


def test_switch_of_brains_voids_what_was_shown(tmp_path):
    talk = conversation(guard_in(tmp_path), Chain(), tmp_path)
    seen = turn(talk)
    assert [event.type for event in seen[1:6]] == [
        "text_delta",
        "text_discarded",
        "brain_switched",
        "text_delta",
        "text",
    ]
    assert of(seen, events.Usage)[0].cost == 0.25
    assert talk.history.messages[-1].brain == "second"


def test_brain_that_raises_anything_ends_its_turn_only(tmp_path):
    class Broken(Chain):
        def reply(self, sent, *, cancel, wrote):
            raise ZeroDivisionError
            yield

    talk = conversation(guard_in(tmp_path), Broken(), tmp_path)
    for _ in range(2):
        seen = turn(talk)
        assert (of(seen, events.Error)[0].code, seen[-1].exit_code) == ("internal", 1)


def test_secrets_are_neither_shown_nor_sent_nor_kept(tmp_path):
    secret = "kJ8s-only-a-test-2x9Q"
    brain = scripted(
        {"deltas": [f"it is {secret}\n"], "calls": [use("bash", command=f"echo {secret}")]},
        {"text": f"again {secret}", "notes": [f"note {secret}"]},
        {"error": {"message": f"failed with {secret}"}},
    )
    talk = conversation(guard_in(tmp_path, secrets=[secret]), brain, tmp_path)
    seen = [*turn(talk, f"my password is {secret}", [f"log with {secret}"]), *turn(talk)]
    assert secret not in repr(seen)
    assert secret not in repr(brain.sent[1:])
    assert secret not in repr(brain.sent[0].messages)
    assert secret not in repr(talk.history.messages)


def test_calls_out_of_order_are_refused(tmp_path):
    from agent.conversation import Conversation
    from agent.history import Unsaved
    from dialogue.protocol import Turn

    talk = Conversation(guard_in(tmp_path), OneBrain(scripted("a")), Unsaved("c-1"), cwd=str(tmp_path), shell="oneshot")
    with pytest.raises(ValueError, match="open session"):
        talk.send_turn(Turn("x"))
    talk.start()
    with pytest.raises(ValueError, match="before"):
        talk.start()
    with pytest.raises(ValueError, match="no turn"):
        next(talk.events())
    talk.send_turn(Turn("x"))
    with pytest.raises(ValueError, match="running turn"):
        talk.send_turn(Turn("y"))
    talk.close()
    talk.close()
    with pytest.raises(ValueError, match="open session"):
        talk.send_turn(Turn("x"))


# ── ends before the end ──────────────────────────────────────────────────────────────────────────────────────────


def test_interrupt_while_the_brain_speaks_ends_the_turn(tmp_path):
    brain = scripted({"deltas": ["one\n", {"wait": "never"}, "two\n"]}, "Later.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path)

    def on_event(event):
        if isinstance(event, events.TextDelta):
            threading.Thread(target=talk.interrupt).start()

    seen = turn(talk, on_event=on_event)
    assert seen[-1].exit_code == 130
    assert [event.exit_code for event in of(turn(talk), events.TurnCompleted)] == [0]


@pytest.mark.guarantee("G-ANSWERED")
def test_interrupt_while_a_tool_works_leaves_results_for_all_calls(tmp_path):
    held = threading.Event()

    def run(arguments):
        held.wait(30)
        raise Cancelled("stopped")

    calls = [use("ops_snapshot", files=["a"]), use("ops_snapshot", files=["b"])]
    brain = scripted({"calls": calls}, "Next.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path)
    replace_run(talk, "ops_snapshot", run)

    def on_event(event):
        if isinstance(event, events.ToolStarted):
            talk.interrupt()
            held.set()

    seen = turn(talk, on_event=on_event)
    assert [event.status for event in of(seen, events.ToolCompleted)] == ["cancelled", "cancelled"]
    assert seen[-1].exit_code == 130
    assert talk.history.open_calls() == ()
    turn(talk)
    assert "not run" in brain.sent[1].messages[2].text


def test_tool_that_does_not_stop_is_left_and_said_to_have_maybe_run(tmp_path, monkeypatch):
    monkeypatch.setattr("agent.using.LET_END_S", 0.0)
    held = threading.Event()

    def run(arguments):
        held.wait(30)
        return {"format": 1, "status": "succeeded"}

    brain = scripted({"calls": [use("ops_snapshot", files=["a"])]}, "Next.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path)
    replace_run(talk, "ops_snapshot", run)
    seen = turn(talk, on_event=lambda event: isinstance(event, events.ToolStarted) and talk.interrupt())
    (done,) = of(seen, events.ToolCompleted)
    assert done.status == "unknown" and "may have run" in done.output
    held.set()  # what it still says reaches no later turn
    seen = turn(talk)
    assert of(seen, events.ToolCompleted) == []
    assert "may have run" in brain.sent[1].messages[2].text


def test_turn_that_takes_too_long_ends_with_124(tmp_path):
    brain = scripted({"wait": "never"})
    seen = turn(conversation(guard_in(tmp_path), brain, tmp_path, limits=Limits(timeout_s=0.05)))
    assert seen[-1].exit_code == 124
    assert any("too long" in event.text for event in of(seen, events.Notice))


def test_interrupt_before_a_group_begins_starts_none_of_it(tmp_path):
    import queue

    from agent.messages import ToolCall
    from agent.stop import Stop
    from agent.using import side_by_side

    class Refusing:
        def reads(self, call):
            return True

        def start(self, call, tell):
            raise AssertionError("nothing may start")

    stop = Stop(lambda: None)
    stop.set()
    assert list(side_by_side([ToolCall("1", "bash")], Refusing(), queue.SimpleQueue(), stop)) == []
    stop.close()


def test_stop_counts_once_and_not_after_its_turn():
    from agent.stop import INTERRUPTED, TIMED_OUT, Stop

    woken = []
    stop = Stop(lambda: woken.append(1))
    stop.set(TIMED_OUT)
    stop.set(INTERRUPTED)
    assert stop.exit_code == TIMED_OUT and woken == [1]
    stop.close()
    stop.close()
    late = Stop(lambda: woken.append(2))
    late.close()
    late.set()
    assert not late.is_set() and woken == [1]


def test_interrupt_between_turns_changes_nothing(tmp_path):
    talk = conversation(guard_in(tmp_path), scripted("One.", "Two."), tmp_path)
    talk.interrupt()
    assert turn(talk)[-1].exit_code == 0
    talk.interrupt()
    assert turn(talk)[-1].exit_code == 0


def test_reader_that_goes_away_leaves_no_open_call(tmp_path):
    from dialogue.protocol import Turn

    brain = scripted({"calls": [use("ops_snapshot", files=["a"]), use("probe")]}, "Next.")
    talk = conversation(guard_in(tmp_path), brain, tmp_path)
    talk.send_turn(Turn("go"))
    reading = talk.events()
    for event in reading:
        if isinstance(event, events.ToolRequested):
            break
    reading.close()
    assert talk.history.open_calls() == ()
    assert turn(talk)[-1].exit_code == 0


def test_progress_of_a_long_tool_is_told_with_its_last_line(tmp_path):
    let_go = threading.Event()

    def run(arguments):
        let_go.wait(30)
        return {"format": 1, "status": "succeeded"}

    talk = conversation(
        guard_in(tmp_path), scripted({"calls": [use("probe")]}, "Done."), tmp_path, limits=Limits(progress_s=0.01)
    )
    replace_run(talk, "probe", run)
    seen = turn(talk, on_event=lambda event: isinstance(event, events.ToolProgress) and let_go.set())
    assert of(seen, events.ToolProgress)[0].id == of(seen, events.ToolCompleted)[0].id
