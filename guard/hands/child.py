"""A child as a run sees it, whoever started it: this process, or a helper that is in a namespace."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Child(Protocol):
    """What is asked of a `subprocess.Popen`, and of a child that was started for us."""

    pid: int
    returncode: int | None
    """As of subprocess: minus N for a death by signal N; None while nobody took its end."""

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """How one child is started. Called, it starts it from the calling thread and waits for its exec."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    stdin: int
    stdout: int
    stderr: int

    def __call__(self) -> Child:
        """Raises OSError; its file name is `cwd` when the folder cannot be entered."""
        return subprocess.Popen(
            list(self.argv),
            stdin=self.stdin,
            stdout=self.stdout,
            stderr=self.stderr,
            cwd=self.cwd,
            env=dict(self.env),
            start_new_session=True,
            close_fds=True,
        )


class Adopted:
    """A child of this process that a helper made with CLONE_PARENT."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Takes its end if it has come."""
        if self.returncode is None:
            self._take(os.WNOHANG)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end and takes it. Raises subprocess.TimeoutExpired."""
        if timeout is not None and self.poll() is None:
            self._wait_until(time.monotonic() + timeout)
        if self.returncode is None:
            self._take(os.WNOHANG if timeout is not None else 0)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return self.returncode

    def _wait_until(self, deadline: float) -> None:
        try:
            descriptor = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # before Linux 5.3
            while self.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            return
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        finally:
            os.close(descriptor)

    def _take(self, how: int) -> None:
        try:
            pid, status = os.waitpid(self.pid, how)
        except ChildProcessError:
            self.returncode = 0  # as subprocess says when somebody else took it
            return
        if pid:
            self.returncode = os.waitstatus_to_exitcode(status)
