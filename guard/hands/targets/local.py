"""This machine: runs one command with bash, inside a sandbox when it is a read."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from guard.errors import CannotRun
from guard.hands.process import BASH, BASH_ARGUMENTS, Ended, run_child
from guard.hands.sandbox import PROFILES, UNCONFINED, Kernel, Sandbox, shared
from guard.hands.sandbox.masks import reopened
from guard.hands.sandbox.report import LIMITS, Notes, threads_on_machine
from guard.hands.sandbox.scratch import Scratch, cache_places
from guard.hands.sandbox.worker import Retired, Spawn, Worker
from guard.ports import Cancel
from guard.types import LOCAL, Captured, Enforcement, Interference

SUDO_SHIM = """#!/bin/sh
# Already root: sudo without options is the command itself.
case "${1-}" in
'' | -* | *=*) ;;
*) exec "$@" ;;
esac
for real in /usr/bin/sudo /usr/local/bin/sudo /bin/sudo; do
    [ -x "$real" ] && exec "$real" "$@"
done
echo "sudo: already root; only sudo without options is understood here" >&2
exit 1
"""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How one command ended here (`guard.ports.RunResult`)."""

    exit_code: int | None
    """0..255; 128 + N for a death by signal N; None when it never began or could not be ended."""
    timed_out: bool
    cancelled: bool
    stdout: Captured
    stderr: Captured
    duration_ms: int
    profile: str
    enforced: str
    """`strict` or `none`."""
    interference: tuple[Interference, ...] | None
    unlimited: tuple[str, ...]
    masked: tuple[str, ...]
    notes: tuple[str, ...]


class LocalTarget:
    """Runs commands on this machine. Threads may share it."""

    name = LOCAL

    def __init__(self, kernel: Kernel | None = None, *, scratch: Scratch | None = None, bash: str = BASH) -> None:
        """Everything is the machine's own by default; tests give a kernel with less ability or another scratch."""
        self._sandbox = shared() if kernel is None and scratch is None else Sandbox(kernel, scratch)
        self._bash = bash
        self._lock = threading.Lock()
        self._shim: str | None = None

    def enforcement(self) -> Enforcement:
        """What R0 profiles hold here: tried, not assumed; once per process."""
        return self._sandbox.measure()

    def run(
        self,
        command: str,
        *,
        cwd: str,
        profile: str,
        ports: Sequence[int] = (),
        env: Mapping[str, str],
        timeout_s: float,
        hidden: Sequence[str] = (),
        cancel: Cancel | None = None,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> RunResult:
        """Runs `bash -c command` and waits for its end and for the end of all that it started.

        Args:
            cwd: absolute.
            profile: one of `PROFILES`, or NONE or REMOTE for a plain run (approved, or enforced elsewhere): no
                limits, and background processes live on.
            ports: TCP ports that `net` may connect to.
            env: the whole environment (`guard.hands.environment`); TMPDIR, cache places and PWD are added.
                Variables such as KUBECONFIG reopen what they name (`masks.REOPENED_BY`).
            timeout_s: then TERM, KILL after two seconds.
            hidden: absolute paths to mask (the state folder).
            on_output: called in this thread with `stdout` or `stderr` and raw bytes.
        Raises:
            CannotRun: no bash, or the folder cannot be entered. Nothing ran.
            SandboxUnavailable: the profile does not hold here. Nothing ran.
        """
        if not os.access(self._bash, os.X_OK):
            raise CannotRun(f"{self._bash} is missing; commands are run by bash", hint="install the package bash")
        if not os.path.isdir(cwd):
            raise CannotRun(f"the folder {cwd} does not exist or cannot be entered", hint="choose another folder")
        if profile not in UNCONFINED:
            self._sandbox.profile(profile)
        if cancel is not None and cancel.is_set():
            return RunResult(
                None,
                False,
                True,
                Captured(),
                Captured(),
                0,
                profile,
                "none",
                None,
                (),
                (),
                ("cancelled before it began",),
            )
        whole = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **env, "PWD": cwd}
        shim = self._sudo_folder()
        if shim is not None:
            whole["PATH"] = f"{shim}:{whole['PATH']}"
        if profile in UNCONFINED:
            return self._plain(command, cwd, profile, whole, timeout_s, cancel, on_output)
        return self._sandboxed(command, cwd, profile, ports, whole, timeout_s, hidden, cancel, on_output)

    def _plain(
        self,
        command: str,
        cwd: str,
        profile: str,
        env: Mapping[str, str],
        timeout_s: float,
        cancel: Cancel | None,
        on_output: Callable[[str, bytes], None] | None,
    ) -> RunResult:
        ended = run_child(
            [self._bash, *BASH_ARGUMENTS, command],
            cwd=cwd,
            env=env,
            timeout_s=timeout_s,
            cancel=cancel,
            on_output=on_output,
            leave_nothing=False,
        )
        return _result(ended, profile=profile, enforced="none", interference=None)

    def _sandboxed(
        self,
        command: str,
        cwd: str,
        profile: str,
        ports: Sequence[int],
        env: dict[str, str],
        timeout_s: float,
        hidden: Sequence[str],
        cancel: Cancel | None,
        on_output: Callable[[str, bytes], None] | None,
    ) -> RunResult:
        sandbox = self._sandbox
        # Before the private cache places come in: those are ours, and masked by nothing.
        opened, home = reopened(env), env.get("HOME", "")

        def current() -> Worker:
            return sandbox.worker(
                profile,
                ports=ports,
                hidden=[os.path.realpath(path) for path in hidden],
                reopened=opened,
                home=home,
                syslog=os.geteuid() == 0 and "dmesg" in command and _log_is_restricted(),
            )

        worker = current()

        def spawn(start: Spawn) -> subprocess.Popen[bytes]:
            nonlocal worker
            while True:
                try:
                    return worker.spawn(start, notes)
                except Retired:
                    worker = current()

        notes = Notes(limited=not worker.reports)
        folder = sandbox.scratch.new_run()
        if folder is None:
            notes.add("mkdir", "TMPDIR")
        else:
            env |= cache_places(folder)
        argv = [self._bash, *BASH_ARGUMENTS, command]
        if not worker.reports:
            argv = _limited_by_shell(argv)
        leader: list[int] = []
        try:
            ended = run_child(
                argv,
                cwd=cwd,
                env=env,
                timeout_s=timeout_s,
                cancel=cancel,
                on_output=on_output,
                spawner=spawn,
                leave_nothing=True,
                count_processes=os.geteuid() == 0 and sandbox.pids is None,
                on_spawn=leader.append,
            )
        finally:
            for pid in leader:
                worker.forget(pid)
            if folder is not None:
                sandbox.scratch.end_run(folder)
        told = list(ended.notes)
        if folder is None:
            told.append("no private folder could be made, so programs that need a temporary file may answer wrongly")
        if notes.dropped:
            told.append(f"{notes.dropped} more refused operations are not listed")
        if not notes.limited:
            told.append("the limits on memory, files and processes were not set")
        unlimited = PROFILES[profile].unlimited
        if PROFILES[profile].connect and sandbox.kernel.landlock_abi < 6:
            unlimited = (*unlimited, "abstract-unix")
        return _result(
            ended,
            profile=profile,
            enforced="strict",
            interference=notes.as_interference() if worker.reports else None,
            unlimited=unlimited,
            masked=(*worker.masked, "/dev/*"),
            notes=tuple(told),
        )

    def _sudo_folder(self) -> str | None:
        """Where our `sudo` lies, for uid 0; made once, in a folder that sandboxed commands cannot write."""
        if os.geteuid() != 0:
            return None
        with self._lock:
            if self._shim is None or not os.path.exists(f"{self._shim}/sudo"):
                folder = self._sandbox.scratch.programs
                if folder is None:
                    return None
                with contextlib.suppress(OSError):
                    descriptor = os.open(f"{folder}/sudo", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o755)
                    with os.fdopen(descriptor, "w") as file:
                        file.write(SUDO_SHIM)
                self._shim = folder
            return self._shim

    def close(self) -> None:
        """Lets the sandbox's threads end."""
        self._sandbox.close()


