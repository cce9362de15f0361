"""What every act needs: the world of one process (`Guard`), the way of output, and an outcome from a result."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acting.following import Followed, Onlooker
from guard.errors import StateError
from guard.types import BUILTIN, Outcome, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from guard.keeping import Keeping
    from guard.ledger.null import NullLedger
    from guard.ledger.store import Ledger
    from guard.ports import Clock, RunResult, Target
    from guard.redact import ByteStream, Redactor
    from guard.types import Assessment, Captured, Enforcement, PlanItem, Policy


MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Guard:
    """What a run needs of the world, put together once per process by a shell."""

    target: Target
    ledger: Ledger | NullLedger
    redactor: Redactor
    clock: Clock
    policy: Policy = BUILTIN
    outputs_folder: str | None = None
    """Where long outputs are saved; None is the state folder's own place."""
    hidden: tuple[str, ...] = ()
    """Paths that no read may see: the state folder."""
    noted: Enforcement | None = None
    """What was measured on this boot and kernel before. Saves a one-shot from trying every profile; the run itself
    still installs the one that it needs and refuses when that does not hold."""
    connection: str = ""
    """The ssh connection that this process came in by (`guard.hands.connection`); "" for none."""
    dead_man_s: int = 120
    """After how many seconds a change that can cut it is taken back unless it is confirmed; 0 for never."""

    def enforcement(self) -> Enforcement:
        """What R0 profiles hold here: as noted, else tried now."""
        return self.noted if self.noted is not None else self.target.enforcement()


@dataclass(frozen=True, slots=True)
class WayBack:
    """What a change's snapshot holds, and how much of the change that brings back."""

    saved: tuple[PlanItem, ...]
    reversible: str
    """`yes` · `partial` · `no`"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What was judged and what became of it."""

    assessment: Assessment
    outcome: Outcome
    back: WayBack | None = None
    """What is saved before it, and what of it comes back, where that is not as judged: the asker added or left out."""


def open_guard(
    policy: Policy = BUILTIN, *, outputs_folder: str | None = None, noted: Enforcement | None = None
) -> Guard:
    """The real thing: this machine, this user's state folder, one Redactor that knows what the environment holds.

    A state folder that cannot be used is no error here: reads go on and say `recorded: false` with the reason.
    """
    from guard.clock import SystemClock
    from guard.hands.connection import connection_text
    from guard.hands.environment import looks_secret
    from guard.hands.targets.local import LocalTarget
    from guard.ledger.location import own_places
    from guard.redact import Redactor

    redactor = Redactor({name: value for name, value in os.environ.items() if looks_secret(name)})
    try:
        hidden = own_places()
    except StateError:
        hidden = ()
    store = open_store(redactor, policy.keeping)
    connection = connection_text(os.environ, os.getpid())
    return Guard(LocalTarget(), store, redactor, SystemClock(), policy, outputs_folder, hidden, noted, connection)


def open_store(redactor: Redactor, keeping: Keeping | None = None) -> Ledger | NullLedger:
    """This user's records, for reading and writing; a folder that cannot be used answers with the reason.

    Args:
        keeping: what configuration says about approvals and records; needed by whoever approves or begins a change.
    """
    from guard.clock import RandomIds, SystemClock
    from guard.hands.journal import SystemLog
    from guard.hands.liveness import ProcLiveness
    from guard.ledger.house import House
    from guard.ledger.retention import FOREVER, Limits
    from guard.ledger.store import open_ledger

    signatures, on_request, limits, heads = None, None, FOREVER, None
    if keeping is not None and keeping.signer:
        from guard.hands.signing import SshSignatures

        signatures = SshSignatures(keeping)
    if keeping is not None and keeping.notify:
        from acting.notifying import notifier

        on_request = notifier(keeping.notify, redactor.text)
    if keeping is not None:
        # Whoever knows the configuration is the program itself, and not a test or a bench.
        heads = SystemLog() if os.geteuid() == 0 else None
        limits = Limits(keeping.keep_days, keeping.keep_mb * MIB)
    return open_ledger(
        clock=SystemClock(),
        ids=RandomIds(),
        redact=redactor.text,
        liveness=ProcLiveness(),
        house=House(signatures, on_request, limits, heads),
    )


def own_python(code: str) -> list[str]:
    """The argv of a process of our own beside this one; `sys` is there for the code, and nothing is read at its start.

    Isolated as launch/start.py starts us: no site, no environment of Python's, and exactly our own path.
    """
    path = [os.path.dirname(os.path.dirname(os.path.realpath(__file__))), *(entry for entry in sys.path if entry)]
    return [sys.executable, "-I", "-S", "-X", "utf8", "-c", f"import sys; sys.path[:] = {path!r}; {code}"]


def outcome_of(result: RunResult, execution: str, guard: Guard, sink: Sink) -> Outcome:
    notes = list(result.notes)
    output_file = sink.close(notes)
    if result.interference and not result.stdout.size_bytes:
        notes.append("the sandbox refused some of what it tried; an empty standard output is not a fact then")
    return Outcome(
        status_of(result),
        execution=execution,
        exit_code=result.exit_code,
        stdout=redacted(result.stdout, guard),
        stderr=redacted(result.stderr, guard),
        output_file=output_file,
        profile=result.profile,
        enforced=result.enforced,
        interference=result.interference,
        unlimited=result.unlimited,
        masked=result.masked,
        duration_ms=result.duration_ms,
        notes=tuple(notes),
    )


def status_of(result: RunResult) -> str:
    if result.cancelled:
        return Status.CANCELLED
    if result.timed_out:
        return Status.TIMED_OUT
    return Status.SUCCEEDED if result.exit_code == 0 else Status.FAILED


def redacted(captured: Captured, guard: Guard) -> Captured:
    return captured.replace(text=guard.redactor.text(captured.text))


class Sink:
    """Takes raw output as it comes; gives redacted bytes to the caller and to the files of long outputs."""

    def __init__(
        self, guard: Guard, execution: str, on_output: Callable[[str, bytes], None] | None, *, live: bool = False
    ) -> None:
        """Args: on_output: an `Onlooker` can do without the middle of a flood; live: others follow it (`opsx tail`)."""
        self._on_output = on_output
        self._streams: dict[str, ByteStream | Followed] = {}
        for name in ("stdout", "stderr") if on_output else ():
            only_looks_on = isinstance(on_output, Onlooker)
            self._streams[name] = (
                Followed(guard.redactor, guard.clock) if only_looks_on else guard.redactor.byte_stream()
            )
        self._files = {
            name: guard.ledger.output_writer(execution, name, guard.redactor.stream(), folder=guard.outputs_folder)
            for name in ("stdout", "stderr")
        }
        if live:
            for writer in self._files.values():
                writer.keep_live()

    def __call__(self, stream: str, data: bytes) -> None:
        self._files[stream].feed(data)
        if self._on_output and (shown := self._streams[stream].feed(data)):
            self._on_output(stream, shown)

    def close(self, notes: list[str]) -> str | None:
        """The path of the long output that was saved (standard output's before standard error's), if any."""
        for name, stream in self._streams.items():
            if self._on_output and (rest := stream.flush()):
                self._on_output(name, rest)
        saved = [file.finish() for file in self._files.values()]
        notes += [f"the full output was not saved: {one.reason}" for one in saved if one.reason]
        paths = [one.path for one in saved if one.path]
        notes += [f"more output: {path}" for path in paths[1:]]
        return paths[0] if paths else None
