"""Taking a change back: plans from three states, saves what it will touch, carries out exactly the plan consented to.

A rollback is a change like any other: it has an execution and a record, it saves what it touches first, and so it can
be taken back itself. `execution` is the face to all of this; nothing here prints or asks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from guard.errors import CannotRun, NotPermitted, NoWayBack, StateBusy, UsageError
from guard.saved import CONFLICTS, FILE, Action, RolledBack, label_of
from guard.types import LOCAL, Level, Outcome, PlanItem, Profile, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from acting.deadman import Armed
    from acting.world import Guard
    from guard.bound import Binding
    from guard.saved import Manifest, RollbackPlan, Step, StepResult
    from guard.types import Request


def plan(
    of: str,
    world: Guard,
    *,
    overruled: Iterable[str] = (),
    leave_conflicts: bool = False,
    further: Iterable[tuple[str, str]] = (),
) -> RollbackPlan:
    """What going back would do, from how things stand now. Changes nothing.

    Args:
        of: an execution or a snapshot.
        overruled: conflicting paths and states to take back all the same.
        leave_conflicts: take back the rest without them.
        further: (label, snapshot) of states that go back to how that earlier snapshot has them.
    Raises:
        NoWayBack: nothing was saved under that id.
        StateDamaged: the snapshot is not what was written.
        StateBusy: a rollback of it is going on.
        SnapshotImpossible: a path cannot be looked at.
    """
    from guard.hands.capture import secret_by_mask, survey_of
    from guard.ledger.plans import rollback_plan

    manifest = _manifest(of, world)
    after = world.ledger.snapshots.after(manifest.id)
    now = survey_of(manifest)
    unfinished = _unfinished(manifest.id, world)
    chosen = tuple(dict.fromkeys(overruled))
    names = frozenset(manifest.states)
    found = rollback_plan(
        of,
        manifest,
        after,
        now,
        overruled=[name for name in chosen if name not in names],
        leave_conflicts=leave_conflicts,
        resumed=bool(unfinished),
    )
    is_secret = secret_by_mask()
    contents = [step for step in found.work if step.now.kind == FILE and not step.before.meta]
    unkept = tuple(step.path for step in contents if is_secret(step.path))
    lost = [f"{path} is on the list of secrets: what is there now is not kept" for path in unkept]
    own = world.ledger.snapshots.state_path()
    cut_out = [
        f"{path} was left out when it was saved: it is not looked at" for path in manifest.cut_out if path != own
    ]
    found = replace(found, notes=(*found.notes, *lost, *cut_out), unkept=unkept, further=tuple(further))
    return _with_states(found, manifest, [name for name in chosen if name in names], world)


def _with_states(plan: RollbackPlan, manifest: Manifest, overruled: list[str], world: Guard) -> RollbackPlan:
    """The plan with what it would do to states that are no files."""
    from acting import states
    from guard.hands.services.manager import FOLDERS
    from guard.ledger.plans import with_states

    units = any(step.path.startswith(FOLDERS) for step in plan.work)
    if not manifest.states and not units:
        return plan
    with world.ledger.snapshots.contents(manifest) as pack:
        found = states.plan(
            manifest,
            pack,
            world.ledger.snapshots.states_after(manifest.id),
            world,
            overruled=overruled,
            reload_units=units,
            instead=_instead(plan.further, world),
        )
    wrong = [name for name in overruled if not any(step.label == name and step.state in CONFLICTS for step in found)]
    if wrong:
        raise UsageError(
            f"{wrong[0]} is not in conflict", not_done="nothing was changed", hint=f"opsx rollback {plan.of}"
        )
    return with_states(plan, found, overruled)


def _instead(further: Iterable[tuple[str, str]], world: Guard) -> dict[str, tuple[str, dict[str, object]]]:
    """By label, the hash and what is known of states, each as the snapshot that is named with it has it."""
    from acting import states

    found = {}
    for label, snapshot in further:
        manifest = world.ledger.snapshots.load(snapshot)
        with world.ledger.snapshots.contents(manifest) as pack:
            for output in manifest.outputs:
                if label_of(output.kind, output.name) == label:
                    found[label] = output.sha256, states.saved(output, manifest, pack)
    return found


def differences(plan: RollbackPlan, world: Guard) -> tuple[tuple[Step, str], ...]:
    """Each step that does something or is in conflict, with what it would change in words. Redacted."""
    from guard.hands.capture import read_small
    from guard.ledger.differences import DIFF_BYTES, difference

    manifest = world.ledger.snapshots.load(plan.snapshot)
    shown = []
    with world.ledger.snapshots.contents(manifest) as pack:
        for step in plan.steps:
            if step.action == Action.NONE and step.state not in CONFLICTS:
                continue
            before = pack.read(step.before.sha256, DIFF_BYTES) if step.before.saved else None
            now = None if step.before.meta else read_small(step.now, DIFF_BYTES)
            shown.append((step, difference(step, before, now, world.redactor.text)))
    return tuple(shown)


def apply(
    plan_consented: RollbackPlan,
    request: Request,
    world: Guard,
    *,
    stamp: str = "",
    binding: Binding | None = None,
    consent: str = "",
    checkpoint: Callable[[str], None] = lambda name: None,
) -> RolledBack:
    """Carries out a plan that a person consented to, if it still is the plan.

    Args:
        request: who asked, from where; its command is `rollback_request.request_of(plan)`.
        stamp: the approval that it uses up; "" for a consent given on the spot.
        binding: the request as it is now, which the stamp has to fit; by default `rollback_request.binding_of`.
        consent: how that was given (`tty`, `rpc` …).
        checkpoint: see `guard.hands.restore.apply`.
    Raises:
        NotPermitted: things changed since the plan was made, everything is frozen, or the stamp is not live any more.
            Nothing was touched.
        SnapshotImpossible: what is there now cannot be saved first. Nothing was touched.
        StateError: it could not be recorded. Nothing was touched.
    Effects: a snapshot of what is there now, the plan's changes, entries `started`, `rollback_planned`,
        `rollback_step` and `ended`.
    """
    from acting import deadman, own_files
    from acting.snapshots import record_after
    from guard.hands.restore import DONE

    if plan_consented.in_the_way and not plan_consented.leave_conflicts:
        return RolledBack(Status.REFUSED, plan_consented)
    fresh = _as_consented(plan_consented, world)
    execution, own = _save_first(fresh, world)
    unfinished = _unfinished(fresh.snapshot, world)
    armed, unwatched = _armed(fresh, request, execution, own, world)
    with deadman.stood_down_unless_begun(armed, world):
        _begin(fresh, request, execution, own, world, stamp=stamp, binding=binding, consent=consent)
    ours = own_files.watch(world.ledger)
    results = _carry_out(fresh, execution, unfinished, world, checkpoint)
    if armed is not None:
        deadman.change_ended(execution, world)
    # It has to be complete before its end is on record: later rollbacks of this one compare with it.
    notes = [
        *unwatched,
        *own_files.noted(ours, world.ledger, execution),
        *(note for note in (record_after(own, world),) if note),
    ]
    wrong = [result for result in results if result.result != DONE]
    status = Status.FAILED if wrong or fresh.in_the_way or fresh.cannot_return else Status.SUCCEEDED
    left = (
        *(f"{result.path}: {result.text}" for result in wrong),
        *(f"{name}: differs and cannot be put back" for name in fresh.cannot_return),
    )
    exit_code = 0 if status == Status.SUCCEEDED else 1
    recorded = world.ledger.end(
        execution,
        Outcome(status, execution=execution, exit_code=exit_code, snapshot=own, enforced="none", notes=left),
    )
    if not recorded.ok:
        notes.append(f"its end is not on record: {recorded.because}")
    if armed is not None:
        notes.append(deadman.waiting_words(armed, world))
    for earlier in unfinished:
        world.ledger.note("resolved", execution=earlier, outcome="done", evidence=f"gone on with by {execution}")
    return RolledBack(status, fresh, execution, own, results, tuple(notes))


def _armed(
    fresh: RollbackPlan, request: Request, execution: str, own: str, world: Guard
) -> tuple[Armed | None, tuple[str, ...]]:
    """The dead man of a rollback that can keep a person out, and why there is none where there should be one.

    It is the way back to what was in effect before, and may be the only one: it is not refused for want of a dead man.
    """
    from acting import deadman
    from acting.rollback_request import judged
    from guard.ledger.plans import SnapshotPlan, items_of_work

    seconds = 0 if request.shell == deadman.SHELL else deadman.seconds_for(judged(fresh), world)
    if not seconds:
        return None, ()
    items = (*items_of_work(fresh), *(PlanItem(step.kind, step.name) for step in fresh.state_work))
    try:
        return deadman.arm(execution, own, seconds, SnapshotPlan(items), world), ()
    except CannotRun as error:
        return None, (f"nothing takes it back by itself: {error.message}",)


def _as_consented(consented: RollbackPlan, world: Guard) -> RollbackPlan:
    """The plan made anew. Raises NotPermitted: it is not the one that was consented to."""
    fresh = plan(
        consented.of,
        world,
        overruled=consented.overruled,
        leave_conflicts=consented.leave_conflicts,
        further=consented.further,
    )
    if fresh.digest == consented.digest:
        return fresh
    raise NotPermitted(
        f"what is there has changed since the plan was made: {_first_difference(consented, fresh)}",
        not_done="nothing was changed",
        hint=f"opsx rollback {consented.of}",
    )


def _save_first(fresh: RollbackPlan, world: Guard) -> tuple[str, str]:
    """The execution's id, and that of the snapshot of what is there now. Raises SnapshotImpossible."""
    from acting import states
    from guard.hands.capture import capture
    from guard.ledger.plans import items_of_work

    execution = world.ledger.new_execution()
    taken = capture(items_of_work(fresh), outputs=states.own_outputs(fresh.state_work, world))
    return execution, world.ledger.snapshots.save(taken, execution=execution, reason="rollback")