def _result(
    ended: Ended,
    *,
    profile: str,
    enforced: str,
    interference: tuple[Interference, ...] | None,
    unlimited: tuple[str, ...] = (),
    masked: tuple[str, ...] = (),
    notes: tuple[str, ...] | None = None,
) -> RunResult:
    return RunResult(
        exit_code=ended.exit_code,
        timed_out=ended.timed_out,
        cancelled=ended.cancelled,
        stdout=ended.stdout,
        stderr=ended.stderr,
        duration_ms=ended.duration_ms,
        profile=profile,
        enforced=enforced,
        interference=interference,
        unlimited=unlimited,
        masked=masked,
        notes=ended.notes if notes is None else notes,
    )


def _limited_by_shell(argv: list[str]) -> list[str]:
    """Sets the limits with a first bash that becomes the second, where no supervisor can set them.

    One more exec, about 1 ms: the price of not using preexec_fn, which would fork this whole process.
    """
    limits = (
        f"ulimit -c 0; ulimit -d {LIMITS.data_bytes >> 10}; ulimit -f {LIMITS.file_bytes >> 10}; "
        f"ulimit -n {LIMITS.descriptors}; ulimit -u {threads_on_machine() + LIMITS.more_processes}"
    )
    return [*argv[:-1], f'{limits}; exec {shlex.quote(argv[0])} {shlex.join(BASH_ARGUMENTS)} "$1"', argv[0], argv[-1]]


def _log_is_restricted() -> bool:
    try:
        with open("/proc/sys/kernel/dmesg_restrict", encoding="ascii") as file:
            return re.match(r"0\b", file.read()) is None
    except OSError:
        return False
