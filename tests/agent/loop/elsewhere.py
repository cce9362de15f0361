"""A person in another terminal."""

from __future__ import annotations

from capabilities.questions import prepared
from capabilities.subjects import Wanted
from guard.bound import Consent


def approve_elsewhere(guard, request):
    """What `opsx approve a-…` does after the person typed yes."""
    wanted = Wanted.of_kept(guard.ledger.request(request))
    shown = prepared(wanted, guard, force=False, holds="one run")
    guard.ledger.answers.approve([shown.to_approve()], Consent("tty", "0" * 64))