def _begin(
    fresh: RollbackPlan,
    request: Request,
    execution: str,
    own: str,
    world: Guard,
    *,
    stamp: str,
    binding: Binding | None,
    consent: str,
) -> None:
    """Puts on record that the plan is carried out from here on."""
    from acting.rollback_request import binding_of, judged

    world.ledger.begin(
        request,
        judged(fresh),
        profile=Profile.NONE,
        enforced="none",
        stamp=stamp,
        binding=(binding or binding_of(fresh, request)) if stamp else None,
        execution=execution,
        snapshot=own,
    )
    world.ledger.record(
        "rollback_planned",
        execution=execution,
        snapshot=fresh.snapshot,
        of=fresh.of,
        digest=fresh.digest,
        steps=len(fresh.work) + len(fresh.state_work),
        consent=consent or None,
    )


def _carry_out(
    fresh: RollbackPlan, execution: str, unfinished: tuple[str, ...], world: Guard, checkpoint: Callable[[str], None]
) -> tuple[StepResult, ...]:
    """Puts back paths first, then states, and puts each on record."""
    from acting import states
    from guard.hands import restore

    def on_step(result: StepResult) -> None:
        world.ledger.note(
            "rollback_step",
            execution=execution,
            path=result.path,
            action=result.action,
            result=result.result,
            text=result.text,
        )
        checkpoint("recorded")

    manifest = world.ledger.snapshots.load(fresh.snapshot)
    with world.ledger.snapshots.contents(manifest) as pack:
        results = restore.apply(
            fresh, pack, tag=execution, stale_tags=unfinished, on_step=on_step, checkpoint=checkpoint
        )
    return (*results, *states.put_back(fresh.state_work, world, on_step))


