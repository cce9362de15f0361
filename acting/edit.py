"""Changing one file: looked at and judged, held fast by a stamp, saved, begun on record, replaced in one step, ended.

The same walk as a command's. There is no process to watch, so no witness: a crash between begin and end leaves a file
that is whole, old or new, and a run that reads as unknown. `execution` is the face to this; nothing here prints.
"""

from __future__ import annotations

import hmac
import os
import time
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

import core
from acting import deadman, own_files, snapshots
from guard.bound import LIVE, Binding, canonical
from guard.errors import ApprovalChanged, CannotEdit, CannotRun, SnapshotImpossible, StateError
from guard.filechange import MOST_BYTES, MOST_LINES, FileChange, difference, is_file_change, parsed, sha256_of, text_of
from guard.ledger.plans import SnapshotPlan
from guard.saved import FILE, Action, RollbackPlan, State, Step
from guard.types import NO_FACTS, Outcome, PlanItem, Profile, RequestKind, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from acting.deadman import Armed
    from acting.world import Guard
    from guard.hands.present import Place, Present
    from guard.saved import BlobWriter, Node
    from guard.types import Assessment, Request

HOLDS_CREDENTIALS = "edit.secret"
"""The judge's rule for a file of which nothing may be shown (`guard.judge.filechange`)."""


@dataclass(frozen=True, slots=True)
class Looked:
    """Where a change goes and how it is judged, before a byte of the file is read."""

    request: Request
    place: Place
    assessment: Assessment
    unkept: bool
    """No snapshot copies what the file holds."""

    @property
    def is_secret(self) -> bool:
        """What the file holds is shown to nobody, not even as a difference."""
        return any(reason.rule == HOLDS_CREDENTIALS for reason in self.assessment.reasons)


@dataclass(frozen=True, slots=True)
class Edit:
    """One file change, looked at and judged as everything is now."""

    request: Request
    """Of kind file-change; its command is `change.text`."""
    change: FileChange
    present: Present
    content: bytes
    """What the file will hold."""
    assessment: Assessment
    is_secret: bool
    """As in `Looked`."""

    @property
    def plan(self) -> SnapshotPlan:
        """What is saved first."""
        return SnapshotPlan((PlanItem("path", self.change.path),))

    @property
    def wanted(self) -> Node:
        """The file as it shall be; its time of change is set when it is written."""
        place, now = self.present.place, self.present.node
        base = now if now.kind == FILE else place.new
        return replace(
            base, mode=self.change.mode, size=len(self.content), sha256=self.change.after, saved=True, nlink=1
        )


def look(request: Request, path: str, guard: Guard) -> Looked:
    """Locates and judges a change of this path.

    Raises:
        CannotEdit: no file that can be changed as a text.
    """
    from guard.hands.capture import secret_by_mask
    from guard.hands.present import locate

    place = locate(path, request.cwd)
    unkept = place.exists and secret_by_mask()(place.path)
    blank = FileChange(place.path, place.new.mode, "", sha256_of(b""), place.asked)
    return Looked(request, place, _judged(blank, place, request, guard, unkept=unkept), unkept)


def made(looked: Looked, content: Callable[[bytes], bytes], guard: Guard, *, tells: bool = False) -> Edit:
    """The change that puts `content(what is there)` into a located file.

    Args:
        tells: `content` is about what is there, so there has to be a file, and none that holds credentials.
    Raises:
        CannotEdit: what is there cannot be read as a text, or what shall be there is none, or is there already.
    """
    from guard.hands.present import read

    place = looked.place
    if tells and not place.exists:
        raise CannotEdit(f"there is no file {place.path}", not_done="nothing was changed", hint="write makes one")
    if tells and looked.is_secret:
        raise CannotEdit(
            f"{place.path} holds credentials, and to edit it would tell what they are",
            not_done="nothing was changed",
            hint="write the whole file, or leave this to the person",
        )
    present = read(place)
    wanted = content(present.content)
    if b"\0" in wanted or len(wanted) > MOST_BYTES:
        why = "holds a NUL" if b"\0" in wanted else f"has {len(wanted):,} bytes; the most is {MOST_BYTES:,}"
        raise CannotEdit(f"the new content of {place.path} {why}", not_done="nothing was changed")
    if place.exists and wanted == present.content:
        raise CannotEdit(f"{place.path} holds exactly that already", not_done="nothing was changed")
    mode = present.node.mode if place.exists else place.new.mode
    change = FileChange(place.path, mode, _mark(looked, present, guard), sha256_of(wanted), place.asked)
    return _edit(looked, change, present, wanted, guard)


