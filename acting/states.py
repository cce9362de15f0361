"""States that are no files: read before a change, compared afterwards, put back by commands. The tables are
`guard.hands.services`.

Every read is a command of those tables, judged like any other, and must be R0. It runs in its sandbox profile where
that holds here; what needs more than a profile gives (locks of passwords, tables of jobs) runs without one:
the change that it belongs to is approved with it, and a rollback's preview looks at nothing else. Nothing here prints.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import core
from acting.timer import BOOTED
from guard.errors import GuardError, StateDamaged
from guard.hands.environment import build_environment
from guard.hands.services import NOT_INSTALLED, Said, Unreadable, family_of
from guard.quoting import quoted
from guard.saved import CONFLICTS, Output, State, StateStep, StepResult, label_of
from guard.types import Actor, Level, PlanItem, Profile, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from acting.world import Guard
    from guard.hands.services import Family, Read
    from guard.ledger.packs import Pack
    from guard.saved import Manifest, SavedOutput

    Known = dict[str, object]

READ_S = 20
"""A read of a state that takes longer is stopped: the change waits for it."""
PUT_BACK_S = 600
"""A command of a way back that takes longer is stopped, and what was not done is said."""
STATE_BYTES = 16 << 20
"""A state that is larger is not kept."""
DIFFERENCE_LINES = 200
DONE, PARTIAL, FAILED = "done", "partial", "failed"
_FILES_OF_UNITS = "systemd files"

_ORDER = (
    "packages",
    "accounts",
    "expiry",
    "mounts",
    "sysctl",
    "network",
    "nft",
    "iptables",
    "crontab",
    "git",
    "systemd",
)
"""In which order states come back: what others stand on first, services (not listed) last."""


@dataclass(frozen=True, slots=True)
class Looked:
    """One state as it is now."""

    family: Family
    key: str
    known: Known | None
    """None when it cannot be read."""
    why: str = ""

    @property
    def sha256(self) -> str:
        """Of the state; "" when it cannot be read."""
        return "" if self.known is None else hashlib.sha256(_encoded(self.known)).hexdigest()


def look(kind: str, name: str, guard: Guard) -> Looked | None:
    """A state as it is now; None when no family knows it. Never raises for what cannot be read."""
    found = family_of(kind, name)
    if found is None:
        return None
    family, key = found
    if shutil.which(family.program, path=build_environment(()).env["PATH"]) is None:
        return Looked(family, key, NOT_INSTALLED)
    said: dict[str, Said] = {}
    for read in family.reads(key):
        answer = _answer(read, guard)
        if isinstance(answer, str):
            return Looked(family, key, None, answer)
        said[read.name] = answer
    try:
        return Looked(family, key, family.parse(key, said))
    except Unreadable as error:
        return Looked(family, key, None, str(error))


def _answer(read: Read, guard: Guard) -> Said | str:
    """What a read says, or why it says nothing."""
    enforcement = guard.enforcement()
    assessment = core.check(read.command, cwd="/", actor=Actor.PERSON, enforcement=enforcement, policy=guard.policy)
    if assessment.level > Level.R0:
        raise ValueError(f"{read.command} is no read")
    holds = assessment.decision.verdict == Verdict.RUN and assessment.profile in enforcement.profiles
    confined = holds and not read.unmasked
    out: list[bytes] = []
    err: list[bytes] = []

    def keep(stream: str, data: bytes) -> None:
        (out if stream == "stdout" else err).append(data)

    try:
        result = guard.target.run(
            read.command,
            cwd="/",
            profile=assessment.profile if confined else Profile.NONE,
            env=build_environment(assessment.env).env,
            timeout_s=READ_S,
            hidden=guard.hidden,
            on_output=keep,
        )
    except GuardError as error:
        return error.message
    text = b"".join(out)
    said = b"".join(err).decode("utf-8", "replace")
    if result.timed_out or result.exit_code not in read.good or result.exit_code is None:
        reason = f"took more than {READ_S} s" if result.timed_out else f"ended with {result.exit_code}"
        first = guard.redactor.text(said.strip().split("\n")[0])[:200]
        return f"{read.command.split()[0]} {reason}" + (f": {first}" if first else "")
    if len(text) != result.stdout.size_bytes or len(text) > STATE_BYTES:
        return f"{read.command.split()[0]} said too much to keep"
    try:
        return Said(result.exit_code, text.decode("utf-8"), said)
    except UnicodeDecodeError:
        return f"{read.command.split()[0]} said what is no text"


def outputs(items: Iterable[PlanItem], guard: Guard) -> tuple[tuple[Output, ...], dict[tuple[str, str], str]]:
    """The states that a plan names, as they are now, for its snapshot; and why others, by kind and name, are not."""
    kept: list[Output] = []
    missed: dict[tuple[str, str], str] = {}
    for item in items:
        looked = look(item.kind, item.object, guard)
        if looked is None:
            continue
        if looked.known is None:
            missed[item.kind, item.object] = looked.why
        else:
            kept.append(_output(item.kind, item.object, looked))
    return tuple(kept), missed


def files(items: Iterable[PlanItem], guard: Guard) -> tuple[PlanItem, ...]:
    """The files that belong to the states a plan names, and are saved with them; those that may not be read are not."""
    found: list[str] = []
    for item in items:
        known = family_of(item.kind, item.object)
        if known is None or shutil.which(known[0].program, path=build_environment(()).env["PATH"]) is None:
            continue
        family, key = known
        said = _said(family.files_read(key) if family.files_read else None, guard)
        paths = family.files(said) if said and family.files else ()
        said = _said(family.folders_read(paths) if family.folders_read else None, guard)
        found += [*paths, *(family.folders(key, said) if said and family.folders else ())]
    return tuple(PlanItem("file", path) for path in found if os.access(path, os.R_OK) or not os.path.lexists(path))


def _said(read: Read | None, guard: Guard) -> Said | None:
    answer = _answer(read, guard) if read is not None else None
    return answer if isinstance(answer, Said) else None


def _output(kind: str, name: str, looked: Looked) -> Output:
    commands = "; ".join(read.command for read in looked.family.reads(looked.key))
    return Output(kind, name, commands, _encoded(looked.known or {}), 0)


def hashes(manifest: Manifest, guard: Guard) -> tuple[tuple[str, str, str], ...]:
    """(kind, name, SHA-256) of a snapshot's states as they are now; one that cannot be read is left out."""
    found = []
    for output in manifest.outputs:
        looked = look(output.kind, output.name, guard)
        if looked is not None and looked.known is not None:
            found.append((output.kind, output.name, looked.sha256))
    return tuple(found)


