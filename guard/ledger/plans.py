"""Snapshot plans and rollback plans, as values with a digest that a person's consent is bound to. Pure.

A rollback plan compares three states of each path: before the change (the snapshot), after it (recorded at its end)
and now. What is as the change left it is taken back; what somebody changed since is a conflict and stays.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from guard.errors import UsageError
from guard.metadata import wanted_of
from guard.saved import (
    ABSENT,
    BLOCKED,
    CLOSED,
    CONFLICTS,
    DIRECTORY,
    FILE,
    STATE_KINDS,
    SYMLINK,
    Action,
    Node,
    RollbackPlan,
    State,
    Step,
    absent,
    label_of,
)
from guard.types import PlanItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from guard.saved import Manifest, StateStep

DIGEST_FORMAT = 1
MOST_COMMANDS = 20
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """What is saved before a command runs."""

    items: tuple[PlanItem, ...]
    commands: tuple[tuple[str, str], ...] = ()
    """(name, command) of reads whose output is kept."""
    leave_out: tuple[str, ...] = ()
    """Absolute paths that a person chose not to save."""
    left_states: tuple[str, ...] = ()
    """Labels of states that are no files, of what was judged, that a person chose not to save."""

    @property
    def digest(self) -> str:
        """What a stamp binds: which things are saved and which are not. 64 hex digits."""
        return _digest_of(
            {
                "what": "snapshot",
                "items": sorted([item.kind, item.object] for item in self.items),
                "commands": sorted([name, command] for name, command in self.commands),
                "leave_out": sorted((*self.leave_out, *self.left_states)),
            }
        )


def snapshot_plan(
    judged: Iterable[PlanItem],
    *,
    cwd: str,
    files: Iterable[str] = (),
    commands: Iterable[str] = (),
    leave_out: Iterable[str] = (),
) -> SnapshotPlan:
    """The plan that follows from what was judged and from what a person adds.

    Args:
        files: `--snapshot-file`, relative ones below `cwd`.
        commands: `--snapshot-cmd`, as `NAME::CMD`; only reads may run, which the caller sees to.
        leave_out: `--no-snapshot-of`: paths, relative ones below `cwd`, and labels of states (`guard.saved.label_of`).
    Raises:
        UsageError: a command without `NAME::`, a name twice, or more than 20 of them.
    """
    leave_out = tuple(leave_out)
    items = [*judged, *(PlanItem("file", _absolute(path, cwd)) for path in files)]
    items = [_placed(item, cwd) for item in items]
    named = [_named_command(text) for text in commands]
    if len({name for name, _ in named}) != len(named):
        raise UsageError("--snapshot-cmd has the same name twice", hint="--snapshot-cmd NAME::CMD")
    if len(named) > MOST_COMMANDS:
        raise UsageError(f"--snapshot-cmd is given {len(named)} times; the most is {MOST_COMMANDS}")
    items += [PlanItem("command", name) for name, _ in named]
    labels = {label_of(item.kind, item.object) for item in items if item.kind in STATE_KINDS}
    states = tuple(label for label in dict.fromkeys(leave_out) if label in labels)
    left = tuple(dict.fromkeys(_absolute(path, cwd) for path in leave_out if path not in labels))
    kept = [
        item
        for item in dict.fromkeys(items)
        if not (item.object in left and _is_path(item))
        and not (item.kind in STATE_KINDS and label_of(item.kind, item.object) in states)
    ]
    return SnapshotPlan(tuple(kept), tuple(named), left, states)


def rollback_plan(
    of: str,
    manifest: Manifest,
    after: Sequence[Node] | None,
    now: Sequence[Node],
    *,
    overruled: Iterable[str] = (),
    leave_conflicts: bool = False,
    resumed: bool = False,
) -> RollbackPlan:
    """What going back to a snapshot would do.

    Args:
        of: the id that was named.
        after: how its paths stood when the change was over; None when nobody recorded it.
        overruled: conflicting paths to take back all the same.
        leave_conflicts: take back the rest without them.
        resumed: an earlier rollback of it did not come to its end, so half-set owners and modes are ours.
    Raises:
        UsageError: an overruled path is not in conflict.
    """
    chosen = tuple(dict.fromkeys(overruled))
    comparison = _Comparison(manifest, after, now, frozenset(chosen), resumed)
    steps = comparison.steps()
    wrong = [path for path in chosen if path not in comparison.conflicting]
    if wrong:
        raise UsageError(f"{wrong[0]} is not in conflict", not_done="nothing was changed", hint=f"opsx rollback {of}")
    notes = [f"{text}: it has no way back" for text in manifest.unsaved]
    notes += [f"{path} cannot be looked into now; when it is back, go back once more" for path in comparison.closed]
    if after is None and manifest.reason == "exec":
        notes.append("how it ended is not on record, so changes by others cannot be told from its own")
    digest = _digest_of(
        {
            "what": "rollback",
            "snapshot": manifest.id,
            "manifest": manifest.sha256,
            "target": manifest.target,
            "overruled": sorted(chosen),
            "leave_conflicts": leave_conflicts,
            "steps": sorted(
                [
                    step.path,
                    step.state,
                    step.action,
                    list(step.before.identity()),
                    list(step.now.identity()),
                    list(step.links),
                ]
                for step in steps
            ),
        }
    )
    return RollbackPlan(
        of, manifest.id, manifest.target, _ordered(steps), digest, chosen, leave_conflicts, tuple(notes)
    )


def with_states(plan: RollbackPlan, states: Sequence[StateStep], overruled: Sequence[str]) -> RollbackPlan:
    """The plan with what it does to states that are no files; a consent is then bound to these too."""
    notes = [f"{step.label}: {text} does not come back" for step in states for text in step.lost if step.commands]
    notes += [f"{step.label}: way back: not proven here" for step in states if step.commands and not step.proven]
    digest = _digest_of(
        {
            "what": "rollback with states",
            "files": plan.digest,
            "overruled": sorted(overruled),
            "states": [
                [step.kind, step.name, step.state, step.before, step.now, [list(one) for one in step.commands]]
                for step in states
            ],
        }
    )
    return replace(
        plan,
        states=tuple(states),
        digest=digest,
        overruled=(*plan.overruled, *overruled),
        notes=(*plan.notes, *notes),
    )


def items_of_work(plan: RollbackPlan) -> tuple[PlanItem, ...]:
    """What to save before a plan is carried out, so that it can be taken back: the paths it works on, and other names
    of the same files; of those whose metadata alone it sets, that."""
    full = [step for step in plan.work if not step.before.meta]
    inodes = {(step.now.dev, step.now.ino) for step in full if step.now.kind == FILE and step.now.nlink > 1}
    items = []
    for step in plan.steps:
        same_file = step.now.kind == FILE and (step.now.dev, step.now.ino) in inodes
        if (step.action != Action.NONE and not step.before.meta) or same_file:
            items.append(PlanItem("path", step.path))
        elif step.action != Action.NONE:
            items.append(PlanItem("times-path" if step.before.atime_ns >= 0 else "meta-path", step.path))
        if step.action != Action.NONE and step.before.flags >= 0:
            items.append(PlanItem("flags-path", step.path))
    return tuple(items)


class _Comparison:
    """Before, after and now, path by path."""

    def __init__(
        self,
        manifest: Manifest,
        after: Sequence[Node] | None,
        now: Sequence[Node],
        overruled: frozenset[str],
        resumed: bool,
    ) -> None:
        self._before = {node.path: node for node in manifest.nodes}
        self._after = None if after is None else {node.path: node for node in after}
        self._now = {node.path: node for node in now}
        self._overruled = overruled
        self._resumed = resumed
        self._gone_roots = [node.path for node in manifest.nodes if node.kind == ABSENT]
        self.conflicting: set[str] = set()
        self._closed_after = [node.path for node in after or () if node.kind == DIRECTORY and node.link == CLOSED]
        self.closed = [node.path for node in now if node.kind == DIRECTORY and node.link == CLOSED]

    def steps(self) -> list[Step]:
        """One step per path that is, was or became something."""
        paths = {*self._before, *(self._after or {}), *self._now}
        steps = {
            path: step for path in sorted(paths) if not self._hidden(path) and (step := self._step(path)) is not None
        }
        self.conflicting = {path for path, step in steps.items() if step.state in CONFLICTS}
        self._join_names(steps)
        self._spare_full_folders(steps)
        return list(steps.values())

    def _hidden(self, path: str) -> bool:
        """Whether it lies in a folder that cannot be looked into now: nothing is known, so nothing is done."""
        return any(path.startswith(folder + "/") for folder in self.closed)

    def _step(self, path: str) -> Step | None:
        before, now = self._before.get(path), self._now.get(path) or absent(path)
        after = self._after.get(path) or absent(path) if self._after is not None else None
        if any(path.startswith(folder + "/") for folder in self._closed_after):
            after = None
        if before is None:
            if now.kind == ABSENT:
                return None
            if after is None and not self._below_gone_root(path):
                return Step(path, State.EXTRA, Action.NONE, absent(path), now)
            if after is not None and after.kind == ABSENT:
                return Step(path, State.EXTRA, Action.NONE, absent(path), now)
            before = absent(path)
        if before.meta:
            return _metadata_step(before, after, now, overruled=path in self._overruled, resumed=self._resumed)
        state = self._state(before, after, now)
        if state != State.BACK and now.kind != BLOCKED and not before.saved and _inverse(before, now) == Action.WRITE:
            # No choice of a person brings it back, so it is no conflict to be decided.
            return Step(path, State.NOT_SAVED, Action.NONE, before, now)
        action = Action.NONE
        if state in (State.UNCHANGED, State.DIFFERS) or (state in CONFLICTS and path in self._overruled):
            action = _inverse(before, now)
        if action == Action.WRITE and not before.saved:
            state, action = State.NOT_SAVED, Action.NONE
        return Step(path, state, action, before, now)

    def _state(self, before: Node, after: Node | None, now: Node) -> str:
        if now.kind == BLOCKED:
            return State.CHANGED
        if now.looks_like(before):
            time_differs = before.kind == FILE and now.mtime_ns != before.mtime_ns
            ours = after is None or after.mtime_ns == now.mtime_ns
            if not time_differs or (not ours and not self._resumed):
                return State.BACK
            return State.DIFFERS if after is None else State.UNCHANGED
        if after is None:
            return State.DIFFERS
        if now.looks_like(after):
            return State.UNCHANGED
        same_thing = now.same_content(before) if before.kind == FILE else now.kind == before.kind
        half_done = self._resumed and same_thing
        if before.kind == ABSENT and after.kind == DIRECTORY == now.kind:
            # It goes only when it is empty, so nothing of anybody is lost. What was mounted on it had another owner and
            # mode, and may be gone since.
            return State.DIFFERS
        if half_done or (after.kind == ABSENT and before.kind == DIRECTORY == now.kind):
            return State.DIFFERS
        return State.GONE if now.kind == ABSENT else State.CHANGED

    def _below_gone_root(self, path: str) -> bool:
        return any(path.startswith(root + "/") for root in self._gone_roots)

    def _join_names(self, steps: dict[str, Step]) -> None:
        """Files with several names: one is written, the others join it, or none is touched."""
        groups: dict[tuple[int, int], list[str]] = {}
        for node in self._before.values():
            if node.kind == FILE and node.nlink > 1 and not node.meta:
                groups.setdefault((node.dev, node.ino), []).append(node.path)
        for names in groups.values():
            if len(names) < 2:
                continue
            members = [steps[name] for name in names]
            if any(step.state in CONFLICTS and step.path not in self._overruled for step in members):
                for step in members:
                    steps[step.path] = replace(step, action=Action.NONE)
                continue
            together = len({(step.now.dev, step.now.ino) for step in members}) == 1
            if together and all(step.action == Action.NONE for step in members):
                continue
            if not members[0].before.saved:
                continue
            state = next((step.state for step in members if step.state != State.BACK), State.DIFFERS)
            for position, step in enumerate(members):
                steps[step.path] = replace(
                    step,
                    state=state if step.state == State.BACK else step.state,
                    action=Action.LINK if position else Action.WRITE,
                    links=tuple(names),
                )

    def _spare_full_folders(self, steps: dict[str, Step]) -> None:
        """A folder that the change made stays when something is in it that stays."""
        staying = [
            path
            for path, step in steps.items()
            if step.action != Action.DELETE and step.now.kind != ABSENT and step.before.kind == ABSENT
        ]
        for path in staying:
            folder = os.path.dirname(path)
            while folder in steps and steps[folder].action == Action.DELETE:
                steps[folder] = replace(steps[folder], state=State.EXTRA, action=Action.NONE)
                folder = os.path.dirname(folder)


def _metadata_step(before: Node, after: Node | None, now: Node, *, overruled: bool, resumed: bool) -> Step:
    """Of a path whose content does not count. Its metadata goes back to the very thing that had it, and times go back
    where the change alone moved them."""
    if now.kind not in (before.kind, BLOCKED):
        return Step(before.path, State.NOT_SAVED, Action.NONE, before, now)
    same = now.same_inode(before)
    back = _times_to_set(before, after, now) if same else replace(before, atime_ns=-1)
    if now.kind == BLOCKED:
        state = State.CHANGED
    elif now.looks_like(before):
        state = State.BACK if back.atime_ns < 0 else State.UNCHANGED if after is not None else State.DIFFERS
    elif same and (after is None or resumed):
        state = State.DIFFERS
    else:
        state = State.UNCHANGED if same and after is not None and now.looks_like(after) else State.CHANGED
    wanted = state in (State.UNCHANGED, State.DIFFERS) or (state in CONFLICTS and overruled and now.kind != BLOCKED)
    return Step(before.path, state, Action.META if wanted else Action.NONE, back, now)


def _times_to_set(before: Node, after: Node | None, now: Node) -> Node:
    """The node with the times that it shall have again; without times where they were no part of the change, or where
    somebody wrote to it or read it since."""
    if before.atime_ns < 0 or now.size != before.size:
        return replace(before, atime_ns=-1)
    end = now if after is None else after
    wrote = end.mtime_ns != before.mtime_ns and now.mtime_ns == end.mtime_ns
    read = after is not None and end.atime_ns != before.atime_ns and now.atime_ns == end.atime_ns
    if not wrote and not read:
        return replace(before, atime_ns=-1)
    return replace(
        before,
        mtime_ns=before.mtime_ns if wrote else now.mtime_ns,
        atime_ns=before.atime_ns if read or wrote else now.atime_ns,
    )


def _inverse(before: Node, now: Node) -> str:
    """What makes `now` into `before`."""
    if before.kind == ABSENT:
        return Action.NONE if now.kind == ABSENT else Action.DELETE
    if before.kind == FILE:
        same_content = now.same_content(before)
        # Metadata belongs to the inode: with other names it would change under them, too.
        in_place = same_content and now.nlink == 1 and not _was_given_away(before, now)
        return Action.META if in_place else Action.WRITE
    if before.kind == SYMLINK:
        return Action.MAKE
    same_thing = now.kind == before.kind and now.rdev == before.rdev
    return Action.META if same_thing else Action.MAKE


def _was_given_away(before: Node, now: Node) -> bool:
    """Whether somebody else may have a file with set-id bits or capabilities open for writing: it then comes back as
    a new file, so that nothing is written into the trusted one."""
    privileged = before.mode & 0o6000 or "security.capability" in dict(before.xattrs)
    return bool(privileged) and ((before.uid, before.gid) != (now.uid, now.gid) or bool(now.mode & 0o022))


def _ordered(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Deletions in the way of something first, then folders before what is in them, then all other deletions."""
    ordered = sorted(steps, key=lambda step: step.path.split("/"))
    replaced = {
        step.path for step in ordered if step.now.kind == DIRECTORY and step.before.kind not in (DIRECTORY, ABSENT)
    }
    first, middle, last = [], [], []
    for step in ordered:
        if step.action != Action.DELETE:
            middle.append(step)
        elif any(folder in replaced for folder in _folders_of(step.path)):
            first.append(step)
        else:
            last.append(step)
    return (*reversed(first), *middle, *reversed(last))


