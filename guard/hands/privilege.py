"""What this user may do as another one: found out without ever asking for a password."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from guard.saved import Node

RAISING = frozenset(("sudo", "doas", "su", "pkexec", "runuser"))
"""Programs by which a command may change more than the user who asked for it."""

SUDO_PLACES = ("/usr/bin/sudo", "/usr/local/bin/sudo", "/bin/sudo")
ANSWER_LIMIT_S = 2.0
"""sudo answers at once, or waits for a directory server that is not there."""

ROOT, FREE, ASKS, NONE = "root", "sudo without a password", "sudo with a password", "no sudo"

ROOT_SHIM = """#!/bin/sh
# Already root: sudo without options is the command itself.
case "${1-}" in
'' | -* | *=*) ;;
*) exec "$@" ;;
esac
for real in PLACES; do
    [ -x "$real" ] && exec "$real" "$@"
done
echo "sudo: already root; only sudo without options is understood here" >&2
exit 1
"""
USER_SHIM = """#!/bin/sh
# Nobody is asked for a password here: with -n, sudo answers at once.
exec REAL -n "$@"
"""


def sudo_shim() -> str:
    """The text of the `sudo` that commands find first; "" where there is none to stand in front of."""
    if os.geteuid() == 0:
        return ROOT_SHIM.replace("PLACES", " ".join(SUDO_PLACES))
    real = real_sudo()
    return USER_SHIM.replace("REAL", real) if real else ""


def real_sudo() -> str:
    """Where sudo is, "" when it is not installed."""
    return next((place for place in SUDO_PLACES if os.access(place, os.X_OK)), "")


def is_root() -> bool:
    return os.geteuid() == 0


def may_put_back(nodes: Iterable[Node]) -> bool:
    """Whether this user's own rights are enough to put all of these back: a rollback has no others."""
    from guard.saved import ABSENT

    me = os.geteuid()
    return is_root() or all((node.kind == ABSENT or node.uid == me) and _may_replace(node.path) for node in nodes)


def _may_replace(path: str) -> bool:
    """Files are put back by renaming, which is a right on their folder."""
    folder = os.path.dirname(path)
    while folder != "/" and not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK | os.X_OK)


def privilege() -> str:
    """`root`, or what sudo says to this user. Takes 2 s at most; sudo may log that it was asked."""
    if os.geteuid() == 0:
        return ROOT
    real = real_sudo()
    if not real:
        return NONE
    try:
        # By default sudo lists without a password when any of its entries needs none.
        done = subprocess.run(
            [real, "-n", "-l"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            timeout=ANSWER_LIMIT_S,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ASKS
    return FREE if done.returncode == 0 else ASKS
