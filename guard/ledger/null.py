"""The ledger where there is no usable state folder: reads go on unrecorded, all else says why. Touches nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guard.bound import NO_OPTIONS
from guard.ledger.outputs import OutputFolder, OutputWriter
from guard.ledger.packs import KEEP
from guard.ledger.shown import EXECUTIONS_LIMIT
from guard.types import Begun, Recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from guard.bound import Binding, SnapshotOptions
    from guard.errors import StateError
    from guard.ledger.answers import Answers
    from guard.ledger.approvals import KeptRequest
    from guard.ledger.outputs import RedactingStream
    from guard.ledger.packs import Snapshots
    from guard.ledger.retention import Retention
    from guard.ledger.segments import Place
    from guard.ledger.shown import Listing, Shown
    from guard.ledger.stamps import Stamps
    from guard.ledger.verify import VerifyReport
    from guard.ports import Ids
    from guard.types import Assessment, Outcome, Request


class NullLedger:
    """The ledger of a machine whose state folder cannot be used: reads go on unrecorded, all else says why."""

    def __init__(self, error: StateError, *, ids: Ids) -> None:
        self.error = error
        self._ids = ids
        self.notes: tuple[str, ...] = ()

    def begin_read(self, request: Request, assessment: Assessment, *, profile: str, enforced: str) -> Begun:
        """An id, and why nothing is recorded."""
        return Begun(self._ids.new("e"), Recorded(False, self.error.message))

    def new_execution(self) -> str:
        """An id that will not be used."""
        return self._ids.new("e")

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
        """Raises StateError: what is not recorded does not run."""
        raise self.error

    def record(self, kind: str, **fields: object) -> None:
        """Raises StateError."""
        raise self.error

    @property
    def snapshots(self) -> Snapshots:
        """Raises StateError."""
        raise self.error

    def prune_snapshots(self, *, keep: int = KEEP, only_when_many: bool = False) -> tuple[str, ...]:
        """Raises StateError."""
        raise self.error

    def end(self, execution: str, outcome: Outcome) -> Recorded:
        """Why nothing is recorded."""
        return Recorded(False, self.error.message)

    def note(self, kind: str, **fields: object) -> Recorded:
        """Why nothing is recorded."""
        return Recorded(False, self.error.message)

    def output_writer(
        self, execution: str, stream: str, redacting: RedactingStream, *, folder: str | None = None
    ) -> OutputWriter:
        """A writer into the named folder; without one, a writer that saves nothing and says why."""
        place = OutputFolder.unusable(self.error) if folder is None else OutputFolder.at(folder)
        return OutputWriter(place, execution, stream, redacting)

    @property
    def stamps(self) -> Stamps:
        """Raises StateError."""
        raise self.error

    @property
    def answers(self) -> Answers:
        """Raises StateError."""
        raise self.error

    @property
    def retention(self) -> Retention:
        """Raises StateError."""
        raise self.error

    def frozen_note(self) -> str:
        """No note can be read; nothing above R0 runs without records anyway."""
        return ""

    def stop(self) -> str:
        """As `frozen_note`."""
        return ""

    def require_log(self) -> None:
        """Nothing to say: whatever would be recorded raises."""

    def keep_request(
        self,
        request: Request,
        assessment: Assessment,
        options: SnapshotOptions = NO_OPTIONS,
        environment: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> str:
        """Raises StateError."""
        raise self.error

    def content(self, kept: KeptRequest) -> bytes:
        """Raises StateError."""
        raise self.error

    def pending(self) -> list[KeptRequest]:
        """Raises StateError."""
        raise self.error

    def request(self, request_id: str) -> KeptRequest | None:
        """Raises StateError."""
        raise self.error

    def entries(self) -> Iterator[Mapping[str, object]]:
        """Raises StateError."""
        raise self.error

    def executions(
        self, *, status: str | None = None, since: str | None = None, limit: int = EXECUTIONS_LIMIT
    ) -> Listing:
        """Raises StateError."""
        raise self.error

    def show(self, record_id: str) -> Shown:
        """Raises StateError."""
        raise self.error

    def audit(self, tail: int = 20) -> tuple[Mapping[str, object], ...]:
        """Raises StateError."""
        raise self.error

    def head(self) -> Place | None:
        """Not known."""
        return None

    def fault_at(self, place: Place) -> str:
        """Why nothing can be said."""
        return self.error.message

    def verify(self, sent: Mapping[int, str] | None = None) -> VerifyReport:
        """Raises StateError."""
        raise self.error
