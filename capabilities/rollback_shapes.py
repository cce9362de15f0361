"""The JSON objects of snapshots and rollbacks, built once for the command line, the loop and MCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guard.saved import ABSENT, DIRECTORY, SYMLINK, Action, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from guard.ledger.packs import Listed
    from guard.saved import Foreseen, Manifest, Node, RollbackPlan, RolledBack, StateStep, Step, StepResult

LISTED_NODES = 1000
"""Paths of one snapshot beyond this many are counted, not listed."""

_KINDS = {DIRECTORY: "folder", SYMLINK: "link", ABSENT: "absence of"}


def listed_object(listed: Listed, redact: Callable[[str], str]) -> dict[str, Any]:
    """One snapshot in a list."""
    manifest = listed.manifest
    if manifest is None:
        return {"id": listed.id, "problem": redact(listed.problem)}
    return {
        "id": manifest.id,
        "at": manifest.at,
        "execution": manifest.execution or None,
        "reason": manifest.reason,
        "target": manifest.target,
        "paths": len(manifest.nodes),
        "pack_bytes": manifest.pack_bytes,
        "roots": [redact(root) for root in manifest.named[:LISTED_NODES]],
        "states": [redact(name) for name in manifest.states],
    }


def snapshot_object(manifest: Manifest, redact: Callable[[str], str]) -> dict[str, Any]:
    """One snapshot with what it holds; contents are never part of it."""
    return {
        "format": 1,
        "id": manifest.id,
        "at": manifest.at,
        "execution": manifest.execution or None,
        "reason": manifest.reason,
        "target": manifest.target,
        "uid": manifest.uid,
        "roots": [redact(root) for root in manifest.named[:LISTED_NODES]],
        "left_out": [redact(path) for path in manifest.left_out],
        "unsaved": [redact(text) for text in manifest.unsaved],
        "pack_bytes": manifest.pack_bytes,
        "manifest_sha256": manifest.sha256,
        "paths": len(manifest.nodes),
        "nodes": [_node_object(node, redact) for node in manifest.nodes[:LISTED_NODES]],
        "outputs": [
            {
                "kind": output.kind,
                "name": output.name,
                "command": redact(output.command),
                "exit_code": output.exit_code,
                "sha256": output.sha256,
            }
            for output in manifest.outputs
        ],
    }


def created_object(manifest: Manifest, redact: Callable[[str], str]) -> dict[str, Any]:
    """A snapshot that was just made: what it will bring back, and what it will not."""
    return {
        "format": 1,
        "snapshot": manifest.id,
        "paths": len(manifest.nodes) - len(manifest.hash_only) - len(manifest.absences),
        "not_saved": [redact(node.path) for node in manifest.hash_only[:LISTED_NODES]],
        "absent": [redact(node.path) for node in manifest.absences[:LISTED_NODES]],
        "left_out": [redact(path) for path in manifest.cut_out],
    }


def foreseen_words(foreseen: Foreseen) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What would be saved and what would not, as texts for who is asked to approve. Not redacted."""
    saved = [_root_words(node, count) for node, count in foreseen.roots]
    saved += [f"{_metadata_words(node)} of {_root_words(node, count)}" for node, count in foreseen.metadata]
    saved += [f"what the read {name} says" for name in foreseen.outputs]
    saved += [f"the state of {name}" for name, _ in foreseen.states]
    missed = [f"the content of {path}: a secret, so only a hash is kept" for path in foreseen.hash_only]
    missed += [f"of {name}: {stays}" for name, stays in foreseen.states if stays]
    missed += foreseen.unsaved
    if foreseen.problem:
        missed.append(f"nothing can be saved, so it would not run: {foreseen.problem}")
    return tuple(saved), tuple(missed)


def kind_words(node: Node) -> str:
    """A path with the right word for what it is."""
    return f"{_KINDS.get(node.kind, node.kind)} {node.path}"


