"""`@path` in what a person types: the file goes with the turn, as data."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

from guard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES = 256 * 1024
"""Of one file: more is read by the brain with its own tools, in parts."""
MOST_FILES = 8

_NAME = re.compile(r"(?<!\S)@(\"[^\"\n]+\"|[^\s\"@]\S*)")


def paths_in(text: str) -> tuple[str, ...]:
    """What stands behind each `@` at the start of a word, in order, each once."""
    found = [match[1].strip('"').rstrip(",;:") for match in _NAME.finditer(text)]
    return tuple(dict.fromkeys(found))


def attached(text: str, cwd: str, redact: Callable[[str], str]) -> tuple[str, ...]:
    """The texts of the files that are named, each headed by its path, redacted.

    A word with `@` that names no file (an address, a decorator) stays a word.

    Raises:
        UsageError: a named file that cannot be read, is too long or is no text.
    """
    texts = []
    for name in paths_in(text):
        path = os.path.normpath(os.path.join(cwd, os.path.expanduser(name)))
        if not os.path.lexists(path):
            if "/" in name:
                raise UsageError(f"there is no file {name}", not_done="nothing was sent", hint="@PATH attaches a file")
            continue
        texts.append(f"file {path}\n{redact(_text_of(path))}")
        if len(texts) > MOST_FILES:
            raise UsageError(f"more than {MOST_FILES} files are attached", not_done="nothing was sent")
    return tuple(texts)


def _text_of(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise UsageError(f"{path} is no file", not_done="nothing was sent")
            data = b""
            while len(data) <= MOST_BYTES and (part := os.read(fd, MOST_BYTES + 1 - len(data))):
                data += part
        finally:
            os.close(fd)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", not_done="nothing was sent") from None
    if len(data) > MOST_BYTES:
        raise UsageError(
            f"{path} is longer than {MOST_BYTES // 1024} KiB",
            not_done="nothing was sent",
            hint="name it without @: it is read in parts then",
        )
    if b"\0" in data:
        raise UsageError(f"{path} is no text", not_done="nothing was sent", hint="name it without @")
    return data.decode("utf-8", "replace")
