"""The folders above a state folder: who may change them, and making those that are missing."""

from __future__ import annotations

import contextlib
import os
import stat

from guard.errors import StateError, StateUnsafe
from guard.ledger.location import HOME_VARIABLE, home_of_user


def check_parents(parent: str) -> None:
    """Nobody else may be able to move the folder away. A sticky folder such as /tmp protects its entries itself.

    For an ordinary user the walk ends at the home folder: whoever owns what is above it (a file server's
    administrator, mostly) is trusted with the whole account. Source: sshd_config(5), StrictModes. Root trusts
    nobody.

    Raises StateUnsafe.
    """
    current = os.path.realpath(parent)
    last = "/" if os.geteuid() == 0 else _real_home()
    while True:
        info = os.stat(current)
        open_to_all = info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX
        foreign = info.st_uid not in (0, os.geteuid()) and not info.st_mode & stat.S_ISVTX
        if foreign and info.st_uid == _uid_of_the_unmapped():
            foreign = False
        if open_to_all or foreign:
            why = "can be written by everybody" if open_to_all else f"belongs to user {info.st_uid}"
            raise StateUnsafe(
                f"the folder {current} above the state folder {why}",
                not_done="nothing was recorded",
                hint=f"chmod o-w {current}" if open_to_all else f"set {HOME_VARIABLE} to a folder of your own",
            )
        if current in ("/", last):
            return
        current = os.path.dirname(current)


def make_folders(path: str) -> None:
    """Like os.makedirs, but every folder that is made is for the owner alone, whatever the umask. Raises OSError."""
    if os.path.isdir(path):
        return
    make_folders(os.path.dirname(path))
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)


def _real_home() -> str:
    try:
        return os.path.realpath(home_of_user())
    except StateError:
        return "/"


def _uid_of_the_unmapped() -> int:
    """The uid that a user namespace shows for owners outside of it, mostly the outer root; -1 when all are mapped.

    Source: user_namespaces(7), "unmapped user and group IDs". Nobody in here can act as such an owner.
    """
    try:
        with open("/proc/self/uid_map", "rb") as mapped, open("/proc/sys/kernel/overflowuid", "rb") as overflow:
            return -1 if mapped.read().split() == [b"0", b"0", b"4294967295"] else int(overflow.read())
    except (OSError, ValueError):
        return -1
