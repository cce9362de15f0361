"""Moves root's records again and again, each time killed one step later, and looks at what is there then.

Usage: python moving_probe.py FOLDER rename|copy. Prints one JSON object. A process of its own, because it forks.
"""

from __future__ import annotations

import json
import os
import pathlib
import pwd
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from guard.ledger import location, moving
from guard.ledger.state import StateFolder
from guard.ledger.verify import verify
from tests.ledger.world import FakeLiveness, FixedClock, asked, change_of, done, ledger_in, read_of

STEPS = frozenset(("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.chmod", "os.utime", "os.link"))
MOST_STEPS = 400
real_rename = os.rename


def settle_in(home: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """(older, system) below a folder that stands for this machine."""
    entry = pwd.struct_passwd(("root", "x", 0, 0, "", str(home / "root"), "/bin/sh"))
    pwd.getpwuid = lambda uid: entry
    location.is_root = lambda: True
    location.SYSTEM_PLACE = str(home / "var/lib/opsagent")
    os.environ.pop("OPSAGENT_HOME", None)
    return home / "root/.local/state/opsagent", home / "var/lib/opsagent"


def fill(older: pathlib.Path) -> None:
    """Records of each kind."""
    (older / "../../..").resolve().mkdir(parents=True, exist_ok=True)
    ledger = ledger_in(older, liveness=FakeLiveness())
    ledger.end(ledger.begin(asked(), change_of(), profile="none", enforced="none"), done())
    begun = ledger.begin_read(asked("uptime"), read_of("uptime"), profile="local", enforced="strict")
    ledger.end(begun.execution, done())
    ledger.keep_request(asked("reboot"), change_of("reboot"))
    for name in ("snapshots/s-1/pack", "sessions/c-1.jsonl", "usage/2026-12.jsonl"):
        (older / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (older / name).write_bytes(name.encode() * 50)
        (older / name).chmod(0o600)


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    """Everything that must not be lost; of the log what it began with is looked at by the caller."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and name not in moving.LEFT_BEHIND and not name.startswith("log/"):
            found[name] = path.read_bytes()
    return found


def log_of(folder: pathlib.Path) -> bytes:
    return (folder / "log/000001.jsonl").read_bytes()


def across(old: str, new: str, **more: object) -> None:
    """As rename(2) between two file systems: only what stays on one side can be renamed."""
    if ("/root/" in old) != ("/root/" in new):
        raise OSError(18, "Invalid cross-device link")
    real_rename(old, new, **more)


def killed_at(step: int) -> bool:
    """Moves in a child that dies before the step with this number; False when it came to its end before."""
    pid = os.fork()
    if not pid:
        count = 0

        def at(event: str, _arguments: tuple[object, ...]) -> None:
            nonlocal count
            if event in STEPS:
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(at)
        moving.move(clock=FixedClock(), liveness=FakeLiveness(), holders=lambda folder: "")
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def main() -> None:
    place, how = pathlib.Path(sys.argv[1]), sys.argv[2]
    if how == "copy":
        moving.os.rename = across
    faults = []
    step = 1
    while step < MOST_STEPS:
        older, system = settle_in(place / str(step))
        fill(older)
        system.parent.mkdir(parents=True)
        wanted, log = contents(older), log_of(older)
        killed = killed_at(step)
        truth = pathlib.Path(location.state_path())
        if contents(truth) != wanted or not log_of(truth).startswith(log):
            faults.append(f"{step}: {truth} does not hold everything")
        moving.move(clock=FixedClock(), liveness=FakeLiveness(), holders=lambda folder: "")
        folder = StateFolder.open_own()
        moving.require_one_place(folder)
        if folder.path != str(system) or contents(system) != wanted or not log_of(system).startswith(log):
            faults.append(f"{step}: {folder.path} does not hold everything in the end")
        if not verify(folder).ok or b"state-moved" not in log_of(system):
            faults.append(f"{step}: the log is not whole, or does not tell")
        left = [str(path.relative_to(place)) for path in (older, older.with_name("opsagent.moving")) if path.is_dir()]
        left += [path.name for path in system.parent.iterdir() if path != system]
        faults += [f"{step}: {name} is left" for name in left]
        if not killed:
            break
        step += 1
    print(json.dumps({"steps": step, "faults": faults}))


if __name__ == "__main__":
    main()
