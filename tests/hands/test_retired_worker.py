"""A run that holds a worker while another run finds it stale: it gets the successor, and never waits for ever."""

from __future__ import annotations

import subprocess

import pytest

from guard.hands.sandbox.report import Notes
from guard.hands.sandbox.worker import Retired
from guard.hands.targets.local import LocalTarget


def test_a_retired_worker_refuses_and_starts_nothing():
    target = LocalTarget()
    worker = target._sandbox.worker("local")
    worker.retire()
    started = []
    with pytest.raises(Retired):
        worker.spawn(lambda: started.append(1) or subprocess.Popen(["/bin/true"]), Notes(limited=False))
    assert started == []


def test_a_run_whose_worker_is_retired_in_between_is_run_by_its_successor(monkeypatch, tmp_path):
    target = LocalTarget()
    real, given = target._sandbox.worker, []

    def worker(*args, **options):
        found = real(*args, **options)
        given.append(found)
        if len(given) == 1:
            found.retire()
            target._sandbox._pool._workers.clear()
        return found

    monkeypatch.setattr(target._sandbox, "worker", worker)
    result = target.run("echo hello", cwd=str(tmp_path), profile="local", env={}, timeout_s=20)
    assert (result.exit_code, result.stdout.text, len(given)) == (0, "hello\n", 2)
