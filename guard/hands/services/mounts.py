"""What is mounted where, in which order, with which options. Source: findmnt(8), mount(8), umount(8)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted

MEMORY = frozenset(("tmpfs", "ramfs", "overlay", "hugetlbfs"))
"""What was in a file system of these kinds is gone with its mount."""

_BY_PROCESS = "fuse"
"""A file system that a process serves. Whoever mounts it picks what stands behind the dot, and mount(8) would run a
program of that name, as root; `fuseblk` is of the same kind."""


def _reads(key: str) -> tuple[Read, ...]:
    return (Read("mounts", "findmnt --json --list --output TARGET,SOURCE,FSTYPE,OPTIONS"),)


def _parse(key: str, said: Mapping[str, Said]) -> State:
    try:
        rows = json.loads(said["mounts"].out)["filesystems"]
        places: dict[str, list[list[str]]] = {}
        for row in rows:
            options = ",".join(sorted((row["options"] or "").split(",")))
            places.setdefault(row["target"], []).append([row["source"] or "none", row["fstype"] or "", options])
    except (ValueError, KeyError, TypeError):
        raise Unreadable("findmnt gave no list of mounts") from None
    return {"mounts": places}


def _way_back(key: str, before: State, now: State) -> WayBack:
    old, new = before["mounts"], now["mounts"]
    commands: list[str] = []
    lost: list[str] = []
    # The deepest first: a mount below another goes before it.
    for target in sorted(new, key=lambda path: (-path.count("/"), path)):
        had, has = old.get(target, []), new[target]
        common = _common(had, has)
        commands += [f"umount -- {quoted(target)}"] * (len(has) - common)
    for target in sorted(old, key=lambda path: (path.count("/"), path)):
        had, has = old[target], new.get(target, [])
        common = _common(had, has)
        for place, (wanted, found) in enumerate(zip(had[:common], has[:common], strict=True)):
            if wanted[2] != found[2]:
                if place == common - 1:
                    commands.append(f"mount -o {quoted('remount,' + wanted[2])} -- {quoted(target)}")
                else:
                    lost.append(f"the options of what lies below another mount on {target}")
        for source, kind, options in had[common:]:
            if source.endswith("]") and "[" in source:
                lost.append(f"{target} was a part of {source.partition('[')[0]} mounted once more")
                continue
            if kind.startswith(_BY_PROCESS):
                lost.append(f"what a process served on {target}: start it again")
                continue
            commands.append(f"mount -t {quoted(kind)} -o {quoted(options)} -- {quoted(source)} {quoted(target)}")
            if kind in MEMORY:
                lost.append(f"what was in the {kind} on {target}")
    return WayBack(tuple(Inverse(command) for command in commands), tuple(lost))


def _common(had: list[list[str]], has: list[list[str]]) -> int:
    """How many mounts of a place are still the same ones, from the lowest on."""
    count = 0
    for one, other in zip(had, has, strict=False):
        if one[:2] != other[:2]:
            break
        count += 1
    return count


FAMILY = Family("mounts", "findmnt", _reads, _parse, _way_back, stays="what was in a file system in memory")
