"""Whatever a brain says, whatever tools do, whenever somebody interrupts: a turn keeps its shape."""

from __future__ import annotations

import queue
import threading
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.history import History, Unsaved
from agent.loop import Limits, Turn
from agent.messages import Assistant, Result, ToolCall, User
from agent.providers.base import BrainUnreachable, Reply, Sent
from agent.stop import Stop
from agent.using import Used
from dialogue import events
from guard.redact import Redactor

AT_ONCE, IN_THREAD, WHEN_CANCELLED, NEVER = "at_once", "in_a_thread", "when_cancelled", "never"


class Hands:
    """Tools whose names say how they end."""

    def __init__(self) -> None:
        self.began: list[str] = []

    def reads(self, call):
        return call.arguments.get("reads", False)

    def start(self, call, tell):
        self.began.append(call.id)
        used = Used(
            Result(call.id, call.name, "x", "succeeded"),
            events.ToolCompleted(call.id, "succeeded"),
            denials=call.arguments.get("denials", 0),
        )
        if call.name == AT_ONCE:
            tell(used)
        elif call.name == IN_THREAD:
            threading.Thread(target=tell, args=(used,)).start()
        return Tool(lambda: tell(used) if call.name == WHEN_CANCELLED else None)


class Tool:
    def __init__(self, cancel) -> None:
        self.cancel = cancel

    def last_line(self):
        return ""


class Brain:
    """Says these replies, one after the other; an exception is raised; the last one ends the turn."""

    name = model = "any"

    def __init__(self, replies) -> None:
        self.replies = [*replies, Reply("done")]
        self.told: list[tuple] = []

    def reply(self, sent, *, cancel, wrote):
        self.told.append(sent.messages)
        said = self.replies[len(self.told) - 1]
        if isinstance(said, Exception):
            raise said
        if said.text:
            yield said.text
        yield said

    def close(self):
        pass


calls = st.builds(
    ToolCall,
    st.sampled_from(["", "a", "b", "a/b", "x y", "ü"]),
    st.sampled_from([AT_ONCE, IN_THREAD]),
    st.fixed_dictionaries({"reads": st.booleans(), "denials": st.sampled_from([0, 0, 0, 1, 2])}),
)
stuck = st.builds(ToolCall, st.just(""), st.sampled_from([WHEN_CANCELLED, NEVER]), st.just({"reads": True}))
replies = st.lists(
    st.one_of(
        st.builds(
            Reply,
            st.text(max_size=20),
            st.lists(calls, max_size=5).map(tuple),
            st.sampled_from(["end", "calls", "length", "refused"]),
        ),
        st.just(BrainUnreachable("gone")),
        st.just(RuntimeError("broken")),
    ),
    max_size=5,
)


def pairs_hold(messages):
    """Each call has exactly one result, after it and before the next reply; no result is without a call."""
    waiting: set[str] = set()
    seen: set[str] = set()
    for message in messages:
        if isinstance(message, Assistant):
            assert not waiting
            waiting = {call.id for call in message.calls}
            assert len(waiting) == len(message.calls) and not waiting & seen
            seen |= waiting
        elif isinstance(message, Result):
            waiting.remove(message.call_id)
        elif isinstance(message, User):
            assert not waiting
    return not waiting


@pytest.mark.guarantee("G-ANSWERED")
@settings(max_examples=150, deadline=None)
@given(replies, st.none() | st.integers(0, 30), st.booleans(), st.lists(stuck, max_size=2))
def test_turn_keeps_its_shape(said, interrupted_at, goes_away, hang):
    if interrupted_at is not None and hang:
        said = [*said, Reply("", tuple(hang), "calls")]
    history, brain, hands = History(Unsaved("c-1")), Brain(said), Hands()
    updates: queue.SimpleQueue = queue.SimpleQueue()
    stop = Stop(lambda: updates.put(None))
    turn = Turn(
        brain,
        hands,
        history,
        sent=lambda: (Sent("", tuple(history.messages)), ()),
        stop=stop,
        updates=updates,
        redactor=Redactor(),
        limits=Limits(replies=8, progress_s=0.001),
    )
    seen = []
    with mock.patch("agent.using.LET_END_S", 0.0):
        reading = turn.events(User("go"))
        for event in reading:
            seen.append(event)
            if interrupted_at is not None and (len(seen) > interrupted_at or isinstance(event, events.ToolProgress)):
                if goes_away:
                    reading.close()
                    turn.settle_quietly()
                    break
                stop.set()
    stop.close()
    assert all(pairs_hold(messages) for messages in brain.told)
    assert pairs_hold(history.messages)
    if seen[-1].type != "turn_completed":
        assert goes_away
        return
    assert [event.type for event in seen].count("turn_completed") == 1
    asked = [event.id for event in seen if isinstance(event, events.ToolRequested)]
    assert sorted(asked) == sorted(event.id for event in seen if isinstance(event, events.ToolCompleted))
    assert len(hands.began) == len(set(hands.began)) and set(hands.began) <= set(asked)
