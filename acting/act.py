"""One request on its way: looked up, kept, or carried out; a command (`Act`) or a file change (`Change`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from acting.saving import snapshot
from acting.world import Sink, outcome_of
from guard.bound import MISSING, Refusal
from guard.errors import CannotRun, GuardError, StateError, TooManyAsks
from guard.types import Actor, Outcome, Profile, Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from acting.edit import Edit
    from acting.world import Guard
    from guard.bound import Binding, SnapshotOptions
    from guard.ports import Cancel
    from guard.types import Assessment, Request


@dataclass(frozen=True, slots=True)
class Act:
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
        from acting import approving, change, deadman

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
            dead_man_s=deadman.seconds_for(self.assessment, self.guard),
            plan=plan,
        )

    def not_run(self, because: str = "") -> Outcome:
        """Keeps the request for a person, where one could still say yes, and names it."""
        decision = self.assessment.decision
        refused = decision.verdict == Verdict.REFUSE
        request_id: str | None = None
        sick_state = ""
        notes = [because] if because else []
        notes += self._denied()
        if self.request.actor != Actor.RUNBOOK and (decision.forceable or not refused):
            try:
                request_id = self.keep()
            except (StateError, TooManyAsks) as error:
                next_step = f"; {error.hint}" if error.hint else ""
                notes.append(f"the request could not be kept: {error.message}{next_step}")
                sick_state = error.message if isinstance(error, StateError) else ""
        return Outcome(
            Status.REFUSED if refused else Status.NEEDS_STAMP,
            request_id=request_id,
            profile=self.assessment.profile,
            decision=decision,
            at=self.guard.clock.utc(),
            notes=tuple(notes),
            not_recorded_because=sick_state,
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
        masked = assessment.decision.code == "read-masked"
        # `enforced` is a plan here; the end says what held. Only what needs closed keys runs in a namespace.
        planned = "seccomp" if enforced.mechanism == "userns" and not masked else enforced.mechanism
        at = guard.clock.utc()
        begun = guard.ledger.begin_read(
            self.request,
            assessment,
            profile=profile,
            enforced=planned if profile != Profile.NONE else "none",
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
                masked=masked,
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
class Change(Act):
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
