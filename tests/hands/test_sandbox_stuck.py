"""A read that hangs in the kernel, beyond the reach of any signal: named, left behind, and in nobody's way."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from guard.hands.sandbox.kernel import probe
from tests.runbooks.hung_mount import CANNOT

PROBE = pathlib.Path(__file__).with_name("stuck_probe.py")


@pytest.mark.parametrize("abi", [probe().landlock_abi, 0])
def test_what_is_stuck_in_the_kernel_is_named_and_left_and_the_next_read_runs(tmp_path, abi):
    point = tmp_path / "dead"
    point.mkdir()
    command = [sys.executable, str(PROBE), str(point), str(abi)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode == CANNOT:
        assert os.geteuid() != 0 or not os.path.exists("/dev/fuse")
        return
    told = json.loads(done.stdout)
    pid = told["stuck"]["out"].strip()
    assert told["state"] == "D"
    assert told["stuck"]["timed_out"]
    assert told["stuck"]["code"] is None
    assert f"process {pid} did not die (state D: stuck in the kernel); it is left behind" in told["stuck"]["notes"]
    assert told["next"] == {"code": 0, "timed_out": False, "out": "fine\n", "notes": []}
