"""One child from its start to its certain end: own session, closed descriptors, bounded output, time limit."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from guard.errors import CannotRun
from guard.exact import ERROR, NOWHERE, OUT
from guard.hands.child import Child, Start
from guard.hands.lifeline import lifeline
from guard.hands.liveness import process_stat
from guard.hands.output import Capture
from guard.hands.sandbox.kernel import become_subreaper
from guard.hands.sandbox.limits import threads_on_machine
from guard.hands.sweep import MARK, any_children, reap_sessions, survivors, sweep
from guard.ports import Cancel
from guard.types import Captured

BASH = "/bin/bash"
BASH_ARGUMENTS = ("--noprofile", "--norc", "-p", "-c")
"""No start-up files, and privileged mode: BASH_ENV, SHELLOPTS and exported functions are not looked at."""
CHUNK_BYTES = 1 << 16
TERM_GRACE_S = 2.0
KILL_GRACE_S = 2.0
TICK_S = 0.25
MOST_WAIT_S = 3600.0
"""Of one wait, whatever the time limit: epoll_wait(2) takes an int of milliseconds, 24 days."""
MAX_PROCESSES = 1024
"""For uid 0, which RLIMIT_NPROC does not bind: more than this many new threads on the machine during a run
make us count, and more than this many of the run's own end it."""

_subreaper = threading.Lock()
_is_subreaper = False
_active = 0
_left_sessions: dict[int, None] = {}
LEFT_SESSIONS = 256
"""How many plain runs with background processes are remembered."""

OVERRUN_S = 1.0
FEEDER_GRACE_S = 0.5
"""How long the program in front of a pipe may live on when the last one has ended."""

Sink = Callable[[str, bytes], None]
Spawner = Callable[[Start], Child]


@dataclass(frozen=True, slots=True)
class Program:
    """One program as it is started, and where its two outputs go."""

    argv: Sequence[str]
    env: Mapping[str, str]
    stdout: str = OUT
    """`stdout` (for a program that feeds another: the pipe between them), `stderr` or `nowhere`."""
    stderr: str = ERROR
    spawner: Spawner | None = None
    """Starts it where it must be started (in a sandboxed thread, by a helper in a namespace)."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How one child ended."""

    exit_code: int | None
    """0..255; 128 + N for a death by signal N; None when it could not be ended."""
    timed_out: bool
    cancelled: bool
    stdout: Captured
    stderr: Captured
    duration_ms: int
    notes: tuple[str, ...]


def run_child(
    program: Program,
    *,
    cwd: str,
    timeout_s: float,
    cancel: Cancel | None = None,
    on_output: Sink | None = None,
    leave_nothing: bool,
    count_processes: bool = False,
    on_spawn: Callable[[int], None] | None = None,
    feeder: Program | None = None,
    overrun: Callable[[], str] | None = None,
) -> Ended:
    """Runs one program and waits for its end and its output's.

    Args:
        timeout_s: then TERM to its group, KILL after two seconds, and a sweep.
        leave_nothing: background processes are ended with the leader. Else they live on, and their output is
            no longer read 0.2 s after the leader's end.
        count_processes: end the run when it has more than MAX_PROCESSES (for uid 0 without a pids cgroup).
        feeder: a program whose standard output is the other's standard input. It ends with it.
        overrun: asked about once a second; why the run has to end, "" as long as it need not.
    Raises: CannotRun: no such program or folder.
    """
    return _Child(program, cwd, leave_nothing, count_processes, on_spawn, feeder, overrun).follow(
        timeout_s, cancel, on_output
    )


