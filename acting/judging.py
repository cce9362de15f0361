"""A command as it is judged here: with what is enforced, and what its paths really are. Changes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import core
from guard.types import NO_FACTS, Level, RequestKind

if TYPE_CHECKING:
    from acting.world import Guard
    from guard.types import Assessment, Request


def assess(request: Request, guard: Guard) -> Assessment:
    """Judges a request with everything that is known here: what is enforced, and what its paths really are."""
    if request.kind != RequestKind.COMMAND:
        raise ValueError("a file change is no command: change_file")
    from guard.hands.facts import facts_for

    policy = guard.policy.replace(frozen="")
    # A folder named by a link is judged as where it leads: `..` goes up from there.
    folder = os.path.realpath(request.cwd)

    def judge(**facts: object) -> Assessment:
        return core.check(
            request.command,
            target=request.target,
            cwd=folder,
            actor=request.actor,
            enforcement=guard.enforcement(),
            policy=policy,
            **facts,  # type: ignore[arg-type]
        )

    found = judge()
    facts = facts_for(found, folder, own_paths=policy.own_paths)
    if facts is not NO_FACTS:
        found = judge(facts=facts)
    # Looked at for each request: a stop has to reach shells that run for days. It concerns no read.
    if found.level > Level.R0 and (why := guard.ledger.stop()):
        policy = policy.replace(frozen=why)
        found = judge(facts=facts)
    return found
