"""Run by test_full_tmpfs.py in a mount namespace of its own: a disk question beside a full file system in memory.

Prints the answer of the program's own runner as JSON. Exits 77 when this user or kernel cannot mount.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from runbooks import runner
from runbooks.model import Where
from tests.runbooks.hung_mount import CANNOT, CLONE_NEWNS, MS_PRIVATE, MS_REC, through_the_guard


def mount_full(point: str) -> None:
    """Mounts 1 MiB of memory on `point` and fills it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "no mount namespace")
    if libc.mount(b"tmpfs", point.encode(), b"tmpfs", 0, b"size=1m"):
        raise OSError(ctypes.get_errno(), "cannot mount tmpfs")
    os.mkdir(f"{point}/full")
    try:
        with open(f"{point}/full/data", "wb", buffering=0) as file:
            while file.write(bytes(65_536)):
                pass
    except OSError:
        return  # no space left, as wanted


def main(point: str) -> None:
    try:
        mount_full(point)
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(CANNOT)
    told = {}
    for name, paths in (("disk", ()), ("path", (f"{point}/full", f"{point}/nope"))):
        where = Where("web-1", os.geteuid(), 0.0, paths=paths)
        checked = runner.run(["disk"], through_the_guard(), where, utc=lambda: "2026-12-01T04:40:00.000Z")
        told[name] = [[one.severity, one.id, one.subject, one.text.en] for one in checked.findings]
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
