"""Everything that acts: one guarded run from request to record.

`run` reads as the walk of docs/architecture.md: request → facts → assess → decide → begin → run → end. It never
prints and never asks. What may not run comes back as a value with a reason; only broken surroundings raise.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import core
from acting.following import Onlooker
from acting.world import Guard, Ran, Sink, open_guard, open_store, outcome_of, status_of
from guard.bound import MISSING, NO_OPTIONS, Refusal
from guard.errors import CannotRun, CwdGone, GuardError, NotPermitted, StateError, TooManyAsks
from guard.types import Actor, Level, Outcome, Profile, RequestKind, Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from acting.edit import Edit
    from guard.bound import Binding, SnapshotOptions
    from guard.ledger.plans import SnapshotPlan
    from guard.ports import Cancel
    from guard.saved import Output, RollbackPlan, RolledBack, Step
    from guard.types import Assessment, Request

_SAID_PARTS = 1000
"""Pieces of output that are kept of a read of a snapshot plan: about 64 MB."""

READ_TIMEOUT_S = 120
"""A read that takes longer is stopped (DESIGN 9)."""

__all__ = [
    "FileChanged",
    "Guard",
    "Onlooker",
    "Ran",
    "apply_rollback",
    "assess",
    "change_file",
    "open_guard",
    "open_store",
    "plan_rollback",
    "run",
]


def run(
    request: Request,
    guard: Guard,
    *,
    timeout_s: float = READ_TIMEOUT_S,
    save: SnapshotOptions = NO_OPTIONS,
    cancel: Cancel | None = None,
    on_output: Callable[[str, bytes], None] | None = None,
    on_begin: Callable[[str], None] | None = None,
) -> Ran:
    """Takes one request through the whole walk.

    Args:
        timeout_s: for a read; a change is never killed by a timer (`acting.change.CHANGE_LIMIT_S`).
        save: what a change's snapshot holds beside what was judged.
        on_begin: called with the execution's id once its begin is recorded, before anything runs.
        on_output: called with `stdout`/`stderr` and redacted bytes as they come; an `Onlooker` gets of a flood the
            beginning and the end. The output of a change is always followed so.
    Returns:
        What was judged, and an `Outcome` whose status says what happened. `needs_stamp` and `refused` mean that
        nothing ran; `request_id` then names the request that a person can approve.
    Raises:
        BadCommand, UnknownTarget, CwdGone: the request is malformed.
        CannotRun, SandboxUnavailable: the surroundings are broken. Nothing ran.
    Effects: for a read two log entries (begin, end); else one kept request.
    """
    core.require_command(request.command)
    core.require_target(request.target)
    require_cwd(request.cwd)
    assessment = assess(request, guard)
    decision = assessment.decision
    act = _Act(request, assessment, guard, save, cancel, on_output, on_begin)
    if decision.verdict == Verdict.RUN:
        return Ran(assessment, act.read(timeout_s) if assessment.level == Level.R0 else act.change())
    if _is_final(assessment):
        return Ran(assessment, act.not_run())
    return Ran(assessment, act.with_stamp())


def change_file(
    request: Request,
    path: str,
    content: Callable[[bytes], bytes],
    guard: Guard,
    *,
    tells: bool = False,
    on_begin: Callable[[str], None] | None = None,
    checkpoint: Callable[[str], None] = lambda name: None,
) -> FileChanged:
    """Takes a change of one file through the whole walk.

    Args:
        request: who asks, from where, and why; its command is replaced by the text of the change.
        path: absolute, or against the request's folder; `~` is the caller's home. A link is followed, and said.
        content: from what the file holds (nothing when there is none) to what it shall hold. Not called for a file of
            which nothing may be read.
        tells: whether `content` works, and how it fails, tells what the file holds: not done where that is a secret.
        on_begin, checkpoint: see `acting.edit.carry_out`.
    Returns:
        As `run`; with the change itself unless it was refused before the file was read.
    Raises:
        UnknownTarget, CwdGone, CannotEdit: the request is malformed, or the file cannot be changed as a text.
        StateError, NotPermitted: nothing was changed.
    Effects: at most one kept request, or one snapshot, one changed file and its records.
    """
    from acting import edit

    core.require_target(request.target)
    require_cwd(request.cwd)
    looked = edit.look(request, path, guard)
    if _is_final(looked.assessment):
        asked = request.replace(command=looked.assessment.command, kind=RequestKind.FILE_CHANGE)
        outcome = _Act(asked, looked.assessment, guard, NO_OPTIONS, None, None, on_begin).not_run()
        return FileChanged(Ran(looked.assessment, outcome), None)
    change = edit.made(looked, content, guard, tells=tells)
    act = _Change(change.request, change.assessment, guard, NO_OPTIONS, None, None, on_begin, change, checkpoint)
    if change.assessment.decision.verdict == Verdict.RUN:
        outcome = act.change()
    else:
        outcome = act.not_run() if _is_final(change.assessment) else act.with_stamp()
    return FileChanged(Ran(change.assessment, outcome), change)


@dataclass(frozen=True, slots=True)
class FileChanged:
    """What became of a file change."""

    ran: Ran
    edit: Edit | None
    """None when it was refused before the file was read."""


def _is_final(assessment: Assessment) -> bool:
    """Whether no person's yes could let it run."""
    return assessment.decision.verdict == Verdict.REFUSE and not assessment.decision.forceable


