"""A rollback as a request: the command line that names exactly one plan, what a stamp for it holds fast, and how it
is judged. Pure but for the effective user, who is part of what is bound."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from guard.bound import Binding
from guard.judge.cutting import cuts_of
from guard.quoting import quoted
from guard.saved import Action, RollbackAsked
from guard.types import Assessment, Decision, Effect, Level, PlanItem, Profile, Reason, Verdict

if TYPE_CHECKING:
    from guard.saved import RollbackPlan
    from guard.types import Request


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


def title_of(command: str) -> str:
    """A rollback as a person reads it, without the plan's digest; any other command as it is."""
    wanted = asked(command)
    if wanted is None:
        return command
    words = ["opsx", "rollback", wanted.of, *(["--leave-conflicts"] if wanted.leave_conflicts else [])]
    for path in wanted.overruled:
        words += ["--overrule", path]
    return " ".join(quoted(word) for word in words)


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
        "cuts",
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
        self.cuts = tuple(
            cuts_of(
                [step.path for step in plan.work], [(step.kind, step.name) for step in plan.state_work], plan.unkept
            )
        )

    @property
    def cuts_off(self) -> bool:
        """As for a command: whether it can keep a person out, and what is saved before it brings that back."""
        return any(cut.saved for cut in self.cuts)
