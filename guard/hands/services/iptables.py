"""The tables of iptables and ip6tables, as the programs of that name keep them here. Source: iptables-save(8)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from guard.hands.services.base import NOT_INSTALLED, Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.lines import lines_of

_CHAIN = re.compile(r"^:([^ ]+) (ACCEPT|DROP|QUEUE|RETURN|-) \[\d+:\d+\]$")
_COUNTED = re.compile(r"^\[\d+:\d+\] ")
VERSIONS = ("iptables", "ip6tables")

_CHAINS = {
    "filter": "INPUT FORWARD OUTPUT",
    "nat": "PREROUTING INPUT OUTPUT POSTROUTING",
    "mangle": "PREROUTING INPUT FORWARD OUTPUT POSTROUTING",
    "raw": "PREROUTING OUTPUT",
}
"""Tables and the chains that the kernel gives them. Source: iptables(8), "TABLES"."""

Table = dict[str, Any]


def _reads(key: str) -> tuple[Read, ...]:
    return tuple(Read(name, f"{name}-save") for name in VERSIONS)


def _parse(key: str, said: Mapping[str, Said]) -> State:
    return {name: _tables(said[name].out) for name in VERSIONS}


def _tables(text: str) -> dict[str, Table]:
    """Tables by name; one with nothing in it that was set is left out, because reading alone can make such."""
    tables: dict[str, Table] = {}
    table: Table | None = None
    for line in lines_of(text):
        if not line or line.startswith("#"):
            continue
        if line.startswith("*") and table is None:
            table = tables[line[1:]] = {"chains": {}, "rules": []}
        elif table is None:
            raise Unreadable("a rule stands outside of a table")
        elif line == "COMMIT":
            table = None
        elif chain := _CHAIN.match(line):
            table["chains"][chain[1]] = chain[2]
        elif line.startswith(("-A ", "[")):
            table["rules"].append(_COUNTED.sub("", line))
        else:
            raise Unreadable("the list of rules holds a line of no known kind")
    if table is not None:
        raise Unreadable("the list of rules is cut")
    return {name: one for name, one in tables.items() if one["rules"] or set(one["chains"].values()) - {"ACCEPT"}}


def _way_back(key: str, before: State, now: State) -> WayBack:
    if before == NOT_INSTALLED:
        return WayBack(lost=("iptables was not installed then",))
    commands = []
    for version in VERSIONS:
        old, new = before[version], now.get(version, {})
        texts = [_text(name, old[name]) for name in old if new.get(name) != old[name]]
        texts += [_text(name, _emptied(new[name])) for name in new if name not in old]
        if texts:
            commands.append(Inverse(f"{version}-restore", "".join(texts)))
    return WayBack(tuple(commands))


def _emptied(table: Table) -> Table:
    return {"chains": {name: "ACCEPT" for name, policy in table["chains"].items() if policy != "-"}, "rules": []}


def _text(name: str, table: Table) -> str:
    chains = [f":{chain} {policy} [0:0]" for chain, policy in table["chains"].items()]
    return "\n".join([f"*{name}", *chains, *table["rules"], "COMMIT"]) + "\n"


def _whole(key: str, before: State) -> WayBack:
    """Sets each table as it was; one that had nothing in it is emptied by a command of its own, as it may not be here.

    Of an empty table the chains of the kernel are named alone: the others go when it is restored.
    """
    if before == NOT_INSTALLED:
        return _way_back(key, before, {})
    commands = []
    for version in VERSIONS:
        texts = [_text(name, table) for name, table in before[version].items()]
        commands += [Inverse(f"{version}-restore", "".join(texts))] if texts else []
        for name, chains in _CHAINS.items():
            if name not in before[version]:
                table = {"chains": dict.fromkeys(chains.split(), "ACCEPT"), "rules": []}
                commands.append(Inverse(f"{version}-restore", _text(name, table)))
    return WayBack(tuple(commands))


FAMILY = Family(
    "iptables",
    "iptables-save",
    _reads,
    _parse,
    _way_back,
    stays="counters and tracked connections",
    whole=_whole,
)
