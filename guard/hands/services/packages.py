"""Installed packages of Debian's kind: versions, which ones a person asked for, which ones are held.

The key names the packages that a command is about, "" where that is not told: their configuration files are saved as
files, and what somebody changed in their other files is known to be lost. Source: dpkg-query(1), dpkg(1), apt-mark(8),
apt-get(8). An old version comes from the archive or the cache; where neither has it any more, the way back says so by
failing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted

_ROW = re.compile(r"^([a-z0-9][a-z0-9+.-]*:[a-z0-9-]+)\t(\S*)\t([a-z-]+)$")
_CHANGED = re.compile(r"^(missing  |[^ ]{9}) ([ c]) (/.+)$")
"""What `dpkg --verify` finds different: nine marks or `missing`, and `c` for a configuration file."""
_CONFFILE = re.compile(r"^ (/.+?) (?:[0-9a-f]{32}|newconffile)(?: obsolete| remove-on-upgrade)*$")
ETC = "/etc/"
FILES = 400
"""No more configuration files are saved with one change."""
_INSTALL = (
    "apt-get install -y --allow-downgrades --allow-change-held-packages --no-install-recommends "
    "-o Dpkg::Options::=--force-confold"
)


def _reads(key: str) -> tuple[Read, ...]:
    form = quoted("${Package}:${Architecture}\\t${Version}\\t${db:Status-Status}\\n")
    return (
        Read("versions", f"dpkg-query -W -f={form}"),
        Read("manual", "apt-mark showmanual"),
        Read("held", "apt-mark showhold"),
        *((Read("verified", f"dpkg --verify {_names(key)}", good=frozenset((0, 1))),) if key else ()),
    )


def _files_read(key: str) -> Read | None:
    if not key:
        return None
    form = quoted("${Conffiles}\\n")
    return Read("conffiles", f"dpkg-query -W -f={form} {_names(key)}", good=frozenset((0, 1)))


def _files(said: Said) -> tuple[str, ...]:
    found = [row[1] for row in map(_CONFFILE.match, said.lines()) if row is not None]
    return tuple(dict.fromkeys(found))[:FILES]


def _folders_read(paths: tuple[str, ...]) -> Read | None:
    folders = {path[:end] for path in paths for end in range(len(ETC), len(path)) if path[end] == "/"}
    below = sorted(folder for folder in folders if folder.startswith(ETC))
    return Read("owners", f"dpkg-query -S {_list(below)}", good=frozenset((0, 1))) if below else None


def _folders(key: str, said: Said) -> tuple[str, ...]:
    """Folders in which no other package than these has anything: a purge takes all of such a one."""
    named = {name.partition(":")[0] for name in key.split(" ")}
    rows = [line.partition(": /") for line in said.lines()]
    return tuple(f"/{path}" for owners, mark, path in rows if mark and _bare(owners) <= named)


def _bare(owners: str) -> set[str]:
    return {name.partition(":")[0] for name in owners.split(", ")}


def _names(key: str) -> str:
    return " ".join(map(quoted, key.split(" ")))


def _parse(key: str, said: Mapping[str, Said]) -> State:
    versions: dict[str, str] = {}
    unfinished: dict[str, str] = {}
    for line in said["versions"].lines():
        row = _ROW.match(line)
        if row is None:
            raise Unreadable("dpkg-query gave a line of no known form")
        if row[3] == "installed":
            versions[row[1]] = row[2]
        elif row[3] not in ("config-files", "not-installed"):
            unfinished[row[1]] = row[3]
    return {
        "versions": versions,
        "unfinished": unfinished,
        "manual": sorted(said["manual"].out.split()),
        "held": sorted(said["held"].out.split()),
        **_verified(said["verified"].lines() if key else ()),
    }


def _verified(lines: Iterable[str]) -> dict[str, list[str]]:
    """`changed`: files that are not as their package has them; `without`: configuration files that somebody removed."""
    rows = [row for row in map(_CHANGED.match, lines) if row is not None]
    return {
        "changed": sorted(row[3] for row in rows if row[2] != "c"),
        "without": sorted(row[3] for row in rows if row[2] == "c" and row[1].startswith("missing")),
    }


def _way_back(key: str, before: State, now: State) -> WayBack:
    old, new = before["versions"], now["versions"]
    commands: list[str] = []
    if now["held"] != before["held"] and (extra := [name for name in now["held"] if name not in before["held"]]):
        commands.append(f"apt-mark unhold {_list(extra)}")
    wanted = [f"{name}={version}" for name, version in old.items() if new.get(name) != version]
    gone = [f"{name}-" for name in new if name not in old]
    if wanted:
        # Both in one step, so that what stands in each other's way is settled together.
        commands.append(f"{_INSTALL} -- {_list([*wanted, *gone])}")
    elif gone:
        commands.append(f"apt-get remove -y -- {_list([name[:-1] for name in gone])}")
    # Installing by name marks as asked for; what a dependency brought in is marked so again.
    manual = [name for name in before["manual"] if name not in now["manual"]]
    was = set(before["manual"])
    touched = {name.partition(":")[0] for name, version in old.items() if new.get(name) != version}
    auto = sorted({name for name in now["manual"] if name not in was and _has(old, name)} | (touched - was))
    commands += [f"apt-mark manual {_list(manual)}"] if manual else []
    commands += [f"apt-mark auto {_list(auto)}"] if auto else []
    held = [name for name in before["held"] if name not in now["held"]]
    commands += [f"apt-mark hold {_list(held)}"] if held else []
    lost = [f"{name} was {status} before" for name, status in before["unfinished"].items()]
    # A package brings each of its configuration files, also one that was not wanted.
    unwanted = [path for path in before["without"] if path not in now["without"]]
    commands += [f"rm -f -- {_list(unwanted)}"] if unwanted else []
    lost += [f"what somebody had changed in {path}" for path in before["changed"] if path not in now["changed"]]
    return WayBack(tuple(Inverse(command) for command in commands), tuple(lost))


def _has(versions: dict[str, str], name: str) -> bool:
    bare = name.partition(":")[0]
    return any(one.partition(":")[0] == bare for one in versions)


def _list(names: list[str]) -> str:
    return " ".join(quoted(name) for name in names)


FAMILY = Family(
    "packages",
    "dpkg-query",
    _reads,
    _parse,
    _way_back,
    stays="what maintainer scripts did, purged data, and changes of files that are no configuration files",
    files_read=_files_read,
    files=_files,
    folders_read=_folders_read,
    folders=_folders,
)
