"""This machine's ssh server after its settings were put back: it reads them again, or is started where it ended.

For root alone. A server is what `guard.hands.connection` takes for one and what holds a socket that listens, in the
network and with the files of this process: a container's own server is none of this machine's.
"""

from __future__ import annotations

import os
import signal
import subprocess

from guard.hands.connection import is_server, listening_inodes, sockets_of

SETTINGS = ("/etc/ssh/", "/etc/dropbear/", "/etc/default/ssh", "/etc/sysconfig/sshd", "/etc/crypto-policies/")
"""Beginnings of the files that a server reads when it starts, and again at SIGHUP (sshd(8))."""
_STARTS = (
    ("systemctl", "start", "ssh.service"),
    ("systemctl", "start", "sshd.service"),
    ("service", "ssh", "start"),
    ("service", "sshd", "start"),
    ("rc-service", "sshd", "start"),
)
START_S = 20.0
_SPACES = ("net", "mnt")


def listeners() -> list[int]:
    """Pids of the ssh servers that wait for connections to this machine."""
    inodes = listening_inodes()
    return [
        int(name)
        for name in os.listdir("/proc")
        if name.isdigit()
        and is_server(int(name))
        and _is_here(name)
        and not inodes.isdisjoint(sockets_of(int(name)) or ())
    ]


def reread() -> str:
    """Makes the server work by its settings as they are now. Returns what was done, in words. Never raises."""
    if os.geteuid() != 0:
        return "the ssh server goes on with the settings that it read last: only root may tell it otherwise"
    told = []
    for pid in listeners():
        try:
            os.kill(pid, signal.SIGHUP)
        except OSError:
            continue
        told.append(pid)
    if told:
        return f"the ssh server reads its settings again (pid {', '.join(map(str, told))})"
    for argv in _STARTS:
        try:
            subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=START_S, check=False, cwd="/")
        except (OSError, subprocess.SubprocessError):
            continue
        if listeners():
            return f"no ssh server listened; it is started ({' '.join(argv)})"
    return "no ssh server listens, and none could be started"


def _is_here(pid: str) -> bool:
    try:
        return all(os.readlink(f"/proc/{pid}/ns/{name}") == os.readlink(f"/proc/self/ns/{name}") for name in _SPACES)
    except OSError:
        return False
