"""Runs inside a mount namespace: a state folder on a small or read-only file system, used as the product uses it.

Arguments: what (`full`, `full-from-start`, `read-only`, `reserve`), a folder to mount on. Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from guard.errors import StateError
from guard.ledger import log as log_module
from guard.ledger.store import open_ledger
from tests.ledger.world import CountingIds, FakeLiveness, FixedClock, asked, change_of, done, read_of, unchanged


def mount(where: str, size: str) -> None:
    options = f"size={size},mode=0700,uid={os.geteuid()}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", where], check=True)


def fill(where: str, leave: int = 0) -> None:
    """Takes the last byte of the file system."""
    with open(os.path.join(where, "ballast"), "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
        if leave:
            file.truncate(file.seek(0, os.SEEK_END) - leave)


def opened(where: str):
    return open_ledger(
        clock=FixedClock(), ids=CountingIds(), redact=unchanged, liveness=FakeLiveness(), path=where + "/state"
    )


def read(ledger) -> dict[str, object]:
    begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
    recorded = ledger.end(begun.execution, done())
    return {"begin": begun.recorded.because, "ok": recorded.ok, "because": recorded.because}


def change(ledger) -> str:
    try:
        execution = ledger.begin(asked("rm -r /var/cache/x"), change_of(), profile="none", enforced="none")
    except StateError as error:
        return error.code
    return "ok" if ledger.end(execution, done()).ok else "end lost"


def request(ledger) -> str:
    try:
        return ledger.keep_request(asked("rm x"), change_of())
    except StateError as error:
        return error.code


def summary(ledger) -> dict[str, object]:
    report = ledger.verify()
    listing = ledger.executions()
    return {
        "verified": report.ok,
        "entries": report.entries,
        "torn": report.torn_bytes,
        "statuses": sorted(found.status for found in listing.executions),
        "pending": [kept.id for kept in ledger.pending()],
        "requests": sorted(os.listdir(ledger.folder.path + "/requests"))
        if os.path.isdir(ledger.folder.path + "/requests")
        else [],
    }


def full(where: str) -> dict[str, object]:
    mount(where, "64k")
    ledger = opened(where)
    before = read(ledger)
    fill(where)
    result = {"before": before, "reads": [], "change": "", "request": ""}
    # What is left of the last page takes a few entries; after that the disk is full for good.
    result["reads"] = [read(ledger) for _ in range(12)][-3:]
    result["change"] = change(ledger)
    result["request"] = request(ledger)
    result["full"] = summary(ledger)
    os.unlink(where + "/ballast")
    result["after"] = [read(ledger), change(ledger), request(ledger)]
    result["freed"] = summary(ledger)
    return result


def full_from_start(where: str) -> dict[str, object]:
    mount(where, "64k")
    fill(where)
    ledger = opened(where)
    return {"kind": type(ledger).__name__, "read": read(ledger), "change": change(ledger), "request": request(ledger)}


def read_only(where: str) -> dict[str, object]:
    mount(where, "1m")
    ledger = opened(where)
    read(ledger)
    kept = request(ledger)
    subprocess.run(["mount", "-o", "remount,bind,ro", where], check=True)
    ledger = opened(where)
    return {
        "kind": type(ledger).__name__,
        "read": read(ledger),
        "change": change(ledger),
        "request": kept,
        "again": request(ledger),
        "summary": summary(ledger),
    }


def reserve(where: str) -> dict[str, object]:
    log_module.RESERVE_NEEDS_FREE_BYTES = 0
    log_module.RESERVE_BYTES = 256 * 1024
    log_module.RESERVE_STEP_BYTES = 64 * 1024
    mount(where, "512k")
    ledger = opened(where)
    first = change(ledger)
    size = os.stat(where + "/state/log/reserve").st_size
    fill(where)
    reads = [read(ledger) for _ in range(12)][-1]
    asked_for = request(ledger)
    changes = 0
    outcome = "ok"
    while outcome == "ok" and changes < 1000:
        fill(where)  # whoever fills the disk goes on filling it
        outcome = change(ledger)
        changes += outcome == "ok"
    left = os.stat(where + "/state/log/reserve").st_size
    verified = ledger.verify().ok
    os.unlink(where + "/ballast")
    change(ledger)
    return {
        "first": first,
        "size": size,
        "read": reads,
        "request": asked_for,
        "pending": [kept.id for kept in ledger.pending()],
        "changes": changes,
        "outcome": outcome,
        "left": left,
        "verified": verified,
        "refilled": os.stat(where + "/state/log/reserve").st_size,
        "end": ledger.verify().ok,
    }


if __name__ == "__main__":
    what, where = sys.argv[1:]
    probes = {"full": full, "full-from-start": full_from_start, "read-only": read_only, "reserve": reserve}
    print(json.dumps(probes[what](where)))
