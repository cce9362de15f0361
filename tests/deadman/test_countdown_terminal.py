"""The countdown of `opsx exec` on a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import sys

import pytest

from tests.sources import ROOT
from tests.waiting import until


class Terminal:
    """A process on a terminal of its own, and what it has written there so far."""

    def __init__(self, *argv):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            os.execv(argv[0], argv)
        self.text = ""
        os.set_blocking(self.fd, False)

    def shows(self, text):
        # EIO: the process has ended (pty(7)); nothing yet: BlockingIOError.
        with contextlib.suppress(OSError):
            self.text += os.read(self.fd, 1 << 16).decode()
        return text in self.text

    def has_ended(self):
        self.shows("")
        pid, self.status = os.waitpid(self.pid, os.WNOHANG)
        return pid == self.pid


@pytest.mark.parametrize("way", ["a key", "a signal"])
def test_the_countdown_ends_when_it_is_told_to_and_the_wait_goes_on(way):
    terminal = Terminal(sys.executable, "-m", "tests.deadman.exec_in_countdown")
    try:
        until(lambda: terminal.shows("\ropsx: taken back in"), "the countdown")
        if way == "a key":
            os.write(terminal.fd, b"\x03")
        else:
            os.kill(terminal.pid, signal.SIGTERM)
        until(terminal.has_ended, "its end")
    except BaseException:
        os.kill(terminal.pid, signal.SIGKILL)
        raise
    finally:
        os.close(terminal.fd)
    if way == "a key":
        assert "it goes on counting by itself" in terminal.text
        assert os.waitstatus_to_exitcode(terminal.status) == 0
    else:
        assert os.waitstatus_to_exitcode(terminal.status) == -signal.SIGTERM
