"""Installed packages of Debian's kind: versions, which ones a person asked for, which ones are held.

Source: dpkg-query(1), apt-mark(8), apt-get(8). An old version comes from the archive or the cache; where neither has it
any more, the way back says so by failing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted

_ROW = re.compile(r"^([a-z0-9][a-z0-9+.-]*:[a-z0-9-]+)\t(\S*)\t([a-z-]+)$")
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
    )


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
    return WayBack(tuple(Inverse(command) for command in commands), tuple(lost))


def _has(versions: dict[str, str], name: str) -> bool:
    bare = name.partition(":")[0]
    return any(one.partition(":")[0] == bare for one in versions)


def _list(names: list[str]) -> str:
    return " ".join(quoted(name) for name in names)


FAMILY = Family(
    "packages", "dpkg-query", _reads, _parse, _way_back, stays="what maintainer scripts did, and purged data"
)
