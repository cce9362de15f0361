"""A mount that never answers, made with the kernel's own FUSE: it is named, and the other file systems are answered."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runbooks import hung_mount


@pytest.mark.parametrize("how", ["plain", "guard"])
def test_a_real_mount_that_never_answers_is_named(tmp_path, how):
    point = tmp_path / "dead"
    point.mkdir()
    script = Path(hung_mount.__file__)
    done = subprocess.run([sys.executable, str(script), str(point), how], capture_output=True, text=True, timeout=60)
    if done.returncode == hung_mount.CANNOT:
        # An ordinary user may not mount here. The same hang, from an `ask`, is in test_runner.py; what stays to be
        # seen is that the reason is the kernel's refusal and nothing of ours.
        assert any(said in done.stderr for said in ("namespace", "FUSE", "/dev/fuse")), done.stderr
        return
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)
    assert ["crit", "disk.hung", str(point)] in findings
    assert [row for row in findings if row[1] == "disk.space"], "the other file systems have answers"