def assess(request: Request, guard: Guard) -> Assessment:
    """Judges a request with everything that is known here: what is enforced, and what its paths really are."""
    if request.kind != RequestKind.COMMAND:
        raise ValueError("a file change is no command: change_file")
    from guard.hands.facts import facts_for

    # Looked at for each request: a stop has to reach shells that run for days.
    policy = guard.policy.replace(frozen=guard.ledger.frozen_note())
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

    first = judge()
    facts = facts_for(first, folder, own_paths=policy.own_paths)
    return judge(facts=facts) if facts.real_paths else first


def require_cwd(cwd: str) -> None:
    """Accepts an absolute folder that exists. Raises CwdGone: a folder that is gone is never silently replaced."""
    if not os.path.isabs(cwd) or not os.path.isdir(cwd):
        raise CwdGone(f"{cwd!r} is not an absolute folder that exists", hint="name one that does: --cwd DIR")


# ── going back: `rollback` does the work ─────────────────────────────────────────────────────────────────────────


def snapshot(
    plan: SnapshotPlan,
    guard: Guard,
    *,
    cwd: str,
    actor: str = Actor.AGENT,
    execution: str = "",
    reason: str = "manual",
) -> str:
    """Saves what a plan names, the output of its reads too, and returns the snapshot's id.

    Args:
        execution: the run that it is made for (reason `exec`); "" for one that was asked for.
    Raises:
        SnapshotImpossible: something cannot be saved, or one of the commands did not come to a good end.
        UsageError: one of the commands is not a read.
        StateError: the state folder cannot be used.
    """
    from acting import rollback

    outputs = [_said(name, command, guard, cwd, actor) for name, command in plan.commands]
    return rollback.save(plan, guard, outputs=outputs, execution=execution, reason=reason)


def record_after(snapshot: str, guard: Guard) -> str:
    """Records how a snapshot's paths stand now that its run is over. Returns why not, "" when it did; never raises."""
    from acting import rollback

    return rollback.record_after(snapshot, guard)


def plan_rollback(
    of: str, guard: Guard, *, overruled: Iterable[str] = (), leave_conflicts: bool = False
) -> RollbackPlan:
    """What going back to before an execution (or to a snapshot) would do. Changes nothing; see `rollback.plan`."""
    from acting import rollback

    return rollback.plan(of, guard, overruled=overruled, leave_conflicts=leave_conflicts)


def rollback_differences(plan: RollbackPlan, guard: Guard) -> tuple[tuple[Step, str], ...]:
    """The steps of a plan that do something or are in conflict, each with its difference in words, redacted."""
    from acting import rollback

    return rollback.differences(plan, guard)


def rollback_request(plan: RollbackPlan) -> str:
    """The command that stands for exactly this plan in requests, stamps and records."""
    from acting import rollback

    return rollback.request_of(plan)


def rollback_assessment(plan: RollbackPlan) -> Assessment:
    """A plan as an assessment, for keeping it as a request."""
    from acting import rollback

    return rollback.judged(plan)


def rollback_stamp(plan: RollbackPlan, request: Request, guard: Guard) -> str:
    """The id of a live stamp for exactly this plan, "" when there is none. Raises StateError."""
    from acting import rollback
    from guard.bound import Stamp

    found = guard.ledger.stamps.find(rollback.binding_of(plan, request))
    return found.id if isinstance(found, Stamp) else ""


