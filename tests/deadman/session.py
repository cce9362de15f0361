"""What runs inside the first ssh session: an approved change under a dead man, and a confirmation from there.

Usage: python -m tests.deadman.session ORDER (JSON: see `tests.deadman.inside`). Writes answer.json and then waits.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time
from dataclasses import replace

import execution
from acting import approving, confirming, edit
from guard.bound import Consent
from guard.errors import NotPermitted
from guard.ledger.answers import ToApprove
from guard.types import Actor, Request


def command(order, guard):
    request = Request(order["change"], cwd=order["folder"], actor=Actor.PERSON)
    assessment = execution.assess(request, guard)
    approve(ToApprove(request, assessment, approving.bind(request, assessment, guard), "", True), guard)
    return execution.run(request, guard).outcome


def file_change(order, guard):
    path, old, new = order["edit"]
    request = Request("", cwd="/", actor=Actor.PERSON)

    def content(text):
        return text.replace(old.encode(), new.encode())

    wanted = edit.made(edit.look(request, path, guard), content, guard)
    approve(ToApprove(wanted.request, wanted.assessment, edit.binding_of(wanted, guard), ""), guard)
    return execution.change_file(request, path, content, guard).ran.outcome


def approve(item, guard):
    guard.ledger.answers.approve([item], Consent("tty", "0" * 64))


def main() -> None:
    order = json.loads(sys.argv[1])
    folder = pathlib.Path(order["folder"])
    guard = replace(execution.open_guard(), dead_man_s=order["seconds"])
    done = (file_change if "edit" in order else command)(order, guard)
    try:
        confirming.confirm(done.execution or "", guard, actor=Actor.PERSON, pid=os.getpid())
        said = "confirmed"
    except NotPermitted as error:
        said = error.message
    answer = {
        "status": done.status,
        "execution": done.execution,
        "notes": list(done.notes),
        "over_the_old_connection": said,
        "connection": guard.connection,
        "boot_s": time.clock_gettime(time.CLOCK_BOOTTIME),
    }
    (folder / "answer.new").write_text(json.dumps(answer))
    (folder / "answer.new").rename(folder / "answer.json")
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