def carry_out_unrecorded(consented: RollbackPlan, world: Guard) -> tuple[StepResult, ...]:
    """Carries a plan out where neither what is there now can be saved nor what is done be recorded.

    For the dead man alone, whose person may be locked out while the records are sick. Raises StateError: the snapshot
    cannot be read; nothing was touched then.
    """
    return _carry_out(consented, world.ledger.new_execution(), (), world, lambda name: None)


def _manifest(of: str, world: Guard) -> Manifest:
    snapshots = world.ledger.snapshots
    if of.startswith("s-"):
        manifest = snapshots.load(of)
    elif of.startswith("e-"):
        snapshot = snapshots.of_execution(of)
        if snapshot is None:
            shown = ascii(of)[1:-1][:70]
            known = world.ledger.show(of).execution
            if known is None:
                raise NoWayBack(
                    f"there is no record of {shown}", not_done="nothing was changed", hint="opsx executions"
                )
            why = ": it only read" if known.level == Level.R0.name else ""
            raise NoWayBack(
                f"nothing was saved for {shown}{why}", not_done="nothing was changed", hint=f"opsx show {shown}"
            )
        manifest = snapshots.load(snapshot)
    else:
        raise UsageError(
            f"{ascii(of)[1:-1][:70]!r} is no id of an execution (e-…) or snapshot (s-…)",
            not_done="nothing was changed",
            hint="opsx snapshot list",
        )
    if manifest.target != LOCAL:
        raise NoWayBack(f"{of} belongs to the target {manifest.target}", not_done="nothing was changed")
    return manifest


def _unfinished(snapshot: str, world: Guard) -> tuple[str, ...]:
    """Executions of rollbacks to this snapshot that never came to their end.

    Raises:
        StateBusy: one of them is still going on.
    """
    found = []
    for entry in world.ledger.show(snapshot).entries:
        execution = entry.get("execution")
        if entry.get("kind") != "rollback_planned" or not isinstance(execution, str):
            continue
        known = world.ledger.show(execution).execution
        if known is not None and known.status == Status.RUNNING:
            raise StateBusy(
                f"a rollback to {snapshot} is going on: {execution}",
                not_done="nothing was changed",
                hint=f"opsx show {execution}",
            )
        if known is None or known.status == Status.UNKNOWN:
            found.append(execution)
    return tuple(found)


def _first_difference(old: RollbackPlan, new: RollbackPlan) -> str:
    before, after = {step.path: step for step in old.steps}, {step.path: step for step in new.steps}
    for path in sorted(before.keys() | after.keys()):
        one, other = before.get(path), after.get(path)
        if one is None or other is None or one.now.identity() != other.now.identity() or one.state != other.state:
            return path
    return old.snapshot
