"""`opsx snapshot` and `opsx rollback`: what was saved, and taking a change back after showing all that it does."""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING

import execution
from acting import deadman
from capabilities.going_back import nothing_named
from capabilities.rollback_shapes import (
    created_object,
    listed_object,
    plan_object,
    result_object,
    snapshot_object,
    state_rows,
)
from cli import surroundings
from cli.ask import consented, paged
from cli.report import as_typed, line, safe, write
from guard.errors import NotPermitted, UsageError
from guard.saved import Action, State
from guard.types import Actor, Mode, Request, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cli.options import Parsed
    from execution import Guard
    from guard.ledger.packs import Listed
    from guard.saved import Manifest, RollbackPlan, RolledBack, Step

_VERBS = {
    Action.WRITE: "write",
    Action.META: "set",
    Action.MAKE: "make",
    Action.LINK: "link",
    Action.DELETE: "delete",
    Action.NONE: "leave",
}
_STATES = {
    State.UNCHANGED: "as the change left it",
    State.DIFFERS: "differs from what was saved",
    State.CHANGED: "CHANGED SINCE by somebody else",
    State.GONE: "GONE SINCE",
    State.BACK: "already back",
    State.EXTRA: "appeared since; stays",
    State.NOT_SAVED: "DIFFERS AND CANNOT BE PUT BACK: its content was not saved",
}
RUN = "run"
"""The action of a result that is about a state."""
_STATE_VERBS = {True: RUN, False: "leave"}
_WHOLE_HUNK = re.compile(r"@@ (-0,0 \+|-\S+ \+0,0 @@)")
"""The one hunk of a file that was not there, or will not be."""
WHOLE_LINES = 5
"""So many lines of such a file are shown."""
MOST_LINES = 20
"""Things that a new snapshot does not hold beyond this many are counted."""


def main(parsed: Parsed) -> int:
    """Dispatches to the verb."""
    if parsed.verb.name == "rollback":
        return rollback(parsed)
    actions = {"create": create, "list": list_all, "show": show, "verify": verify, "prune": prune}
    action = actions.get(parsed.words[0] if parsed.words else "")
    if action is None:
        raise UsageError("say what: create, list, show, verify or prune", hint=parsed.help_line())
    return action(parsed, parsed.words[1:])


# ── snapshots ────────────────────────────────────────────────────────────────────────────────────────────────────


def create(parsed: Parsed, words: list[str]) -> int:
    """Saves the named paths and what the named reads say."""
    from guard.ledger.plans import snapshot_plan

    cwd = surroundings.cwd()
    plan = snapshot_plan(
        (), cwd=cwd, files=words, commands=parsed.many("snapshot-cmd"), leave_out=parsed.many("no-snapshot-of")
    )
    if not plan.items:
        raise UsageError("nothing to save was named", hint="opsx snapshot create PATH…")
    guard = _guard()
    snapshot = execution.snapshot(plan, guard, cwd=cwd, actor=surroundings.actor())
    manifest = guard.ledger.snapshots.load(snapshot)
    if parsed.flag("json"):
        line({**created_object(manifest, guard.redactor.text), "next": f"opsx rollback {snapshot}"})
    else:
        write(f"{snapshot}\n")
        write("".join(f"opsx: {text}\n" for text in _created(manifest)), to_stderr=True)
    return 0


def _created(manifest: Manifest) -> Iterator[str]:
    """What was saved and what was not, for a person."""
    missed = [
        f"NOT saved: the content of {one_line(node.path)}: it is a secret, so only a hash is kept; a rollback sees "
        "that it changed and cannot put it back"
        for node in manifest.hash_only
    ]
    missed += [f"NOT saved: {one_line(path)}: it is left out" for path in manifest.cut_out]
    missed += [
        f"{one_line(node.path)} does not exist: its absence is recorded, and a rollback would remove it"
        for node in manifest.absences
    ]
    yield from missed[:MOST_LINES]
    if len(missed) > MOST_LINES:
        yield f"and {len(missed) - MOST_LINES} more that are not saved: {as_typed(f'opsx snapshot show {manifest.id}')}"
    back = as_typed(f"opsx rollback {manifest.id}")
    kept = len(manifest.nodes) - len(manifest.hash_only) - len(manifest.absences)
    parts = [_paths(kept)] if kept else []
    if manifest.outputs:
        parts.append("what 1 read says" if len(manifest.outputs) == 1 else f"what {len(manifest.outputs)} reads say")
    if parts:
        yield f"saved: {' and '.join(parts)}; back to it: {back}"
    elif manifest.absences:
        yield f"nothing else was recorded; back to it: {back}"
    else:
        yield f"nothing was saved that can be put back; to see whether it changed: {back}"


