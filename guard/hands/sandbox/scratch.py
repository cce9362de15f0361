"""The private folders that sandboxed commands may write: one per run, under a root fixed per process."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import subprocess
import tempfile
import threading

from guard.hands.liveness import process_start

PREFIX = "opsagent-"
SHARED_PLACE = "/tmp"  # noqa: S108 — only for a folder that mkdtemp makes there, 0700

CACHE_PLACES = {
    "TMPDIR": "",
    "XDG_CACHE_HOME": "cache",
    "XDG_RUNTIME_DIR": "run",
    "KUBECACHEDIR": "kube",
    "HELM_CACHE_HOME": "helm",
    "PYTHONPYCACHEPREFIX": "pyc",
    "GOCACHE": "go",
    "npm_config_cache": "npm",
    "SQLITE_TMPDIR": "",
    "LESSHISTFILE": "less",
    "HISTFILE": "history",
}
"""Variable → place below the run's folder: what programs would otherwise write below the home."""


class Scratch:
    """The root folder of one process. Threads may share it."""

    def __init__(self, places: tuple[str, ...] | None = None) -> None:
        self._places = places
        self._lock = threading.Lock()
        self._root: str | None = None
        self._tried = False
        self._owner = os.getpid()
        self._serial = 0

    @property
    def writable(self) -> str | None:
        """The folder whose inside commands may write; None when no private folder can be made here."""
        root = self.root()
        return None if root is None else f"{root}/runs"

    @property
    def programs(self) -> str | None:
        """A folder of ours beside it that commands can read and run from, and not write."""
        root = self.root()
        return None if root is None else f"{root}/bin"

    def root(self) -> str | None:
        with self._lock:
            if not self._tried or self._owner != os.getpid():
                self._owner, self._tried = os.getpid(), True
                self._root = self._make_root()
            return self._root

    def _make_root(self) -> str | None:
        for place in self._places if self._places is not None else standard_places():
            _remove_abandoned(place)
            try:
                root = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-{process_start(os.getpid())}-", dir=place)
                os.mkdir(f"{root}/runs", 0o700)
                os.mkdir(f"{root}/bin", 0o700)
            except OSError:
                continue
            atexit.register(remove_tree, root)
            return root
        return None

    def new_run(self) -> str | None:
        """Makes an empty folder, 0700, for one run; None when that is not possible."""
        writable = self.writable
        if writable is None:
            return None
        with self._lock:
            self._serial += 1
            folder = f"{writable}/{self._serial}"
        try:
            os.mkdir(folder, 0o700)
        except OSError:
            return None
        return folder


def cache_places(folder: str) -> dict[str, str]:
    """Environment of one run: where temporary files and caches go."""
    return {name: f"{folder}/{place}" if place else folder for name, place in CACHE_PLACES.items()}


def standard_places() -> tuple[str, ...]:
    """/run/user/UID when it is ours alone, then /tmp."""
    own = f"/run/user/{os.geteuid()}"
    with contextlib.suppress(OSError):
        status = os.lstat(own)
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077:
            return own, SHARED_PLACE
    return (SHARED_PLACE,)


def _remove_abandoned(place: str) -> None:
    """Removes roots of processes that were killed: ours by uid, named after a process that is gone."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(place):
            parts = entry.name.split("-")
            if len(parts) < 4 or f"{parts[0]}-" != PREFIX or not (parts[1].isdigit() and parts[2].isdigit()):
                continue
            status = entry.stat(follow_symlinks=False)
            ours = status.st_uid == os.geteuid() and stat.S_ISDIR(status.st_mode)
            if ours and process_start(int(parts[1])) != int(parts[2]):
                remove_tree(entry.path)


def remove_tree(path: str) -> None:
    """Removes a folder that a command may have filled in any way: deep, closed, full of links. Never raises."""
    with contextlib.suppress(OSError):
        os.rmdir(path)  # the usual case: the run left nothing
        return
    with contextlib.suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    if not os.path.lexists(path):
        return
    # What is left is closed (mkdir -m 0) or thousands of levels deep: open it up, and let rm walk the rest.
    with contextlib.suppress(RecursionError, OSError):
        os.chmod(path, 0o700)
        for folder, names, _ in os.walk(path):
            for name in names:
                if not os.path.islink(f"{folder}/{name}"):
                    os.chmod(f"{folder}/{name}", 0o700)
    subprocess.run(["/bin/rm", "-rf", "--", path], stdin=subprocess.DEVNULL, capture_output=True, check=False)
