"""systemd units: whether one runs, whether it starts by itself, whether it is masked. Source: systemctl(1)."""

from __future__ import annotations

from collections.abc import Mapping

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted

PROPERTIES = ("LoadState", "ActiveState", "UnitFileState")
RUNNING = frozenset(("active", "activating", "reloading", "refreshing"))
STOPPED = frozenset(("inactive", "failed", "deactivating"))
_BY_COMMAND = frozenset(("enabled", "enabled-runtime", "disabled", "masked", "masked-runtime"))
"""States of a unit file that a command makes; `static`, `generated` and the like belong to the file itself."""


def _reads(unit: str) -> tuple[Read, ...]:
    named = " ".join(f"--property={name}" for name in PROPERTIES)
    return (Read("unit", f"systemctl show {named} -- {quoted(unit)}"),)


def _parse(unit: str, said: Mapping[str, Said]) -> State:
    if set("*?[") & set(unit):
        raise Unreadable(f"{unit} names several units, and one state cannot stand for them")
    found = dict(line.partition("=")[::2] for line in said["unit"].out.splitlines() if "=" in line)
    if not found.keys() >= set(PROPERTIES):
        raise Unreadable(f"systemctl says nothing about {unit}")
    active = found["ActiveState"]
    return {
        "load": found["LoadState"],
        # How far it has come is a matter of the moment; whether it runs is what a person asked for.
        "runs": True if active in RUNNING else False if active in STOPPED else active,
        "file": found["UnitFileState"],
    }


def _way_back(unit: str, before: State, now: State) -> WayBack:
    name = quoted(unit)
    commands: list[str] = []
    lost: list[str] = []
    if before["file"] != now["file"]:
        if before["file"] not in _BY_COMMAND:
            lost.append(f"its unit file was {before['file'] or 'not there'}")
        else:
            is_masked = now["file"].startswith("masked")
            runtime = " --runtime" if before["file"].endswith("-runtime") else ""
            if is_masked:
                commands.append(f"systemctl unmask{' --runtime' if now['file'].endswith('-runtime') else ''} {name}")
            if before["file"].startswith("masked"):
                commands.append(f"systemctl mask{runtime} {name}")
            elif before["file"].startswith("enabled"):
                commands.append(f"systemctl enable{runtime} {name}")
            else:
                commands.append(f"systemctl disable {name}")
    commands.insert(0, "systemctl daemon-reload")
    if before["runs"] != now["runs"] or before["load"] != now["load"]:
        if before["runs"] is True and now["runs"] is not True:
            commands.append(f"systemctl start {name}")
        elif before["runs"] is False and now["runs"] is not False:
            commands.append(f"systemctl stop {name}")
        elif before["runs"] not in (True, False):
            lost.append(f"it was {before['runs']}")
    return WayBack(tuple(Inverse(command) for command in commands), tuple(lost))


FAMILY = Family(
    "service",
    "systemctl",
    _reads,
    _parse,
    _way_back,
    stays="sessions and memory of a process that was stopped or started anew",
)