class _Child:
    """The child while it runs. One use."""

    def __init__(
        self,
        program: Program,
        cwd: str,
        leave_nothing: bool,
        count_processes: bool,
        on_spawn: Callable[[int], None] | None,
        feeder: Program | None,
        overrun: Callable[[], str] | None,
    ) -> None:
        global _active
        self.mark = secrets.token_hex(8)
        self.leave_nothing = leave_nothing
        self.count_processes = count_processes
        self.feeder: Child | None = None
        self.overrun = overrun
        self.asked_at = time.monotonic()
        self.notes: list[str] = []
        self.captures = {"stdout": Capture(), "stderr": Capture()}
        self.pipes: dict[int, str] = {}
        self.timed_out = self.cancelled = False
        if leave_nothing:
            lifeline.start()
            _ensure_subreaper()
            lifeline.begin(self.mark)
        with _subreaper:
            _active += 1
        self.threads_before = threads_on_machine() if count_processes else 0
        try:
            self.started = time.monotonic()
            self.process = self._start(program, feeder, cwd, on_spawn)
        except BaseException:
            self._leave()
            raise
        if leave_nothing:
            lifeline.begin(self.mark, self.process.pid)

    def _start(
        self, program: Program, feeder: Program | None, cwd: str, on_spawn: Callable[[int], None] | None
    ) -> Child:
        # Descriptors are made here, outside the sandbox: the worker's own opens would be refused or reported.
        opened: list[int] = []
        try:
            out_read, out_write = _pipe(opened)
            error_read, error_write = _pipe(opened)
            nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            opened.append(nothing)
            places = {OUT: out_write, ERROR: error_write, NOWHERE: nothing}

            def spawn(one: Program, stdin: int, places: Mapping[str, int]) -> Child:
                env = {**one.env, MARK: self.mark}
                start = Start(one.argv, env, cwd, stdin, places[one.stdout], places[one.stderr])
                try:
                    process = start() if one.spawner is None else one.spawner(start)
                except OSError as error:
                    raise CannotRun(f"{_blamed(error, one.argv[0], cwd)}: {error.strerror or error}") from error
                if on_spawn is not None:
                    on_spawn(process.pid)
                return process

            stdin = nothing
            if feeder is not None:
                stdin, feeding = _pipe(opened)
                self.feeder = spawn(feeder, nothing, {**places, OUT: feeding})
            try:
                process = spawn(program, stdin, places)
            except BaseException:
                self._end_feeder(0)
                raise
            self.pipes = {out_read: "stdout", error_read: "stderr"}
            for descriptor in self.pipes:
                opened.remove(descriptor)
                os.set_blocking(descriptor, False)
            return process
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def follow(self, timeout_s: float, cancel: Cancel | None, on_output: Sink | None) -> Ended:
        selector = selectors.DefaultSelector()
        ended = _end_signal(self.process.pid)
        try:
            for descriptor in self.pipes:
                selector.register(descriptor, selectors.EVENT_READ)
            if ended is not None:
                selector.register(ended, selectors.EVENT_READ)
            if cancel is not None:
                selector.register(cancel.fileno(), selectors.EVENT_READ)
            self._read_until_end(selector, self.started + timeout_s, cancel, ended, on_output)
        except BaseException:  # a sink that failed, Ctrl-C: nobody follows the child any more
            self._kill(signal.SIGKILL)
            self._reap(KILL_GRACE_S)
            self._end_feeder(0)
            if self.leave_nothing:
                sweep(self.mark, self.process.pid, alone=_active <= 1)
            raise
        finally:
            selector.close()
            for descriptor in self.pipes:
                os.close(descriptor)
            if ended is not None:
                os.close(ended)
            self._leave()
        code = self.process.returncode
        return Ended(
            exit_code=None if code is None else 128 - code if code < 0 else code,
            timed_out=self.timed_out,
            cancelled=self.cancelled,
            stdout=self.captures["stdout"].captured(),
            stderr=self.captures["stderr"].captured(),
            duration_ms=round((time.monotonic() - self.started) * 1000),
            notes=tuple(self.notes),
        )

    def _read_until_end(
        self,
        selector: selectors.BaseSelector,
        deadline: float,
        cancel: Cancel | None,
        ended: int | None,
        on_output: Sink | None,
    ) -> None:
        buffer = bytearray(CHUNK_BYTES)
        while not self._has_ended():
            now = time.monotonic()
            if now >= deadline:
                self.timed_out = True
            if cancel is not None and cancel.is_set():
                self.cancelled = True
            if self.timed_out or self.cancelled or self._is_too_many() or self._has_overrun():
                self._stop(selector, buffer, on_output)
                break
            wait = deadline - now
            if ended is None or self.count_processes or self.overrun is not None:
                wait = min(wait, TICK_S if ended is not None else 0.02)
            self._read_ready(selector, buffer, wait, on_output)
        self._end_feeder(FEEDER_GRACE_S)
        if self.leave_nothing:
            self._sweep()
        self.process.poll()
        _reap_left(self.process.pid if not self.leave_nothing else None)
        if self.leave_nothing:
            self._drain(selector, buffer, 1.0, on_output)
        elif self.pipes and not self._drain(selector, buffer, 0.2, on_output):
            self.notes.append("a background process still held the output; what it writes from now on is not read")

    def _read_ready(
        self, selector: selectors.BaseSelector, buffer: bytearray, wait_s: float, on_output: Sink | None
    ) -> bool:
        """Reads what is there, once per pipe. False when nothing came in time."""
        got = False
        for key, _ in selector.select(min(max(0.0, wait_s), MOST_WAIT_S)):
            stream = self.pipes.get(key.fd)
            if stream is None:
                continue
            try:
                size = os.readv(key.fd, [buffer])
            except BlockingIOError:
                continue
            got = True
            if size == 0:
                selector.unregister(key.fd)
                os.close(key.fd)
                del self.pipes[key.fd]
                continue
            chunk = bytes(memoryview(buffer)[:size])
            self.captures[stream].feed(chunk)
            if on_output is not None:
                on_output(stream, chunk)
        return got

    def _drain(
        self, selector: selectors.BaseSelector, buffer: bytearray, quiet_s: float, on_output: Sink | None
    ) -> bool:
        """Reads to the end of both pipes, or until nothing comes for a while. Says whether the end was seen."""
        for key in list(selector.get_map().values()):
            if key.fd not in self.pipes:
                selector.unregister(key.fd)
        while self.pipes:
            if not self._read_ready(selector, buffer, quiet_s, on_output):
                return False
        return True

    def _stop(self, selector: selectors.BaseSelector, buffer: bytearray, on_output: Sink | None) -> None:
        """TERM, two seconds to tidy up while its output is still read, KILL."""
        self._kill(signal.SIGTERM)
        end = time.monotonic() + TERM_GRACE_S
        while not self._has_ended() and time.monotonic() < end:
            self._read_ready(selector, buffer, 0.02, on_output)
            if not self.pipes:
                time.sleep(0.01)
        self._kill(signal.SIGKILL)
        if not self._reap(KILL_GRACE_S):
            state = (process_stat(self.process.pid) or ["?"])[0]
            self.notes.append(
                f"process {self.process.pid} did not die (state {state}: stuck in the kernel); it is left behind"
            )

    def _has_ended(self) -> bool:
        """Without reaping: the dead leader keeps its group's number from being given to somebody else."""
        try:
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _reap(self, limit_s: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(limit_s)
            return True
        return False

    def _kill(self, number: int) -> None:
        for process in (self.process, self.feeder):
            if process is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)

    def _end_feeder(self, grace_s: float) -> None:
        """Waits a little for the program in front of the pipe, then ends it: nobody reads what it says any more."""
        feeder, self.feeder = self.feeder, None
        if feeder is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            if feeder.wait(grace_s) not in (0, -signal.SIGPIPE):
                code = feeder.wait()
                self.notes.append(f"the program in front of the pipe ended with {code if code >= 0 else 128 - code}")
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(feeder.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            feeder.wait(KILL_GRACE_S)

    def _sweep(self) -> None:
        """Ends what is left of the group, then what left the group. Free when this process has no child left."""
        self._kill(signal.SIGKILL)
        self.process.poll()
        if not any_children():
            return
        left = sweep(self.mark, self.process.pid, alone=_active <= 1)
        if left:
            self.notes.append(f"processes {', '.join(map(str, left))} could not be ended; they are left behind")

    def _is_too_many(self) -> bool:
        if not self.count_processes or threads_on_machine() < self.threads_before + MAX_PROCESSES:
            return False
        running, _ = survivors(self.mark, self.process.pid, alone=_active <= 1)
        if len(running) <= MAX_PROCESSES:
            return False
        self.notes.append(f"ended: it had started {len(running)} processes (limit {MAX_PROCESSES})")
        return True

    def _has_overrun(self) -> bool:
        now = time.monotonic()
        if self.overrun is None or now - self.asked_at < OVERRUN_S:
            return False
        self.asked_at = now
        why = self.overrun()
        if why:
            self.notes.append(f"ended: {why}")
        return bool(why)

    def _leave(self) -> None:
        global _active
        if self.leave_nothing:
            lifeline.end(self.mark)
        with _subreaper:
            _active -= 1


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    opened += ends
    return ends


def _reap_left(session: int | None) -> None:
    """Takes the exit status of what approved commands left behind and what came to us by the subreaper.

    Only from sessions of runs of ours that have ended: nobody else waits for those processes.
    """
    if not any_children():
        return
    with _subreaper:
        if session is not None:
            _left_sessions[session] = None
            while len(_left_sessions) > LEFT_SESSIONS:
                del _left_sessions[next(iter(_left_sessions))]
        sessions = set(_left_sessions)
    reap_sessions(sessions)


def _ensure_subreaper() -> None:
    global _is_subreaper
    with _subreaper:
        if not _is_subreaper:
            become_subreaper()
            _is_subreaper = True


def _end_signal(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None before Linux 5.3 and elsewhere."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _blamed(error: OSError, program: str, cwd: str) -> str:
    if error.filename == cwd and cwd != program:
        return f"the folder {cwd} cannot be entered"
    if not os.path.exists(program):
        return f"{program} is missing; commands are run by bash, so install it"
    return f"{program} could not be started"
