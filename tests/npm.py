"""Other people's programs from the npm registry, installed once into the user's cache: pinned, outside of the checkout.

Needs `npm`. Brings a Node of its own, because several of these programs want a newer one than distributions have.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

NODE = "node@22.23.3"
INSTALL_TIMEOUT_S = 600


class NoNpm(Exception):
    """`npm` is not there, or could not install; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Installed packages."""

    folder: Path

    def argv(self, program: str) -> list[str]:
        """How to start a program of these packages with the Node that they came with."""
        binaries = self.folder / "node_modules" / ".bin"
        return [str(binaries / "node"), str((binaries / program).resolve())]


def fetched(*packages: str) -> Fetched:
    """The packages (`name@version`, exact), from the cache or the registry. Raises NoNpm."""
    npm = shutil.which("npm")
    if npm is None:
        raise NoNpm("npm is not installed: apt-get install npm")
    wanted = (NODE, *packages)
    key = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opsagent-tests"
    cache.mkdir(parents=True, exist_ok=True)
    place = cache / f"npm-{key}"
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            # Renamed when it is whole: an install that was killed leaves nothing that passes for one.
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                _install(npm, Path(scratch) / "made", wanted)
                (Path(scratch) / "made").rename(place)
    return Fetched(place)


def _install(npm: str, place: Path, wanted: tuple[str, ...]) -> None:
    place.mkdir()
    (place / "package.json").write_text(json.dumps({"private": True}))
    options = ["install", "--no-audit", "--no-fund", "--save-exact", "--loglevel=error"]
    _run([npm, *options, wanted[0]], place)
    if wanted[1:]:
        # By the new Node: npm leaves out versions that the one which runs it is too old for.
        node = place / "node_modules" / ".bin" / "node"
        _run([str(node), str(Path(npm).resolve()), *options, *wanted[1:]], place)


def _run(argv: list[str], place: Path) -> None:
    done = subprocess.run(argv, cwd=place, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    if done.returncode:
        raise NoNpm(f"npm could not install {argv[-1]}: {done.stderr.strip()[-500:]}")
