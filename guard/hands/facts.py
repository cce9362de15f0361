"""Answers the read-only questions that a command's text raises about this machine: what its paths really are.

Facts raise a level and never lower it, so an answer that does not come (a hung mount) costs nothing but the raise;
what the text alone says still holds, and the sandbox masks secret files by inode whatever they are called.
"""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING

from guard.types import NO_FACTS, Facts

if TYPE_CHECKING:
    from guard.types import Assessment

_PATH_EFFECTS = frozenset(("read", "write", "delete", "secret-read"))
_MOST_PATHS = 256
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


def facts_for(assessment: Assessment, cwd: str) -> Facts:
    """What the paths in an assessment's effects really are, as far as that can be told within two seconds."""
    named = []
    for effect in assessment.effects:
        if effect.kind in _PATH_EFFECTS and effect.object not in ("", "?") and "\0" not in effect.object:
            named.append(os.path.normpath(os.path.join(cwd, effect.object)))
    wanted = list(dict.fromkeys(named))[:_MOST_PATHS]
    if not wanted:
        return NO_FACTS
    real_paths: dict[str, str] = {}
    kinds: dict[str, str] = {}
    asking = threading.Thread(target=_ask, args=(wanted, real_paths, kinds), daemon=True, name="facts")
    asking.start()
    asking.join(_PATIENCE_S)
    return Facts(dict(real_paths), dict(kinds))


def _ask(wanted: list[str], real_paths: dict[str, str], kinds: dict[str, str]) -> None:
    for path in wanted:
        real = os.path.realpath(path)
        real_paths[path] = real
        try:
            mode = os.lstat(real).st_mode
        except OSError:
            kinds[real] = "absent"
        else:
            kinds[real] = next((name for test, name in _KINDS if test(mode)), "file")
