"""The dead man: takes a change back by itself unless a person confirms it over a connection opened after it.

For changes that can cut the connection they are made over. Before the change begins, something that outlives us has
said on record that it waits: a timer of systemd (`acting.timer`) where that is the manager here, else a helper process
that belongs to no terminal and no session of ours. It opens the records by itself, and waits for one answer: confirmed,
taken back, or stood down because nothing ran. Which of these it is stands in a file that only the first one can make.
Nothing here prints or asks.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from acting import timer
from acting.world import own_python
from guard.clock import utc_text
from guard.errors import CannotRun, GuardError, StateError
from guard.ledger import claims
from guard.saved import CONFLICTS
from guard.types import Actor, Request, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from acting.world import Guard
    from guard.ledger.plans import SnapshotPlan
    from guard.saved import Manifest, RollbackPlan
    from guard.types import Assessment

DEFAULT_S = 120
MOST_S = 3600
LEAST_S = 5
ARMING_S = 15.0
"""How long its word is waited for; without it the change does not begin."""
TICK_S = 0.25
LATER = 2_000
"""Entries of the log in which changes that came after this one are looked for."""
TRIES = 5
RECORDED_TRIES = 2
"""After so many that sick records were in the way of, it is done without them."""
AGAIN_S = 3.0
ARMED, ENDED, CONFIRMED, FIRED, STOOD_DOWN = (
    "deadman_armed",
    "deadman_change_ended",
    "deadman_confirmed",
    "deadman_fired",
    "deadman_stood_down",
)
BEGINS = "begins"
SHELL = "deadman"
"""The way in of what it does itself, which no other dead man watches over."""


class Armed(NamedTuple):
    """A dead man as the log has it."""

    execution: str
    deadline_at: str
    """RFC 3339."""
    connection: str
    """What SSH_CONNECTION was where the change was asked for."""
    pid: int
    """Of the helper; of systemd (1) where that waits."""
    pid_start: str
    boot: str
    unit: str = ""
    """The timer that waits, "" where a helper does."""


def seconds_for(assessment: Assessment, guard: Guard) -> int:
    """After how many seconds this change is taken back; 0 when it is none of a dead man's."""
    return guard.dead_man_s if guard.connection and getattr(assessment, "cuts_off", False) else 0


def words(assessment: Assessment, guard: Guard) -> tuple[str, ...]:
    """What a person is told before a yes: that it is taken back by itself, and what of it nothing could bring back."""
    if not guard.connection:
        return ()
    said = []
    if seconds := seconds_for(assessment, guard):
        said.append(f"taken back by itself after {seconds} s unless opsx confirm comes over a new connection")
    lost = [cut.why for cut in getattr(assessment, "cuts", ()) if not cut.saved]
    if lost:
        said.append(f"may cut this connection ({'; '.join(lost)}); nothing is known that could bring it back")
    return tuple(said)


def seconds_left(armed: Armed, guard: Guard) -> int:
    """Until it is taken back; 0 when that is due."""
    return max(0, round(left_s(armed, guard)))


def left_s(armed: Armed, guard: Guard) -> float:
    """Until it is taken back; below 0 when that is overdue."""
    return _epoch_s(armed.deadline_at) - _epoch_s(guard.clock.utc())


def waiting_words(armed: Armed, guard: Guard) -> str:
    """How long is left, and what to do, for who asked for the change."""
    left, at = seconds_left(armed, guard), armed.deadline_at[11:19]
    return (
        f"taken back in {left} s, at {at} UTC, unless you open a NEW connection and run there: "
        f"opsx confirm {armed.execution}"
    )


def arm(execution: str, snapshot: str | None, seconds: int, plan: SnapshotPlan, guard: Guard) -> Armed:
    """Starts the helper and returns once it has said on record that it waits.

    Args:
        snapshot: what it restores.
        plan: what should be in it.
    Raises:
        CannotRun: there is nothing that it could restore, or it does not answer. Nothing may run then.
    """
    off = "a person can leave it out: opsx exec --dead-man 0"
    missed = _not_saved(snapshot, plan, guard)
    if missed:
        raise CannotRun(f"{missed}, so it could not be taken back if it cuts this connection", hint=off)
    unit = ""
    try:
        unit = _start(execution, str(snapshot), seconds, guard.connection)
        deadline = time.monotonic() + ARMING_S
        while time.monotonic() < deadline:
            armed = armed_for(execution, guard)
            if armed is not None and is_alive(armed):
                return armed
            time.sleep(TICK_S / 5)
    except (OSError, subprocess.SubprocessError, StateError) as error:
        raise CannotRun(f"the process that would take it back could not be started: {error}", hint=off) from error
    stand_down(execution, guard)
    if unit:
        timer.stop(unit)
    raise CannotRun("the process that would take it back did not answer", hint=off)


