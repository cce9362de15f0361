"""Other people's programs from PyPI, each pinned and in an environment of its own in the user's cache."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

INSTALL_TIMEOUT_S = 900


class NotInstalled(Exception):
    """pip could not install; the message has its last words."""


def environment_of(requirement: str) -> Path:
    """The Python of an environment that holds the requirement (`name==version`). Raises NotInstalled."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opsagent-tests"
    place = cache / requirement
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        venv.create(place, with_pip=True, clear=True)
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", requirement],
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
        )
        if done.returncode:
            raise NotInstalled(f"pip could not install {requirement}: {done.stderr.strip()[-500:]}")
        (place / "complete").touch()
    return python
