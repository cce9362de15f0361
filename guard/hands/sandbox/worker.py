"""A thread that is bound by a profile and does nothing but spawn.

Landlock, seccomp and capabilities belong to a thread, and what it starts inherits them. So one thread binds
itself once and then starts processes the ordinary, cheap way (vfork, no preexec_fn); the rest of the program
stays unbound and reads, times out and kills. The thread proves that it is bound before it takes work.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import queue
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from guard.errors import SandboxUnavailable
from guard.hands.child import Child, Start
from guard.hands.sandbox import landlock, seccomp
from guard.hands.sandbox.kernel import (
    CAP_DAC_READ_SEARCH,
    CAP_SYSLOG,
    Kernel,
    close_our_memory,
    drop_capabilities,
    no_new_privileges,
    syscall,
)
from guard.hands.sandbox.masks import find_masks
from guard.hands.sandbox.profiles import SandboxProfile
from guard.hands.sandbox.report import Notes, Supervisor
from guard.hands.sandbox.scratch import Scratch

USER, MOUNT = "user", "mount"
"""A user namespace with a mount namespace in it · a mount namespace alone, which root can make."""
KINDS = (USER, MOUNT)
"""In the order in which they are tried. With a user namespace of its own a command gets to nothing through the folders
of other processes (`/proc/PID/root`); without one, a group that nobody else is in keeps it from those."""
HELD_BY_SPACE = ("local", "bus")
"""Profiles that can be started in one: the others need a right of the machine's own user namespace, or a limit on
ports."""
NO_LISTENER = (errno.EBUSY, errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOSYS)
"""Why a filter with a listener is not to be had where one without may be."""
INSTALL_LIMIT_S = 10.0
"""A worker takes 2 to 5 ms; a file system that hangs must not hold up more than this."""


@dataclass(frozen=True, slots=True)
class WorkerKey:
    """What makes two runs shareable by one worker."""

    profile: str
    ports: tuple[int, ...]
    hidden: tuple[str, ...]
    reopened: tuple[str, ...]
    home: str
    """The command's HOME, whose secrets are masked beside those of the passwd file's homes."""
    scratch: str | None
    """The folder whose inside can be written."""
    syslog: bool
    """CAP_SYSLOG is kept. Only where the kernel's log is restricted and the command speaks of it: the same
    capability opens /proc/kmsg, which consumes what it reads."""
    space: str = ""
    """Which namespace its commands are started in (`space.py`); "": this process's own."""


class Retired(Exception):
    """The worker took its last job before this one came: ask the pool for its successor."""


class Worker:
    """One bound thread and its supervisor."""

    def __init__(self, kernel: Kernel, key: WorkerKey, profile: SandboxProfile, scratch: Scratch) -> None:
        """Installs it. Raises SandboxUnavailable; nothing ran then."""
        self.key = key
        self.reports = kernel.notify
        if not profile.landlock:
            kernel = dataclasses.replace(kernel, landlock_abi=0)
        self._kernel = kernel
        self._profile = profile
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._taking = threading.Lock()
        self._retired = False
        self._supervisor: Supervisor | None = None
        self._scratch = key.scratch
        self._closed_folder = scratch.programs
        self.reach, self.masked = self._reach()
        try:
            self._install()
        except (OSError, KeyError, ValueError) as error:
            self.retire()
            raise SandboxUnavailable(
                f"the {key.profile} sandbox could not be installed: {error}",
                hint="opsx sandbox doctor shows what this kernel can enforce",
            ) from error

    def _reach(self) -> tuple[landlock.Reach, tuple[str, ...]]:
        """(when it goes stale, what is closed)."""
        key = self.key
        if not self._kernel.landlock_abi:
            return landlock.Reach(()), ()  # nothing is closed, so nothing goes stale
        masks = find_masks(key.hidden, key.home)
        reach = landlock.reach_around(masks.present, [path for path in masks.candidates if path not in masks.present])
        if self._profile.devices:
            reach.watch("/dev")
        return reach, tuple(path for path in reach.masked if path not in key.reopened)

    def _install(self) -> None:
        kernel, key = self._kernel, self.key
        rules = None
        if kernel.landlock_abi:
            rules = landlock.build(
                kernel,
                self.reach,
                scratch=self._scratch,
                ports=key.ports if self._profile.ports else None,
                reopened=key.reopened,
                devices=self._profile.devices,
            )
        close_our_memory()
        ready: queue.SimpleQueue[int | BaseException] = queue.SimpleQueue()
        go: queue.SimpleQueue[bool] = queue.SimpleQueue()
        proven: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        threading.Thread(
            target=self._work, args=(rules, ready, go, proven), name=f"opsagent-{key.profile}", daemon=True
        ).start()
        try:
            listener = _within(ready)
            if listener >= 0:
                self._supervisor = Supervisor(kernel, listener, self._scratch, sends=self._profile.sends)
                self._supervisor.start()
            go.put(True)
            fault = proven.get(timeout=INSTALL_LIMIT_S)
            if fault is not None:
                raise fault
        except queue.Empty:
            raise TimeoutError(errno.ETIMEDOUT, "the worker did not answer in time") from None
        finally:
            if rules is not None:
                rules.close()

    def _work(
        self,
        rules: landlock.Rules | None,
        ready: queue.SimpleQueue[int | BaseException],
        go: queue.SimpleQueue[bool],
        proven: queue.SimpleQueue[BaseException | None],
    ) -> None:
        try:
            no_new_privileges()
            if os.geteuid() == 0:
                keep = {CAP_DAC_READ_SEARCH, *self._profile.capabilities} | ({CAP_SYSLOG} if self.key.syslog else set())
                drop_capabilities(self._kernel.numbers, frozenset(keep))
            else:
                drop_capabilities(self._kernel.numbers, frozenset())
            if rules is not None:
                rules.enforce()
            ready.put(self._filter())
        except BaseException as error:
            ready.put(error)
            return
        go.get()
        try:
            prove(self._kernel.numbers, self.masked, self._closed_folder)
        except BaseException as error:
            proven.put(error)
            return
        proven.put(None)
        while True:
            job = self._jobs.get()
            if job is None:
                return
            job.work()
            del job

    def _filter(self) -> int:
        """Binds the calling thread to the profile's filter; returns the listener, or -1 without reports."""
        ours = os.getpid(), threading.get_native_id()
        try:
            code = seccomp.program(self._kernel, self._profile, notify=self.reports, worker=ours)
            return seccomp.load(self._kernel, code, notify=self.reports)
        except OSError as error:
            if error.errno not in NO_LISTENER or not self.reports:
                raise
        # Somebody above us listens already (we run inside a sandbox), or forbids it: refuse without a report.
        self.reports = False
        code = seccomp.program(self._kernel, self._profile, notify=False, worker=ours)
        return seccomp.load(self._kernel, code, notify=False)

    def is_usable(self) -> bool:
        """Whether it still stands for what is on disk, and its supervisor lives."""
        return (self._supervisor is None or self._supervisor.is_alive()) and self.reach.is_current()

    def spawn(self, start: Start, notes: Notes) -> Child:
        """Starts a process inside the sandbox and waits for its exec.

        Raises:
            CannotRun: the program or folder cannot be used.
            Retired: it takes no more; nothing was started.
        """
        job = _Job(start, notes, self._supervisor)
        with self._taking:
            # A run holds its worker a while before it spawns; another run may find it stale in between.
            if self._retired:
                raise Retired
            self._jobs.put(job)
        return job.result()

    @property
    def mechanism(self) -> str:
        """What holds it, as in `Enforcement.mechanism`."""
        return "strict" if self._kernel.landlock_abi else "seccomp"

    def forget(self, leader: int) -> None:
        if self._supervisor is not None:
            self._supervisor.forget(leader)

    def retire(self) -> None:
        """Lets the thread end. Its running children stay bound, and supervised, until they end."""
        with self._taking:
            self._retired = True
            self._jobs.put(None)
        self.reach.close()