def _not_saved(snapshot: str | None, plan: SnapshotPlan, guard: Guard) -> str:
    if snapshot is None:
        return "nothing of what it changes was saved"
    if plan.left_states:
        return f"the state of {plan.left_states[0]} was left out"
    manifest = guard.ledger.snapshots.load(snapshot)
    kept = {(output.kind, output.name) for output in manifest.outputs}
    if not_kept := _not_kept(manifest):
        return not_kept
    for item in plan.items:
        if item.kind in ("service", "state") and (item.kind, item.object) not in kept:
            why = next((text for text in manifest.unsaved if item.object in text), "")
            return why or f"the state of {item.object} is not saved"
    return ""


def _not_kept(manifest: Manifest) -> str:
    """Why a file that decides who comes in would not come back; "" when all of these would."""
    from guard.judge.cutpaths import decides

    for node in manifest.hash_only:
        if decides(node.path):
            return f"what {node.path} holds is a secret, which no snapshot keeps"
    for path in manifest.left_out:
        if decides(path):
            return f"{path} was left out of what is saved"
    return ""


def _start(execution: str, snapshot: str, seconds: int, connection: str) -> str:
    """Starts the wait where the end of this session does not reach it. Returns its timer, "" for a helper process."""
    keep = {name: os.environ[name] for name in ("OPSAGENT_HOME",) if name in os.environ}
    deadline_ms = int((time.time() + seconds) * 1000)
    unit = timer.start(
        execution,
        seconds,
        at_start=_own("begin", execution, snapshot, seconds, connection, deadline_ms),
        at_end=_own("at_deadline", execution, snapshot),
        keep=keep,
    )
    if unit:
        return unit
    # Twice: the helper must not be a child of ours, whose end somebody might wait for.
    twice = [
        "/bin/sh",
        "-c",
        'exec 3>&-; "$@" & exit 0',
        "sh",
        *_own("serve", execution, snapshot, seconds, connection),
    ]
    subprocess.run(
        twice,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **keep},
        start_new_session=True,
        timeout=ARMING_S,
        check=True,
    )
    return ""


def _own(name: str, *order: str | int) -> list[str]:
    return own_python(f"from acting import deadman; sys.exit(deadman.{name}({', '.join(map(repr, order))}))")


def is_alive(armed: Armed) -> bool:
    """Whether it waits, or is at work."""
    if armed.unit:
        return timer.is_waiting(armed.unit)
    from guard.hands.liveness import ProcLiveness

    return ProcLiveness().alive(armed.boot, armed.pid, armed.pid_start)


def armed_for(execution: str, guard: Guard) -> Armed | None:
    """The dead man of an execution as it is on record; None when it has none. Raises StateError."""
    armed = None
    for entry in guard.ledger.show(execution).entries:
        if entry.get("kind") == ARMED and entry.get("execution") == execution:
            # A helper counts where systemd had said that it waits, and then could not start what takes it back.
            armed = Armed(
                execution,
                str(entry.get("deadline_at")),
                str(entry.get("connection") or ""),
                int(str(entry.get("pid") or 0)),
                str(entry.get("pid_start") or ""),
                str(entry.get("boot") or ""),
                str(entry.get("unit") or ""),
            )
    return armed


def ended_as(execution: str, guard: Guard) -> str:
    """How its wait ended (`guard.ledger.claims`), "" while it goes on. Raises StateError."""
    return claims.outcome_of(guard.ledger.answers.folder, execution)


def change_ended(execution: str, guard: Guard) -> None:
    """Says that the change is over, by the boot clock: connections that open from now on can confirm it. Never raises.

    Where it cannot be said, nothing confirms, and the change is taken back.
    """
    guard.ledger.note(ENDED, execution=execution, boot_s=guard.clock.boot_s())


