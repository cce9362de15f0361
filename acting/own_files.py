"""Whether a change changed us: our own configuration, rules, hooks, and the log as it stood before it.

A judged command that touches these is refused or shown; this is for what was not seen in its text. Costs a stat and a
hash of a few small files for each change, nothing for a read. Never raises: what cannot be looked at is said.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from guard.errors import StateError
from guard.ledger import location

if TYPE_CHECKING:
    from collections.abc import Mapping

    from guard.ledger.null import NullLedger
    from guard.ledger.segments import Place
    from guard.ledger.store import Ledger

SYSTEM_FOLDER = "/etc/opsagent"
NAMES = ("config.toml", "allowed_signers")
HOOKS = (
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
)
"""Below HOME, as their hosts look for them: files that can take our hook or server away."""

MOST_BYTES = 4 << 20
"""A longer file is held by its size and times alone."""
MOST_RULES = 256


class Mark(NamedTuple):
    """One file as it is."""

    times: tuple[int, int, int, int]
    """Inode, size, time of content, time of change: equal means untouched."""
    mode: int
    uid: int
    sha256: str


class Watch(NamedTuple):
    """Everything of ours at one moment."""

    files: dict[str, Mark | None]
    """None: not there."""
    head: Place | None
    """The end of the log as it was known to be on disk."""


def watch(ledger: Ledger | NullLedger, environ: Mapping[str, str] | None = None) -> Watch:
    """How everything is now."""
    environ = os.environ if environ is None else environ
    return Watch({path: _mark(path) for path in paths(environ)}, ledger.head())


def differences(
    before: Watch, ledger: Ledger | NullLedger, environ: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """What is otherwise than it was, one sentence each; () when nothing is."""
    environ = os.environ if environ is None else environ
    found = []
    for path in dict.fromkeys((*before.files, *paths(environ))):
        old = before.files.get(path)
        new = _mark(path, old)
        if old == new or (old is not None and new is not None and old[1:] == new[1:]):
            continue
        what = "appeared" if old is None else "is gone" if new is None else "was changed"
        found.append(f"opsagent's own {path} {what} while it ran")
    if before.head is not None and (fault := ledger.fault_at(before.head)):
        found.append(f"the log was changed while it ran: {fault}; opsx audit verify")
    return tuple(found)


def noted(before: Watch, ledger: Ledger | NullLedger, execution: str) -> tuple[str, ...]:
    """As `differences`, each on record with the execution that it happened in."""
    found = differences(before, ledger)
    for text in found:
        ledger.note("notice", code="own-files-changed", execution=execution, text=text)
    return found


def paths(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The files that are ours, whether they are there or not."""
    try:
        own = os.path.dirname(location.config_path(environ))
    except StateError:
        own = ""
    folders = [own] if environ.get(location.HOME_VARIABLE) else [SYSTEM_FOLDER, own]
    found = []
    for folder in filter(None, folders):
        found += [os.path.join(folder, name) for name in NAMES]
        rules = os.path.join(folder, "rules")
        try:
            names = sorted(name for name in os.listdir(rules) if name.endswith(".toml"))
        except OSError:
            names = []
        found += [os.path.join(rules, name) for name in names[:MOST_RULES]]
    home = environ.get("HOME", "")
    return (*found, *(os.path.join(home, name) for name in HOOKS if os.path.isabs(home)))


def _mark(path: str, known: Mark | None = None) -> Mark | None:
    """The file's mark; what has the times of `known` is not read again."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return None
    try:
        here = os.fstat(fd)
        times = (here.st_ino, here.st_size, here.st_mtime_ns, here.st_ctime_ns)
        if known is not None and known.times == times:
            return known
        if stat.S_ISREG(here.st_mode) and here.st_size <= MOST_BYTES:
            with os.fdopen(os.dup(fd), "rb") as file:
                digest = hashlib.sha256(file.read(MOST_BYTES + 1)).hexdigest()
        elif not stat.S_ISREG(here.st_mode):
            digest = "not a regular file"
        else:
            digest = str(times)
        return Mark(times, here.st_mode, here.st_uid, digest)
    except OSError:
        return None
    finally:
        os.close(fd)
