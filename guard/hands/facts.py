"""Answers the read-only questions that a command's text raises about this machine: what its paths really are.

Facts raise a level and never lower it. An answer that does not come (a hung mount, a folder that is closed to us, too
many names) is a fact as well: what was not looked at may be anything, and whoever judges has to know that.
"""

from __future__ import annotations

import os
import stat
import threading
from typing import TYPE_CHECKING

from guard.hands.environment import home
from guard.hands.listing import NOTHING_THERE, UNTOLD, escaped, listing
from guard.types import NO_FACTS, Facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from guard.types import Assessment

_MOST_LISTED = 4_096
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

    Each is followed as the kernel would: a link before `..` first. A pattern is answered by what it lists, too. What
    is not told in time, or not to us, is in `unanswered`.

    Args:
        cwd: against which relative names are read.
        own_paths: opsagent's own places, which may be named through a link themselves.
    """
    wanted = dict.fromkeys(name for name in assessment.questions if name not in ("", "?") and "\0" not in name)
    if not wanted:
        return NO_FACTS
    # Ours come first: without them the rest says less.
    told = _Told([*own_paths, *wanted], cwd, frozenset(own_paths), getattr(assessment, "patterns", {}))
    asking = threading.Thread(target=told.ask, daemon=True, name="facts")
    asking.start()
    asking.join(_PATIENCE_S)
    return told.so_far()


class _Told:
    """Answers as they come. One thread asks; the other takes what is there when its patience ends."""

    def __init__(
        self, wanted: list[str], cwd: str, ours: frozenset[str], patterns: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._wanted = wanted
        self._ours = ours
        self._cwd = cwd
        self._real_paths: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._patterns = patterns
        self._listed: dict[str, tuple[str, ...]] = {}
        self._answered: set[str] = set()

    def ask(self) -> None:
        """Looks at each name. What one of them raises is no answer to it, and keeps nobody from the others."""
        for name in self._wanted:
            try:
                whole = self._tell(name)
            except (OSError, ValueError):
                # Where we cannot go ourselves (root's state, for a user) our own places are where they are named.
                whole = name in self._ours
            if whole:
                self._answered.add(name)

    def so_far(self) -> Facts:
        """The answers that are there, and for what there is none."""
        # In this order: what counts as answered has its answer in the copies.
        answered = self._answered.copy()
        unanswered = [name for name in self._wanted if name not in answered]
        return Facts(self._real_paths.copy(), self._kinds.copy(), unanswered, self._listed.copy())

    def _tell(self, name: str) -> bool:
        """Whether the answer is whole."""
        self._real_paths[name] = self._look(_written(name, self._cwd))
        if name.startswith("~"):
            # The text of a quoted one is the same, and then it is a name like any other.
            self._listed[name] = (self._look(os.path.join(self._cwd, name)),)
        patterns = self._patterns.get(name)
        if patterns is not None:
            wholes = [self._list(name, pattern) for pattern in patterns]
            return all(wholes)
        if any(char in name for char in "*?["):
            # A name that bash does not list; the program that gets it may list it by rules of its own.
            self._list(name, name)
        return True

    def _list(self, name: str, pattern: str) -> bool:
        found = listing(_written(pattern, self._cwd, pattern=True), _MOST_LISTED) if pattern else UNTOLD
        for one in found.names:
            self._real_paths[one] = real = self._look(one)
            self._listed[name] = (*self._listed.get(name, ()), real)
        return found.whole

    def _look(self, path: str) -> str:
        real = os.path.realpath(path)
        try:
            mode = os.lstat(real).st_mode
        except OSError as error:
            if error.errno not in NOTHING_THERE:
                raise
            self._kinds[real] = "absent"
        else:
            self._kinds[real] = next((name for test, name in _KINDS if test(mode)), "file")
        return real


def _written(name: str, cwd: str, *, pattern: bool = False) -> str:
    """The name as a path, nothing taken out of it: which file `..` leads to is the kernel's business."""
    user = name.partition("/")[0]
    folder = home() if user == "~" else os.path.expanduser(user) if user.startswith("~") else user
    if folder != user:
        return (escaped(folder) if pattern else folder) + name[len(user) :]
    return os.path.join(escaped(cwd) if pattern else cwd, name)
