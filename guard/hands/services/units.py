"""systemd units: whether one runs, whether it starts by itself, whether it is masked, and the links that say so.

Source: systemctl(1), systemd.unit(5). Measured with systemd 252: `disable` leaves what `enable --runtime` made, and
takes along the units of `Also=`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted

PROPERTIES = ("Id", "LoadState", "ActiveState", "UnitFileState")
RUNNING = frozenset(("active", "activating", "reloading", "refreshing"))
STOPPED = frozenset(("inactive", "failed", "deactivating"))
LINKS = Read(
    "links",
    r"find /etc/systemd/system /run/systemd/system -type l -printf '%p\t%l\n'",
    good=frozenset((0, 1)),
)
"""Where links are that enable, mask or rename; one of the folders may be missing."""
_BY_COMMAND = frozenset(("enabled", "enabled-runtime", "disabled", "masked", "masked-runtime"))
"""States of a unit file that a command makes; `static`, `generated` and the like belong to the file itself."""
_ALSO = re.compile(r"^Also=(.*)$", re.MULTILINE)


def _reads(unit: str) -> tuple[Read, ...]:
    named = " ".join(f"--property={name}" for name in PROPERTIES)
    return (
        Read("unit", f"systemctl show {named} -- {quoted(unit)}"),
        # A unit that is not there, or has no file, says so.
        Read("text", f"systemctl cat -- {quoted(unit)}", good=frozenset((0, 1))),
        LINKS,
    )


def links_of(said: Said) -> dict[str, str]:
    """Path → what it points at. Raises Unreadable."""
    found = {}
    for line in said.lines():
        path, mark, to = line.partition("\t")
        if not mark or not path.startswith("/"):
            raise Unreadable("the list of links holds a line that is none")
        found[path] = to
    return found


def _parse(unit: str, said: Mapping[str, Said]) -> State:
    if set("*?[") & set(unit):
        raise Unreadable(f"{unit} names several units, and one state cannot stand for them")
    found = dict(line.partition("=")[::2] for line in said["unit"].lines() if "=" in line)
    if not found.keys() >= set(PROPERTIES):
        raise Unreadable(f"systemctl says nothing about {unit}")
    active = found["ActiveState"]
    also = [name for line in _ALSO.findall(said["text"].out) for name in line.split()]
    names = frozenset((_full(unit), found["Id"], *also))
    links = links_of(said["links"])
    return {
        "load": found["LoadState"],
        # How far it has come is a matter of the moment; whether it runs is what a person asked for.
        "runs": True if active in RUNNING else False if active in STOPPED else active,
        "file": found["UnitFileState"],
        "links": {path: to for path, to in links.items() if names & {_last(path), _last(to)}},
    }


def _full(unit: str) -> str:
    return unit if "." in unit else f"{unit}.service"


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _way_back(unit: str, before: State, now: State) -> WayBack:
    name = quoted(unit)
    lost: list[str] = []
    commands = ["systemctl daemon-reload"]
    if before["file"] != now["file"]:
        verbs, stays = _of_file(before["file"], now["file"], name)
        commands += verbs
        lost += stays
    # The verbs work on other units too (`Also=`), and on no link that somebody made by hand.
    fixed = relinked(before.get("links", {}), now.get("links", {}), own="" if len(commands) == 1 else _full(unit))
    commands += [*fixed, "systemctl daemon-reload"] if fixed else []
    if before["runs"] != now["runs"] or before["load"] != now["load"]:
        if before["runs"] is True and now["runs"] is not True:
            commands.append(f"systemctl start {name}")
        elif before["runs"] is False and now["runs"] is not False:
            commands.append(f"systemctl stop {name}")
        elif before["runs"] not in (True, False):
            lost.append(f"it was {before['runs']}")
    return WayBack(tuple(Inverse(command) for command in commands), tuple(lost))


def _of_file(was: str, has: str, name: str) -> tuple[list[str], list[str]]:
    """The verbs that make a unit file what it was, and what they cannot."""
    commands: list[str] = []
    if has.startswith("masked"):
        commands.append(f"systemctl unmask{' --runtime' if has.endswith('-runtime') else ''} {name}")
    if was.startswith("masked"):
        return [*commands, f"systemctl mask{' --runtime' if was.endswith('-runtime') else ''} {name}"], []
    if was == "enabled":
        commands.append(f"systemctl enable {name}")
    elif was == "enabled-runtime":
        commands += [f"systemctl disable {name}"] * (has == "enabled") + [f"systemctl enable --runtime {name}"]
    elif was == "disabled" and has.startswith("enabled"):
        commands.append(f"systemctl disable{' --runtime' if has.endswith('-runtime') else ''} {name}")
    # What lies below a mask comes back with its end, whatever it is.
    lost = [] if was in _BY_COMMAND or commands else [f"its unit file was {was or 'not there'}"]
    return commands, lost


def relinked(before: Mapping[str, str], now: Mapping[str, str], *, own: str = "") -> list[str]:
    """Commands that make links what they were.

    Args:
        own: the unit that a verb dealt with before: only links of other names are looked at, and made anew even where
            they are still there, because the verb may have taken them along. "" when no verb did.
    """
    theirs = {path for path in before.keys() | now.keys() if not own or _last(path) != own}
    gone = [f"rm -f -- {quoted(path)}" for path in sorted(theirs & now.keys() - before.keys())]
    back = sorted(path for path in theirs & before.keys() if own or before[path] != now.get(path))
    folders = sorted({path.rpartition("/")[0] for path in back})
    made = [f"mkdir -p -- {' '.join(map(quoted, folders))}"] if folders else []
    return [*gone, *made, *(f"ln -sfn -- {quoted(before[path])} {quoted(path)}" for path in back)]


FAMILY = Family(
    "service",
    "systemctl",
    _reads,
    _parse,
    _way_back,
    stays="sessions and memory of a process that was stopped or started anew",
)
