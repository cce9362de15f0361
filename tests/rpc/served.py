"""Starts `opsagent rpc` or `opsagent acp` as their verbs do, with a person behind the pipe: `served.py SHELL BRAIN`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cli import surroundings
from cli.hosting import ClientWorld
from cli.serving import end_on_signals

if __name__ == "__main__":
    shell, brain = sys.argv[1:]
    # Long outputs of tests do not belong into the checkout.
    surroundings.outputs_folder = lambda: os.path.join(os.environ["OPSAGENT_HOME"], "outputs")
    world = ClientWorld(shell, cwd=surroundings.cwd(), brain=brain, model="", read_only=False, person=True)
    if shell == "rpc":
        from agent.rpc.server import Server
    else:
        from agent.acp.server import Server
    server = Server(lambda: world, version="0")
    end_on_signals(server.connection.end)
    server.run()