def _metadata_words(node: Node) -> str:
    more = (["times"] if node.atime_ns >= 0 else []) + (["flags"] if node.flags >= 0 else [])
    return " and ".join((", ".join(["owner", "mode", *(["attributes"] if more else [])]), *(more or ["attributes"])))


def _root_words(node: Node, count: int) -> str:
    if node.kind == ABSENT:
        return f"that {node.path} does not exist"
    inside = count - 1
    if node.kind != DIRECTORY:
        return kind_words(node)
    return f"{kind_words(node)} and {inside} {'path' if inside == 1 else 'paths'} in it"


def plan_object(
    plan: RollbackPlan, differences: Iterable[tuple[Step, str]], redact: Callable[[str], str]
) -> dict[str, Any]:
    """What a rollback would do. Steps that would do nothing and have nothing to say are counted only."""
    shown = dict(differences)
    steps = [step for step in plan.steps if step in shown or step.state in (State.EXTRA, State.NOT_SAVED)]
    return {
        "format": 1,
        "id": plan.of,
        "snapshot": plan.snapshot,
        "target": plan.target,
        "digest": plan.digest,
        "steps": [
            {
                "path": redact(step.path),
                "state": step.state,
                "action": step.action,
                "links": [redact(path) for path in step.links],
                "diff": shown.get(step, ""),
            }
            for step in steps
        ],
        "already_back": sum(1 for step in plan.steps if step.action == Action.NONE and step.state == State.BACK),
        "states": [
            {
                "name": redact(step.label),
                "state": step.state,
                "commands": [
                    {"command": redact(command), "level": level}
                    for (command, _), level in zip(step.commands, step.levels, strict=True)
                ],
                "diff": [redact(text) for text in step.difference],
                "lost": [redact(text) for text in step.lost],
                "proven": step.proven,
            }
            for step in plan.states
            if step.state != State.BACK or step.commands
        ],
        "conflicts": [redact(name) for name in plan.in_the_way],
        "not_saved": [redact(name) for name in plan.cannot_return[:LISTED_NODES]],
        "overruled": [redact(path) for path in plan.overruled],
        "leave_conflicts": plan.leave_conflicts,
        "notes": [redact(note) for note in plan.notes],
    }


def state_rows(step: StateStep) -> tuple[str, ...]:
    """What a plan would do to one state, as lines for a person: name, difference, commands. Not redacted."""
    if step.state == State.BACK and not step.commands:
        return ()
    rows = [f"state {step.label}", *(f"  {text}" for text in step.difference)]
    for (command, text), level in zip(step.commands, step.levels, strict=True):
        fed = f" < {text.count(chr(10))} lines" if text else ""
        rows.append(f"  runs ({level}): {command}{fed}")
    rows += [f"  stays: {text}" for text in step.lost]
    return tuple(rows)


def result_object(done: RolledBack, redact: Callable[[str], str]) -> dict[str, Any]:
    """What became of a rollback; goes beside the fields of `plan_object`."""
    return {
        "status": done.status,
        "execution": done.execution,
        "own_snapshot": done.snapshot,
        "results": [_result_object(result, redact) for result in done.results],
        "notes": [redact(note) for note in (*done.plan.notes, *done.notes)],
    }


def _result_object(result: StepResult, redact: Callable[[str], str]) -> dict[str, Any]:
    return {
        "path": redact(result.path),
        "action": result.action,
        "result": result.result,
        "text": redact(result.text),
    }


def _node_object(node: Node, redact: Callable[[str], str]) -> dict[str, Any]:
    return {
        "path": redact(node.path),
        "kind": node.kind,
        "mode": f"{node.mode:04o}",
        "uid": node.uid,
        "gid": node.gid,
        "size": node.size,
        "sha256": node.sha256 or None,
        "link": redact(node.link) or None,
        "saved": node.saved,
        "metadata_only": node.meta,
        "attributes": [name for name, _ in node.xattrs],
    }
