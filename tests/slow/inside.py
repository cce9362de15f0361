"""Runs inside a box: the product's own programs on a terminal, as a person uses them.

Usage: python -m tests.slow.inside ORDER (JSON: change, before and look; or execution). Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import execution
from acting import deadman
from tests.approvals.terminal import Terminal, opsx


def shell(text: str) -> str:
    return subprocess.run(["bash", "-ec", text], capture_output=True, text=True, check=True).stdout


def approved(request: str) -> str:
    """The screen on which a person said yes to a request."""
    terminal = Terminal(opsx("approve", request), env=dict(os.environ), cwd="/srv/probe", rows=200, columns=200)
    try:
        terminal.wait_for("anything else is no")
        terminal.answer("yes\r")
        assert terminal.end() == 0, terminal.text
        return terminal.text
    finally:
        terminal.close()


def asked(*words: str) -> dict[str, object]:
    done = subprocess.run(opsx(*words), capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def ran(*words: str) -> dict[str, object]:
    """What a command of ours said in the end, approved where it waited for that."""
    said = asked(*words)
    if said.get("status") != "needs_stamp":
        return said
    screen = approved(str(said["request"]))
    return {**asked(*words), "screen": screen}


def ending(execution_id: str) -> dict[str, object]:
    """What is on record of a dead man."""
    guard = execution.open_guard()
    armed = deadman.armed_for(execution_id, guard)
    assert armed is not None
    kinds = ("deadman_fired", "deadman_confirmed", "deadman_armed", "rollback_planned")
    return {
        "unit": armed.unit,
        "pid": armed.pid,
        "waits": deadman.is_alive(armed),
        "ended": deadman.ended_as(execution_id, guard),
        "entries": [[entry["kind"], entry.get("result")] for entry in guard.ledger.entries() if entry["kind"] in kinds],
    }


def main() -> None:
    order = json.loads(sys.argv[1])
    if order.get("thaw"):
        execution.open_guard().ledger.answers.thaw()
    if "execution" in order:
        print(json.dumps(ending(order["execution"])))
        return
    os.makedirs("/srv/probe", exist_ok=True)
    shell(order.get("before", ""))
    look = order["look"]
    told = {"before": shell(look)}
    done = ran("exec", "--json", "--", order["change"])
    told.update(exec=done, after=shell(look))
    told.update(rollback=ran("rollback", "--json", str(done["execution"])), now=shell(look))
    print(json.dumps(told))


if __name__ == "__main__":
    main()
