"""A full file system in memory, made for real and asked through the guard: it is found, and so is a path on it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.runbooks import full_tmpfs


def test_a_real_full_tmpfs_is_critical_and_a_path_on_it_is_answered(tmp_path):
    point = tmp_path / "memory"
    point.mkdir()
    script = Path(full_tmpfs.__file__)
    done = subprocess.run([sys.executable, str(script), str(point)], capture_output=True, text=True, timeout=60)
    if done.returncode == full_tmpfs.CANNOT:
        # An ordinary user may not mount here; the recording memory-file-systems-full holds the same answers.
        assert "namespace" in done.stderr or "tmpfs" in done.stderr, done.stderr
        return
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    said = f"{point} is 100% full, 0 MiB left of 1 MiB (critical at 95%)."
    assert ["crit", "disk.space", str(point), said] in told["disk"]
    first, second = told["path"][:2]
    assert first == ["crit", "disk.space", str(point), f"{point}/full is on {point}, and {said}"]
    assert (second[0], second[3]) == ("not_checked", f"{point}/nope does not exist")