def stand_down(execution: str, guard: Guard) -> None:
    """Ends it because the change never began. Never raises: at its end it sees by itself that nothing ran."""
    try:
        if claims.claim(guard.ledger.answers.folder, execution, claims.STOOD_DOWN):
            guard.ledger.note(STOOD_DOWN, execution=execution, reason="the change never began")
        armed = armed_for(execution, guard)
    except StateError:
        return
    if armed is not None and armed.unit:
        timer.stop(armed.unit)


@contextlib.contextmanager
def stood_down_unless_begun(armed: Armed | None, guard: Guard) -> Iterator[None]:
    """Stands it down where what is done inside, the begin of its change, raises."""
    try:
        yield
    except BaseException:
        if armed is not None:
            stand_down(armed.execution, guard)
        raise


def _epoch_s(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


# ── who waits ────────────────────────────────────────────────────────────────────────────────────────────────────


def serve(execution: str, snapshot: str, seconds: int, connection: str) -> int:
    """The helper process: says that it waits, waits, and takes the change back unless somebody was first."""
    import signal

    from acting import unrecorded, world

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    until = time.monotonic() + seconds
    guard = world.open_guard()
    _say_armed(execution, snapshot, seconds, connection, int((time.time() + seconds) * 1000), os.getpid(), "", guard)
    while (left := until - time.monotonic()) > 0:
        # Records that cannot be read now may be at the next look; the wait goes on whatever becomes of them.
        with contextlib.suppress(*unrecorded.SICK):
            if ended_as(execution, guard):
                return 0
        time.sleep(min(left, TICK_S))
    return _time_is_up(execution, snapshot, unrecorded.readable(execution))


def begin(execution: str, snapshot: str, seconds: int, connection: str, deadline_ms: int) -> int:
    """What systemd starts first: says that the timer waits, so that a process of this kind is known to work here."""
    from acting import world

    unit = f"{timer.PREFIX}{execution}.timer"
    if not timer.is_waiting(unit):
        return 1
    _say_armed(execution, snapshot, seconds, connection, deadline_ms, 1, unit, world.open_guard())
    return 0


def at_deadline(execution: str, snapshot: str) -> int:
    """What systemd starts when the time is up, and again when that was killed: takes the change back, or goes on."""
    from acting import unrecorded

    guard = unrecorded.readable(execution)
    ended = unrecorded.patiently(lambda: ended_as(execution, guard), TICK_S)
    if ended == claims.FIRED and not _has_rolled_back(execution, guard):
        return _take_back(execution, snapshot, guard)
    return 0 if ended else _time_is_up(execution, snapshot, guard)


def _say_armed(
    execution: str, snapshot: str, seconds: int, connection: str, deadline_ms: int, pid: int, unit: str, guard: Guard
) -> None:
    from guard.hands.liveness import ProcLiveness

    guard.ledger.record(
        ARMED,
        execution=execution,
        snapshot=snapshot,
        seconds=seconds,
        deadline_at=utc_text(deadline_ms),
        connection=connection,
        pid=pid,
        pid_start=ProcLiveness().start_of(pid),
        unit=unit or None,
    )


def _time_is_up(execution: str, snapshot: str, guard: Guard) -> int:
    from acting import unrecorded

    if unrecorded.patiently(lambda: guard.ledger.show(execution).execution, TICK_S) is None:
        stand_down(execution, guard)
        return 0
    if not unrecorded.claim_fired(execution, guard):
        return 0
    return _take_back(execution, snapshot, guard)


def _take_back(execution: str, snapshot: str, guard: Guard) -> int:
    guard.ledger.note(FIRED, execution=execution, snapshot=snapshot, result=BEGINS)
    went_on = _is_running(execution, guard)
    failed = _fire(execution, snapshot, guard)
    if went_on:
        # It can hang on what it cut itself, so nobody waits for its end first; what it did since is taken back then.
        while _is_running(execution, guard):
            time.sleep(TICK_S)
        failed = _fire(execution, snapshot, guard)
    return failed


def result_of(execution: str, guard: Guard) -> str:
    """How taking it back ended: a `guard.types.Status`, or `failed` while it is tried again; "" before. Raises
    StateError."""
    entries = guard.ledger.show(execution).entries
    said = [str(entry.get("result")) for entry in entries if entry.get("kind") == FIRED]
    return next((one for one in reversed(said) if one != BEGINS), "")


def _has_rolled_back(execution: str, guard: Guard) -> bool:
    """Whether a rollback came to its end, good or bad; a try that could not begin is none."""
    entries = guard.ledger.show(execution).entries
    return any(entry.get("kind") == FIRED and (entry.get("rollback") or entry.get("unrecorded")) for entry in entries)


def _is_running(execution: str, guard: Guard) -> bool:
    from acting import unrecorded

    run = unrecorded.patiently(lambda: guard.ledger.show(execution).execution, TICK_S)
    return run is not None and run.status == Status.RUNNING


def _fire(execution: str, snapshot: str, guard: Guard) -> int:
    """Takes it back, and tries again where the surroundings were in the way. Each try is on record."""
    from acting import elders, rollback, rollback_request, unrecorded

    until_s = time.monotonic() + unrecorded.LATEST_S
    attempt = 0
    plan: RollbackPlan | None
    while attempt < TRIES and time.monotonic() < until_s:
        if attempt:
            time.sleep(AGAIN_S)
        attempt, plan = attempt + 1, None
        try:
            further = elders.states(execution, guard)
            plan = _plan(execution, snapshot, further, guard)
            request = Request(rollback_request.request_of(plan), cwd="/", actor=Actor.RUNBOOK, shell=SHELL)
            done = rollback.apply(plan, request, guard, consent="dead man")
        except unrecorded.SICK as error:
            if attempt < RECORDED_TRIES:
                guard.ledger.note(FIRED, execution=execution, snapshot=snapshot, result="failed", text=str(error))
            elif plan is not None:
                with contextlib.suppress(*unrecorded.SICK):
                    return unrecorded.take_back(plan, execution, snapshot, str(error), guard)
            # What cannot even be read is waited for.
            attempt = min(attempt, RECORDED_TRIES)
            continue
        except GuardError as error:
            guard.ledger.note(FIRED, execution=execution, snapshot=snapshot, result="failed", text=error.message)
            continue
        guard.ledger.note(
            FIRED,
            execution=execution,
            snapshot=snapshot,
            result=done.status,
            rollback=done.execution or None,
            text=server_told(snapshot, guard) or None,
        )
        if elders.states(execution, guard) != further:
            # An earlier one was taken back meanwhile, and this one may have put its change in place again.
            continue
        return 0 if done.status == Status.SUCCEEDED else 1
    return 1


def server_told(snapshot: str, guard: Guard) -> str:
    """Has the ssh server read settings that are back. Somebody may have made it read the others meanwhile."""
    from guard.hands import sshserver

    nodes = guard.ledger.snapshots.load(snapshot).nodes
    return sshserver.reread() if any(node.path.startswith(sshserver.SETTINGS) for node in nodes) else ""


def _plan(execution: str, snapshot: str, further: tuple[tuple[str, str], ...], guard: Guard) -> RollbackPlan:
    """All of it, whoever changed which state since: one must be able to come in again.

    What an earlier change left that nobody confirmed is no state to go back to (`acting.elders`).

    Files that others wrote stay, unless what wrote them is a later change that nobody has confirmed either.
    """
    from acting import rollback

    plan = rollback.plan(snapshot, guard, leave_conflicts=True, further=further)
    ours = _written_unconfirmed(execution, guard) if plan.in_the_way else frozenset()
    overruled = [step.label for step in plan.state_conflicts]
    overruled += [step.path for step in plan.steps if step.state in CONFLICTS and step.path in ours]
    if not overruled:
        return plan
    return rollback.plan(snapshot, guard, overruled=overruled, leave_conflicts=True, further=further)


def _written_unconfirmed(execution: str, guard: Guard) -> frozenset[str]:
    """The paths of later changes that had a dead man and that nobody confirmed, as far as their snapshots tell."""
    found: list[str] = []
    is_later = False
    for entry in guard.ledger.audit(LATER):
        one = str(entry.get("execution"))
        if entry.get("kind") != ARMED:
            continue
        if is_later and one != execution and ended_as(one, guard) != claims.CONFIRMED:
            # What a later one lost must not be why this one is never taken back.
            with contextlib.suppress(GuardError):
                found += (node.path for node in guard.ledger.snapshots.load(str(entry.get("snapshot"))).nodes)
        is_later = is_later or one == execution
    return frozenset(found)
