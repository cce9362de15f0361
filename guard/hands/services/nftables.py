"""The tables of nftables, each with all that is in it. Source: nft(8).

Counters and the ages of set elements are not part of the state (`-s`). Tables of iptables-nft are left to `iptables`:
nft prints them without the matches that only xtables knows, and says so on standard error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from guard.hands.services.base import NOT_INSTALLED, Family, Inverse, Read, Said, State, Unreadable, WayBack

_HEAD = re.compile(r'^table (ip|ip6|inet|arp|bridge|netdev) ("[^"\n]+"|[A-Za-z_][\w/\\.-]*) \{$')
_IPTABLES_TABLES = frozenset(("filter", "nat", "mangle", "raw", "security"))
_IPTABLES_CHAINS = frozenset(("INPUT", "FORWARD", "OUTPUT", "PREROUTING", "POSTROUTING"))
_FOREIGN = re.compile(r"table (\S+ \S+) is managed by iptables-nft")


def _reads(key: str) -> tuple[Read, ...]:
    return (Read("rules", "nft -s list ruleset"),)


def _parse(key: str, said: Mapping[str, Said]) -> State:
    foreign = set(_FOREIGN.findall(said["rules"].err + said["rules"].out))
    tables: dict[str, str] = {}
    name = ""
    lines: list[str] = []
    for line in said["rules"].lines():
        if name:
            if line == "}":
                tables[name], name = "\n".join(lines), ""
            elif line and not line.startswith(("\t", " ")):
                raise Unreadable("the list of rules holds a line outside of its tables")
            else:
                lines.append(line)
        elif head := _HEAD.match(line):
            name, lines = f"{head[1]} {head[2]}", []
        elif line.strip() and not line.startswith("#"):
            raise Unreadable("the list of rules does not begin with a table")
    if name:
        raise Unreadable("the list of rules is cut")
    return {
        "tables": {
            name: text for name, text in tables.items() if name not in foreign and not _is_of_iptables(name, text)
        }
    }


def _is_of_iptables(name: str, text: str) -> bool:
    """Whether iptables-nft made it: one of its tables, all base chains with its names in capitals."""
    if name.partition(" ")[2] not in _IPTABLES_TABLES or not name.startswith(("ip ", "ip6 ")):
        return False
    bases = re.findall(r"\tchain (\S+) \{\n\t\ttype ", text)
    return bool(bases) and all(base in _IPTABLES_CHAINS for base in bases)


def _way_back(key: str, before: State, now: State) -> WayBack:
    if before == NOT_INSTALLED:
        return WayBack(lost=("nft was not installed then",))
    old, new = before["tables"], now.get("tables", {})
    script: list[str] = []
    lost: list[str] = []
    for name in new:
        if old.get(name) != new[name]:
            script.append(f"delete table {name}")
    for name, text in old.items():
        if new.get(name) != text:
            script.append(f"table {name} {{\n{text}\n}}" if text else f"add table {name}")
            if re.search(r"\bxt (match|target)\b", text):
                lost.append(f"table {name} uses a match of xtables, which nft cannot read back")
    # One transaction: all of it holds, or nothing does.
    return WayBack((Inverse("nft -f -", "\n".join(script) + "\n"),), tuple(lost))


def _whole(key: str, before: State) -> WayBack:
    """Replaces each table there was, whether it is there now or not. Those that came since stay."""
    old = before.get("tables", {})
    # To delete a table that may not be there, it is added first (nft(8), "destroy" is younger).
    gone = [line for name in old for line in (f"add table {name}", f"delete table {name}")]
    back = _way_back(key, before, {"tables": {}})
    return WayBack(tuple(Inverse(one.command, "\n".join(gone) + "\n" + one.input) for one in back.commands), back.lost)


FAMILY = Family("nft", "nft", _reads, _parse, _way_back, stays="counters, and elements that sets learned", whole=_whole)
