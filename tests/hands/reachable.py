"""Makes this interpreter and checkout reachable for an ordinary user, in a mount namespace of one's own, as root.

Usage: python reachable.py UID COMMAND… Closed folders on the way (a root's home) are covered by empty ones in which
only what is needed shows.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import site
import subprocess
import sys

CLONE_NEWNS = 0x20000
ROOT = pathlib.Path(__file__).resolve().parents[2]


def needed() -> set[pathlib.Path]:
    """The checkout, this interpreter, and where its modules lie, as real paths and as they are named."""
    named = [ROOT, *map(pathlib.Path, (sys.prefix, sys.base_prefix, *site.getsitepackages()))]
    # Debian's Python names folders of its packages that an environment has not.
    return {path for each in named if each.exists() for path in (each, each.resolve())}


def closed_above(path: pathlib.Path) -> pathlib.Path | None:
    """The first folder from the top that others may not enter."""
    return next((folder for folder in reversed(path.parents) if folder.stat().st_mode & 0o005 != 0o005), None)


def mount(*arguments: object) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


def apart() -> None:
    """A mount namespace of this process's own: what is mounted below covers no folder of the machine itself."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    mount("--make-rprivate", "/")


def main() -> None:
    apart()
    kept: dict[pathlib.Path, dict[pathlib.Path, pathlib.Path]] = {}
    place = pathlib.Path("/mnt")
    mount("-t", "tmpfs", "-o", "mode=0755", "none", place)
    for path in sorted(needed()):
        folder = closed_above(path)
        if folder is None:
            continue
        aside = place / str(len(list(place.iterdir())))
        aside.mkdir()
        mount("--bind", path, aside)
        kept.setdefault(folder, {})[path] = aside
    for folder, paths in kept.items():
        mount("-t", "tmpfs", "-o", "mode=0755", "none", folder)
        for path, aside in paths.items():
            path.mkdir(parents=True, exist_ok=True)
            mount("--bind", aside, path)
    uid = int(sys.argv[1])
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
