"""What a turn must not cost: memory that grows with a stream, work that is done again for each request."""

from __future__ import annotations

import tracemalloc

from agent.providers.base import Reply
from tests.capabilities.world import guard_in
from tests.talk import conversation, scripted, turn, use


class Streamer:
    """A brain whose reply comes in very many pieces."""

    name = model = "streamer"

    def reply(self, sent, *, cancel, wrote):
        for number in range(20_000):
            yield "words\n" if number % 12 == 11 else "words "
        yield Reply("done")

    def close(self):
        pass


def test_stream_of_many_deltas_takes_bounded_memory(tmp_path):
    from dialogue.protocol import Turn

    talk = conversation(guard_in(tmp_path), Streamer(), tmp_path)
    talk.send_turn(Turn("go"))
    reading = talk.events()
    next(reading)
    tracemalloc.start()
    try:
        shown = sum(len(event.delta) for event in reading if event.type == "text_delta")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert shown > 100_000
    assert peak < 2_000_000


def test_what_was_sent_before_is_not_escaped_again(tmp_path, monkeypatch):
    import agent.conversation as module

    calls = []
    real = module.as_sent
    monkeypatch.setattr(module, "as_sent", lambda message: calls.append(message) or real(message))
    rows = [{"calls": [use("bash", command=f"echo {number}")]} for number in range(6)]
    brain = scripted(*rows, "Done.")
    turn(talk := conversation(guard_in(tmp_path), brain, tmp_path))
    assert len(calls) == len(talk.history.messages) - 1  # all but the last word, once each
    assert [len(sent.messages) for sent in brain.sent] == [1, 3, 5, 7, 9, 11, 13]
    # What a request says stays the beginning of the next one, so that a provider can cache it.
    for before, after in zip(brain.sent, brain.sent[1:], strict=False):
        assert after.messages[: len(before.messages)] == before.messages and after.system == before.system