def _folders_of(path: str) -> Iterable[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


# ── small things ─────────────────────────────────────────────────────────────────────────────────────────────────


def _named_command(text: str) -> tuple[str, str]:
    name, mark, command = text.partition("::")
    if not mark or not command.strip() or not name or len(name) > 64 or not _NAME.issuperset(name):
        raise UsageError(
            "--snapshot-cmd needs a name and a command: NAME::CMD, NAME of letters, digits, dot, dash, underscore",
            hint="--snapshot-cmd 'rules::iptables -S'",
        )
    return name, command


def _is_path(item: PlanItem) -> bool:
    return item.kind == "file" or wanted_of(item.kind) is not None


def _placed(item: PlanItem, cwd: str) -> PlanItem:
    """The item with its place on the disk spelled out: a file's path, and the folder of a repository."""
    if _is_path(item):
        return PlanItem(item.kind, _absolute(item.object, cwd))
    if item.kind == "state" and item.object.startswith("git "):
        return PlanItem("state", f"git {os.path.normpath(os.path.join(cwd, item.object[4:]))}")
    return item


def _absolute(path: str, cwd: str) -> str:
    """The path against a folder. `~` and `..` stay: where they lead is told by the file system when it is saved."""
    if path == "~" or path.startswith("~/"):
        return path
    if "/.." in path or path.startswith(".."):
        return os.path.join(cwd, path)
    return os.path.normpath(os.path.join(cwd, path))


def _digest_of(value: Mapping[str, object]) -> str:
    """SHA-256 of canonical JSON: sorted keys, no blanks, ASCII."""
    text = json.dumps({"format": DIGEST_FORMAT, **value}, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
