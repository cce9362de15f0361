"""Model APIs: a reply of 1,000,000 deltas in bounded memory, processor time for each, and what the first request costs.

The server runs in a process of its own and sends each delta as a chunk of its own, the most expensive way there is.
`--deltas N` for another number.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

GROWTH_MB = 40.0
"""Above the size before: a million characters of text are 4 MB, and what the libraries hold."""
FIRST = """
import resource, sys
sys.path.insert(0, {root!r})
from agent.providers.{kind} import {name}
from agent.providers.endpoint import Endpoint
from guard.hands.cancel import CancelToken
from guard.redact import Redactor
from agent.providers.base import Sent
from agent.messages import User
api = {name}(Endpoint("mine", {url!r}, "mock-1", key="k" * 40), Redactor())
api.warm()
list(api.stream(Sent("", (User("hi"),)), cancel=CancelToken()))
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
FRAMES = {
    "openai": (
        b'data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1790000000,"model":"mock-1",'
        b'"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    ),
    "anthropic": (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
        b'"delta":{"type":"text_delta","text":"x"}}\n\n',
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ),
}


def serve(deltas: int) -> None:
    """Serves replies of that many deltas until it is killed."""
    from tests.model_server import ModelServer, Raw, Received

    def reply(received: Received) -> Raw:
        frame, end = FRAMES["anthropic" if received.path.endswith("/messages") else "openai"]
        short = b"hi" in received.body
        return Raw([*([frame] * (20 if short else deltas)), end])

    with ModelServer(*[reply] * 1_000) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


def read(kind: str, url: str) -> tuple[int, float, float]:
    """Pieces shown, processor seconds, growth of the largest size in MB."""
    from agent.providers.base import Reply
    from guard.hands.cancel import CancelToken
    from tests.model_server.clients import provider, sent

    api = provider(kind, f"{url}/v1" if kind == "openai" else url)
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
    pieces = 0
    for part in api.stream(sent(), cancel=CancelToken()):
        pieces += not isinstance(part, Reply)
    after = resource.getrusage(resource.RUSAGE_SELF)
    api.close()
    return pieces, time.process_time() - began, (after.ru_maxrss - before.ru_maxrss) / 1024


def first(kind: str, url: str) -> tuple[float, float]:
    """Processor seconds and size in MB of a process that imports the provider and asks once."""
    name = {"openai": "OpenAI", "anthropic": "Anthropic"}[kind]
    code = FIRST.format(root=str(ROOT), kind=kind, name=name, url=f"{url}/v1" if kind == "openai" else url)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, size = map(float, done.stdout.split())
    return seconds, size / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deltas", type=int, default=1_000_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.deltas)
        return 0
    child = subprocess.Popen(
        [sys.executable, __file__, "--serve", "--deltas", str(options.deltas)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    missed = False
    with child:
        assert child.stdout and child.stdin
        url = child.stdout.readline().strip()
        for kind in FRAMES:
            pieces, seconds, growth = read(kind, url)
            fits = pieces == options.deltas and growth <= GROWTH_MB
            missed = missed or not fits
            print(
                f"{kind:10} {pieces:>9,} deltas: {seconds / max(pieces, 1) * 1e6:5.1f} µs of processor time each, "
                f"{growth:.1f} MB more ({'within' if fits else 'NOT within'} {GROWTH_MB:g} MB)"
            )
        for kind in FRAMES:
            runs = [first(kind, url) for _ in range(5)]
            seconds, size = (statistics.median(column) for column in zip(*runs, strict=True))
            print(f"{kind:10} first reply of a process: {seconds * 1000:.0f} ms of processor time, {size:.0f} MB")
        child.stdin.close()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
