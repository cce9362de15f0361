"""Snapshots against `cp -a` + `sync` (and restic where it is installed), as ratios in one run; memory with a 1 GB file.

    python benchmarks/snapshot.py [--rounds N] [--big GB] [--folder DIR]

Times are the best of the rounds: a shared machine only ever adds.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from guard.clock import RandomIds, SystemClock
from guard.hands.capture import capture, survey
from guard.hands.liveness import ProcLiveness
from guard.hands.restore import apply
from guard.ledger.log import Log
from guard.ledger.packs import Snapshots
from guard.ledger.plans import rollback_plan
from guard.ledger.state import StateFolder
from guard.types import PlanItem

FILES = 1000
FILE_BYTES = 10_000


def snapshots_in(path: str) -> Snapshots:
    folder, clock = StateFolder.open(path), SystemClock()
    log = Log(folder, clock=clock, liveness=ProcLiveness())
    return Snapshots(folder, log=log, clock=clock, ids=RandomIds(), redact=str)


def seconds(work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def many_files(folder: str, rounds: int) -> None:
    tree = os.path.join(folder, "tree")
    os.mkdir(tree)
    for number in range(FILES):
        with open(os.path.join(tree, f"file-{number:04d}"), "wb") as file:
            file.write(os.urandom(FILE_BYTES))
    os.sync()
    snapshots = snapshots_in(os.path.join(folder, "state"))
    times: dict[str, list[float]] = {"cp -a + sync": [], "snapshot": [], "roll back all": []}
    restic = shutil.which("restic")
    if restic:
        environment = {**os.environ, "RESTIC_PASSWORD": "x", "RESTIC_REPOSITORY": os.path.join(folder, "restic")}
        subprocess.run([restic, "init", "--no-cache", "-q"], env=environment, check=True)
        times["restic"] = []
    for number in range(rounds):
        copy = os.path.join(folder, f"copy-{number}")

        def copied(copy=copy):
            subprocess.run(["cp", "-a", tree, copy], check=True)
            subprocess.run(["sync", "-f", copy], check=True)

        times["cp -a + sync"].append(seconds(copied))
        saved: list[str] = []

        def taken(saved=saved):
            saved.append(snapshots.save(capture([PlanItem("file", tree)], is_secret=lambda path: False)))

        times["snapshot"].append(seconds(taken))
        if restic:

            def backed_up(number=number):
                # Every file is new to it, as it is to the others.
                subprocess.run([restic, "backup", "--no-cache", "-q", "--force", tree], env=environment, check=True)

            times["restic"].append(seconds(backed_up))
        for name in os.listdir(tree):
            with open(os.path.join(tree, name), "ab") as file:
                file.write(b"more")
        manifest = snapshots.load(saved[0])
        snapshots.record_after(saved[0], survey(manifest.roots))

        def rolled_back(saved=saved, manifest=manifest):
            plan = rollback_plan("e-1", manifest, snapshots.after(saved[0]), survey(manifest.roots))
            with snapshots.contents(manifest) as pack:
                results = apply(plan, pack, tag="e-1")
            assert len(results) == FILES
            assert all(result.result == "done" for result in results)

        times["roll back all"].append(seconds(rolled_back))
        shutil.rmtree(copy)
    base = min(times["cp -a + sync"])
    for name, found in times.items():
        print(
            f"{FILES} x {FILE_BYTES // 1000} KB, {name:14} {min(found) * 1000:8.0f} ms  {min(found) / base:5.2f} x cp"
        )


def one_big_file(folder: str, size_gb: float) -> None:
    path = os.path.join(folder, "big")
    block = os.urandom(1 << 20)
    with open(path, "wb") as file:
        for _ in range(int(size_gb * 1024)):
            file.write(block)
    os.sync()
    snapshots = snapshots_in(os.path.join(folder, "state-big"))
    resting_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took_s = seconds(lambda: snapshots.save(capture([PlanItem("file", path)], is_secret=lambda path: False)))
    copy_s = seconds(
        lambda: (
            subprocess.run(["cp", "-a", "--reflink=never", path, path + ".copy"], check=True),
            subprocess.run(["sync", path + ".copy"], check=True),
        )
    )
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{size_gb:g} GB file, snapshot {took_s:.1f} s, cp -a + sync {copy_s:.1f} s ({took_s / copy_s:.2f} x), "
        f"memory +{(peak_kb - resting_kb) / 1024:.1f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--big", type=float, default=1.0, help="size of the big file in GB; 0 leaves it out")
    parser.add_argument("--folder", default=None, help="on the file system to measure (default: the temporary one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        many_files(folder, options.rounds)
        if options.big:
            one_big_file(folder, options.big)


main()