def apply_rollback(
    plan: RollbackPlan, request: Request, guard: Guard, *, stamp: str = "", consent: str = ""
) -> RolledBack:
    """Carries out exactly the plan that a person consented to; see `rollback.apply`. Asking is the caller's duty.

    Raises:
        NotPermitted: neither a stamp nor a consent, or things changed since the plan was made.
        SnapshotImpossible, StateError: nothing was touched.
    """
    from acting import rollback

    if not stamp and not consent:
        raise NotPermitted("a rollback needs a person's consent", not_done="nothing was changed")
    return rollback.apply(plan, request, guard, stamp=stamp, consent=consent)


def _said(name: str, command: str, guard: Guard, cwd: str, actor: str) -> Output:
    """What one read of a snapshot plan printed, its exact bytes."""
    from guard.errors import SnapshotImpossible, UsageError
    from guard.hands.environment import build_environment
    from guard.saved import Output
    from guard.types import Request

    request = Request(command, cwd=cwd, actor=actor, shell="snapshot")
    core.require_command(command)
    assessment = assess(request, guard)
    if assessment.level > Level.R0:
        raise UsageError(f"--snapshot-cmd {name} is {assessment.level.name}: only reads may be run to save something")
    if assessment.decision.verdict != Verdict.RUN:
        raise SnapshotImpossible(
            f"the read {name} may not run unasked: {assessment.decision.text}",
            hint=f"to go on without it: leave out --snapshot-cmd {name}::…",
        )
    kept: list[bytes] = []
    begun = guard.ledger.begin_read(request, assessment, profile=assessment.profile, enforced="none")
    result = guard.target.run(
        command,
        cwd=cwd,
        profile=assessment.profile,
        ports=assessment.ports,
        env=build_environment(assessment.env).env,
        timeout_s=READ_TIMEOUT_S,
        hidden=guard.hidden,
        on_output=lambda stream, data: kept.append(data) if stream == "stdout" and len(kept) < _SAID_PARTS else None,
    )
    guard.ledger.end(begun.execution, Outcome(status_of(result), execution=begun.execution, exit_code=result.exit_code))
    data = b"".join(kept)
    if result.exit_code != 0 or result.stdout.size_bytes != len(data):
        raise SnapshotImpossible(
            f"the read {name} "
            + ("said too much to keep" if result.exit_code == 0 else f"ended with {result.exit_code}"),
            hint=f"to go on without it: leave out --snapshot-cmd {name}::…",
        )
    return Output("command", name, command, data, 0)


