"""`opsx exec` on a terminal: a change that is over at once, and waits for its confirmation. Usage: python -m …"""

from __future__ import annotations

import os
import sys

import core
import execution
from cli import opsx
from guard.types import Outcome, Status
from tests.deadman.armed import CONNECTION, waits

SECONDS = 600


def ran(request, guard, **more):
    run = waits(guard, SECONDS)
    return execution.Ran(core.check("nft -f f", cwd="/"), Outcome(Status.SUCCEEDED, execution=run, exit_code=0))


if __name__ == "__main__":
    os.environ["SSH_CONNECTION"] = CONNECTION
    execution.run = ran
    sys.exit(opsx.main(["exec", "nft -f f"]))
