"""One command inside a sandbox profile: which worker starts what, what was refused, what held."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from guard.errors import SandboxUnavailable
from guard.exact import PROGRAMS, Exact, read_exact
from guard.hands.child import Child, Start
from guard.hands.process import BASH_ARGUMENTS, Ended, Program, Spawner, run_child
from guard.hands.sandbox import PROFILES, Sandbox
from guard.hands.sandbox.cgroup import RunGroup
from guard.hands.sandbox.limits import LIMITS, set_limits, threads_on_machine
from guard.hands.sandbox.masks import reopened
from guard.hands.sandbox.report import Notes
from guard.hands.sandbox.scratch import cache_places, overrun_of
from guard.hands.sandbox.worker import MOUNT, USER, Retired, Worker
from guard.ports import Cancel
from guard.types import Interference, Profile


@dataclass(frozen=True, slots=True)
class Held:
    """How it ended, and what the sandbox has to say about it."""

    ended: Ended
    enforced: str
    interference: tuple[Interference, ...] | None
    unlimited: tuple[str, ...]
    masked: tuple[str, ...]
    notes: tuple[str, ...]


class Boxed:
    """One command on its way through one or two workers. One use."""

    def __init__(
        self,
        sandbox: Sandbox,
        bash: str,
        command: str,
        *,
        cwd: str,
        profile: str,
        ports: Sequence[int],
        env: Mapping[str, str],
        hidden: Sequence[str],
        masked: bool = False,
    ) -> None:
        """Raises SandboxUnavailable: the profile does not hold here, or is not for this command. Nothing ran."""
        self._sandbox = sandbox
        self._bash = bash
        self._command = command
        self._cwd = cwd
        self._ports = ports
        self._env = dict(env)
        self._hidden = [os.path.realpath(path) for path in hidden]
        self._masked = masked
        # Before the private cache places come in: those are ours, and masked by nothing.
        self._opened = reopened(env)
        self._folder: str | None = None
        self._used: list[tuple[Worker, Notes]] = []
        self._group: RunGroup | None = None
        self._told: list[str] = []
        self._exact: Exact | None = None
        self._program = ""
        if PROFILES[profile].exact:
            self._exact = exact_for(command, profile)
            # Without the program there is nothing that could use the right: the shell says what it says then.
            self._program = shutil.which(self._exact.argv[0], path=self._env["PATH"]) or ""
        self._profile = profile

    def run(self, timeout_s: float, cancel: Cancel | None, on_output: Callable[[str, bytes], None] | None) -> Held:
        """Runs it to its end. Raises CannotRun, SandboxUnavailable."""
        sandbox = self._sandbox
        self._folder = sandbox.scratch.new_run()
        if self._folder is not None:
            self._env |= cache_places(self._folder)
        started: list[int] = []
        with contextlib.suppress(OSError):
            self._group = sandbox.groups.new()
        counted = self._group is not None and "pids" in sandbox.groups.controls
        try:
            feeder, program = self._programs()
            ended = run_child(
                program,
                feeder=feeder,
                cwd=self._cwd,
                timeout_s=timeout_s,
                cancel=cancel,
                on_output=on_output,
                leave_nothing=True,
                count_processes=os.geteuid() == 0 and not counted,
                on_spawn=started.append,
                overrun=overrun_of(self._folder),
            )
        finally:
            for worker, _ in self._used:
                for pid in started:
                    worker.forget(pid)
            if self._group is not None:
                self._told += self._group.end()
            if self._folder is not None:
                sandbox.scratch.end_run(self._folder)
        return self._held(ended)

    def _programs(self) -> tuple[Program | None, Program]:
        """(what runs in front of the pipe, what the result is of)."""
        exact = self._exact
        if exact is None or not self._program:
            name = Profile.LOCAL if exact is not None else self._profile
            return None, self._shell(self._command, name)
        first = Program(
            [self._program, *exact.argv[1:]],
            {**self._env, **exact.env},
            exact.stdout,
            exact.stderr,
            self._spawner(self._profile, limited=False),
        )
        return (first, self._shell(exact.rest, Profile.LOCAL)) if exact.rest else (None, first)

    def _shell(self, text: str, profile: str) -> Program:
        argv = [self._bash, *BASH_ARGUMENTS, text]
        spawner = self._spawner(profile, limited=True)
        worker, notes = self._used[-1]
        if worker.reports:
            notes.place = self._place
        else:
            # What is fed by another program has its input from that, so it cannot wait for ours.
            waits = self._exact is None
            argv = _limited_by_shell(argv, waits=waits)
            notes.limited = True
            spawner = self._behind_a_gate(spawner) if waits else spawner
        return Program(argv, self._env, spawner=spawner)

    def _behind_a_gate(self, spawner: Spawner) -> Spawner:
        """Starts a shell that waits for the end of its input before it does anything, and places it meanwhile."""

        def spawn(start: Start) -> Child:
            read, write = os.pipe()
            try:
                process = spawner(replace(start, stdin=read))
                self._place(process.pid)
                return process
            finally:
                os.close(read)
                os.close(write)

        return spawn

    def _place(self, pid: int) -> None:
        if self._group is not None:
            try:
                self._group.take(pid)
            except OSError as error:
                self._told.append(f"memory and processes were not limited in sum: {error.strerror or error}")

    def _spawner(self, profile: str, *, limited: bool) -> Spawner:
        """Starts things in a worker of the profile.

        Args:
            limited: the process limits are set when it makes its first intercepted call, as bash always does at its
                start; else they are set from outside.
        """
        worker, notes = self._worker(profile), Notes()
        place = len(self._used)
        self._used.append((worker, notes))

        def spawn(start: Start) -> Child:
            while True:
                try:
                    process = self._used[place][0].spawn(start, notes)
                    break
                except Retired:
                    self._used[place] = (self._worker(profile), notes)
            if not limited:
                self._place(process.pid)
                notes.limited = True
                with contextlib.suppress(OSError):  # it has ended already
                    set_limits(process.pid)
            return process

        return spawn

    def _worker(self, profile: str) -> Worker:
        return self._sandbox.worker(
            profile,
            ports=self._ports,
            hidden=self._hidden,
            reopened=self._opened,
            home=self._env.get("HOME", ""),
            syslog=os.geteuid() == 0 and "dmesg" in self._command and _log_is_restricted(),
            masked=self._masked,
        )

    def _held(self, ended: Ended) -> Held:
        # What has the further right comes first, and says what held.
        worker = self._used[0][0]
        found = Notes()
        if self._folder is None:
            found.add("mkdir", "TMPDIR")
        told = [*ended.notes, *self._told]
        for _, notes in self._used:
            for operation, path in notes.found:
                found.add(operation, path)
            found.dropped += notes.dropped
        if self._folder is None:
            told.append("no private folder could be made, so programs that need a temporary file may answer wrongly")
        if found.dropped:
            told.append(f"{found.dropped} more refused operations are not listed")
        if not all(notes.limited for _, notes in self._used):
            told.append("the limits on memory, files and processes were not set")
        profile = PROFILES[self._profile]
        unlimited = profile.unlimited
        if profile.connect and self._sandbox.kernel.landlock_abi < 6:
            unlimited = (*unlimited, "abstract-unix")
        if worker.key.space:
            told.append(_LOOKS_OTHERWISE["other" if os.geteuid() else worker.key.space])
        closed = () if profile.devices or worker.mechanism == "seccomp" else ("/dev/*",)
        return Held(
            ended,
            worker.mechanism,
            found.as_interference() if all(each.reports for each, _ in self._used) else None,
            unlimited,
            (*worker.masked, *closed),
            tuple(told),
        )


_IN_A_SPACE = "it ran in a namespace of its own: all mounts look read-only there"
_LOOKS_OTHERWISE = {
    USER: _IN_A_SPACE,
    MOUNT: f"{_IN_A_SPACE}, and its group is nobody's",
    "other": f"{_IN_A_SPACE}, and what others own looks like nobody's",
}
"""The kind of namespace, for root, or that it was not root → what is no fact in the output."""


def exact_for(command: str, profile: str) -> Exact:
    """The command as this exact profile starts it. Raises SandboxUnavailable for any other command."""
    exact = read_exact(command)
    if exact is None or exact.program not in PROGRAMS[profile] or (exact.sudo and os.geteuid() != 0):
        raise SandboxUnavailable(
            f"the {profile} sandbox is for one program with literal words, and this command is more than that",
            hint=f"ask for it alone, or with a pipe behind it: {', '.join(sorted(PROGRAMS[profile]))}",
        )
    return exact


def _limited_by_shell(argv: list[str], *, waits: bool) -> list[str]:
    """Sets the limits with a first bash that becomes the second, where no supervisor can set them.

    One more exec, about 1 ms: the price of not using preexec_fn, which would fork this whole process.

    Args:
        waits: for the end of its input, before anything else; the second one has none then.
    """
    limits = (
        f"ulimit -c 0; ulimit -d {LIMITS.data_bytes >> 10}; ulimit -f {LIMITS.file_bytes >> 10}; "
        f"ulimit -n {LIMITS.descriptors}; ulimit -u {threads_on_machine() + LIMITS.more_processes}"
    )
    first, nothing = ("read -r; ", " </dev/null") if waits else ("", "")
    become = f'exec {shlex.quote(argv[0])} {shlex.join(BASH_ARGUMENTS)} "$1"{nothing}'
    return [*argv[:-1], f"{first}{limits}; {become}", argv[0], argv[-1]]


def _log_is_restricted() -> bool:
    try:
        with open("/proc/sys/kernel/dmesg_restrict", encoding="ascii") as file:
            return re.match(r"0\b", file.read()) is None
    except OSError:
        return False
