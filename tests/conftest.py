"""One place for what every test gets: an empty environment, a private state folder, frozen values."""

from __future__ import annotations

import pytest

from guard.types import Value


@pytest.fixture(autouse=True)
def private_world(tmp_path, monkeypatch):
    """No test reads the real home, state or environment, and none may leave the private folder behind."""
    import os

    home = tmp_path / "home"
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(("OPSAGENT", "OPENAI", "ANTHROPIC", "AWS_", "XDG_", "SSH_", "KUBE", "GIT_", "NO_COLOR")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OPSAGENT_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


def _frozen_setattr(self, name, value):
    if hasattr(self, name):
        raise AttributeError(f"{type(self).__name__}.{name} is frozen")
    object.__setattr__(self, name, value)


@pytest.fixture(autouse=True, scope="session")
def frozen_values():
    """`guard.types.Value` is frozen by convention at run time and by force in tests."""
    Value.__setattr__ = _frozen_setattr
    yield
    del Value.__setattr__
