"""What a shell arranges for the records of one state folder, beyond time, ids and redaction. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from guard.ledger.retention import FOREVER, Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from guard.ledger.approvals import KeptRequest
    from guard.ports import HeadSink, Signatures


@dataclass(frozen=True, slots=True)
class House:
    """The house rules of a ledger; each is a convenience or a strictness that a person configured."""

    signatures: Signatures | None = None
    """What approvals have to be signed by; None when they need not be."""
    on_request: Callable[[KeptRequest], None] | None = None
    """Told about each new request once it is on record, with no lock held; it does not raise."""
    limits: Limits = FOREVER
    """How long the log stays."""
    heads: HeadSink | None = None
    """Where the log's head is kept beside the log; None for nowhere."""


NO_RULES = House()
"""No signatures, nobody is told, the log stays for ever, its head lies beside it alone."""
