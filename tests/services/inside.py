"""Runs one story inside a test's own namespaces: a change through the guard, a look, a rollback, a look again."""

from __future__ import annotations

import json
import subprocess
import sys

import core
import execution
from acting import approving, snapshots, states
from guard.types import Actor, Request


def main() -> None:
    order = json.loads(sys.argv[1])
    guard = execution.open_guard()
    if order["before"]:
        subprocess.run(["bash", "-ec", order["before"]], check=True, stdout=subprocess.DEVNULL)
    request = Request(order["change"], cwd=order["folder"], actor=Actor.PERSON)
    assessment = core.check(order["change"], cwd=order["folder"], actor=Actor.PERSON)
    plan = approving.plan_of(request, assessment)
    foreseen = snapshots.foreseen(plan, guard)
    snapshot = execution.snapshot(plan, guard, cwd=order["folder"], reason="exec")
    first = looks(plan, guard)
    looked = [shown(order["look"])]
    changed = subprocess.run(["bash", "-c", order["change"]], cwd=order["folder"], capture_output=True, text=True)
    snapshots.record_after(snapshot, guard)
    second = looks(plan, guard)
    looked.append(shown(order["look"]))
    if order["disturb"]:
        subprocess.run(["bash", "-ec", order["disturb"]], check=True, stdout=subprocess.DEVNULL)
    back = execution.plan_rollback(snapshot, guard)
    done = execution.apply_rollback(back, request, guard, consent="tty")
    told = {
        "plan": [[item.kind, item.object] for item in plan.items],
        "reversible": assessment.reversible,
        "cuts_off": assessment.cuts_off,
        "foreseen": [list(state) for state in foreseen.states],
        "unsaved": list(foreseen.unsaved),
        "changed": [changed.returncode, changed.stderr],
        "before": first,
        "after": second,
        "steps": {
            step.label: [step.state, [command for command, _ in step.commands], list(step.levels), list(step.lost)]
            for step in back.states
        },
        "status": done.status,
        "results": {result.path: [result.result, result.text] for result in done.results},
        "now": looks(plan, guard),
        "looked": [*looked, shown(order["look"])],
    }
    if order["twice"]:
        # What was in the way of a part is gone with the rest.
        rest = execution.plan_rollback(snapshot, guard)
        second = execution.apply_rollback(rest, request, guard, consent="tty")
        told["twice"] = [second.status, looks(plan, guard), shown(order["look"])]
        told["left"] = len(execution.plan_rollback(snapshot, guard).work)
    elif done.snapshot is not None and done.status != "refused":
        again = execution.plan_rollback(done.snapshot, guard)
        redone = execution.apply_rollback(again, request, guard, consent="tty")
        told["redone"] = [redone.status, looks(plan, guard)]
    print(json.dumps(told))


def shown(look):
    done = subprocess.run(["bash", "-c", look], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def looks(plan, guard):
    found = {}
    for item in plan.items:
        looked = states.look(item.kind, item.object, guard)
        if looked is not None:
            found[item.object] = looked.known if looked.known is not None else looked.why
    return found


if __name__ == "__main__":
    main()
