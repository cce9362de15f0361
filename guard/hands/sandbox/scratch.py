"""The private folders that sandboxed commands may write: one per run, under a root fixed per process."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable

PREFIX = "opsagent-"
SHARED_PLACE = "/tmp"  # noqa: S108 — only for a folder that mkdtemp makes there, 0700

KEPT_EMPTY = 4

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
    "XTABLES_LOCKFILE": "xtables.lock",
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
        self._empty: list[str] = []

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
            gone = self._root is not None and not os.path.isdir(f"{self._root}/runs")  # a cleaner of /tmp was here
            if not self._tried or gone or self._owner != os.getpid():
                self._owner, self._tried = os.getpid(), True
                self._root = self._make_root()
            return self._root

    def _make_root(self) -> str | None:
        for place in self._places if self._places is not None else standard_places():
            _remove_abandoned(place)
            try:
                root = tempfile.mkdtemp(prefix=PREFIX, dir=place)
                # Held as long as this process lives: how others, in other pid namespaces too, see that it does.
                lock = os.open(f"{root}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.mkdir(f"{root}/bin", 0o700)
                os.mkdir(f"{root}/runs", 0o700)
            except OSError:
                continue
            atexit.register(_remove_own, root, os.getpid())
            return root
        return None

    def new_run(self) -> str | None:
        """An empty folder, 0700, for one run; None when that is not possible."""
        writable = self.writable
        if writable is None:
            return None
        with self._lock:
            while self._empty:
                folder = self._empty.pop()
                if os.path.dirname(folder) == writable and os.path.isdir(folder):
                    return folder
            self._serial += 1
            folder = f"{writable}/{self._serial}"
        try:
            os.mkdir(folder, 0o700)
        except OSError:
            return None
        return folder

    def end_run(self, folder: str) -> None:
        """Removes what a run left. A folder that it left empty is kept for the next: removing one costs up to
        0.2 ms, and a command cannot change its mode, owner or attributes."""
        try:
            with os.scandir(folder) as entries:
                empty = next(entries, None) is None
        except OSError:
            return
        if empty:
            with self._lock:
                if len(self._empty) < KEPT_EMPTY:
                    self._empty.append(folder)
                    return
        remove_tree(folder)


def cache_places(folder: str) -> dict[str, str]:
    """Environment of one run: where temporary files and caches go."""
    places = {name: f"{folder}/{place}" if place else folder for name, place in CACHE_PLACES.items()}
    return {**places, "BLKID_FILE": os.devnull}  # it sets a mode on a real one, which no sandboxed command can


MOST_BYTES = 1 << 30
"""In one run's folder together."""
LEAST_FREE_BYTES = 32 << 20
"""On the file system of the folder: a run that uses it up is ended before everything else there fails. Also finds
what a listing does not show: files that were removed and are still open."""
MOST_ENTRIES = 50_000


def overrun_of(folder: str | None) -> Callable[[], str] | None:
    """A question to be asked now and then: why a run with this folder has to end, "" while it need not."""
    if folder is None:
        return None
    at_start = _free_bytes(folder)

    def why() -> str:
        used, entries = _size_of(folder)
        if used > MOST_BYTES:
            return f"it wrote {used >> 20} MiB to its private folder (limit {MOST_BYTES >> 20})"
        if entries > MOST_ENTRIES:
            return f"it made more than {MOST_ENTRIES} files in its private folder"
        free = _free_bytes(folder)
        if free < LEAST_FREE_BYTES <= at_start:
            return f"only {free >> 20} MiB are left where its private folder is"
        return ""

    return why


def _free_bytes(folder: str) -> int:
    try:
        status = os.statvfs(folder)
    except OSError:
        return 0
    return status.f_bavail * status.f_frsize


def _size_of(folder: str) -> tuple[int, int]:
    """(bytes on disk, entries), counted until one of the limits is passed."""
    used = entries = 0
    for place, _, names in os.walk(folder):
        for name in names:
            entries += 1
            with contextlib.suppress(OSError):
                used += os.lstat(f"{place}/{name}").st_blocks * 512
        if used > MOST_BYTES or entries > MOST_ENTRIES:
            break
    return used, entries


def standard_places() -> tuple[str, ...]:
    """/run/user/UID when it is ours alone, then /tmp."""
    own = f"/run/user/{os.geteuid()}"
    with contextlib.suppress(OSError):
        status = os.lstat(own)
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077:
            return own, SHARED_PLACE
    return (SHARED_PLACE,)


def _remove_own(root: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked child leaves by the same handlers
        remove_tree(root)


def _remove_abandoned(place: str) -> None:
    """Removes roots of ours whose process was killed: nobody holds their lock."""
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if not entry.name.startswith(PREFIX):
                continue
            with contextlib.suppress(OSError):  # one that goes at this moment keeps nobody from the others
                status = entry.stat(follow_symlinks=False)
                old = time.time() - status.st_ctime > 60  # a new one may not have its lock yet
                ours = status.st_uid == os.geteuid() and stat.S_ISDIR(status.st_mode)
                if old and ours and _is_abandoned(entry.path):
                    remove_tree(entry.path)


def _is_abandoned(root: str) -> bool:
    try:
        lock = os.open(f"{root}/lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False  # not one of ours, or in the making: never touch what is not understood
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


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
