"""Whether a state folder holds records: then what is missing beside them is damage, and not a beginning."""

from __future__ import annotations

import os

RECORDS = ("log", "requests", "sessions", "snapshots", "outputs", "usage", "torn", "deadman", "host-settings")
"""Folders of what was asked, done, said or saved. The rest (settings, a measurement, a note, a lock) is made anew."""

_NO_RECORDS = frozenset(("reserve",))
"""Space in the log's folder that means nothing."""


def records_in(root: int) -> str:
    """The first of these folders that has something in it; "" when none has. Raises OSError.

    Args: root: a descriptor of the state folder.
    """
    for name in RECORDS:
        try:
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            # What begins with a dot is half-written; a conversation's lock is there before its first line.
            if any(not one.startswith(".") and not one.endswith(".lock") for one in set(os.listdir(fd)) - _NO_RECORDS):
                return name
        finally:
            os.close(fd)
    return ""
