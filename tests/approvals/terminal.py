"""A real terminal for tests: a child as the leader of a session on a pty, with what it shows and what is typed."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 30.0
"""A test that waits longer than this has failed; nothing measures time by it."""

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """One program on its own controlling terminal."""

    def __init__(self, argv, *, env=None, cwd=None, rows=24, columns=80):
        self.shown = ""
        self.code = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                if cwd:
                    os.chdir(cwd)
                ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.execve(argv[0], argv, env)
            finally:
                os._exit(127)

    def wait_for(self, text):
        """Reads until the text is on the screen and returns all that was shown."""
        end = time.monotonic() + LIMIT_S
        while text not in self.shown:
            assert time.monotonic() < end, f"{text!r} never came; shown: {self.shown!r}"
            if not self._read(0.1) and self.code is not None:
                raise AssertionError(f"ended with {self.code} before {text!r}; shown: {self.shown!r}")
        return self.shown

    def type(self, text):
        os.write(self.fd, text.encode())

    def answer(self, text):
        """Types until the child reacts: what comes within its first 0.4 s is dropped."""
        before = len(self.shown)
        end = time.monotonic() + LIMIT_S
        while len(self.shown) == before and self.code is None:
            assert time.monotonic() < end, "no reaction to keys"
            self.type(text)
            self._read(0.3)

    def end(self):
        """Waits for the end and returns the exit code."""
        limit = time.monotonic() + LIMIT_S
        while self.code is None:
            assert time.monotonic() < limit, f"it does not end; shown: {self.shown!r}"
            self._read(0.1)
        while self._read(0.0):
            pass
        return self.code

    def hang_up(self):
        os.close(self.fd)
        self.fd = -1

    def close(self):
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        if self.fd >= 0:
            os.close(self.fd)

    @property
    def text(self):
        """What was shown without control sequences and with plain line ends."""
        return _CONTROL.sub("", self.shown).replace("\r\n", "\n")

    def _read(self, wait_s):
        got = False
        if self.fd >= 0 and select.select([self.fd], [], [], wait_s)[0]:
            with contextlib.suppress(OSError):
                data = os.read(self.fd, 65536)
                got = bool(data)
                self.shown += data.decode("utf-8", "replace")
        elif self.fd < 0:
            time.sleep(wait_s)
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return got


def opsx(*arguments):
    """The argv that runs the program under test in a process of its own."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv = ['opsx']; "
        f"import cli.actor; cli.actor.HOST_NAMES = frozenset(); cli.actor.HOST_MARKS = (); "
        f"from cli.opsx import main; sys.exit(main({list(arguments)!r}))"
    )
    return [sys.executable, "-c", code]
