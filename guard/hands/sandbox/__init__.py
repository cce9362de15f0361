"""R0 made true by the kernel: reads run in a thread that cannot write, signal, or talk to daemons.

`measure` says which profiles hold here after trying them; `Sandbox` hands out bound workers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from guard.errors import SandboxUnavailable
from guard.hands.sandbox.cgroup import make_pids_group
from guard.hands.sandbox.kernel import Kernel, probe
from guard.hands.sandbox.profiles import PROFILES, UNCONFINED, SandboxProfile
from guard.hands.sandbox.scratch import Scratch
from guard.hands.sandbox.worker import Pool, Worker, WorkerKey
from guard.types import NO_ENFORCEMENT, Enforcement

__all__ = ["PROFILES", "UNCONFINED", "Kernel", "Sandbox", "measure", "probe"]


class Sandbox:
    """Everything that one process needs to run sandboxed commands. Threads may share it."""

    def __init__(self, kernel: Kernel | None = None, scratch: Scratch | None = None) -> None:
        self.kernel = kernel if kernel is not None else probe()
        self.scratch = scratch if scratch is not None else Scratch()
        self.pids = make_pids_group()
        self._pool = Pool(self.kernel, self.pids)
        self._lock = threading.Lock()
        self._measured: Enforcement | None = None

    def profile(self, name: str) -> SandboxProfile:
        """The profile's data. Raises SandboxUnavailable when this kernel cannot hold it."""
        profile = PROFILES.get(name)
        if profile is None:
            raise SandboxUnavailable(f"there is no sandbox profile {name}")
        if not self.kernel.seccomp or self.kernel.landlock_abi < profile.min_abi:
            raise SandboxUnavailable(
                f"this kernel cannot hold the {name} sandbox: Landlock ABI {self.kernel.landlock_abi} "
                f"(needs {profile.min_abi}), seccomp {'yes' if self.kernel.seccomp else 'no'}",
                hint="approve the command to run it without a sandbox",
            )
        return profile

    def worker(
        self,
        name: str,
        *,
        ports: Sequence[int] = (),
        hidden: Sequence[str] = (),
        reopened: Sequence[str] = (),
        home: str = "",
        syslog: bool = False,
    ) -> Worker:
        """A bound worker for this profile. Raises SandboxUnavailable."""
        profile = self.profile(name)
        key = WorkerKey(
            name,
            tuple(sorted(set(ports))) if profile.ports else (),
            tuple(sorted(set(hidden))),
            tuple(sorted(set(reopened))),
            home.rstrip("/"),
            self.scratch.writable,
            syslog,
        )
        return self._pool.worker(key, profile, self.scratch)

    def measure(self) -> Enforcement:
        """Installs one worker of each profile, lets it try to break out, and remembers the answer."""
        with self._lock:
            if self._measured is None:
                self._measured = self._try_all()
            return self._measured

    def _try_all(self) -> Enforcement:
        held, reports = [], self.kernel.notify
        for name in PROFILES:
            try:
                worker = self.worker(name, home=os.environ.get("HOME", ""))
            except SandboxUnavailable:
                continue
            held.append(name)
            reports = reports and worker.reports
        if not held:
            return NO_ENFORCEMENT
        return Enforcement(held, "strict", self.kernel.landlock_abi, reports)

    def close(self) -> None:
        """Lets all workers end."""
        self._pool.close()


_sandbox: Sandbox | None = None
_sandbox_lock = threading.Lock()


def shared() -> Sandbox:
    """The process's own sandbox, made at first use."""
    global _sandbox
    with _sandbox_lock:
        if _sandbox is None:
            _sandbox = Sandbox()
        return _sandbox


def measure() -> Enforcement:
    """What this machine enforces for R0; tried once per process, 10 to 20 ms."""
    return shared().measure()
