"""Which ssh connection a process came in by, and when that was opened. Reads /proc; believes no name and no variable.

An ssh server counts when it is root's: the process that serves a connection belongs to root for as long as it lasts,
and no ordinary user can make one. Where its program can be looked at (root may), that has to be root's file too.
"""

from __future__ import annotations

import ipaddress
import os
import re
import stat
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guard.hands.liveness import process_start, process_stat

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SERVERS = frozenset(("sshd", "sshd-session", "sshd-auth"))
"""Names of the processes that serve one connection; OpenSSH 9.8 made them programs of their own."""
MULTIPLEXERS = ("tmux", "screen", "SCREEN", "dtach", "abduco", "zellij", "mosh-server", "shpool")
"""What keeps a shell alive without the connection it was opened over (a process name begins so)."""
VARIABLE = "SSH_CONNECTION"
"""Set by sshd(8): client's address and port, server's address and port."""
_PROGRAMS = ("/usr/", "/sbin/", "/opt/", "/nix/store/", "/gnu/store/", "/snap/")
"""Where a system's programs lie."""
_MOST_ANCESTORS = 64
_MOST_ENVIRONMENT = 1 << 20
_ESTABLISHED, _LISTENS = "01", "0A"
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")

_SOCKET = re.compile(r"socket:\[(\d+)\]")

End = tuple[str, int]
"""Address in its shortest spelling (IPv4 in IPv6 as IPv4), port."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection that a process came in by."""

    server: int
    """Pid of the sshd that serves it, from before anybody logged in."""
    opened_boot_s: float
    """When that began, in seconds since boot, cut to 10 ms. The wall clock has no part in it."""
    text: str
    """As SSH_CONNECTION has it, from the server's own socket where that may be looked at; "" when it cannot be told."""
    is_live: bool
    """It is a TCP connection of root's that stands now, on a port at which root listens."""
    is_own: bool
    """Its other end is this machine itself, so it shows nothing about those who come from elsewhere."""


def connection_of(pid: int) -> Connection | None:
    """The connection of the ssh server above a process; None for a console, a service, a multiplexer, a mosh.

    A second session over a connection that is shared (ControlMaster) belongs to the same server, so it is as old as
    the first one. A connection begins when it is accepted, not when somebody has logged in.
    """
    below = pid
    for above, fields in _above(pid):
        if _name_of(above) in SERVERS:
            return _served(above, int(fields[3]), below)
        below = above
    return None


def connection_text(environ: Mapping[str, str], pid: int) -> str:
    """The connection that a process came in by, as SSH_CONNECTION says it; "" for none.

    Where that variable was taken away (sudo(8) does so by default), the server above says it. In a terminal that
    outlives connections nobody can say who looks at it: while anybody is in by ssh, that may be who.
    """
    if environ.get(VARIABLE):
        return environ[VARIABLE]
    connection = connection_of(pid)
    if connection is not None:
        return connection.text or f"sshd {connection.server}"
    inside = multiplexer_of(pid)
    return f"some, through {inside}" if inside and somebody_is_in() else ""


def somebody_is_in() -> bool:
    """Whether an ssh server serves a connection now: one of root's that another of root's has begun."""
    for name in os.listdir("/proc"):
        fields = process_stat(int(name)) if name.isdigit() else None
        if fields is not None and is_server(int(name)) and is_server(int(fields[1])):
            return True
    return False


def comes_from_here(text: str) -> bool:
    """Whether the client of this SSH_CONNECTION is the machine itself: a proxy here brings everybody's."""
    ends = _ends_of(text)
    return ends is not None and _is_own(*ends)


def multiplexer_of(pid: int) -> str:
    """Name of the multiplexer or mosh that a process lives in, "" for none."""
    for above, _ in _above(pid):
        name = _name_of(above)
        if name.startswith(MULTIPLEXERS):
            return name.partition(":")[0]
    return ""


def _above(pid: int) -> Iterator[tuple[int, list[str]]]:
    """A process and those above it, each with the fields of its stat, the first process left out."""
    for _ in range(_MOST_ANCESTORS):
        fields = process_stat(pid)
        if fields is None or pid <= 1:
            return
        yield pid, fields
        pid = int(fields[1])