def stays(outputs: Iterable[Output]) -> tuple[tuple[str, str], ...]:
    """(name, what of it would not come back) of each state that is kept."""
    found = []
    for output in outputs:
        known = family_of(output.kind, output.name)
        if known is None:
            continue
        family, _ = known
        missing = [family.stays] if family.stays else []
        missing += [] if family.proven else ["way back: not proven here"]
        found.append((label_of(output.kind, output.name), "; ".join(missing)))
    return tuple(found)


def plan(
    manifest: Manifest,
    pack: Pack,
    after: dict[tuple[str, str], str],
    guard: Guard,
    *,
    overruled: Iterable[str] = (),
    reload_units: bool = False,
    instead: Mapping[str, tuple[str, Known]] = MappingProxyType({}),
) -> tuple[StateStep, ...]:
    """What going back would do to a snapshot's states, in the order of work.

    Args:
        after: SHA-256 of each as its change left it.
        overruled: labels of conflicting ones to take back all the same.
        reload_units: files of units go back, so the manager has to read them again.
        instead: by label, the SHA-256 and what is known of a state that is put back in the place of the snapshot's.
    """
    chosen = frozenset(overruled)
    steps = []
    for output in manifest.outputs:
        looked = look(output.kind, output.name, guard)
        if looked is None:
            continue
        label = label_of(output.kind, output.name)
        sha256, before = instead[label] if label in instead else (output.sha256, saved(output, manifest, pack))
        step = _step(output.kind, output.name, before, after.get((output.kind, output.name)), looked, chosen)
        steps.append(replace(step, before=sha256))
    if reload_units and os.path.isdir(BOOTED):
        steps = [*(step for step in steps if step.name != _FILES_OF_UNITS), _read_again(guard)]
    with_levels = (
        replace(step, levels=tuple(_level(command, guard) for command, _ in step.commands)) for step in steps
    )
    return tuple(sorted(with_levels, key=_rank))


