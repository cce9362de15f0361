"""Carrying out one approved change: snapshot, durable begin, a witness that outlives us, and a recorded end.

The order is the promise. Nothing is touched before the snapshot holds; nothing runs before the begin is on disk, and
that record is the stamp's consumption; the process that runs it is a witness which records the end by itself, so that
a closed terminal, a crash of ours or a host that goes away loses neither the change nor its outcome. `execution` is
the face to all of this; nothing here prints or asks.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from acting import deadman
from acting.world import own_python
from guard.errors import CannotRun, GuardError, SnapshotImpossible
from guard.types import Captured, Outcome, Profile, Request, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from acting.world import Guard
    from guard.bound import Binding
    from guard.hands.cancel import CancelToken
    from guard.hands.witness import Emit, Witness
    from guard.ledger.plans import SnapshotPlan
    from guard.ports import Cancel
    from guard.types import Assessment

CHANGE_LIMIT_S = 600
"""How long a shell waits for a change. Then it goes on by itself, `running`; no timer ever kills it."""

STOPPING_S = 8.0
"""A change that is asked to stop gets TERM, two seconds, KILL; this long its record is waited for."""

UNSAFE_TO_INTERRUPT = {
    **dict.fromkeys(
        ("dpkg", "apt", "apt-get", "aptitude", "dpkg-reconfigure", "unattended-upgrade", "do-release-upgrade"),
        "a package database left half configured (dpkg(1), --audit)",
    ),
    **dict.fromkeys(
        ("rpm", "dnf", "yum", "microdnf", "zypper", "pacman", "apk", "rpm-ostree", "transactional-update"),
        "a package transaction left half done",
    ),
    **dict.fromkeys(
        ("fsck", "e2fsck", "xfs_repair", "btrfs", "zpool", "zfs", "resize2fs", "xfs_growfs", "tune2fs"),
        "a file system left half repaired or resized",
    ),
    **dict.fromkeys(("mkfs", "mkswap", "dd", "wipefs", "badblocks"), "a device left half written"),
    **dict.fromkeys(
        ("pvmove", "lvconvert", "lvresize", "lvreduce", "vgcfgrestore", "mdadm", "cryptsetup", "parted", "sfdisk"),
        "a volume left half converted",
    ),
    **dict.fromkeys(
        ("flashrom", "fwupdmgr", "update-initramfs", "dracut", "mkinitcpio", "grub-install", "update-grub"),
        "a machine that may not start again",
    ),
    **dict.fromkeys(
        ("pg_upgrade", "mysql_upgrade", "mariadb-upgrade", "pg_restore", "alembic", "flyway", "liquibase", "goose"),
        "a database left between two versions",
    ),
    **dict.fromkeys(("terraform", "tofu", "pulumi", "helm"), "a state file that no longer says what exists"),
}
"""Programs that must not be stopped half-way, and what would be left. A prefix such as `mkfs.ext4` counts too."""


def unsafe_to_interrupt(programs: tuple[str, ...]) -> str:
    """What would be left if a change with these programs were stopped half-way; "" when stopping is safe."""
    for program in programs:
        name = os.path.basename(program)
        left = UNSAFE_TO_INTERRUPT.get(name) or UNSAFE_TO_INTERRUPT.get(name.partition(".")[0])
        if left:
            return f"{name}: {left}"
    return ""


def carry_out(
    request: Request,
    assessment: Assessment,
    guard: Guard,
    *,
    execution: str,
    save: Callable[[], str] | None,
    stamp: str,
    bind: Callable[[], Binding] | None,
    limit_s: float = CHANGE_LIMIT_S,
    cancel: Cancel | None = None,
    on_output: Callable[[str, bytes], None] | None = None,
    on_begin: Callable[[str], None] | None = None,
    dead_man_s: int = 0,
    plan: SnapshotPlan | None = None,
) -> Outcome:
    """Runs one change that may run: snapshot → begin → gate → end.

    Args:
        save: makes the snapshot and returns its id; None when there is nothing to save ("no known way back").
        execution: the id that it will have.
        stamp: the stamp that the begin consumes; "" where the mode lets R1 run without one.
        bind: resolves the request once more, right before the begin, so that a change since the approval is seen.
        limit_s: after this long the outcome is `running` and the change goes on.
        cancel: stops the change if that is safe, and detaches it otherwise.
        dead_man_s: after so many seconds it is taken back unless it is confirmed (`acting.deadman`); 0 for never.
        plan: what the snapshot is made of; needed with `dead_man_s`.
    Returns:
        The outcome. `snapshot_failed`: nothing ran and the stamp still stands.
    Raises:
        StateError: the begin could not be recorded, so nothing ran.
        NotPermitted: the stamp was used, revoked or expired in the meantime; nothing ran.
        CannotRun: the witness could not be started; nothing ran.
    """
    at = guard.clock.utc()
    snapshot = None
    if save is not None:
        try:
            snapshot = save()
        except SnapshotImpossible as error:
            return _no_way_back(error, at, assessment)
    armed = None
    if dead_man_s and plan is not None:
        try:
            armed = deadman.arm(execution, snapshot, dead_man_s, plan, guard)
        except CannotRun as error:
            return _no_way_back(error, at, assessment)
    with deadman.stood_down_unless_begun(armed, guard):
        witness = _start_witness(execution)
        try:
            guard.ledger.begin(
                request,
                assessment,
                profile=Profile.NONE,
                enforced="none",
                stamp=stamp,
                binding=bind() if bind is not None else None,
                execution=execution,
                snapshot=snapshot or "",
                owner=(witness.pid, str(witness.start)),
            )
        except BaseException:
            witness.close_gate()
            raise
    if on_begin is not None:
        on_begin(execution)
    witness.open_gate(_order(request, assessment, guard, execution, snapshot, dead_man=armed is not None))
    outcome = _follow(witness, execution, assessment, guard, limit_s, cancel, on_output)
    if armed is not None:
        outcome = outcome.replace(notes=(*outcome.notes, deadman.waiting_words(armed, guard)))
    return outcome.replace(snapshot=snapshot, stamp=stamp or None, at=at, decision=assessment.decision)


def _no_way_back(error: GuardError, at: str, assessment: Assessment) -> Outcome:
    """What was to make the change undoable could not be made; nothing ran."""
    notes = tuple(part for part in (error.message, error.hint) if part)
    return Outcome(Status.SNAPSHOT_FAILED, at=at, decision=assessment.decision, notes=notes)


def _start_witness(execution: str) -> Witness:
    from guard.hands.witness import Witness

    return Witness(own_python(f"from acting import change; sys.exit(change.witness({execution!r}))"))


def _order(
    request: Request, assessment: Assessment, guard: Guard, execution: str, snapshot: str | None, *, dead_man: bool
) -> dict[str, Any]:
    from guard.hands.environment import build_environment

    child = build_environment(assessment.env)
    return {
        "execution": execution,
        "command": request.command,
        "cwd": request.cwd,
        "env": child.env,
        "secrets": [*child.secrets, *guard.redactor.known()],
        "outputs_folder": guard.outputs_folder,
        "snapshot": snapshot,
        "keeping": guard.policy.keeping.as_fields() if guard.policy.keeping is not None else None,
        "dead_man": dead_man,
    }


def _follow(
    witness: Witness,
    execution: str,
    assessment: Assessment,
    guard: Guard,
    limit_s: float,
    cancel: Cancel | None,
    on_output: Callable[[str, bytes], None] | None,
) -> Outcome:
    """Listens to the end, or lets go. What is said here is never more than what is on record."""
    end = witness.follow(limit_s, cancel, on_output)
    if end is not None:
        return _outcome_of(end, execution)
    notes: list[str] = []
    if cancel is not None and cancel.is_set():
        left = unsafe_to_interrupt(tuple(getattr(assessment, "programs", ())))
        if not left:
            witness.stop()
            end = witness.follow(STOPPING_S, None, on_output)
            if end is not None:
                return _outcome_of(end, execution)
            notes.append("it was asked to stop and has not ended yet")
        else:
            notes.append(f"not stopped, it goes on by itself: stopping would leave {left}")
    witness.let_go()
    recorded = guard.ledger.show(execution).execution
    status = recorded.status if recorded is not None else Status.UNKNOWN
    if status == Status.RUNNING:
        guard.ledger.note("running", execution=execution)
        notes.append(f"it is still running: opsx wait {execution}")
    elif status == Status.UNKNOWN:
        notes.append("its end is not on record: look at what it was to change before anything else")
    return Outcome(
        status,
        execution=execution,
        exit_code=recorded.exit_code if recorded is not None else None,
        recorded=True,
        notes=tuple(notes),
    )


def _outcome_of(end: dict[str, Any], execution: str) -> Outcome:
    def captured(name: str) -> Captured:
        stream = end[name]
        return Captured(stream["text"], stream["size_bytes"], stream["truncated"], stream["undecodable_bytes"])

    return Outcome(
        end["status"],
        execution=execution,
        exit_code=end["exit_code"],
        output_file=end["output_file"],
        recorded=end["recorded"],
        not_recorded_because=end["not_recorded_because"],
        duration_ms=end["duration_ms"],
        notes=tuple(end["notes"]),
        stdout=captured("stdout"),
        stderr=captured("stderr"),
    )


def witness(execution: str) -> int:
    """The witness process: waits at its gate, runs the change, records its end. Returns its exit code.

    A gate that closes without an order after the begin was recorded (its owner died in between) is recorded too: then
    nothing ran, and nobody has to wonder.
    """
    from guard.hands.witness import NEVER_BEGAN, serve

    code = serve(_witnessed)
    if code == NEVER_BEGAN:
        from acting import world
        from guard.redact import Redactor

        store = world.open_store(Redactor())
        begun = store.show(execution).execution
        if begun is not None and begun.pid == os.getpid() and begun.status == Status.RUNNING:
            note = "nothing ran: what asked for it ended before it could begin"
            store.end(execution, Outcome(Status.CANCELLED, execution=execution, notes=(note,)))
    return code


def _witnessed(order: dict[str, Any], emit: Emit, token: CancelToken) -> dict[str, Any]:
    from acting import following, own_files, snapshots, world
    from guard.clock import SystemClock
    from guard.hands.targets.local import LocalTarget
    from guard.keeping import Keeping
    from guard.redact import Redactor

    redactor = Redactor(order["secrets"])
    keeping = Keeping(**order["keeping"]) if order["keeping"] is not None else None
    guard = world.Guard(
        LocalTarget(),
        world.open_store(redactor, keeping),
        redactor,
        SystemClock(),
        outputs_folder=order["outputs_folder"],
    )
    execution = order["execution"]
    sink = world.Sink(guard, execution, following.Onlooker(emit), live=True)
    ours = own_files.watch(guard.ledger)
    try:
        result = guard.target.run(
            order["command"],
            cwd=order["cwd"],
            profile=Profile.NONE,
            env=order["env"],
            timeout_s=float(1 << 30),
            cancel=token,
            on_output=sink,
        )
        outcome = world.outcome_of(result, execution, guard, sink)
    except GuardError as error:
        outcome = Outcome(Status.FAILED, execution=execution, notes=(redactor.text(error.message),))
    if order["dead_man"]:
        deadman.change_ended(execution, guard)
    notes = list(outcome.notes)
    notes += own_files.noted(ours, guard.ledger, execution)
    if order["snapshot"]:
        fault = snapshots.record_after(order["snapshot"], guard)
        notes += [fault] if fault else []
    recorded = guard.ledger.end(execution, outcome.replace(notes=tuple(notes)))
    return {
        "status": outcome.status,
        "exit_code": outcome.exit_code,
        "output_file": outcome.output_file,
        "duration_ms": outcome.duration_ms,
        "recorded": recorded.ok,
        "not_recorded_because": recorded.because,
        "notes": notes,
        **{
            name: {
                "text": captured.text,
                "size_bytes": captured.size_bytes,
                "truncated": captured.truncated,
                "undecodable_bytes": captured.undecodable_bytes,
            }
            for name, captured in (("stdout", outcome.stdout), ("stderr", outcome.stderr))
        },
    }
