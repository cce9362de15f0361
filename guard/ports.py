"""What the guard asks of the world, as small protocols. Fakes in `tests/fakes.py` pass the same suites.

`core` and `execution` take these as arguments with the real thing as default, so that clocks, ids,
the kernel and the state folder can be replaced in tests without patching anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from guard.bound import Binding, SnapshotOptions
    from guard.types import Assessment, Begun, Captured, Enforcement, Interference, Outcome, Recorded, Request


class Clock(Protocol):
    """Time, in the two kinds that the guard needs."""

    def utc(self) -> str:
        """Now as RFC 3339, UTC, milliseconds, `Z`: `2026-12-01T04:36:03.120Z`."""
        ...

    def boot_s(self) -> float:
        """Seconds since boot, suspended time included; never steps (CLOCK_BOOTTIME)."""
        ...


class Ids(Protocol):
    """Makes the ids of section 2 of the design: `^[a-z0-9-]{1,64}$`."""

    def new(self, prefix: str) -> str:
        """An id that this state folder has not seen, such as `e-7k2m4p9q`."""
        ...


class Liveness(Protocol):
    """Tells whether the process that began a run is still there. `guard.hands.liveness` is the real one."""

    def boot_id(self) -> str:
        """Names this boot of this machine; another text after every reboot. "" when the system has none."""
        ...

    def start_of(self, pid: int) -> str:
        """When the process started, as a text that is equal only for the same process; "" when there is none."""
        ...

    def alive(self, boot: str, pid: int, start: str) -> bool:
        """True only if this boot's process `pid` still is the one that started at `start`."""
        ...


class Cancel(Protocol):
    """A token that a caller sets to stop a run early."""

    def is_set(self) -> bool: ...

    def fileno(self) -> int:
        """A descriptor that becomes readable when the token is set, for use in a selector."""
        ...


class RunResult(Protocol):
    """How one child ended, as `Target.run` returns it."""

    @property
    def exit_code(self) -> int | None: ...

    @property
    def timed_out(self) -> bool: ...

    @property
    def cancelled(self) -> bool: ...

    @property
    def stdout(self) -> Captured: ...

    @property
    def stderr(self) -> Captured: ...

    @property
    def duration_ms(self) -> int: ...

    @property
    def profile(self) -> str: ...

    @property
    def enforced(self) -> str: ...

    @property
    def interference(self) -> tuple[Interference, ...] | None: ...

    @property
    def unlimited(self) -> tuple[str, ...]: ...

    @property
    def masked(self) -> tuple[str, ...]: ...

    @property
    def notes(self) -> tuple[str, ...]: ...


class Target(Protocol):
    """A machine that commands run on."""

    name: str

    def enforcement(self) -> Enforcement:
        """What R0 profiles hold there, measured once per process."""
        ...

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
        """Runs one command with bash inside a sandbox profile and waits for its end.

        Args:
            hidden: further paths to mask (the state folder).
            masked: secret paths have to be closed; where that takes a namespace, it is made, or nothing runs.
            on_output: called from the reading thread with `stdout`/`stderr` and raw bytes as they come.
        Raises:
            CannotRun: no bash, or the folder cannot be entered.
            SandboxUnavailable: the profile does not hold here. Nothing ran.
        """
        ...


class Signatures(Protocol):
    """Checks and makes the signatures that approvals need. `guard.hands.signing.SshSignatures` is the real one."""

    signer: str
    """The principal."""
    allowed: str
    """The list of signers that counts, for the record of what was asked for."""
    lending: Callable[[], AbstractContextManager[None]]
    """Holds the terminal for a question of its own; a shell that reads keys meanwhile sets it."""

    def fault(self, text: bytes, signature: str) -> str:
        """Why this is no valid signature of the text by the signer; "" when it is one. Never raises."""
        ...

    def sign(self, text: bytes) -> str:
        """A signature of the text; a person may be asked for it. Raises ApprovalUnsigned."""
        ...


class HeadSink(Protocol):
    """Keeps the log's head where its writers cannot change it. `guard.hands.journal.SystemLog` is the real one."""

    def send(self, state: str, seq: int, sha256: str) -> str:
        """Sends one head; why it could not, "" when it could. Never raises and never waits.

        Args:
            state: path of the state folder.
        """
        ...

    def newest(self, state: str) -> int:
        """Number of the newest entry of which a head was kept; 0 when none was or it cannot be told. Never raises."""
        ...


class Store(Protocol):
    """What the state folder keeps. `guard.ledger.store.Ledger` is the real one."""

    def begin_read(self, request: Request, assessment: Assessment, *, profile: str, enforced: str) -> Begun:
        """Records that an R0 run is about to start. Never raises: a sick state never stops a read."""
        ...

    def begin(
        self,
        request: Request,
        assessment: Assessment,
        *,
        profile: str,
        enforced: str,
        stamp: str = "",
        binding: Binding | None = None,
        execution: str = "",
        snapshot: str = "",
        owner: tuple[int, str] | None = None,
    ) -> str:
        """Records durably that a run is about to start and returns its execution id. From here on it may have run.

        Raises:
            StateError: it could not be recorded, so it must not run.
        """
        ...

    def end(self, execution: str, outcome: Outcome) -> Recorded:
        """Records how it ended. Never raises: the run is over, and its caller has to say what is not on record."""
        ...

    def keep_request(
        self,
        request: Request,
        assessment: Assessment,
        options: SnapshotOptions = ...,
        environment: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> str:
        """Keeps a request that a person can approve, and returns its id. The same request again gives the same id.

        Raises:
            StateError: it could not be kept.
        """
        ...

    def entries(self) -> Iterator[Mapping[str, object]]:
        """The log, oldest first."""
        ...

    def pending(self) -> Sequence[object]:
        """The requests that wait for a person, oldest first. Raises StateError."""
        ...

    def audit(self, tail: int = 20) -> Sequence[Mapping[str, object]]:
        """The last entries of the log, oldest of them first. Raises StateError."""
        ...
