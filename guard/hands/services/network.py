"""Links, addresses, routes and rules that somebody set. Source: ip(8), ip-address(8), ip-route(8), ip-rule(8).

What the kernel makes by itself (routes of protocol `kernel`, the table `local`, link-local and advertised addresses) is
not part of the state: it comes and goes with the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted

_BY_ITSELF = frozenset(("kernel", "ra", "redirect", "dhcp"))
_ROUTE_WORDS = {"gateway": "via", "dev": "dev", "protocol": "proto", "scope": "scope", "prefsrc": "src",
                "metric": "metric", "table": "table"}  # fmt: skip
_ROUTE_KNOWN = {*_ROUTE_WORDS, "dst", "type", "flags", "pref", "via", "nexthops"}
_METRICS = frozenset(("mtu", "advmss", "window", "ssthresh", "cwnd", "initcwnd", "initrwnd", "hoplimit", "reordering"))
"""Numbers of a route that ip prints as it reads them."""
_RULE_WORDS = {"iif": "iif", "oif": "oif", "fwmark": "fwmark", "ipproto": "ipproto", "sport": "sport",
    "dport": "dport", "tos": "tos", "table": "lookup", "suppress_prefixlen": "suppress_prefixlength",
    "suppress_ifgroup": "suppress_ifgroup"}  # fmt: skip
_RULE_RANGES = {"sport": ("sport_start", "sport_end"), "dport": ("dport_start", "dport_end"),
    "uidrange": ("uid_start", "uid_end")}  # fmt: skip
_RULE_KNOWN = {*_RULE_WORDS, "priority", "src", "srclen", "dst", "dstlen", "fwmask", "action", "not",
    *(name for names in _RULE_RANGES.values() for name in names)}  # fmt: skip
_SWITCHES = {"arp": ("NOARP", False, "arp"), "promisc": ("PROMISC", True, "promisc"),
    "multicast": ("MULTICAST", True, "multicast"), "allmulti": ("ALLMULTI", True, "allmulticast")}  # fmt: skip
"""Name in the state → flag that ip shows, whether it means on, and the word that ip sets it with."""
_SETTINGS = {"txqlen": ("txqlen", "txqueuelen"), "address": ("address", "address"),
    "addrgenmode": ("inet6_addr_gen_mode", "addrgenmode")}  # fmt: skip
"""Name in the state → name that ip shows, and the word that ip sets it with."""
_MADE_BY_NAME = frozenset(("dummy", "bridge", "ifb"))
"""Kinds of links that are whole with a name and a kind."""


def _reads(key: str) -> tuple[Read, ...]:
    reads = [Read("links", "ip -j -d link show"), Read("addresses", "ip -j addr show")]
    for version in ("4", "6"):
        reads.append(Read(f"routes{version}", f"ip -j -{version} route show table all"))
        reads.append(Read(f"rules{version}", f"ip -j -{version} rule show"))
    return tuple(reads)


def _rows(said: Said) -> list[dict[str, Any]]:
    try:
        rows = json.loads(said.out or "[]")
    except ValueError:
        raise Unreadable("ip gave no list") from None
    if not isinstance(rows, list):
        raise Unreadable("ip gave no list")
    return [row for row in rows if isinstance(row, dict) and row]


def _parse(key: str, said: Mapping[str, Said]) -> State:
    if not _rows(said["links"]):
        raise Unreadable("ip shows no link at all")
    try:
        return {
            "links": {
                row["ifname"]: {
                    "up": "UP" in row["flags"],
                    "mtu": row["mtu"],
                    "kind": row.get("linkinfo", {}).get("info_kind", ""),
                    "master": row.get("master", ""),
                    **{name: (flag in row["flags"]) is as_flag for name, (flag, as_flag, _) in _SWITCHES.items()},
                    **{name: row[said] for name, (said, _) in _SETTINGS.items() if said in row},
                    "alias": row.get("ifalias", ""),
                }
                for row in _rows(said["links"])
            },
            "addresses": sorted(
                _address(row["ifname"], one)
                for row in _rows(said["addresses"])
                for one in row.get("addr_info", ())
                if not one.get("dynamic") and one.get("protocol") not in ("kernel_ll", "kernel_ra", "kernel_lo")
                and not (one["family"] == "inet6" and one["scope"] == "link")
                and not (row["ifname"] == "lo" and one["local"] in ("127.0.0.1", "::1"))
            ),
            "routes": {version: _routes(_rows(said[f"routes{version}"])) for version in ("4", "6")},
            "rules": {version: sorted(map(_rule, _rows(said[f"rules{version}"]))) for version in ("4", "6")},
        }  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"ip left something out: {error}") from None


def _address(link: str, one: dict[str, Any]) -> list[str]:
    """[link, the words of `ip addr add`]; shell-quoted."""
    words = [f"{one['local']}/{one['prefixlen']}"]
    if "address" in one:
        words = [str(one["local"]), "peer", f"{one['address']}/{one['prefixlen']}"]
    if "broadcast" in one:
        words += ["broadcast", one["broadcast"]]
    if one["scope"] != "global":
        words += ["scope", one["scope"]]
    if one.get("label", link) != link:
        words += ["label", one["label"]]
    return [link, " ".join(quoted(str(word)) for word in words)]


def _routes(rows: Iterable[dict[str, Any]]) -> list[str]:
    found = []
    for row in rows:
        if row.get("protocol") in _BY_ITSELF or row.get("table") == "local" or row.get("type") in ("multicast",):
            continue
        words = [row["type"]] if row.get("type", "unicast") != "unicast" else []
        words.append(row["dst"])
        if isinstance(row.get("via"), dict):
            words += ["via", row["via"]["family"], row["via"]["host"]]
        for name, word in _ROUTE_WORDS.items():
            if row.get(name) not in (None, "") and not (name == "protocol" and row[name] == "boot"):
                words += [word, str(row[name])]
        if "onlink" in row.get("flags", ()):
            words.append("onlink")
        for hop in row.get("nexthops", ()):
            words += ["nexthop"]
            words += ["via", hop["gateway"]] if "gateway" in hop else []
            words += ["dev", hop["dev"]] if "dev" in hop else []
            words += ["weight", str(hop["weight"])] if "weight" in hop else []
        unknown = row.keys() - _ROUTE_KNOWN
        metrics = [pair for one in row.get("metrics", ()) for pair in one.items()]
        if metrics and all(name in _METRICS and isinstance(value, int) for name, value in metrics):
            words += [word for pair in metrics for word in pair]
            unknown -= {"metrics"}
        found.append(" ".join(quoted(str(word)) for word in words) + _marked(row, unknown))
    return sorted(found)


def _marked(row: dict[str, Any], unknown: Iterable[str]) -> str:
    """What no word is known for, behind ` #`, so that it is compared all the same."""
    return "".join(f" #{name}={json.dumps(row[name])}" for name in sorted(unknown))


def _rule(row: dict[str, Any]) -> str:
    words = [*(["not"] if "not" in row else ()), "pref", str(row["priority"])]
    for name, word, length in (("src", "from", "srclen"), ("dst", "to", "dstlen")):
        if name in row:
            words += [word, f"{row[name]}/{row[length]}" if length in row else row[name]]
    for name, word in _RULE_WORDS.items():
        if name in row:
            mask = f"/{row['fwmask']}" if name == "fwmark" and "fwmask" in row else ""
            words += [word, f"{row[name]}{mask}"]
    for word, (start, end) in _RULE_RANGES.items():
        if start in row and end in row:
            words += [word, f"{row[start]}-{row[end]}"]
    if "action" in row:
        words.append(row["action"])
    return " ".join(quoted(str(word)) for word in words) + _marked(row, row.keys() - _RULE_KNOWN)


def _way_back(key: str, before: State, now: State) -> WayBack:
    commands: list[str] = []
    lost: list[str] = []
    old, new = before["links"], now["links"]
    commands += [f"ip link del dev {quoted(name)}" for name in new if name not in old]
    missing = []
    for name, link in old.items():
        if name in new:
            continue
        if link["kind"] in _MADE_BY_NAME:
            missing.append(name)
            commands.append(f"ip link add name {quoted(name)} type {link['kind']}")
        else:
            lost.append(f"the link {name} is gone")
    there = {**{name: link for name, link in new.items() if name in old}, **dict.fromkeys(missing, _NEW_LINK)}
    for name, link in there.items():
        wanted = old[name]
        if wanted["mtu"] != link["mtu"]:
            commands.append(f"ip link set dev {quoted(name)} mtu {wanted['mtu']}")
        if wanted["master"] != link["master"]:
            master = f"master {quoted(wanted['master'])}" if wanted["master"] else "nomaster"
            commands.append(f"ip link set dev {quoted(name)} {master}")
        commands += [f"ip link set dev {quoted(name)} {words}" for words in _settings(wanted, link)]
    # A link that goes down takes its routes along, so these come after it is up again.
    commands += [f"ip link set dev {quoted(name)} up" for name in there if old[name]["up"] and not there[name]["up"]]
    has = [one for one in now["addresses"] if one[0] in there and one[0] not in missing]
    commands += [
        f"ip addr del {words} dev {quoted(link)}" for link, words in has if [link, words] not in before["addresses"]
    ]
    commands += [
        f"ip addr add {words} dev {quoted(link)}"
        for link, words in before["addresses"]
        if link in there and [link, words] not in has
    ]
    disturbed = any(
        word in command for command in commands for word in ("addr del", "link set", "link add", "link del")
    )
    for what, verb in (("rules", "rule"), ("routes", "route")):
        for version in ("4", "6"):
            had, found = before[what][version], now[what][version]
            commands += [f"ip -{version} {verb} del {_bare(one)}" for one in found if one not in had]
            wanted_ones = [one for one in had if one not in found]
            # `replace` of a route that is still there changes nothing; one that went with its address comes back.
            wanted_ones += [one for one in had if one in found and verb == "route" and disturbed]
            for one in sorted(wanted_ones, key=lambda text: " via " in text):
                if " #" in one:
                    lost.append(f"a {verb} has what is not known here: {one}")
                else:
                    commands.append(f"ip -{version} {verb} {'replace' if verb == 'route' else 'add'} {one}")
    commands += [f"ip link set dev {quoted(name)} down" for name in there if not old[name]["up"] and there[name]["up"]]
    return WayBack(tuple(Inverse(command) for command in commands), tuple(lost))


_NEW_LINK = {"up": False, "mtu": 1500, "kind": "", "master": "", "addrgenmode": "eui64", "alias": ""}


def _settings(wanted: dict[str, Any], link: dict[str, Any]) -> list[str]:
    """What else is set on a link, in the words of `ip link set`; what a state did not keep yet is left alone."""
    found = [
        f"{word} {'on' if wanted[name] else 'off'}"
        for name, (_, _, word) in _SWITCHES.items()
        if name in wanted and wanted[name] != link.get(name)
    ]
    found += [
        f"{word} {quoted(str(wanted[name]))}"
        for name, (_, word) in (*_SETTINGS.items(), ("alias", ("", "alias")))
        if name in wanted and wanted[name] != link.get(name)
    ]
    return found


def _bare(one: str) -> str:
    return one.partition(" #")[0]


FAMILY = Family("network", "ip", _reads, _parse, _way_back, stays="leases, neighbours and open connections")
