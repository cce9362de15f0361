"""What is mounted where, in which order, with which options. Source: findmnt(8), mount(8), umount(8).

A mount has flags of its own (`ro`, `nosuid` …) beside the options of its file system, which every other mount of the
same file system shares: each of the two goes back by itself, so that no other mount changes with one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted

MEMORY = frozenset(("tmpfs", "ramfs", "overlay", "hugetlbfs"))
"""What was in a file system of these kinds is gone with its mount."""

_BY_PROCESS = "fuse"
"""A file system that a process serves. Whoever mounts it picks what stands behind the dot, and mount(8) would run a
program of that name, as root; `fuseblk` is of the same kind."""
_COLUMNS = "TARGET,SOURCE,FSTYPE,OPTIONS,VFS-OPTIONS,FS-OPTIONS,PROPAGATION,MAJ:MIN"
_OPPOSITES = {"nosuid": "suid", "nodev": "dev", "noexec": "exec", "noatime": "atime", "nodiratime": "diratime",
    "nosymfollow": "symfollow"}  # fmt: skip
_ALWAYS_SAID = ("nosuid", "nodev", "noexec", "noatime")
"""mount(8) adds the flags that a place has, or has in fstab, to those of a remount: their opposites are written."""
_TIMES = frozenset(("relatime", "noatime", "strictatime"))


class _Mount(NamedTuple):
    """One mount, as the state keeps it. The last four are "" in a state that was kept before they were read."""

    source: str
    kind: str
    options: str
    """Its flags and those of its file system as one list, sorted; so are the next two."""
    flags: str = ""
    shared: str = ""
    """The options of the file system, which all of its mounts have."""
    propagation: str = ""
    also: str = ""
    """The first place, by name, where the same file system is mounted, when it is another one."""


def _reads(key: str) -> tuple[Read, ...]:
    return (Read("mounts", f"findmnt --json --list --output {_COLUMNS}"),)


def _parse(key: str, said: Mapping[str, Said]) -> State:
    try:
        rows = json.loads(said["mounts"].out)["filesystems"]
        # The number of a device is another one each time; that two mounts have the same one is not.
        first: dict[str, str] = {}
        for row in sorted(rows, key=lambda row: str(row["target"])):
            first.setdefault(row.get("maj:min") or "", row["target"])
        places: dict[str, list[list[str]]] = {}
        for row in rows:
            target, device = row["target"], row.get("maj:min") or ""
            also = first[device] if device and first[device] != target else ""
            sets = [
                ",".join(sorted((row.get(name) or "").split(","))) for name in ("options", "vfs-options", "fs-options")
            ]
            places.setdefault(target, []).append(
                [row["source"] or "none", row["fstype"] or "", *sets, row.get("propagation") or "", also]
            )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Unreadable("findmnt gave no list of mounts") from None
    return {"mounts": places}


def _way_back(key: str, before: State, now: State) -> WayBack:
    old, new = _places(before), _places(now)
    commands: list[str] = []
    lost: list[str] = []
    # The deepest first: a mount below another goes before it.
    for target in sorted(new, key=lambda path: (-path.count("/"), path)):
        count = len(new[target]) - _common(old.get(target, []), new[target])
        commands += [f"umount -- {quoted(target)}"] * count
    # Where each file system is on top, by the first place it was mounted on then: a bind can be made from there.
    at = {
        had[-1].also or target: target
        for target, had in old.items()
        if had and len(had) == _common(had, new.get(target, [])) and not _is_part(had[-1])
        and (had[-1].also or target) == (new[target][len(had) - 1].also or target)
    }  # fmt: skip
    for target in sorted(old, key=lambda path: (path.count("/"), path)):
        had, has = old[target], new.get(target, [])
        common = _common(had, has)
        for place, (wanted, found) in enumerate(zip(had[:common], has[:common], strict=True)):
            changed = _changed(target, wanted, found, lost)
            if changed and place == common - 1:
                commands += changed
            elif changed:
                lost.append(f"the options of what lies below another mount on {target}")
        for wanted in had[common:]:
            commands += _mounted(target, wanted, at, lost)
    return WayBack(tuple(Inverse(command) for command in commands), tuple(lost))


def _places(state: State) -> dict[str, list[_Mount]]:
    return {target: [_Mount(*row) for row in rows] for target, rows in state["mounts"].items()}


def _common(had: list[_Mount], has: list[_Mount]) -> int:
    """How many mounts of a place are still the same ones, from the lowest on."""
    count = 0
    for one, other in zip(had, has, strict=False):
        if one[:2] != other[:2]:
            break
        count += 1
    return count


def _is_part(mount: _Mount) -> bool:
    """Whether it shows a folder of its file system instead of its root."""
    return mount.source.endswith("]") and "[" in mount.source


def _changed(target: str, wanted: _Mount, found: _Mount, lost: list[str]) -> list[str]:
    """What gives a mount that is still there the options it had; what cannot be, into `lost`."""
    if not wanted.flags:
        # Which of them are its own is not in the state that was kept.
        if wanted.options != found.options:
            lost.append(f"the options of {target}, kept without which of them are the mount's own")
        return []
    commands = []
    if wanted.shared != found.shared:
        words = [*_split(wanted.shared), *(word for word in _flags(wanted, found) if word not in ("ro", "rw"))]
        commands.append(f"mount -o {quoted(','.join(('remount', *words)))} -- {quoted(target)}")
    if commands or wanted.flags != found.flags:
        commands.append(_flagged(target, wanted, found))
    if wanted.propagation != found.propagation:
        commands += _propagated(target, wanted, lost)
    return commands


def _mounted(target: str, wanted: _Mount, at: dict[str, str], lost: list[str]) -> list[str]:
    """What mounts once more what was there; what cannot be, into `lost`."""
    if _is_part(wanted):
        lost.append(f"{target} was a part of {wanted.source.partition('[')[0]} mounted once more")
        return []
    if wanted.kind.startswith(_BY_PROCESS):
        lost.append(f"what a process served on {target}: start it again")
        return []
    group = wanted.also or target
    if group in at:
        commands = [f"mount --bind -- {quoted(at[group])} {quoted(target)}", _flagged(target, wanted, wanted)]
    else:
        words = [*_split(wanted.shared), *(word for word in _split(wanted.flags) if word not in ("ro", "rw"))]
        options = ",".join(words) if wanted.flags else wanted.options
        commands = [f"mount -t {quoted(wanted.kind)} -o {quoted(options)} -- {quoted(wanted.source)} {quoted(target)}"]
        if "ro" in _split(wanted.flags) and "ro" not in _split(wanted.shared):
            commands.append(_flagged(target, wanted, wanted))
        if wanted.kind in MEMORY:
            lost.append(f"what was in the {wanted.kind} on {target}")
    at.setdefault(group, target)
    return commands + (_propagated(target, wanted, lost) if wanted.propagation else [])


def _split(options: str) -> list[str]:
    return options.split(",") if options else []


def _flagged(target: str, wanted: _Mount, found: _Mount) -> str:
    """The command that sets a mount's own flags and leaves its file system alone."""
    return f"mount -o {quoted(','.join(('remount', 'bind', *_flags(wanted, found))))} -- {quoted(target)}"


def _flags(wanted: _Mount, found: _Mount) -> list[str]:
    """A mount's own flags as words of mount(8), with the opposites of those that it shall not have."""
    words, has = _split(wanted.flags), _split(found.flags)
    off = [_OPPOSITES[one] for one in _OPPOSITES if one not in words and (one in _ALWAYS_SAID or one in has)]
    return [*off, *words, *(() if _TIMES.intersection(words) else ("strictatime",))]


def _propagated(target: str, wanted: _Mount, lost: list[str]) -> list[str]:
    """The commands that let mounts below a place spread as they did. Whom it followed is not known."""
    kinds = _split(wanted.propagation)
    if "slave" in kinds:
        lost.append(f"{target} took over what was mounted in another place")
        return []
    return [f"mount --make-{kind} -- {quoted(target)}" for kind in kinds if kind in ("private", "shared", "unbindable")]


FAMILY = Family("mounts", "findmnt", _reads, _parse, _way_back, stays="what was in a file system in memory")