class _Job:
    """One spawn, handed from a run to the worker."""

    def __init__(self, start: Start, notes: Notes, supervisor: Supervisor | None) -> None:
        self._start = start
        self._notes = notes
        self._supervisor = supervisor
        self._done: queue.SimpleQueue[Child | BaseException] = queue.SimpleQueue()

    def work(self) -> None:
        # No lock is held across the spawn: vfork stops this thread until the child's exec.
        supervisor = self._supervisor
        if supervisor is not None:
            supervisor.expect()
        try:
            process = self._start()
        except BaseException as error:
            if supervisor is not None:
                supervisor.register(0, self._notes)
            self._done.put(error)
            return
        if supervisor is not None:
            supervisor.register(process.pid, self._notes)
        self._done.put(process)

    def result(self) -> Child:
        found = self._done.get()
        if isinstance(found, BaseException):
            raise found
        return found


def _within(ready: queue.SimpleQueue[int | BaseException]) -> int:
    found = ready.get(timeout=INSTALL_LIMIT_S)
    if isinstance(found, BaseException):
        raise found
    return found


def prove(numbers: Mapping[str, int], masked: Sequence[str], own_folder: str | None) -> None:
    """Tries, on the calling thread, what a sandbox must refuse. Raises OSError when anything works.

    Every attempt is harmless when it does work: it touches only this process and `own_folder`.
    """
    for name, attempt in _attempts(numbers, masked, own_folder).items():
        try:
            attempt()
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM):
                continue
            raise OSError(f"the canary {name} failed for another reason: {error}") from error
        raise OSError(f"the canary {name} was not stopped")


def _attempts(
    numbers: Mapping[str, int], masked: Sequence[str], own_folder: str | None
) -> Mapping[str, Callable[[], None]]:
    attempts: dict[str, Callable[[], None]] = {
        "socket": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).close(),
        # Not os.kill: it keeps the interpreter's lock, and the supervisor needs that to answer.
        "signal": lambda: _ignore(syscall(numbers["kill"], threading.get_native_id(), 0)),
    }
    if os.geteuid() == 0:  # for others it is closed anyway, since our memory is
        attempts["write"] = lambda: os.close(os.open("/proc/self/comm", os.O_WRONLY | os.O_CLOEXEC))
    if own_folder is not None:
        attempts["new folder"] = lambda: os.mkdir(f"{own_folder}/canary")
        attempts["mode"] = lambda: os.chmod(own_folder, 0o700)
    closed = next((path for path in masked if os.path.isfile(path)), None)
    if closed is not None:
        attempts["masked read"] = lambda: os.close(os.open(closed, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    return attempts


def _ignore(_result: int) -> None:
    """Makes a call with a result an attempt."""
