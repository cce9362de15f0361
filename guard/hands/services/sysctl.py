"""Kernel parameters, with those that the kernel changes along with the one that is set. Source: sysctl(8).

Measured: writing net.ipv4.ip_forward also sets `forwarding` of every interface; of dirty_bytes and dirty_ratio
each takes the other back to zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted

_TOGETHER = (
    ("net.ipv4.ip_forward", r"^net\.ipv4\.(ip_forward$|conf\.)"),
    ("net.ipv4.conf.", r"^net\.ipv4\.(ip_forward$|conf\.)"),
    ("net.ipv6.conf.", r"^net\.ipv6\.conf\."),
    ("vm.dirty", r"^vm\.dirty"),
    ("vm.overcommit", r"^vm\.overcommit"),
)
_BY_ITSELF = re.compile(
    r"^(fs\.(dentry-state|file-nr|inode-nr|inode-state|quota\.|aio-nr|epoll)|kernel\.(ns_last_pid|random\.|pty\.nr|"
    r"perf_event_max_sample_rate|tainted|keys\.)|net\.netfilter\.nf_conntrack_count|dev\.cdrom\.info|"
    r"fs\.binfmt_misc\.)"
)
"""Keys whose value changes without anybody's doing, or that are no values."""


def _reads(key: str) -> tuple[Read, ...]:
    if not key:
        return (Read("values", "sysctl -a"),)
    pattern = next((pattern for start, pattern in _TOGETHER if key.startswith(start)), f"^{re.escape(key)}$")
    return (Read("values", f"sysctl -a --pattern {quoted(pattern)}"),)


def _parse(key: str, said: Mapping[str, Said]) -> State:
    values: dict[str, str] = {}
    for line in said["values"].lines():
        name, mark, value = line.partition(" = ")
        if not mark:
            name, mark, value = line.partition(" =")
        if mark and not _BY_ITSELF.match(name):
            # A key of several lines (a table for people) is no parameter that can be set.
            values[name] = f"{values[name]}\n{value}" if name in values else value.strip(" \t")
    if key and key not in values:
        raise Unreadable(f"there is no {key} that can be read")
    return {"values": values}


def _way_back(key: str, before: State, now: State) -> WayBack:
    old, new = before["values"], now["values"]
    changed = [name for name in old if name in new and old[name] != new[name]]
    # The one that was set comes first: it takes others along, and these are then set as they were.
    changed.sort(key=lambda name: (name != key, ".all." not in name, ".default." not in name, name))
    lost = [f"{name} is not there any more" for name in old if name not in new]
    lost += [f"{name} was not there" for name in new if name not in old]
    commands = []
    for name in changed:
        if "\n" in old[name] or (not old[name] and _takes_no_blank(name)):
            lost.append(f"{name} cannot be set as a whole")
        else:
            commands.append(Inverse(f"sysctl -w {quoted(f'{name}={old[name]}')}"))
    return WayBack(tuple(commands), tuple(lost))


def _takes_no_blank(name: str) -> bool:
    return not name.endswith(("domainname", "hostname", "core_pattern", "modprobe"))


def _whole(key: str, before: State) -> WayBack:
    """Sets every value there was, of a key and of those that go with it; not of all that the kernel has."""
    if not key:
        return WayBack(lost=("what is set in the kernel cannot be read, and not all of it can be set",))
    return _way_back(key, before, {"values": dict.fromkeys(before["values"])})


FAMILY = Family("sysctl", "sysctl", _reads, _parse, _way_back, whole=_whole)
