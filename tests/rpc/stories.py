"""Scripted brains for clients' tests: what they say and do, as a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from guard.clock import RandomIds, SystemClock
from guard.hands.liveness import ProcLiveness
from guard.ledger.store import Ledger, open_ledger
from guard.redact import Redactor
from tests.mcp.talk import ROOT
from tests.rpc.talk import Client

REQUEST = '"request": "(?P<request>a-[a-z0-9-]+)"'


def use(tool: str, **arguments: object) -> dict:
    """A reply that uses a tool."""
    return {"calls": [{"tool": tool, "arguments": arguments}]}


def change(command: str, why: str = "because") -> list[dict]:
    """A brain that wants a change, asks for it, and does it when it may."""
    return [
        use("ops_exec", command=command, why=why),
        {"expect": REQUEST, **use("ops_approve", request="${request}")},
        use("ops_exec", command=command),
    ]


def written(folder: Path, *replies: dict | str) -> str:
    """The brain that plays these replies, as `--brain` takes it."""
    path = folder / "script.jsonl"
    rows = [{"text": one} if isinstance(one, str) else one for one in replies]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"script:{path}"


def served(home: Path, *replies: dict | str, shell: str = "rpc", answers=lambda message: None, **more) -> Client:
    """A server with this brain, whose state is in `home`, and its client. Commands run in `home`."""
    home.mkdir(exist_ok=True)
    argv = [sys.executable, str(ROOT / "tests/rpc/served.py"), shell, written(home, *replies)]
    return Client(home, argv, answers, **more)


def log_of(home: Path) -> Ledger:
    """The records of a server's state."""
    ids, clock = RandomIds(), SystemClock()
    ledger = open_ledger(
        clock=clock, ids=ids, redact=Redactor().text, liveness=ProcLiveness(), path=str(home / "state")
    )
    assert isinstance(ledger, Ledger)
    return ledger


def kinds_in(home: Path) -> list[str]:
    """The kinds of its entries, in order."""
    return [str(entry["kind"]) for entry in log_of(home).entries()]