def saved(output: SavedOutput, manifest: Manifest, pack: Pack) -> Known:
    """A state as a snapshot has it. Raises StateDamaged."""
    data = pack.read(output.sha256, STATE_BYTES)
    if data is None:
        raise StateDamaged(f"the state of {output.name} in {manifest.id} is too large")
    known: Known = json.loads(data)
    return known


def _read_again(guard: Guard) -> StateStep:
    """The step after which systemd knows the files of units that went back."""
    looked = look("state", _FILES_OF_UNITS, guard)
    known = looked.sha256 if looked is not None else ""
    return StateStep(
        "state", _FILES_OF_UNITS, State.DIFFERS, commands=(("systemctl daemon-reload", ""),), before=known, now=known
    )


def _step(kind: str, name: str, before: Known, after: str | None, looked: Looked, chosen: frozenset[str]) -> StateStep:
    bare = StateStep(kind, name, State.BACK, now=looked.sha256, proven=looked.family.proven)
    if looked.known is None:
        return _unseen(bare, before, after, looked, chosen)
    if looked.known == before:
        return bare
    state = State.DIFFERS if after is None else State.UNCHANGED if looked.sha256 == after else State.CHANGED
    step = replace(bare, state=state, difference=_difference(looked.known, before))
    if state in CONFLICTS and step.label not in chosen:
        return step
    if NOT_INSTALLED in (before, looked.known):
        return replace(step, lost=(f"{looked.family.program} {_CAME[before == NOT_INSTALLED]}",))
    back = looked.family.way_back(looked.key, before, looked.known)
    return replace(step, commands=tuple((one.command, one.input) for one in back.commands), lost=back.lost)


def _unseen(bare: StateStep, before: Known, after: str | None, looked: Looked, chosen: frozenset[str]) -> StateStep:
    """The step of a state that cannot be read now: a family that can puts the one before back as a whole."""
    whole = looked.family.whole
    if whole is None or before == NOT_INSTALLED:
        return replace(bare, state=State.NOT_SAVED, lost=(f"it cannot be read now: {looked.why}",))
    # It could be read when its change had ended, so somebody else made of it what it is.
    state = State.DIFFERS if after is None else State.CHANGED
    said = f"it cannot be read now ({looked.why}), so it is replaced as a whole, and this cannot be taken back itself"
    step = replace(bare, state=state, difference=(said,))
    if state in CONFLICTS and step.label not in chosen:
        return step
    back = whole(looked.key, before)
    return replace(step, commands=tuple((one.command, one.input) for one in back.commands), lost=back.lost)


_CAME = {True: "was not installed then", False: "is not installed any more"}


def _level(command: str, guard: Guard) -> str:
    return core.check(command, cwd="/", actor=Actor.PERSON, policy=guard.policy).level.name


def put_back(steps: Iterable[StateStep], guard: Guard, on_step: Callable[[StepResult], None]) -> list[StepResult]:
    """Runs the commands of a plan that a person consented to, looks at each state again, and says what became of it."""
    results = []
    for step in steps:
        problems: list[str] = []
        known = family_of(step.kind, step.name)
        for command, text in step.commands:
            if problems and known is not None and known[0].in_order:
                problems.append("what should come after it was not run")
                break
            problem = _run(command, text, guard)
            if problem:
                problems.append(problem)
        result = _judged(step, problems, guard)
        on_step(result)
        results.append(result)
    return results


