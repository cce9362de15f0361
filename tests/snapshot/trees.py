"""What the snapshot tests share: snapshots in a state folder of their own, a file tree as a comparable value."""

from __future__ import annotations

import os
import stat
from hashlib import sha256

from guard.hands.capture import capture, survey_of
from guard.hands.restore import apply
from guard.ledger.log import Log
from guard.ledger.packs import Snapshots
from guard.ledger.plans import rollback_plan
from guard.ledger.state import StateFolder
from guard.types import PlanItem
from tests.ledger.world import CountingIds, FakeLiveness, FixedClock, unchanged


def snapshots_in(path) -> Snapshots:
    """Snapshots in a state folder at `path`."""
    folder = StateFolder.open(str(path))
    log = Log(folder, clock=FixedClock(), liveness=FakeLiveness())
    return Snapshots(folder, log=log, clock=FixedClock(), ids=CountingIds(), redact=unchanged)


def never(path: str) -> bool:
    """Nothing is a secret."""
    return False


def save(snapshots, *paths, kind="file", **more) -> str:
    """A snapshot of these paths."""
    items = [PlanItem(kind, str(path)) for path in paths]
    return snapshots.save(capture(items, is_secret=never, **more), execution="e-1")


def end(snapshots, snapshot) -> None:
    """Records how the snapshot's paths stand now, as the end of a run does."""
    snapshots.record_after(snapshot, now_of(snapshots, snapshot))


def now_of(snapshots, snapshot):
    """How the snapshot's paths stand now."""
    return survey_of(snapshots.load(snapshot))


def plan_of(snapshots, snapshot, **choices):
    """The plan that goes back to a snapshot from now."""
    manifest = snapshots.load(snapshot)
    after = snapshots.after(snapshot)
    return rollback_plan("e-1", manifest, after, now_of(snapshots, snapshot), **choices)


def roll_back(snapshots, snapshot, *, tag="e-2", **choices):
    """Plans and applies; returns (plan, results by path)."""
    plan = plan_of(snapshots, snapshot, **choices)
    with snapshots.contents(snapshots.load(snapshot)) as pack:
        results = apply(plan, pack, tag=tag)
    return plan, {result.path: result for result in results}


def state_of(root) -> dict[str, tuple]:
    """Everything that a rollback has to bring back, read without the code under test."""
    found = {}
    root = str(root)
    names: dict[int, str] = {}

    def add(path):
        try:
            info = os.lstat(path)
        except FileNotFoundError:
            return
        kind = stat.S_IFMT(info.st_mode)
        entry = [oct(kind), stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid]
        if stat.S_ISREG(info.st_mode):
            with open(path, "rb") as file:
                entry += [info.st_mtime_ns, sha256(file.read()).hexdigest()]
            entry.append(names.setdefault(info.st_ino, os.path.relpath(path, root)))
        if stat.S_ISLNK(info.st_mode):
            entry.append(os.readlink(path))
        else:
            entry.append(sorted((name, os.getxattr(path, name)) for name in os.listxattr(path)))
        found[os.path.relpath(path, root)] = tuple(entry)
        if stat.S_ISDIR(info.st_mode):
            for name in sorted(os.listdir(path)):
                add(os.path.join(path, name))

    add(root)
    return found
