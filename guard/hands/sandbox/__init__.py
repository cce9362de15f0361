"""R0 made true by the kernel: reads run in a thread that cannot write, signal, or talk to daemons.

`measure` says which profiles hold here after trying them; `Sandbox` hands out bound workers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from guard.errors import SandboxUnavailable
from guard.hands.sandbox.cgroup import find_groups
from guard.hands.sandbox.kernel import TABLES, Kernel, probe
from guard.hands.sandbox.pool import Pool
from guard.hands.sandbox.profiles import PROFILES, UNCONFINED, SandboxProfile
from guard.hands.sandbox.scratch import Scratch
from guard.hands.sandbox.worker import HELD_BY_SPACE, KINDS, Worker, WorkerKey
from guard.types import NO_ENFORCEMENT, Enforcement

__all__ = ["PROFILES", "UNCONFINED", "Kernel", "Sandbox", "measure", "missing_for", "probe"]


class Sandbox:
    """Everything that one process needs to run sandboxed commands. Threads may share it."""

    def __init__(self, kernel: Kernel | None = None, scratch: Scratch | None = None) -> None:
        self.kernel = kernel if kernel is not None else probe()
        self.scratch = scratch if scratch is not None else Scratch()
        self.groups = find_groups()
        """Where a run's memory and number of processes can be limited in sum."""
        self._pool = Pool(self.kernel)
        self._lock = threading.Lock()
        self._measured: Enforcement | None = None
        self._space: str | None = None
        self.no_space_because = ""
        """Why no namespace could be made, once that was tried."""

    def profile(self, name: str) -> SandboxProfile:
        """The profile's data. Raises SandboxUnavailable when this kernel cannot hold it."""
        profile = PROFILES.get(name)
        if profile is None:
            raise SandboxUnavailable(f"there is no sandbox profile {name}")
        missing = missing_for(self.kernel, profile)
        if missing:
            raise SandboxUnavailable(
                f"this kernel cannot hold the {name} sandbox: {missing}",
                hint="approve the command to run it without a sandbox; opsx sandbox doctor says more",
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
        masked: bool = False,
    ) -> Worker:
        """A bound worker for this profile.

        Args:
            masked: secret paths have to be closed. With Landlock they always are; without, a namespace has to do it.
        Raises: SandboxUnavailable.
        """
        profile = self.profile(name)
        space = ""
        if masked and not self.kernel.landlock_abi:
            space = self.space() if name in HELD_BY_SPACE else ""
            if not space:
                raise SandboxUnavailable(
                    f"secret paths cannot be closed in the {name} sandbox here: no Landlock, and no namespace",
                    hint="approve the command to run it without a sandbox; opsx sandbox doctor says more",
                )
        key = WorkerKey(
            name,
            tuple(sorted(set(ports))) if profile.ports else (),
            tuple(sorted(set(hidden))),
            tuple(sorted(set(reopened))),
            home.rstrip("/"),
            self.scratch.writable,
            syslog and not space,
            space,
        )
        return self._pool.worker(key, profile, self.scratch)

    def space(self) -> str:
        """The kind of namespace (`space.KINDS`) that can be made here, "" for none; tried once, 50 ms where Landlock is
        missing."""
        if self._space is None:
            self._space = "" if self.kernel.landlock_abi else self._try_spaces()
        return self._space

    def _try_spaces(self) -> str:
        if not self.kernel.namespaces or missing_for(self.kernel, PROFILES["local"]):
            return ""
        for kind in KINDS:
            key = WorkerKey("local", (), (), (), "", self.scratch.writable, syslog=False, space=kind)
            try:
                self._pool.worker(key, PROFILES["local"], self.scratch)
            except SandboxUnavailable as error:
                self.no_space_because = self.no_space_because or error.message
                continue
            return kind
        return ""

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
        mechanism = "strict" if self.kernel.landlock_abi else "userns" if self.space() else "seccomp"
        return Enforcement(held, mechanism, self.kernel.landlock_abi, reports)

    def close(self) -> None:
        """Lets all workers end."""
        self._pool.close()
        self.groups.close()


def missing_for(kernel: Kernel, profile: SandboxProfile) -> str:
    """What a profile needs and this kernel lacks, in words; "" when it can be held."""
    if not kernel.seccomp:
        return "no seccomp filters" if kernel.machine in TABLES else f"no table of system calls for {kernel.machine}"
    if kernel.landlock_abi < profile.min_abi:
        return f"Landlock ABI {kernel.landlock_abi} (needs {profile.min_abi})"
    if not kernel.notify and (profile.sends or not profile.landlock):
        return "no seccomp user notification"
    if not kernel.notify and not kernel.landlock_abi:
        return "no Landlock and no seccomp user notification"
    return ""


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
    """What this machine enforces for R0; tried once per process, 20 to 40 ms."""
    return shared().measure()
