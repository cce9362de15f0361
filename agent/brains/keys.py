"""Fetches the key that an entry names: from a variable, a program or a file. It never shows one.

A program is started without a shell, gets no input, has ten seconds, and nothing that it says is shown: not even its
complaints, for they may hold what it was asked for.
"""

from __future__ import annotations

import os
import stat
import subprocess
import time
from typing import TYPE_CHECKING

from agent.providers.base import KeyRefused
from capabilities.jobs import Cancelled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.brains.entries import Entry
    from guard.ports import Cancel

COMMAND_S = 10.0
"""Long enough for an agent that asks for a passphrase on its own window, short enough to notice one that hangs."""
LONGEST = 16_384
"""Characters: tokens of cloud accounts have some thousands."""
_POLL_S = 0.05


def key_of(entry: Entry, environ: Mapping[str, str], *, cancel: Cancel | None = None) -> str:
    """The key, or "" for an entry that names none: a server that wants none.

    Raises:
        KeyRefused: it is named and not there, or what is there is no key.
        Cancelled: `cancel` was set while a program was waited for.
    """
    if entry.key_command:
        return _fit(_from_command(entry, cancel), entry, "key_command")
    if entry.key_file:
        return _fit(_from_file(entry), entry, "key_file")
    if entry.key_env:
        value = environ.get(entry.key_env, "").strip()
        if not value:
            raise _refused(entry, f"the variable {entry.key_env} is not set", f"export {entry.key_env}=…")
        return _fit(value, entry, entry.key_env)
    return ""


def source_of(entry: Entry) -> str:
    """Where the key of an entry is, in words."""
    if entry.key_command:
        return f"the program {os.path.basename(entry.key_command[0])}"
    if entry.key_file:
        return f"the file {entry.key_file}"
    return f"the variable {entry.key_env}" if entry.key_env else "no key"


def _refused(entry: Entry, what: str, hint: str = "docs/brains.md tells where a key may be") -> KeyRefused:
    return KeyRefused(f"brain {entry.name}: {what}", not_done="nothing was sent to it", hint=hint)


def _fit(text: str, entry: Entry, source: str) -> str:
    """The first line, if it can stand in a header (RFC 9110, field values)."""
    key = (text.strip().splitlines() or [""])[0].strip()
    if not key:
        raise _refused(entry, f"{source} gave no key")
    if len(key) > LONGEST or not key.isascii() or not key.isprintable() or " " in key:
        raise _refused(entry, f"what {source} gave is no key: a key is one printable ASCII word")
    return key


def _from_file(entry: Entry) -> str:
    path = os.path.expanduser(entry.key_file)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise _refused(entry, f"key_file {entry.key_file}: {error.strerror}") from None
    with os.fdopen(fd, "rb") as stream:
        here = os.fstat(fd)
        if not stat.S_ISREG(here.st_mode):
            raise _refused(entry, f"key_file {entry.key_file} is no regular file")
        if here.st_uid not in (0, os.geteuid()) or here.st_mode & 0o022:
            raise _refused(
                entry,
                f"key_file {entry.key_file} can be written by others, so others choose the key",
                f"chmod 600 {entry.key_file}",
            )
        return stream.read(LONGEST + 1).decode("ascii", "replace")


def _from_command(entry: Entry, cancel: Cancel | None) -> str:
    program = entry.key_command[0]
    try:
        child = subprocess.Popen(
            [os.path.expanduser(program), *entry.key_command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
    except OSError as error:
        raise _refused(entry, f"key_command: {program} cannot be started: {error.strerror}") from None
    with child:
        try:
            data = _said(child, entry, cancel)
        finally:
            _end(child)
    if child.returncode:
        raise _refused(
            entry,
            f"key_command: {program} ended with {child.returncode}; what it said is not shown",
            "run it yourself in a terminal",
        )
    return data.decode("ascii", "replace")


def _said(child: subprocess.Popen[bytes], entry: Entry, cancel: Cancel | None) -> bytes:
    """What it writes until it ends; bounded in length and time."""
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    data = b""
    until = time.monotonic() + COMMAND_S
    while True:
        ended = child.poll() is not None
        while (more := child.stdout.read(4_096)) and len(data) <= LONGEST:
            data += more
        if ended or len(data) > LONGEST:
            return data
        if cancel is not None and cancel.is_set():
            raise Cancelled("interrupted", not_done="nothing was sent")
        if time.monotonic() > until:
            raise _refused(entry, f"key_command: {entry.key_command[0]} did not end within {COMMAND_S:g} s")
        time.sleep(_POLL_S)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends it and what it started, if anything is left; its group is its own."""
    import contextlib
    import signal

    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