def of_kept(request: Request, content: bytes, guard: Guard) -> Edit:
    """A kept file change as everything is now.

    Raises:
        ApprovalChanged: the file is not what it was when the change was asked for.
        CannotEdit: it cannot be changed any more.
    """
    from guard.hands.present import read

    change = parsed(request.command) if is_file_change(request) else None
    if change is None:
        raise ValueError("not a file change")
    looked = look(request, change.asked or change.path, guard)
    place = looked.place
    present = read(place)
    is_same = (place.path, place.asked) == (change.path, change.asked)
    is_same = is_same and hmac.compare_digest(_mark(looked, present, guard), change.before)
    if not is_same or (place.exists and present.node.mode != change.mode):
        raise ApprovalChanged(
            f"{change.asked or change.path} is not what it was when the change was asked for",
            not_done="nothing was changed",
            hint="ask for the change again",
        )
    return _edit(looked, change, present, content, guard)


def binding_of(edit: Edit, guard: Guard) -> Binding:
    """What a stamp for a file change holds fast: the change, the file and its folder as they are, for whom, by which
    knowledge."""
    node, place = edit.present.node, edit.present.place
    attributes = sha256(canonical([list(pair) for pair in node.xattrs])).hexdigest()
    file: list[object] = ["absent"]
    if node.kind == FILE:
        file = [f"{node.mode:04o}", node.uid, node.gid, node.nlink, attributes]
    rules = [repr(rule) for rule in guard.policy.rules]
    return Binding(
        {
            "kind": edit.request.kind,
            "command": edit.request.command,
            "target": edit.request.target,
            "user": os.geteuid(),
            "level": edit.assessment.level.name,
            "policy": [core.policy_version(), sha256(canonical(rules)).hexdigest()]
            if rules
            else [core.policy_version()],
            "snapshot plan": edit.plan.digest,
            f"file {place.path}": file,
            f"folder of {place.path}": list(place.folder),
        }
    )


def bound_again(edit: Edit, guard: Guard) -> Binding:
    """The binding as everything is now. Raises ApprovalChanged: it is another file, or holds other bytes."""
    try:
        return binding_of(of_kept(edit.request, edit.content, guard), guard)
    except (ApprovalChanged, CannotEdit) as error:
        raise ApprovalChanged(f"changed since approval: {error.message}", not_done="nothing was changed") from None


def other_approvals(edit: Edit, guard: Guard) -> list[str]:
    """Why a live approval of a change of the same file does not fit this one, in words."""
    said = []
    try:
        stamps = guard.ledger.stamps.listed()
    except StateError:
        return []
    for stamp in stamps:
        other = parsed(stamp.command)
        if stamp.state != LIVE or other is None or other.path != edit.change.path or other == edit.change:
            continue
        what = "what the file holds" if other.before != edit.change.before else "what shall be written"
        what = "the way to it" if other.asked != edit.change.asked else what
        said.append(f"changed since approval {stamp.id}: {what}")
    return said


def words_of(edit: Edit, mask: Callable[[str], str], *, most: int = MOST_LINES) -> tuple[str, ...]:
    """The difference in lines, for whoever is shown it; of a file that holds credentials only what shall be there.

    Args:
        mask: takes secrets out of a whole content, before it is compared: one that spans lines is not split then.
        most: further lines are counted.
    """
    old, new = text_of(edit.present.content), text_of(edit.content)
    if edit.is_secret:
        old = ""
    lines: list[str] = []
    more = 0
    for line in difference(mask(old), mask(new)):
        if len(lines) < most:
            lines.append(line)
        else:
            more += 1
    if more:
        lines.append(f"… {more:,} more lines")
    if not lines:
        lines = ["only hidden secrets differ"] if old != new else ["an empty file"]
    return tuple(["what is there now is not shown: the file holds credentials", *lines] if edit.is_secret else lines)


