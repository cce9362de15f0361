"""Runs inside a mount namespace: a snapshot into a state folder on a disk that is too small. Prints one JSON object.

Arguments: `too-full` or `fills-up`, a folder with `file` and a mount point `disk`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from guard.errors import SnapshotImpossible
from guard.hands.capture import capture
from guard.types import PlanItem
from tests.snapshot.trees import never, snapshots_in


class Filling:
    """A capture during which somebody fills the disk."""

    def __init__(self, looked, ballast: str) -> None:
        self._looked = looked
        self._ballast = ballast

    def __getattr__(self, name: str):
        return getattr(self._looked, name)

    def read(self, sink):
        with open(self._ballast, "wb") as ballast:
            ballast.write(bytes(700_000))
        return self._looked.read(sink)


def main(what: str, folder: str) -> None:
    disk = os.path.join(folder, "disk")
    size = "400k" if what == "too-full" else "900k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", disk], check=True)
    snapshots = snapshots_in(os.path.join(disk, "state"))
    looked = capture([PlanItem("file", os.path.join(folder, "file"))], is_secret=never)
    if what == "fills-up":
        looked = Filling(looked, os.path.join(disk, "ballast"))
    try:
        snapshots.save(looked, execution="e-1")
        found = {"code": "saved"}
    except SnapshotImpossible as error:
        found = {"code": error.code, "hint": error.hint, "message": error.message}
    print(json.dumps({**found, "left": list(snapshots.ids())}))


main(*sys.argv[1:])
