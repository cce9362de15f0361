"""A wait that systemd keeps: a transient timer of the system's manager that starts a process of ours at its end.

While it waits there is no process that anybody could kill, and no login whose end takes it along. Source:
systemd-run(1), systemd.timer(5), systemd.unit(5). Nothing here prints.
"""

from __future__ import annotations

import os
import shutil
import subprocess

PREFIX = "opsagent-deadman-"
TIMEOUT_S = 15.0
"""How long the manager is waited for."""
BOOTED = "/run/systemd/system"
"""There while systemd is the manager (sd_booted(3))."""
_NAMESPACES = ("mnt", "net", "uts", "ipc", "pid", "user")
_STAYS = ("DefaultDependencies=no", "Conflicts=shutdown.target", "IgnoreOnIsolate=yes")
"""Neither a missing target nor `systemctl isolate`, which may be the very change, keeps it from its end."""
_LATE = "AccuracySec=100ms"
"""Without it a timer may be a minute late."""
_WAITS = ("active", "activating", "reloading")


def start(execution: str, seconds: int, *, at_start: list[str], at_end: list[str], keep: dict[str, str]) -> str:
    """Starts the wait and, at once, the process that says so, whose end is waited for.

    Args:
        at_start, at_end: argv of the process that the manager starts now, and of the one when the time is up.
        keep: environment of both.
    Returns:
        The timer's unit; "" where there is no such manager, where it stands in other namespaces than we do and so
        would act elsewhere, where it refuses, or where a process that it starts cannot do its work.
    """
    if os.geteuid() != 0 or not os.path.isdir(BOOTED) or shutil.which("systemd-run") is None or not _is_our_place():
        return ""
    name = PREFIX + execution
    words = ["systemd-run", "--quiet", "--collect", *(f"--setenv={one}={value}" for one, value in keep.items())]
    words += [f"--property={one}" for one in _STAYS]
    # A process that is killed while it takes the change back is started again and goes on.
    timed = ["--property=Restart=on-abnormal", *(f"--timer-property={one}" for one in (*_STAYS, _LATE))]
    timer = [*words, *timed, f"--unit={name}", f"--on-active={seconds}", "--", *_plain(at_end)]
    if not _does(timer):
        return ""
    if not _does([*words, "--wait", f"--unit={name}-begin", "--", *_plain(at_start)]):
        stop(f"{name}.timer")
        return ""
    return f"{name}.timer"


def is_waiting(unit: str) -> bool:
    """Whether a timer still waits, or what it started is at work. False when the manager does not answer."""
    try:
        done = subprocess.run(
            ["systemctl", "is-active", "--", unit, unit.removesuffix(".timer") + ".service"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return any(word in _WAITS for word in done.stdout.split())


def stop(unit: str) -> None:
    """Ends a wait. Never raises: at its end its process sees by itself that there is nothing to do."""
    _does(["systemctl", "stop", "--", unit])


def _plain(argv: list[str]) -> list[str]:
    """Words that the manager takes as they are: it puts variables in (systemd.service(5), "Command lines")."""
    return [word.replace("$", "$$") for word in argv]


def _is_our_place() -> bool:
    """Whether what the manager starts sees the same files, network and processes as we do."""
    try:
        same = all(os.readlink(f"/proc/1/ns/{name}") == os.readlink(f"/proc/self/ns/{name}") for name in _NAMESPACES)
        return same and os.path.samestat(os.stat("/proc/1/root/"), os.stat("/"))
    except OSError:
        return False


def _does(words: list[str]) -> bool:
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
