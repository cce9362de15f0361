"""Answers the read-only questions that a command's text raises about this machine: what its paths really are.

Facts raise a level and never lower it, so an answer that does not come (a hung mount) costs nothing but the raise;
what the text alone says still holds, and the sandbox masks secret files by inode whatever they are called.
"""

from __future__ import annotations

import glob
import os
import stat
import threading
from itertools import islice
from typing import TYPE_CHECKING

from guard.hands.environment import home
from guard.types import NO_FACTS, Facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from guard.types import Assessment

_MOST_PATHS = 512
_MOST_LISTED = 64
"""Names of one pattern that are looked at."""
_PATIENCE_S = 2.0
"""A stat on a dead network mount never returns; after this long the question is dropped."""

_KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "dir"),
    (stat.S_ISBLK, "device"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISFIFO, "fifo"),
    (stat.S_ISSOCK, "socket"),
)


def facts_for(assessment: Assessment, cwd: str, *, own_paths: Iterable[str] = ()) -> Facts:
    """What the paths that an assessment asks about really are, as far as that can be told within two seconds.

    Each is followed as the kernel would: a link before `..` first. A pattern is answered by what it lists, too.

    Args:
        cwd: against which relative names are read.
        own_paths: opsagent's own places, which may be named through a link themselves.
    """
    named = [name for name in assessment.questions if name not in ("", "?") and "\0" not in name]
    wanted = list(dict.fromkeys(named))[:_MOST_PATHS]
    if not wanted:
        return NO_FACTS
    real_paths: dict[str, str] = {}
    kinds: dict[str, str] = {}
    # Ours come first: without them the rest says less.
    asking = threading.Thread(
        target=_ask, args=([*own_paths, *wanted], cwd, real_paths, kinds), daemon=True, name="facts"
    )
    asking.start()
    asking.join(_PATIENCE_S)
    return Facts(dict(real_paths), dict(kinds))


def _ask(wanted: list[str], cwd: str, real_paths: dict[str, str], kinds: dict[str, str]) -> None:
    for name in wanted:
        path = _written(name, cwd)
        real_paths[name] = _look(path, kinds)
        if any(char in name for char in "*?["):
            home = path[: len(path) - len(name) + 1] if name.startswith("~") else ""
            for found in islice(glob.iglob(path), _MOST_LISTED):
                key = "~" + found[len(home) :] if home and found.startswith(home) else found
                real_paths[key] = _look(found, kinds)


def _written(name: str, cwd: str) -> str:
    """The name as a path, nothing taken out of it: which file `..` leads to is the kernel's business."""
    if name == "~" or name.startswith("~/"):
        return home() + name[1:]
    if name.startswith("~"):
        return os.path.expanduser(name)
    return os.path.join(cwd, name)


def _look(path: str, kinds: dict[str, str]) -> str:
    real = os.path.realpath(path)
    try:
        mode = os.lstat(real).st_mode
    except (OSError, ValueError):
        kinds[real] = "absent"
    else:
        kinds[real] = next((name for test, name in _KINDS if test(mode)), "file")
    return real