def _judged(step: StateStep, problems: list[str], guard: Guard) -> StepResult:
    """`done` when the state is the one before; else what is different. A command that complained is no failure then."""
    looked = look(step.kind, step.name, guard)
    if looked is not None and looked.sha256 == step.before and not step.lost:
        return StepResult(step.label, "run", DONE)
    if looked is None or looked.known is None:
        problems.append("it cannot be read now, so whether it is back is not known")
    texts = [*problems, *(f"{text} does not come back" for text in step.lost)]
    status = FAILED if looked is None or looked.known is None or looked.sha256 == step.now else PARTIAL
    if looked is not None and looked.known is not None and looked.sha256 != step.before:
        texts.append("it is not as it was: " + looked.family.name)
    return StepResult(step.label, "run", status, guard.redactor.text("; ".join(texts)))


def _run(command: str, text: str, guard: Guard) -> str:
    """Runs one command of a way back; "" or what it complained of."""
    whole, number, place = command, -1, ""
    try:
        if text:
            # In memory, since a way back must not need space: the full disk may be why it is taken. What an ordinary
            # user's process holds is closed to its children while our memory is (PR_SET_DUMPABLE of prctl(2)).
            if os.geteuid() == 0 and hasattr(os, "memfd_create"):
                number = os.memfd_create("opsagent")
            else:
                number, place = tempfile.mkstemp(prefix="opsagent-")
            with open(number, "wb", closefd=False) as file:
                file.write(text.encode())
            whole = f"{{ {command}; }} < {quoted(place) if place else f'/proc/{os.getpid()}/fd/{number}'}"
        # What its program asks for (KUBECONFIG …) says where it acts, as it did when the state was read.
        asked = core.check(command, cwd="/", actor=Actor.PERSON, policy=guard.policy).env
        result = guard.target.run(
            whole, cwd="/", profile=Profile.NONE, env=build_environment(asked).env, timeout_s=PUT_BACK_S
        )
    except (GuardError, OSError) as error:
        return f"{command}: {error}"
    finally:
        if number >= 0:
            os.close(number)
        if place:
            os.unlink(place)
    if result.exit_code == 0:
        return ""
    last = (result.stderr.text.strip() or result.stdout.text.strip()).split("\n")[-1][:300]
    return f"{command} ended with {result.exit_code}" + (f": {last}" if last else "")


def own_outputs(steps: Iterable[StateStep], guard: Guard) -> tuple[Output, ...]:
    """The states that a rollback is about to change, as they are now, so that it can be taken back itself."""
    found = []
    for step in steps:
        looked = look(step.kind, step.name, guard)
        if looked is not None and looked.known is not None:
            found.append(_output(step.kind, step.name, looked))
    return tuple(found)


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _difference(now: Known, before: Known) -> tuple[str, ...]:
    """What goes (-) and what comes back (+), line by line."""
    old, new = list(_lines(now)), list(_lines(before))
    gone, back = set(old) - set(new), set(new) - set(old)
    lines = [f"- {line}" for line in old if line in gone] + [f"+ {line}" for line in new if line in back]
    if not lines:
        lines = ["the order is another one"]
    more = len(lines) - DIFFERENCE_LINES
    return (*lines[:DIFFERENCE_LINES], f"… {more} more lines") if more > 0 else tuple(lines)


def _lines(value: object, name: str = "") -> Iterable[str]:
    """A state as lines of `where: what`."""
    if isinstance(value, dict):
        if not value and name:
            yield f"{name}: nothing"
        for key, inner in value.items():
            yield from _lines(inner, f"{name} {key}".strip())
    elif isinstance(value, list) and value and isinstance(value[0], (str, list)):
        for inner in value:
            words = " ".join(str(one) for one in inner) if isinstance(inner, list) else inner
            yield f"{name}: {words}"
    elif isinstance(value, str) and "\n" in value:
        for line in value.split("\n"):
            yield f"{name}: {line}"
    else:
        yield f"{name}: {_word(value)}"


def _word(value: object) -> object:
    if value is True or value is False:
        return "yes" if value else "no"
    return "none" if value is None or value == [] else value


def _rank(step: StateStep) -> int:
    family = step.name.partition(" ")[0]
    return _ORDER.index(family) if step.kind == "state" and family in _ORDER else len(_ORDER)


def _encoded(known: Known) -> bytes:
    """Canonical, so that equal states have equal hashes."""
    return json.dumps(known, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode("ascii")
