"""Run by test_sandbox_stuck.py in a mount namespace of its own: a read of a file system whose server never answers.

Usage: python stuck_probe.py POINT ABI. Prints what the run gave, and what the next one gave, as JSON. Exits 77 when
this user or kernel cannot mount FUSE.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from guard.hands.environment import build_environment
from guard.hands.sandbox.kernel import probe
from guard.hands.targets.local import LocalTarget
from tests.runbooks.hung_mount import CANNOT, mount_dead_fuse

point, abi = sys.argv[1], int(sys.argv[2])
try:
    mount_dead_fuse(point)
except OSError:
    raise SystemExit(CANNOT) from None
target = LocalTarget(dataclasses.replace(probe(), landlock_abi=min(abi, probe().landlock_abi)))


def run(command: str, timeout_s: float) -> dict[str, object]:
    result = target.run(command, cwd="/", profile="local", env=build_environment().env, timeout_s=timeout_s)
    return {"code": result.exit_code, "timed_out": result.timed_out, "out": result.stdout.text, "notes": result.notes}


stuck = run(f"echo $$; exec stat {point}/anything", 0.5)
with open(f"/proc/{int(str(stuck['out']))}/stat") as file:
    state = file.read().rpartition(")")[2].split()[0]
print(json.dumps({"stuck": stuck, "state": state, "next": run("echo fine", 30)}))
sys.stdout.flush()
os._exit(0)  # what is stuck ends when the file system's server does, with this process
