"""When the library of the first brain is loaded: beside a person's typing, never beside a question that waits."""

from __future__ import annotations

import threading

import pytest

from agent.brains.chain import Chain
from agent.brains.choice import RUNBOOKS
from agent.brains.entries import entry_of
from agent.brains.opening import open_conversation
from agent.sessions.store import Sessions
from tests.capabilities.world import guard_in

LINKS = (entry_of("near", {"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m"}, redact=str), RUNBOOKS)


@pytest.mark.parametrize("warm", [True, False])
def test_a_question_that_is_there_waits_for_no_second_thread(tmp_path, monkeypatch, warm):
    asked = []
    monkeypatch.setattr(Chain, "warm", lambda self, after=None: asked.append(after))
    guard, drawn = guard_in(tmp_path), threading.Event()
    held = open_conversation(
        guard,
        LINKS,
        Sessions.open(guard.redactor, str(tmp_path / "state")),
        cwd=str(tmp_path),
        shell="oneshot",
        environ={},
        warm=warm,
        drawn=drawn,
    )
    held.conversation.close()
    assert asked == ([drawn] if warm else [])
