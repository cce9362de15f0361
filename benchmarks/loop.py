"""The loop: what a turn costs beside its brain and its tools, how that grows with the conversation, and long streams.

The brain is scripted and the target runs nothing, so what is measured is the loop itself: events, redaction, results,
the session's file, the request. Times are CPU milliseconds of this process, the median of many turns.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

TARGET_MS = 10.0
"""CPU of one turn with one read, its tool's own work left out."""
LINE = "Dec 01 04:36:03 web1 nginx[1044]: 10.0.3.7 - GET /api/orders/1188 200 0.014\n"


class Talker:
    """A brain that wants one read in each turn and then says a sentence."""

    name = model = "benchmark"

    def __init__(self) -> None:
        self.number = 0

    def reply(self, sent, *, cancel, wrote):
        from agent.messages import Result, ToolCall
        from agent.providers.base import Reply

        if isinstance(sent.messages[-1], Result):
            yield "All is well.\n"
            yield Reply("All is well.\n")
            return
        self.number += 1
        yield Reply("I look.", (ToolCall(f"c{self.number}", "bash", {"command": "journalctl -n 25"}),), "calls")

    def close(self) -> None:
        pass


class Streamer(Talker):
    """A brain whose one reply comes in very many pieces."""

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces

    def reply(self, sent, *, cancel, wrote):
        from agent.providers.base import Reply

        for number in range(self.pieces):
            yield "words\n" if number % 12 == 11 else "words "
        yield Reply("done")


def guard_in(folder: str):
    """A guard that judges and records for real and runs nothing."""
    import execution
    from guard.clock import RandomIds, SystemClock
    from guard.hands.liveness import ProcLiveness
    from guard.ledger.store import open_ledger
    from guard.redact import Redactor
    from guard.types import Captured
    from tests.fakes import FakeResult, FakeTarget

    class Ready(FakeTarget):
        def run(self, command, *, on_output=None, **options):
            return FakeResult(stdout=Captured(LINE * 25, len(LINE) * 25))

    redactor, clock = Redactor(), SystemClock()
    ledger = open_ledger(clock=clock, ids=RandomIds(), redact=redactor.text, liveness=ProcLiveness(), path=folder)
    return execution.Guard(Ready(), ledger, redactor, clock)


def turn_ms(talk) -> float:
    from dialogue.protocol import Turn

    begun = time.process_time()
    talk.send_turn(Turn("how is it?"))
    for _ in talk.events():
        pass
    return (time.process_time() - begun) * 1000


def read_ms(guard, folder: str) -> float:
    """The same read without the loop, as the tool does it."""
    from capabilities.call import Call
    from capabilities.registry import Registry
    from capabilities.run import bash_tool

    begun = time.process_time()
    Registry([bash_tool(guard, Call(folder, "oneshot"))]).call("bash", {"command": "journalctl -n 25"})
    return (time.process_time() - begun) * 1000


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--turns", type=int, default=1000)
    options.add_argument("--pieces", type=int, default=1_000_000)
    chosen = options.parse_args()
    from agent.conversation import Conversation
    from agent.history import Unsaved
    from agent.sessions.store import Sessions

    with tempfile.TemporaryDirectory() as folder:
        guard = guard_in(f"{folder}/state")
        transcript = Sessions.open(guard.redactor, f"{folder}/state").create(cwd=folder)
        talk = Conversation(guard, Talker(), transcript, cwd=folder, shell="oneshot", findings=False)
        talk.start()
        took = [turn_ms(talk) for _ in range(chosen.turns)]
        tool = statistics.median(read_ms(guard, folder) for _ in range(100))
        talk.close()
        early, late = (statistics.median(part) for part in (took[5:105], took[-100:]))
        print(f"one read by itself            {tool:7.2f} ms")
        print(f"a turn with it, at the start  {early:7.2f} ms   the loop: {early - tool:.2f} ms")
        print(f"a turn with it, {4 * chosen.turns:6} messages later {late:.2f} ms   the loop: {late - tool:.2f} ms")

        talk = Conversation(guard, Streamer(chosen.pieces), Unsaved("c-1"), cwd=folder, shell="oneshot", findings=False)
        talk.start()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        took_ms = turn_ms(talk)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        talk.close()
        each = took_ms / chosen.pieces * 1000
        print(f"{chosen.pieces:,} deltas: {each:.2f} µs each, {grown / 1024:.1f} MiB more memory")
    return 0 if max(early, late) - tool <= TARGET_MS else 1


if __name__ == "__main__":
    raise SystemExit(main())
