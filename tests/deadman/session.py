"""What runs inside the first ssh session: an approved change under a dead man, and a confirmation from there.

Usage: python -m tests.deadman.session FOLDER COMMAND SECONDS. Writes FOLDER/answer.json and then waits.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time
from dataclasses import replace

import execution
from acting import approving, deadman
from guard.bound import Consent
from guard.errors import NotPermitted
from guard.ledger.answers import ToApprove
from guard.types import Actor, Request


def main() -> None:
    folder, command, seconds = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    guard = replace(execution.open_guard(), dead_man_s=seconds)
    request = Request(command, cwd=str(folder), actor=Actor.PERSON)
    assessment = execution.assess(request, guard)
    item = ToApprove(request, assessment, approving.bind(request, assessment, guard), "", True)
    guard.ledger.answers.approve([item], Consent("tty", "0" * 64))
    ran = execution.run(request, guard)
    try:
        deadman.confirm(ran.outcome.execution or "", guard, actor=Actor.PERSON, environ=os.environ, pid=os.getpid())
        said = "confirmed"
    except NotPermitted as error:
        said = error.message
    answer = {
        "status": ran.outcome.status,
        "execution": ran.outcome.execution,
        "notes": list(ran.outcome.notes),
        "over_the_old_connection": said,
        "connection": os.environ.get("SSH_CONNECTION"),
    }
    (folder / "answer.new").write_text(json.dumps(answer))
    (folder / "answer.new").rename(folder / "answer.json")
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
