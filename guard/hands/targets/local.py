"""This machine: runs one command, inside a sandbox when it is a read."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from guard.errors import CannotRun, SandboxUnavailable
from guard.hands.privilege import sudo_shim
from guard.hands.process import BASH, BASH_ARGUMENTS, Ended, Program, run_child
from guard.hands.sandbox import UNCONFINED, Kernel, Sandbox, shared
from guard.hands.sandbox.scratch import Scratch
from guard.hands.targets.boxed import Boxed
from guard.ports import Cancel
from guard.types import LOCAL, Captured, Enforcement, Interference


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
    """`strict`, `userns`, `seccomp` or `none`."""
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
        masked: bool = False,
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
            masked: secret paths have to be closed. Without Landlock this takes a namespace (`userns`), in which mounts
                and owners look otherwise than they are: only for what reads a whole tree.
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
        elif masked:
            raise SandboxUnavailable("without a sandbox nothing closes secret paths")
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
        boxed = Boxed(
            self._sandbox,
            self._bash,
            command,
            cwd=cwd,
            profile=profile,
            ports=ports,
            env=whole,
            hidden=hidden,
            masked=masked,
        )
        return self._sandboxed(boxed, profile, timeout_s, cancel, on_output)

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
            Program([self._bash, *BASH_ARGUMENTS, command], env),
            cwd=cwd,
            timeout_s=timeout_s,
            cancel=cancel,
            on_output=on_output,
            leave_nothing=False,
        )
        return _result(ended, profile=profile, enforced="none", interference=None)

    def _sandboxed(
        self,
        boxed: Boxed,
        profile: str,
        timeout_s: float,
        cancel: Cancel | None,
        on_output: Callable[[str, bytes], None] | None,
    ) -> RunResult:
        held = boxed.run(timeout_s, cancel, on_output)
        return _result(
            held.ended,
            profile=profile,
            enforced=held.enforced,
            interference=held.interference,
            unlimited=held.unlimited,
            masked=held.masked,
            notes=held.notes,
        )

    def _sudo_folder(self) -> str | None:
        """Where our `sudo` lies, if any; made once, in a folder that sandboxed commands cannot write."""
        with self._lock:
            if self._shim is None or not os.path.exists(f"{self._shim}/sudo"):
                folder, shim = self._sandbox.scratch.programs, sudo_shim()
                if folder is None or not shim:
                    return None
                with contextlib.suppress(OSError):
                    descriptor = os.open(f"{folder}/sudo", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o755)
                    with os.fdopen(descriptor, "w") as file:
                        file.write(shim)
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
