"""Taking a change back: saves what it will touch, plans from three states, carries out exactly the plan consented to.

A rollback is a change like any other: it has an execution and a record, it saves what it touches first, and so it can
be taken back itself. `execution` is the face to all of this; nothing here prints or asks.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from guard.bound import Binding
from guard.errors import NotPermitted, NoWayBack, StateBusy, UsageError
from guard.quoting import quoted
from guard.saved import CONFLICTS, FILE, NOTHING_UNREAD, Action, Foreseen, Output, RollbackAsked, RolledBack
from guard.types import LOCAL, Assessment, Decision, Effect, Level, Outcome, PlanItem, Profile, Reason, Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from acting.world import Guard
    from guard.ledger.plans import SnapshotPlan
    from guard.saved import Limits, Manifest, RollbackPlan, Step, StepResult
    from guard.types import Request


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
        unread: why other states could not be read.
        execution: the run that it is for; "" for one that a person asked for.
        reason: `exec` · `manual`
    Raises:
        SnapshotImpossible: something cannot be saved; nothing was kept.
        StateError: the state folder cannot be used.
    """
    from guard.hands.capture import capture

    snapshots = world.ledger.snapshots
    # The state folder is never part of a snapshot: it would hold itself, and going back would cut the log.
    own = snapshots.state_path()
    left_out = (*plan.leave_out, own)
    taken = capture(plan.items, limits=limits, outputs=tuple(outputs), unread=unread, leave_out=left_out)
    snapshot = snapshots.save(taken, execution=execution, reason=reason)
    world.ledger.prune_snapshots(only_when_many=True)
    return snapshot


def foreseen(plan: SnapshotPlan, world: Guard, *, limits: Limits | None = None) -> Foreseen:
    """What `save` would keep now, without reading a content or keeping anything: for who is asked to approve.

    Never raises for what cannot be saved: `problem` says why.
    """
    from acting import states
    from guard.errors import SnapshotImpossible
    from guard.hands.capture import capture

    saved_states, unread = states.outputs(plan.items, world)
    outputs = tuple(Output("command", name, command, b"", 0) for name, command in plan.commands) + saved_states
    own = world.ledger.snapshots.state_path()
    try:
        left_out = (*plan.leave_out, own)
        taken = capture(plan.items, limits=limits, outputs=outputs, unread=unread, leave_out=left_out)
    except SnapshotImpossible as error:
        return Foreseen(problem=error.message)
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


def plan(of: str, world: Guard, *, overruled: Iterable[str] = (), leave_conflicts: bool = False) -> RollbackPlan:
    """What going back would do, from how things stand now. Changes nothing.

    Args:
        of: an execution or a snapshot.
        overruled: conflicting paths and states to take back all the same.
        leave_conflicts: take back the rest without them.
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
    found = replace(found, notes=(*found.notes, *lost, *cut_out), unkept=unkept)
    return _with_states(found, manifest, [name for name in chosen if name in names], world)


def _with_states(plan: RollbackPlan, manifest: Manifest, overruled: list[str], world: Guard) -> RollbackPlan:
    """The plan with what it would do to states that are no files."""
    from acting import states
    from guard.ledger.plans import with_states

    if not manifest.states:
        return plan
    units = any(step.path.startswith("/etc/systemd/") for step in plan.work)
    with world.ledger.snapshots.contents(manifest) as pack:
        found = states.plan(
            manifest,
            pack,
            world.ledger.snapshots.states_after(manifest.id),
            world,
            overruled=overruled,
            reload_units=units,
        )
    wrong = [name for name in overruled if not any(step.label == name and step.state in CONFLICTS for step in found)]
    if wrong:
        raise UsageError(
            f"{wrong[0]} is not in conflict", not_done="nothing was changed", hint=f"opsx rollback {plan.of}"
        )
    return with_states(plan, found, overruled)


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


def request_of(plan: RollbackPlan) -> str:
    """The command line that applies exactly this plan; what a person approves when the asker is no person."""
    words = ["opsx", "rollback", plan.of, "--plan", plan.digest]
    if plan.leave_conflicts:
        words.append("--leave-conflicts")
    for path in plan.overruled:
        words += ["--overrule", path]
    return " ".join(quoted(word) for word in words)


def asked(command: str) -> RollbackAsked | None:
    """What a command line made by `request_of` asks for; None for any other command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if len(words) < 5 or words[:2] != ["opsx", "rollback"] or words[3] != "--plan":
        return None
    overruled, leave_conflicts, rest = [], False, words[5:]
    while rest:
        if rest[0] == "--leave-conflicts":
            leave_conflicts, rest = True, rest[1:]
        elif rest[0] == "--overrule" and len(rest) > 1:
            overruled.append(rest[1])
            rest = rest[2:]
        else:
            return None
    return RollbackAsked(words[2], words[4], tuple(overruled), leave_conflicts)


def binding_of(plan: RollbackPlan, request: Request) -> Binding:
    """What a stamp for a rollback holds fast: the plan by its digest, and for whom. Where it is asked from is nothing
    to it."""
    return Binding(
        {
            "command": request.command,
            "target": plan.target,
            "user": os.geteuid(),
            "level": Level.R2.name,
            "rollback plan": plan.digest,
        }
    )


