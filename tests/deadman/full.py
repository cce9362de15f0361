"""A change whose records are on a full disk when it is to be taken back. Usage: -m …, OPSAGENT_HOME on its own disk.

Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from dataclasses import replace

import execution
from acting import deadman
from tests.deadman.armed import CONNECTION, changed
from tests.waiting import until


def main() -> None:
    guard = replace(execution.open_guard(), connection=CONNECTION)
    file, filler = pathlib.Path(sys.argv[1]), pathlib.Path(os.environ["OPSAGENT_HOME"]).with_name("filler")
    armed = changed(guard, file, 2)
    with open(filler, "wb", buffering=0) as out:
        for size in (1 << 16, 1 << 10, 1):
            try:
                while True:
                    out.write(b"x" * size)
            except OSError:
                continue
    until(lambda: file.read_text() == "before")
    filler.unlink()
    until(lambda: not deadman.is_alive(armed))
    fired = [entry for entry in guard.ledger.entries() if entry["kind"] == deadman.FIRED]
    print(json.dumps({"ended": deadman.ended_as(armed.execution, guard), "fired": fired, "file": file.read_text()}))


if __name__ == "__main__":
    main()
