"""Loads the user's runbooks: `runbooks/*.toml` in the config folder, and from nowhere else.

A file counts only when it is this user's or root's and nobody else may write it or its folder. A file that does not
fit is left out and named on stderr each time; the other runbooks answer.
"""

import os
import stat
import sys

from guard.errors import StateError
from runbooks.catalogue import BUILT_IN, Books, UnknownRunbook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.own import OwnRunbook

FOLDER = "runbooks"
MOST_FILES = 64
MOST_BYTES = 64 * 1024


def folder() -> "str | None":
    """Where the user's runbooks lie; None for a user without a home."""
    from guard.ledger.state import config_path

    try:
        return os.path.join(os.path.dirname(config_path()), FOLDER)
    except StateError:
        return None


def books() -> Books:
    """The built-in runbooks and those of the user that fit; complaints go to stderr."""
    found, problems = load(folder())
    for problem in problems:
        from cli.report import safe

        sys.stderr.write(f"opsagent: {safe(problem)}: this runbook is not used\n")
    return found


def load(path: "str | None") -> "tuple[Books, list[str]]":
    """The runbooks of a folder, and a sentence for each file that was left out."""
    try:
        names = sorted(name for name in os.listdir(path) if name.endswith(".toml")) if path else []
    except OSError:
        return BUILT_IN, []  # there is no such folder
    if not names or path is None:
        return BUILT_IN, []
    unsafe = _unsafe(os.stat(path), path)
    if unsafe:
        return BUILT_IN, [unsafe]
    kept: list[OwnRunbook] = []
    problems = [f"{path} holds more than {MOST_FILES} files"] if len(names) > MOST_FILES else []
    for name in names[:MOST_FILES]:
        try:
            kept.append(read(os.path.join(path, name)))
            Books(kept)
        except UnknownRunbook as error:
            kept.pop()
            problems.append(f"{name}: {error.message}")
        except (OSError, ValueError) as error:
            problems.append(f"{name}: {error.strerror if isinstance(error, OSError) else error}")
        except _errors() as error:
            problems.append(str(error))
    return Books(kept), problems


def read(file: str) -> "OwnRunbook":
    """One runbook file.

    Raises:
        BadRunbook: it is not safe, not TOML, or not in the form.
        OSError: it cannot be read.
    """
    import tomllib

    from runbooks.own import BadRunbook, runbook_of

    shown = os.path.basename(file)
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as stream:
        here = os.fstat(fd)
        if not stat.S_ISREG(here.st_mode):
            raise BadRunbook(shown, "it is no regular file")
        unsafe = _unsafe(here, shown)
        if unsafe:
            raise BadRunbook(shown, unsafe)
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BadRunbook(shown, f"it has more than {MOST_BYTES} bytes")
    try:
        table = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadRunbook(shown, f"it is not TOML: {error}") from None
    return runbook_of(table, shown)


def _errors() -> "type[Exception]":
    from guard.errors import GuardError

    return GuardError


def _unsafe(here: os.stat_result, name: str) -> str:
    """Why others could have written this, or ""."""
    if here.st_uid not in (0, os.geteuid()):
        return f"{name} belongs to another user"
    if here.st_mode & 0o022:
        return f"{name} can be written by others"
    return ""