def judged(plan: RollbackPlan) -> Assessment:
    """A rollback as an assessment: R2, because what it undoes may have been relied on since."""
    return _Judged(plan)


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
        request: who asked, from where; its command is `request_of(plan)`.
        stamp: the approval that it uses up; "" for a consent given on the spot.
        binding: the request as it is now, which the stamp has to fit; by default `binding_of`.
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
    from acting import own_files, states
    from guard.hands import restore
    from guard.hands.capture import capture
    from guard.ledger.plans import items_of_work

    if plan_consented.in_the_way and not plan_consented.leave_conflicts:
        return RolledBack(Status.REFUSED, plan_consented)
    fresh = plan(
        plan_consented.of, world, overruled=plan_consented.overruled, leave_conflicts=plan_consented.leave_conflicts
    )
    if fresh.digest != plan_consented.digest:
        raise NotPermitted(
            f"what is there has changed since the plan was made: {_first_difference(plan_consented, fresh)}",
            not_done="nothing was changed",
            hint=f"opsx rollback {plan_consented.of}",
        )
    ledger = world.ledger
    execution = ledger.new_execution()
    taken = capture(items_of_work(fresh), outputs=states.own_outputs(fresh.state_work, world))
    own = ledger.snapshots.save(taken, execution=execution, reason="rollback")
    unfinished = _unfinished(fresh.snapshot, world)
    ledger.begin(
        request,
        judged(fresh),
        profile=Profile.NONE,
        enforced="none",
        stamp=stamp,
        binding=(binding or binding_of(fresh, request)) if stamp else None,
        execution=execution,
        snapshot=own,
    )
    ledger.record(
        "rollback_planned",
        execution=execution,
        snapshot=fresh.snapshot,
        of=fresh.of,
        digest=fresh.digest,
        steps=len(fresh.work) + len(fresh.state_work),
        consent=consent or None,
    )
    manifest = ledger.snapshots.load(fresh.snapshot)

    def on_step(result: StepResult) -> None:
        ledger.note(
            "rollback_step",
            execution=execution,
            path=result.path,
            action=result.action,
            result=result.result,
            text=result.text,
        )
        checkpoint("recorded")

    ours = own_files.watch(ledger)
    with ledger.snapshots.contents(manifest) as pack:
        results = restore.apply(
            fresh, pack, tag=execution, stale_tags=unfinished, on_step=on_step, checkpoint=checkpoint
        )
    results = (*results, *states.put_back(fresh.state_work, world, on_step))
    # It has to be complete before its end is on record: later rollbacks of this one compare with it.
    notes = [*own_files.noted(ours, ledger, execution), *(note for note in (record_after(own, world),) if note)]
    wrong = [result for result in results if result.result != restore.DONE]
    status = Status.FAILED if wrong or fresh.in_the_way or fresh.cannot_return else Status.SUCCEEDED
    recorded = ledger.end(
        execution,
        Outcome(
            status,
            execution=execution,
            exit_code=0 if status == Status.SUCCEEDED else 1,
            snapshot=own,
            enforced="none",
            notes=(
                *(f"{result.path}: {result.text}" for result in wrong),
                *(f"{name}: differs and cannot be put back" for name in fresh.cannot_return),
            ),
        ),
    )
    if not recorded.ok:
        notes.append(f"its end is not on record: {recorded.because}")
    for earlier in unfinished:
        ledger.note("resolved", execution=earlier, outcome="done", evidence=f"gone on with by {execution}")
    return RolledBack(status, fresh, execution, own, results, tuple(notes))


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


class _Judged(Assessment):
    __slots__ = (
        "command",
        "level",
        "decision",
        "profile",
        "ports",
        "peers",
        "reasons",
        "effects",
        "opaque",
        "snapshot_plan",
        "reversible",
        "ambient",
        "env",
        "target",
    )

    def __init__(self, plan: RollbackPlan) -> None:
        self.command = request_of(plan)
        self.level = Level.R2
        self.decision = Decision(Verdict.NEEDS_STAMP, "level", "a rollback changes files and needs a person's consent")
        self.profile = Profile.NONE
        self.ports = ()
        self.peers = ()
        span = (0, len(self.command.encode("utf-8", "surrogatepass")))
        paths = "1 path" if len(plan.work) == 1 else f"{len(plan.work)} paths"
        counted = [paths] if plan.work or not plan.state_work else []
        counted += [f"the state of {step.label}" for step in plan.state_work]
        self.reasons = (Reason("rollback", f"takes back {', '.join(counted)}", span, Level.R2, "docs/snapshots.md"),)
        self.effects = tuple(
            Effect("delete" if step.action == Action.DELETE else "write", step.path) for step in plan.work
        ) + tuple(Effect("service", step.name) for step in plan.state_work)
        self.opaque = ()
        self.snapshot_plan = tuple(PlanItem("path", step.path) for step in plan.work) + tuple(
            PlanItem(step.kind, step.name) for step in plan.state_work
        )
        self.reversible = "partial" if plan.unkept or plan.state_work else "yes"
        self.ambient = {}
        self.env = ()
        self.target = plan.target
