"""Conversations for tests: a fixed one, and a strategy that makes them as a loop does."""

from __future__ import annotations

from hypothesis import strategies as st

from agent.messages import Assistant, Note, Result, ToolCall, User
from agent.sessions.store import Sessions
from guard.ledger.state import StateFolder
from guard.redact import Redactor
from tests.ledger.world import CountingIds, FixedClock

STORY = (
    User("why is nginx slow? 磁盘满了吗", ("upstream timed out\n" * 3,)),
    Assistant(
        "I look first.",
        (
            ToolCall("call_1", "bash", {"command": "df -h"}),
            ToolCall("call_2", "read", {"path": "/etc/nginx/nginx.conf"}),
        ),
        "anthropic",
        "a-model",
    ),
    Result("call_1", "bash", '{"status":"succeeded"}\n/dev/sda1 100%', "succeeded", "e-7k2m4p9qrst", untrusted=True),
    Result("call_2", "read", "no such file", "failed"),
    Note("the request a-7k2m4p was denied"),
    Assistant("", (ToolCall("call_3", "ops_exec", fault="no object"),), "local"),
    Result("call_3", "ops_exec", "arguments must be an object", "error"),
    Assistant("The disk is full (e-7k2m4p9qrst).", (), "local", "qwen"),
)


def sessions_in(path, *, redactor=None, clock=None, ids=None):
    """The conversations below a path, with a clock that stands and ids that count."""
    folder = StateFolder.open(str(path))
    return Sessions(folder, clock=clock or FixedClock(), ids=ids or CountingIds(), redactor=redactor or Redactor())


def told(sessions, messages=STORY, **header):
    """Writes a conversation and closes it; its id."""
    transcript = sessions.create(**{"cwd": "/srv", "brain": "anthropic", "model": "a-model", **header})
    for message in messages:
        transcript.append(message)
    transcript.close()
    return transcript.id


def file_of(path, session):
    """The path of a conversation's file."""
    return path / "sessions" / f"{session}.jsonl"


def _texts(most):
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=most)


@st.composite
def conversations(draw, longest=60, most_turns=6, text_chars=40):
    """Well-formed conversations: every call has its result right behind it, ids are used once."""
    messages = []
    count = 0
    texts = _texts(text_chars)
    for _ in range(draw(st.integers(0, most_turns))):
        messages.append(User(draw(texts), tuple(draw(st.lists(texts, max_size=2)))))
        for _ in range(draw(st.integers(0, 3))):
            calls = []
            for _ in range(draw(st.integers(1, 3))):
                count += 1
                calls.append(ToolCall(f"call_{count}", "bash", {"command": draw(texts)}))
            messages.append(Assistant(draw(texts), tuple(calls), "openai"))
            for call in calls:
                size = draw(st.sampled_from([0, 1, 30, longest]))
                execution = f"e-{call.id[5:]}" if draw(st.booleans()) else ""
                messages.append(Result(call.id, "bash", "x" * size, "succeeded", execution, draw(st.booleans())))
            if draw(st.integers(0, 5)) == 0:
                messages.append(Note(draw(texts)))
        messages.append(Assistant(draw(texts), (), "openai"))
    return messages