def carry_out(
    edit: Edit,
    guard: Guard,
    *,
    execution: str,
    stamp: str,
    on_begin: Callable[[str], None] | None = None,
    checkpoint: Callable[[str], None] = lambda name: None,
) -> Outcome:
    """Snapshot → begin → one rename → end.

    Args:
        stamp: the approval that the begin consumes; "" where the mode lets R1 run without one.
        checkpoint: called between the steps, by name; tests stop the process there.
    Returns:
        The outcome. `snapshot_failed`: nothing was changed and the stamp still stands.
    Raises:
        StateError: the begin could not be recorded, so nothing was changed.
        NotPermitted: the stamp is not live any more, or the file changed; nothing was changed.
    """
    from guard.hands import restore

    ledger, at, began_s = guard.ledger, guard.clock.utc(), guard.clock.boot_s()
    try:
        snapshot = snapshots.save(edit.plan, guard, execution=execution, reason="exec")
    except SnapshotImpossible as error:
        return Outcome(Status.SNAPSHOT_FAILED, at=at, decision=edit.assessment.decision, notes=(error.message,))
    checkpoint("saved")
    try:
        armed = _armed(edit, guard, execution, snapshot)
    except CannotRun as error:
        said = tuple(part for part in (error.message, error.hint) if part)
        return Outcome(Status.SNAPSHOT_FAILED, at=at, decision=edit.assessment.decision, notes=said)
    stale = [run.id for run in ledger.executions(status=Status.UNKNOWN, limit=20).executions]
    with deadman.stood_down_unless_begun(armed, guard):
        ledger.begin(
            edit.request,
            edit.assessment,
            profile=Profile.NONE,
            enforced="none",
            stamp=stamp,
            binding=bound_again(edit, guard) if stamp else None,
            execution=execution,
            snapshot=snapshot,
        )
    checkpoint("begun")
    if on_begin is not None:
        on_begin(execution)
    ours = own_files.watch(ledger)
    results = restore.apply(
        _steps(edit), _Content(edit.content), tag=execution, stale_tags=stale, checkpoint=checkpoint
    )
    if armed is not None:
        deadman.change_ended(execution, guard)
    wrong = [f"{result.path}: {result.text}" for result in results if result.result != restore.DONE]
    notes = [*wrong, *(["nothing was written"] if results and results[0].result == restore.CONFLICT else [])]
    notes += own_files.noted(ours, ledger, execution)
    notes += [note for note in (snapshots.record_after(snapshot, guard),) if note]
    checkpoint("surveyed")
    outcome = Outcome(
        Status.FAILED if wrong else Status.SUCCEEDED,
        execution=execution,
        exit_code=1 if wrong else 0,
        snapshot=snapshot,
        stamp=stamp or None,
        duration_ms=int((guard.clock.boot_s() - began_s) * 1000),
        at=at,
        decision=edit.assessment.decision,
        notes=tuple(notes),
    )
    recorded = ledger.end(execution, outcome)
    if armed is not None:
        outcome = outcome.replace(notes=(*outcome.notes, deadman.waiting_words(armed, guard)))
    return outcome.replace(recorded=recorded.ok, not_recorded_because=recorded.because)


def _armed(edit: Edit, guard: Guard, execution: str, snapshot: str) -> Armed | None:
    """The dead man of a file that decides who comes in, None for another. Raises CannotRun: nothing may be written."""
    seconds = deadman.seconds_for(edit.assessment, guard)
    return deadman.arm(execution, snapshot, seconds, edit.plan, guard) if seconds else None


def _judged(
    change: FileChange, place: Place, request: Request, guard: Guard, *, unkept: bool, lines: int = 0
) -> Assessment:
    from guard.hands.facts import facts_for

    # Looked at for each request: a stop has to reach shells that run for days.
    policy = guard.policy.replace(frozen=guard.ledger.stop())

    def judge(**facts: object) -> Assessment:
        return core.check_file_change(
            change,
            unkept=unkept,
            other_names=place.other_names,
            too_long=lines > MOST_LINES,
            target=request.target,
            actor=request.actor,
            policy=policy,
            **facts,  # type: ignore[arg-type]
        )

    first = judge()
    facts = facts_for(first, "/", own_paths=policy.own_paths)
    return first if facts is NO_FACTS else judge(facts=facts)


def _edit(looked: Looked, change: FileChange, present: Present, content: bytes, guard: Guard) -> Edit:
    lines = sum(1 for _ in difference(text_of(present.content), text_of(content)))
    asked = looked.request.replace(command=change.text, kind=RequestKind.FILE_CHANGE)
    assessment = _judged(change, looked.place, asked, guard, unkept=looked.unkept, lines=lines)
    return Edit(asked, change, present, content, assessment, looked.is_secret)


def _mark(looked: Looked, present: Present, guard: Guard) -> str:
    """What stands for the present content, "" when there is no file: its hash, keyed where the content is a secret.

    A short secret could be guessed from its hash.
    """
    if not looked.place.exists or not looked.is_secret:
        return present.node.sha256
    try:
        key = guard.ledger.answers.folder.key()
    except StateError:
        key = os.urandom(32)  # nothing is kept or run without a state folder
    return hmac.new(key, b"file\0" + present.content, sha256).hexdigest()


def _steps(edit: Edit) -> RollbackPlan:
    """The one step, for the hands that put files in place."""
    before = replace(edit.wanted, mtime_ns=time.time_ns())
    step = Step(edit.change.path, State.DIFFERS, Action.WRITE, before, edit.present.node)
    return RollbackPlan("", "", edit.request.target, (step,), "")


class _Content:
    """Gives the new content to the hands."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read_into(self, sha256: str, write: BlobWriter) -> None:
        """Writes it whole."""
        if self._content:
            write(0, self._content)
