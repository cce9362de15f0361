"""A target of this machine, shared by the module: real kernel, real bash, a scratch of its own."""

from __future__ import annotations

import functools

import pytest

from guard.hands.environment import build_environment
from guard.hands.targets.local import LocalTarget


@pytest.fixture(scope="session")
def target():
    return LocalTarget()


@pytest.fixture
def run(target, tmp_path):
    """Runs a command in tmp_path under `local` unless told otherwise."""

    def call(command, *, profile="local", cwd=None, timeout_s=60.0, env=None, **more):
        whole = {**build_environment().env, **(env or {})}
        return target.run(command, cwd=cwd or str(tmp_path), profile=profile, env=whole, timeout_s=timeout_s, **more)

    return functools.wraps(target.run)(call)