def list_all(parsed: Parsed, words: list[str]) -> int:
    """Lists the snapshots, newest first."""
    _no_more(words, parsed)
    guard = _guard()
    listed = guard.ledger.snapshots.listed()
    if parsed.flag("json"):
        line({"format": 1, "snapshots": [listed_object(one, guard.redactor.text) for one in listed]})
        return 0
    write("".join(f"{snapshot_row(one)}\n" for one in listed))
    if not listed:
        write("nothing was saved yet\n", to_stderr=True)
    return 0


def snapshot_row(one: Listed) -> str:
    """One snapshot in one line; one that cannot be read begins with a mark."""
    if one.manifest is None:
        return f"! {one.id:14} {safe(one.problem)}"
    manifest = one.manifest
    names = (*manifest.named, *manifest.states)
    roots = ", ".join(one_line(name) for name in names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    paths, data = len(manifest.nodes), manifest.pack_bytes
    size = f"{paths:,} path{'' if paths == 1 else 's'}, {data:,} byte{'' if data == 1 else 's'}"
    return f"  {one.id:14} {manifest.at[:19]}Z  {manifest.execution or manifest.reason:14} {size}: {roots}{more}"


def show(parsed: Parsed, words: list[str]) -> int:
    """Shows what a snapshot holds, without its contents."""
    guard = _guard()
    shape = snapshot_object(guard.ledger.snapshots.load(_one_id(words, parsed)), guard.redactor.text)
    if parsed.flag("json"):
        line(shape)
        return 0
    for name in ("id", "at", "execution", "reason", "target", "pack_bytes", "paths"):
        write(f"{name:12} {shape[name]}\n")
    for node in shape["nodes"]:
        what = f" → {node['link']}" if node["link"] else ""
        kept = "" if node["saved"] or node["kind"] != "file" else "  (hash only)"
        write(f"  {node['mode']} {node['uid']}:{node['gid']} {node['kind']:8} {one_line(node['path'] + what)}{kept}\n")
    for output in shape["outputs"]:
        write(f"  output {output['name']}: {safe(output['command'])}\n")
    for text in shape["unsaved"]:
        write(f"  {safe(text)}\n")
    return 0


def verify(parsed: Parsed, words: list[str]) -> int:
    """Reads snapshots back and says what in them is not what was written; all when none is named."""
    guard = _guard()
    ids = words or sorted(one.id for one in guard.ledger.snapshots.listed())
    found = {snapshot: guard.ledger.snapshots.verify(snapshot) for snapshot in ids}
    damaged = {snapshot: problems for snapshot, problems in found.items() if problems}
    if parsed.flag("json"):
        line(
            {
                "format": 1,
                "verified": len(found),
                "problems": {snapshot: list(problems) for snapshot, problems in damaged.items()},
            }
        )
    else:
        for problems in damaged.values():
            write("".join(f"{safe(problem)}\n" for problem in problems))
        write(f"{len(found) - len(damaged)} of {len(found)} whole\n")
    return 7 if damaged else 0


def prune(parsed: Parsed, words: list[str]) -> int:
    """Removes the oldest snapshots, never one that an unresolved execution needs."""
    _no_more(words, parsed)
    from guard.ledger.packs import KEEP

    keep = parsed.whole_number("keep", KEEP, low=0, high=100_000)
    if keep < KEEP and surroundings.actor() != Actor.PERSON:
        raise NotPermitted(
            f"fewer than {KEEP} snapshots are kept only when a person says so",
            not_done="nothing was removed",
            hint="run it on a terminal",
        )
    removed = _guard().ledger.prune_snapshots(keep=keep)
    if parsed.flag("json"):
        line({"format": 1, "removed": list(removed)})
    else:
        write(f"{len(removed)} removed\n")
    return 0


# ── rollback ─────────────────────────────────────────────────────────────────────────────────────────────────────


def rollback(parsed: Parsed) -> int:
    """Shows what going back would do, asks a person, does exactly that."""
    if len(parsed.words) > 1:
        raise UsageError("name one execution or snapshot", hint="opsx rollback e-…; opsx snapshot list")
    guard = _guard()
    if not parsed.words:
        raise nothing_named(guard)
    plan = execution.plan_rollback(
        parsed.words[0],
        guard,
        overruled=parsed.many("overrule"),
        leave_conflicts=parsed.flag("leave-conflicts"),
    )
    if parsed.value("plan") not in ("", plan.digest):
        raise NotPermitted(
            "what is there has changed since that plan was made",
            not_done="nothing was changed",
            hint=f"opsx rollback {plan.of}",
        )
    differences = execution.rollback_differences(plan, guard)
    as_json = parsed.flag("json")
    shape = plan_object(plan, differences, guard.redactor.text)
    if not as_json:
        paged(preview(plan, dict(differences), socket.gethostname(), full=parsed.flag("full")))
    if plan.in_the_way and not plan.leave_conflicts:
        return _stopped_by_conflicts(plan, shape, as_json=as_json)
    if not plan.does_something:
        partly = bool(plan.in_the_way or plan.cannot_return)
        if as_json:
            status = Status.FAILED if partly else Status.SUCCEEDED
            line({**shape, "status": status, "execution": None, "own_snapshot": None, "results": []})
        return 1 if partly else 0
    _require_changes_allowed(guard)
    request = Request(execution.rollback_request(plan), cwd=surroundings.cwd(), actor=surroundings.actor())
    stamp = execution.rollback_stamp(plan, request, guard)
    consent = ""
    for text in () if as_json else deadman.words(execution.rollback_assessment(plan), guard):
        write(f"opsx: {safe(text)}\n", to_stderr=True)
    if not stamp:
        if as_json or request.actor != Actor.PERSON:
            return _needs_stamp(plan, request, guard, shape, as_json=as_json)
        if not consented(f"take back {_extent(plan)}?"):
            write("opsx: nothing was changed\n", to_stderr=True)
            return 3
        consent = "tty"
    done = execution.apply_rollback(plan, request, guard, stamp=stamp, consent=consent)
    if as_json:
        line({**shape, **result_object(done, guard.redactor.text), "next": f"opsx rollback {done.execution}"})
    else:
        _in_words(done)
        if guard.connection:
            from cli.opsx_confirm import countdown

            countdown(done.execution, guard)
    return 0 if done.status == Status.SUCCEEDED else 1


def preview(plan: RollbackPlan, differences: dict[Step, str], host: str, *, full: bool = False) -> str:
    """The plan for a person: how much it is and what does not come back, then states, then paths with differences.

    Args:
        full: files that come back or go whole are shown to their last line, as all others are.
    """
    lines = [f"rollback of {plan.of} on {plan.target} ({safe(host)}), from snapshot {plan.snapshot}"]
    lines += [f"to change: {_extent(plan)}; what is there now is saved first"] if plan.does_something else []
    back = [step.state for step in plan.steps].count(State.BACK) + [one.state for one in plan.states].count(State.BACK)
    if back:
        lines.append(f"{back} already back")
    if plan.in_the_way:
        lines.append(f"in the way: {_counted(plan.conflicts, plan.state_conflicts)} changed since")
    lines += [f"note: {safe(note)}" for note in plan.notes]
    if plan.cannot_return:
        lines.append(f"{_differ(plan)} and cannot be put back")
    if not plan.does_something and not plan.in_the_way:
        lines.append(f"nothing to do: {_why_nothing(plan)}")
    lines.append("")
    for state in plan.states:
        rows = state_rows(state)
        if rows:
            lines.append(f"{_STATE_VERBS[bool(state.commands)]:7}{one_line(state.label)}  ({_STATES[state.state]})")
            lines += [f"  {one_line(row)}" for row in rows[1:]]
    for step in plan.steps:
        if step not in differences and step.state not in (State.EXTRA, State.NOT_SAVED):
            continue
        lines.append(f"{_VERBS[step.action]:7}{one_line(step.path)}  ({_STATES[step.state]})")
        rows = tuple(text for text in differences.get(step, "").split("\n") if text)
        lines += [f"    {one_line(text)}" for text in (rows if full else _whole_in_short(rows, plan.of))]
    return "\n".join(lines).rstrip("\n") + "\n"


def _whole_in_short(rows: tuple[str, ...], of: str) -> tuple[str, ...]:
    """The rows of one difference; of a file that comes back or goes whole only the first lines."""
    hunks = [at for at, row in enumerate(rows) if row.startswith("@@ ")]
    if len(hunks) != 1 or not _WHOLE_HUNK.match(rows[hunks[0]]) or len(rows) - hunks[0] - 1 <= WHOLE_LINES + 1:
        return rows
    shown = rows[: hunks[0] + 1 + WHOLE_LINES]
    return (*shown, f"… {len(rows) - len(shown)} more lines; all of it: {as_typed(f'opsx rollback {of} --full')}")


def _why_nothing(plan: RollbackPlan) -> str:
    if len(plan.cannot_return) == len(plan.steps) + len(plan.states) > 0:
        return "nothing can be put back"
    whole = not plan.cannot_return and not plan.notes and not any(step.state == State.EXTRA for step in plan.steps)
    return "everything is as it was" if whole else "all that can be put back is as it was"


def _stopped_by_conflicts(plan: RollbackPlan, shape: dict[str, object], *, as_json: bool) -> int:
    hint = f"opsx rollback {plan.of} --leave-conflicts, or --overrule PATH for each that shall go back all the same"
    if as_json:
        line({**shape, "status": Status.REFUSED, "execution": None, "own_snapshot": None, "results": [], "next": hint})
    else:
        write(
            f"opsx: stopped: {_counted(plan.conflicts, plan.state_conflicts)} changed since; nothing was changed\n"
            f"opsx: next: {as_typed(hint)}\n",
            to_stderr=True,
        )
    return 1


def _require_changes_allowed(guard: Guard) -> None:
    policy = guard.policy
    if policy.frozen or policy.mode == Mode.READ_ONLY:
        why = f"changes are frozen: {policy.frozen}" if policy.frozen else "this target is read-only"
        raise NotPermitted(why, not_done="nothing was changed", hint="opsx thaw" if policy.frozen else "")


def _needs_stamp(plan: RollbackPlan, request: Request, guard: Guard, shape: dict[str, object], *, as_json: bool) -> int:
    """Keeps the request, so that a person can approve exactly this plan from any terminal."""
    request_id = guard.ledger.keep_request(request, execution.rollback_assessment(plan))
    step = f"opsx approve {request_id}"
    if as_json:
        line(
            {
                **shape,
                "status": Status.NEEDS_STAMP,
                "execution": None,
                "own_snapshot": None,
                "results": [],
                "request": request_id,
                "next": step,
            }
        )
    else:
        write(
            f"opsx: a rollback needs a person's consent; nothing was changed\nopsx: next: {as_typed(step)}\n",
            to_stderr=True,
        )
    return 3


def _in_words(done: RolledBack) -> None:
    wrong = [result for result in done.results if result.result != "done"]
    for result in wrong:
        write(f"{result.result:9} {one_line(result.path)}: {one_line(result.text)}\n")
    write(f"back and verified: {_verified(done)}\n")
    if done.plan.cannot_return:
        write(f"{_differ(done.plan)} and could not be put back\n")
    for note in done.notes:
        write(f"opsx: {safe(note)}\n", to_stderr=True)
    back = as_typed(f"opsx rollback {done.execution}")
    write(f"opsx: recorded as {done.execution}; to take this back: {back}\n", to_stderr=True)


# ── small things ─────────────────────────────────────────────────────────────────────────────────────────────────


def one_line(text: str) -> str:
    """Foreign text on one line: redacted, and a line feed in a file's name is made visible like all else."""
    from guard import redact, render

    return render.visible_line(redact.Redactor().text(text))


def _paths(count: int) -> str:
    return "1 path" if count == 1 else f"{count} paths"


def _counted(paths: Sequence[object], states: Sequence[object]) -> str:
    """How many paths and states, without the kind that there is none of."""
    parts = [_paths(len(paths))] if paths or not states else []
    parts += ["1 state" if len(states) == 1 else f"{len(states)} states"] if states else []
    return " and ".join(parts)


def _extent(plan: RollbackPlan) -> str:
    return _counted(plan.work, plan.state_work)


def _verified(done: RolledBack) -> str:
    """How many are back, each kind out of its own."""
    parts = []
    for is_state, all_of in ((False, done.plan.work), (True, done.plan.state_work)):
        if all_of or (not is_state and not done.plan.state_work):
            back = sum(one.result == "done" for one in done.results if (one.action == RUN) == is_state)
            parts.append(f"{back} of {_counted((), all_of) if is_state else _counted(all_of, ())}")
    return " and ".join(parts)


def _differ(plan: RollbackPlan) -> str:
    verb = "differs" if len(plan.cannot_return) == 1 else "differ"
    return f"{_counted(plan.lost, plan.states_lost)} {verb}"


def _guard() -> Guard:
    return execution.open_guard(surroundings.policy(), outputs_folder=surroundings.outputs_folder())


def _one_id(words: list[str], parsed: Parsed) -> str:
    if len(words) != 1:
        raise UsageError("name one snapshot", hint=parsed.help_line())
    return words[0]


def _no_more(words: list[str], parsed: Parsed) -> None:
    if words:
        raise UsageError(f"{words[0]!r} is too much", hint=parsed.help_line())