@dataclass(frozen=True, slots=True)
class _Act:
    """One request on its way: what all steps of its walk need."""

    request: Request
    assessment: Assessment
    guard: Guard
    save: SnapshotOptions
    cancel: Cancel | None
    on_output: Callable[[str, bytes], None] | None
    on_begin: Callable[[str], None] | None

    def with_stamp(self) -> Outcome:
        """Runs it if a person approved exactly this; else keeps it and says what is missing."""
        from acting import approving

        try:
            binding = self.bind()
        except CannotRun as error:
            return self.not_run(f"what it would run could not be held fast: {error.message}")
        answer = approving.stamp_for(binding, self.guard)
        if isinstance(answer, Refusal):
            return self.not_run(self.no_stamp() if answer.code == MISSING else answer.text)
        unknown = self.guard.ledger.answers.unresolved(self.request, self.assessment)
        if unknown:
            runs = [f"{run.id} ({shared})" if shared else run.id for run, shared in unknown]
            note = f"how {', '.join(runs)} ended is not known; nothing that touches the same may run before that"
            steps = [f"look, then say: opsx resolve {run.id} --done | --not-done" for run, _ in unknown[:3]]
            return Outcome(
                Status.UNKNOWN,
                profile=self.assessment.profile,
                decision=self.assessment.decision,
                at=self.guard.clock.utc(),
                notes=(note, *steps),
            )
        return self.change(answer.id)

    def bind(self) -> Binding:
        """The request as it is now."""
        from acting import approving

        return approving.bind(self.request, self.assessment, self.guard, self.save)

    def no_stamp(self) -> str:
        """What is to be said where nobody approved this."""
        return ""

    def keep(self) -> str:
        """Keeps the request for a person and returns its id. Raises StateError, TooManyAsks."""
        from acting import approving

        environment = approving.environment_to_keep(self.assessment, self.guard)
        return self.guard.ledger.keep_request(self.request, self.assessment, self.save, environment)

    def change(self, stamp: str = "") -> Outcome:
        """Carries it out: snapshot, begin, witness, end."""
        from acting import approving, change

        plan = approving.plan_of(self.request, self.assessment, self.save)
        execution = self.guard.ledger.new_execution()

        def saved() -> str:
            return snapshot(
                plan,
                self.guard,
                cwd=self.request.cwd,
                actor=self.request.actor,
                execution=execution,
                reason="exec",
            )

        return change.carry_out(
            self.request,
            self.assessment,
            self.guard,
            execution=execution,
            save=saved if plan.items or plan.commands else None,
            stamp=stamp,
            bind=self.bind if stamp else None,
            cancel=self.cancel,
            on_output=self.on_output,
            on_begin=self.on_begin,
        )

    def not_run(self, because: str = "") -> Outcome:
        """Keeps the request for a person, where one could still say yes, and names it."""
        decision = self.assessment.decision
        refused = decision.verdict == Verdict.REFUSE
        request_id: str | None = None
        notes = [because] if because else []
        notes += self._denied()
        if self.request.actor != Actor.RUNBOOK and (decision.forceable or not refused):
            try:
                request_id = self.keep()
            except (StateError, TooManyAsks) as error:
                notes.append(f"the request could not be kept: {error.message}")
        return Outcome(
            Status.REFUSED if refused else Status.NEEDS_STAMP,
            request_id=request_id,
            profile=self.assessment.profile,
            decision=decision,
            at=self.guard.clock.utc(),
            notes=tuple(notes),
        )

    def _denied(self) -> list[str]:
        """What a person said to the same before, so that the asker is told too."""
        try:
            denial = self.guard.ledger.answers.denial_of(self.request, self.assessment)
        except StateError:
            return []
        if denial is None:
            return []
        reason = f": {self.guard.redactor.text(denial.reason)}" if denial.reason else ""
        return [f"you denied this at {denial.at}{reason}"]

    def read(self, timeout_s: float) -> Outcome:
        """Runs it in its sandbox profile, begun and ended on record as far as the state folder allows."""
        from guard.hands.environment import build_environment

        guard, assessment = self.guard, self.assessment
        enforced = guard.enforcement()
        profile = assessment.profile if assessment.profile in enforced.profiles else Profile.NONE
        child = build_environment(assessment.env)
        for value in child.secrets:
            guard.redactor.add(value)
        # `enforced` is a plan here; the end says what held.
        at = guard.clock.utc()
        begun = guard.ledger.begin_read(
            self.request,
            assessment,
            profile=profile,
            enforced=enforced.mechanism if profile != Profile.NONE else "none",
        )
        if self.on_begin is not None:
            self.on_begin(begun.execution)
        sink = Sink(guard, begun.execution, self.on_output)
        try:
            result = guard.target.run(
                self.request.command,
                cwd=self.request.cwd,
                profile=profile,
                ports=assessment.ports,
                env=child.env,
                timeout_s=timeout_s,
                hidden=guard.hidden,
                cancel=self.cancel,
                on_output=sink,
            )
        except GuardError as error:
            guard.ledger.end(begun.execution, Outcome(Status.FAILED, execution=begun.execution, notes=(error.message,)))
            raise
        outcome = outcome_of(result, begun.execution, guard, sink).replace(at=at, decision=assessment.decision)
        recorded = guard.ledger.end(begun.execution, outcome)
        # A begin that failed is written together with the end; only what is missing after that is missing.
        return outcome.replace(recorded=recorded.ok, not_recorded_because=recorded.because)


@dataclass(frozen=True, slots=True)
class _Change(_Act):
    """One file change on its way."""

    edit: Edit
    checkpoint: Callable[[str], None]

    def bind(self) -> Binding:
        """The change and its file as they are now."""
        from acting import edit

        return edit.binding_of(self.edit, self.guard)

    def no_stamp(self) -> str:
        """Which approval of another change of the same file there is."""
        from acting import edit

        return "; ".join(edit.other_approvals(self.edit, self.guard))

    def keep(self) -> str:
        """Keeps the new content too."""
        return self.guard.ledger.keep_request(self.request, self.assessment, content=self.edit.content)

    def change(self, stamp: str = "") -> Outcome:
        """Carries it out: snapshot, begin, one rename, end."""
        from acting import edit

        return edit.carry_out(
            self.edit,
            self.guard,
            execution=self.guard.ledger.new_execution(),
            stamp=stamp,
            on_begin=self.on_begin,
            checkpoint=self.checkpoint,
        )