def _served(nearest: int, session: int, below: int) -> Connection | None:
    """The connection of the nearest sshd.

    The process that the connection was accepted in leads a session of its own (setsid(2), also under inetd and
    systemd), and what runs with the rights of the person who logged in is its child in that session.
    """
    chain = [pid for pid, _ in _above(nearest)]
    if session not in chain:
        return None
    if any(_name_of(pid) not in SERVERS for pid in chain[: chain.index(session) + 1]) or not is_server(session):
        return None
    ends, text = _held_by(session), _environment(below).get(VARIABLE, "")
    if ends is None:
        ends = _ends_of(text)
        is_live = ends is not None and sockets_of(session) is None and _stands(*ends)
    else:
        # What the server holds is what it is; the variable is in the hands of whoever came in.
        text, is_live = " ".join(f"{address} {port}" for address, port in ends), _stands(*ends)
    opened_boot_s = process_start(session) / os.sysconf("SC_CLK_TCK")
    return Connection(session, opened_boot_s, text, is_live, ends is not None and _is_own(*ends))


def is_server(pid: int) -> bool:
    """Whether this process is an ssh server of root's: by its user and, where that may be looked at, its program."""
    if _name_of(pid) not in SERVERS or _users_of(pid) != {0}:
        return False
    try:
        program = os.readlink(f"/proc/{pid}/exe")
        held = os.stat(f"/proc/{pid}/exe")
    except PermissionError:
        return True  # what nobody but root may look at is root's
    except OSError:
        return False
    # After an upgrade the running program is deleted; what it was owned by is told all the same.
    program = program.removesuffix(" (deleted)")
    is_roots = held.st_uid == 0 and not held.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return is_roots and program.startswith(_PROGRAMS) and os.path.basename(program) in SERVERS


def _name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _users_of(pid: int) -> set[int]:
    """Real, effective, saved and file system user ids; empty when there is no such process."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            line = next((line for line in file if line.startswith("Uid:")), "")
    except OSError:
        return set()
    return {int(word) for word in line.split()[1:]}


def _environment(pid: int) -> dict[str, str]:
    """What a process was started with; empty when that may not be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            text = file.read(_MOST_ENVIRONMENT).decode("utf-8", "replace")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


# ── TCP ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ends_of(text: str) -> tuple[End, End] | None:
    """Both ends of a connection, the client's first; None for what is no TCP connection."""
    words = text.split()
    if len(words) != 4 or not words[1].isdigit() or not words[3].isdigit():
        return None
    try:
        client, server = _address(words[0]), _address(words[2])
    except ValueError:
        return None
    return (client, int(words[1])), (server, int(words[3]))


def _address(text: str) -> str:
    one = ipaddress.ip_address(text.partition("%")[0])
    mapped = one.ipv4_mapped if isinstance(one, ipaddress.IPv6Address) else None
    return str(mapped or one)


def listening_inodes() -> set[int]:
    """The sockets of root's that wait for connections to this network, by their inodes."""
    return {inode for _, _, state, user, inode in _rows() if state == _LISTENS and user == 0}


def _rows() -> Iterator[tuple[End, End, str, int, int]]:
    """The TCP connections of this network: own end, other end, state, user, inode (proc_net_tcp.txt of the kernel)."""
    for table in _TABLES:
        try:
            with open(table, encoding="ascii", errors="replace") as file:
                lines = file.read().split("\n")[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 9:
                yield _end(fields[1]), _end(fields[2]), fields[3], int(fields[7]), int(fields[9])


def _end(text: str) -> End:
    """An address as the kernel prints it: words of 32 bits in the machine's own byte order."""
    address, _, port = text.partition(":")
    words = [int(address[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(address), 8)]
    return _address(str(ipaddress.ip_address(b"".join(words)))), int(port, 16)


def sockets_of(pid: int) -> set[int] | None:
    """The inodes of a process's sockets; None where they may not be looked at."""
    found = set()
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            if match := _SOCKET.fullmatch(os.readlink(f"/proc/{pid}/fd/{fd}")):
                found.add(int(match[1]))
    except FileNotFoundError:
        return found
    except OSError:
        return None
    return found


def _held_by(pid: int) -> tuple[End, End] | None:
    """The connection that a server holds, the client's end first; None where its sockets may not be looked at."""
    sockets = sockets_of(pid) or set()
    held = [
        (inode, other, own)
        for own, other, state, user, inode in _rows()
        if inode in sockets and state == _ESTABLISHED and user == 0
    ]
    # The first of its sockets: what it forwards came later.
    return min(held)[1:] if held else None


def _stands(client: End, server: End) -> bool:
    """Whether root holds this connection now, and listens at its port."""
    rows = list(_rows())
    held = any((own, other, state, user) == (server, client, _ESTABLISHED, 0) for own, other, state, user, _ in rows)
    return held and any(own[1] == server[1] and state == _LISTENS and user == 0 for own, _, state, user, _ in rows)


def _is_own(client: End, server: End) -> bool:
    """Whether the client's end is in this network too, or has an address that only this machine can have."""
    if client[0] == server[0] or ipaddress.ip_address(client[0]).is_loopback:
        return True
    return any(row[:2] == (client, server) for row in _rows())
