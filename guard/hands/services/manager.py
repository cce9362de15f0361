"""systemd as a whole: the links below its folders, what runs, and that it has read its files.

Keys: `links` (enabled, masked, linked, the default target), `running` (which units are active), `files` (nothing of its
own: files of units went back, and the manager reads them again). Source: systemctl(1), systemd.unit(5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.hands.services.units import LINKS, links_of, relinked
from guard.quoting import quoted

FILES = "files"
FOLDERS = (
    "/etc/systemd/", "/run/systemd/system", "/usr/lib/systemd/system/", "/lib/systemd/system/",
    "/usr/local/lib/systemd/system/",
)  # fmt: skip
"""Where the manager reads units from."""
_RELOAD = "systemctl daemon-reload"
_RUNNING = "systemctl list-units --plain --no-legend --full --state=active --type=service,socket,timer,path,target"
_OF_THE_MOMENT = re.compile(r"^(user@|user-runtime-dir@|run-|session-|getty@|serial-getty@|opsagent-)")
"""Units that come and go with logins and with ourselves."""


def _reads(key: str) -> tuple[Read, ...]:
    return {"links": (LINKS,), "running": (Read("units", _RUNNING),)}.get(key, ())


def _parse(key: str, said: Mapping[str, Said]) -> State:
    if key == "links":
        return {"links": links_of(said["links"])}
    if key == "running":
        units = [line.split()[0] for line in said["units"].lines() if line.strip()]
        if not units:
            raise Unreadable("systemctl shows nothing that runs")
        return {"running": sorted(unit for unit in units if not _OF_THE_MOMENT.match(unit))}
    if key == FILES:
        return {"read": True}
    raise Unreadable(f"nothing is known of systemd's {key}")


def _way_back(key: str, before: State, now: State) -> WayBack:
    if key == "links":
        return WayBack(tuple(map(Inverse, (*relinked(before["links"], now["links"]), _RELOAD))))
    commands = []
    # First what was there: what a target's units need and stop follows from their files.
    for verb, names in (("start", _missing(now, before)), ("stop", _missing(before, now))):
        if names:
            commands.append(f"systemctl {verb} -- {' '.join(map(quoted, names))}")
    return WayBack(tuple(map(Inverse, commands)))


def _missing(here: State, there: State) -> list[str]:
    return [unit for unit in there["running"] if unit not in here["running"]]


FAMILY = Family(
    "systemd",
    "systemctl",
    _reads,
    _parse,
    _way_back,
    stays="sessions, and memory of processes that were stopped or started anew",
)
