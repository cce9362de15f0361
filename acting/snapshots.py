"""Saving what a change will touch, and looking again when it is over. Nothing here prints or asks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from guard.saved import NOTHING_UNREAD, Foreseen, Output

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from acting.world import Guard
    from guard.hands.capture import Capture
    from guard.ledger.plans import SnapshotPlan
    from guard.saved import Limits


def save(
    plan: SnapshotPlan,
    world: Guard,
    *,
    outputs: Iterable[Output] = (),
    unread: Mapping[tuple[str, str], str] = NOTHING_UNREAD,
    execution: str = "",
    reason: str = "exec",
    limits: Limits | None = None,
) -> str:
    """Saves what a snapshot plan names and returns the snapshot's id.

    Args:
        outputs: what the plan's commands and states said.
        unread: why other states could not be read; each of them is a reason to save nothing.
        execution: the run that it is for; "" for one that a person asked for.
        reason: `exec` · `manual`
    Raises:
        SnapshotImpossible: something cannot be saved; nothing was kept.
        StateError: the state folder cannot be used.
    """
    taken = _captured(plan, world, tuple(outputs), unread, limits)
    chosen = tuple(f"the state of {label} was left out by choice" for label in plan.left_states)
    taken = replace(taken, unsaved=(*taken.unsaved, *chosen))
    snapshot = world.ledger.snapshots.save(taken, execution=execution, reason=reason)
    world.ledger.prune_snapshots(only_when_many=True)
    return snapshot


def foreseen(plan: SnapshotPlan, world: Guard, *, limits: Limits | None = None) -> Foreseen:
    """What `save` would keep now, without reading a content or keeping anything: for who is asked to approve.

    Never raises for what cannot be saved: `problem` says why.
    """
    from acting import states
    from guard.errors import SnapshotImpossible

    saved_states, unread = states.outputs(plan.items, world)
    outputs = tuple(Output("command", name, command, b"", 0) for name, command in plan.commands) + saved_states
    try:
        taken = _captured(plan, world, outputs, unread, limits)
    except SnapshotImpossible as error:
        return Foreseen(problem="; ".join(filter(None, (error.message, error.hint))))
    at = {node.path: node for node in taken.nodes if node.path not in taken.secrets}
    kept = [node for node in at.values() if not node.meta]
    roots = tuple(
        (at[root], sum(1 for node in kept if node.path == root or node.path.startswith(root.rstrip("/") + "/")))
        for root in taken.roots
        if root in at
    )
    names = tuple(name for name, _ in plan.commands)
    alone = [node for node in taken.nodes if node.meta]
    metadata = tuple(
        (at[root], sum(1 for node in alone if node.path == root or node.path.startswith(root.rstrip("/") + "/")))
        for root in taken.metadata_roots
    )
    return Foreseen(roots, names, tuple(sorted(taken.secrets)), taken.unsaved, states.stays(saved_states), metadata)


def _captured(
    plan: SnapshotPlan,
    world: Guard,
    outputs: tuple[Output, ...],
    unread: Mapping[tuple[str, str], str],
    limits: Limits | None,
) -> Capture:
    """What the plan names, and the files of its states, as they are. Raises SnapshotImpossible, StateError."""
    from acting import states
    from guard.hands.capture import capture

    # The state folder is never part of a snapshot: it would hold itself, and going back would cut the log.
    left_out = (*plan.leave_out, world.ledger.snapshots.state_path())
    items = (*plan.items, *states.files(plan.items, world))
    return capture(items, limits=limits, outputs=outputs, unread=unread, leave_out=left_out)


def record_after(snapshot: str, world: Guard) -> str:
    """Records how a snapshot's paths stand at the end of its run. Returns why that was not possible, "" when it was.

    Never raises: the run is over. A rollback then says that it cannot tell who changed what.
    """
    from acting import states
    from guard.errors import GuardError
    from guard.hands.capture import survey_of

    try:
        manifest = world.ledger.snapshots.load(snapshot)
        nodes = survey_of(manifest)
        world.ledger.snapshots.record_after(snapshot, nodes, states.hashes(manifest, world))
    except GuardError as error:
        return f"how things stand now is not on record: {error.message}"
    return ""
