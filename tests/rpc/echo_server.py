"""A server on `agent.jsonrpc` alone, for tests of the core: `echo_server.py [batches]`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agent.jsonrpc import CANCELLED, Connection, Method, RpcError


def ping(params, request):
    return {}


def echo(params, request):
    return {"params": params}


def fail(params, request):
    raise LookupError("a secret that must not be told")


def no_json(params, request):
    return {"not": object(), "finite": float("nan")}


def wait(params, request):
    """Waits until the request is cancelled."""
    cancelled = threading.Event()
    request.when_cancelled(cancelled.set)
    cancelled.wait()
    raise RpcError(CANCELLED, "Request cancelled")


def ask(params, request):
    """Asks the client, and tells what came of it."""
    asked = connection.ask("question", params.get("params", {}))
    reply = asked.wait(params.get("timeout_s", 30.0))
    return {"result": reply.result, "why": reply.why}


def say(params, request):
    """Prints where protocol lines must never appear; a child of ours does so too."""
    import os

    print("a stray print")
    sys.stdout.flush()
    os.system("echo a stray child")
    return {}


def flood(params, request):
    for number in range(params["count"]):
        connection.notify("flood", {"number": number, "text": "x" * params.get("size", 0)})
    return {}


SLOW = {"echo": echo, "fail": fail, "no_json": no_json, "wait": wait, "ask": ask, "say": say, "flood": flood}
told: list[dict] = []
methods = {name: Method(run) for name, run in SLOW.items()}
methods["ping"] = Method(ping, at_once=True)
methods["told"] = Method(lambda params, request: {"told": told}, at_once=True)

if __name__ == "__main__":
    connection = Connection(methods, {"tell": told.append}, batches="batches" in sys.argv)
    why = connection.serve()
    ended = connection.close(10.0)
    sys.stderr.write(f"ended: {why}; all answered: {ended}\n")
