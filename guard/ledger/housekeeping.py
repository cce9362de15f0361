"""What a ledger does for itself after a run is on record: old segments go, a head that is kept nowhere else is told.

Nothing here may change what became of the run, so nothing here raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guard.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from guard.ledger.log import Appended
    from guard.ledger.retention import Limits, Retention
    from guard.ledger.state import StateFolder
    from guard.types import Recorded


class Housekeeping:
    """Remembers what appends told, and acts on it when it is asked."""

    def __init__(
        self,
        folder: StateFolder,
        *,
        limits: Limits,
        boot: str,
        retention: Callable[[], Retention],
        note: Callable[..., Recorded],
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._boot = boot
        self._retention = retention
        self._note = note
        self._unsent = ""
        self._has_turned = False
        """A new segment was begun, so that an old one may have to go."""

    def saw(self, appended: Appended) -> None:
        """Takes note of an append."""
        self._has_turned |= any(place.start == 0 for place in appended.places)
        self._unsent = appended.unsent or self._unsent

    def tidy(self) -> None:
        """Does what is due. A fault is noted in the log."""
        if self._has_turned and self._limits.are_set:
            self._let_go()
        self._has_turned = False
        why, self._unsent = self._unsent, ""
        if why and self._folder.remember_once("unsent", self._boot):
            self._note("notice", code="head-not-sent", text=f"the log's head is kept beside the log only: {why}")

    def _let_go(self) -> None:
        try:
            retention = self._retention()
            if retention.is_due(self._limits):
                retention.apply(retention.plan(self._limits))
        except (StateError, OSError) as error:
            self._note("notice", code="retention-failed", text=f"nothing of the log was let go: {error}")
