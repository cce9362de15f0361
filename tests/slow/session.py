"""What runs in a login of a box: an approved change under a dead man. Then it waits to be ended.

Usage: python -m tests.slow.session COMMAND SECONDS. Writes its execution to /srv/probe/answer.
"""

from __future__ import annotations

import pathlib
import sys
import time
from dataclasses import replace

import execution
from acting import approving
from guard.bound import Consent
from guard.ledger.answers import ToApprove
from guard.types import Actor, Request


def main() -> None:
    command, seconds = sys.argv[1], int(sys.argv[2])
    guard = replace(execution.open_guard(), dead_man_s=seconds)
    request = Request(command, cwd="/srv/probe", actor=Actor.PERSON)
    assessment = execution.assess(request, guard)
    item = ToApprove(request, assessment, approving.bind(request, assessment, guard), "", True)
    guard.ledger.answers.approve([item], Consent("tty", "0" * 64))
    ran = execution.run(request, guard, on_begin=began)
    print(ran.outcome.status, *ran.outcome.notes, sep="\n", flush=True)
    pathlib.Path("/srv/probe/ended").touch()
    time.sleep(600)


def began(execution_id: str) -> None:
    new = pathlib.Path("/srv/probe/answer.new")
    new.write_text(execution_id)
    new.rename("/srv/probe/answer")


if __name__ == "__main__":
    main()
