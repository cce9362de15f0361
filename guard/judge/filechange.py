"""A change of one file in place of a command: the same rules about paths, and nothing to parse.

What writes to a path by `tee PATH` has a level; what writes to it by a file change has the same or a higher one. A
person's own rules about `tee` that raise a level count here too.
"""

from guard.judge import paths
from guard.judge.classify import Judged
from guard.judge.cutting import Cut
from guard.judge.engine import Judge
from guard.judge.levels import R2
from guard.judge.policy import decide
from guard.judge.program import Ran
from guard.judge.shell.syntax import Word
from guard.judge.touches import write_path
from guard.types import BUILTIN, LEVELS, LOCAL, NO_ENFORCEMENT, NO_FACTS, Actor, PlanItem, Profile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.types import Decision, Facts, Level, Policy

AS_PROGRAM = "tee"
"""The program whose rules of a person's own count."""
HOLDS_CREDENTIALS = "edit.secret"
"""Rule of a change of a file that holds credentials: what it holds now is shown to nobody."""


class JudgedChange(Judged):
    """The assessment of a file change: what is saved and whether that brings it back are known exactly."""

    __slots__ = ("_path", "_way_back")

    def __init__(
        self, text: str, judge: Judge, level: "Level", decision: "Decision", target: str, path: str, way_back: str
    ) -> None:
        super().__init__(text, judge, level, decision, Profile.NONE, target, "/")
        self._path = path
        self._way_back = way_back

    @property
    def snapshot_plan(self) -> "tuple[PlanItem, ...]":  # type: ignore[override]
        return (PlanItem("path", self._path),)

    @property
    def inputs(self) -> "tuple[PlanItem, ...]":  # type: ignore[override]
        return ()

    @property
    def cuts(self) -> "tuple[Cut, ...]":
        found = super().cuts
        return tuple(Cut(cut.why, False) for cut in found) if self._way_back == "no" else found

    @property
    def reversible(self) -> str:  # type: ignore[override]
        return self._way_back or super().reversible


def check(
    text: str,
    path: str,
    *,
    asked: str = "",
    unkept: bool = False,
    other_names: int = 0,
    too_long: bool = False,
    target: str = LOCAL,
    actor: str = Actor.AGENT,
    facts: "Facts" = NO_FACTS,
    policy: "Policy" = BUILTIN,
) -> JudgedChange:
    """Judges a change of one file. A pure function of its arguments; never raises for any text or path.

    Args:
        text: what stands for the change in records, canonical JSON.
        path: absolute, links followed. asked: the path that leads there by a link.
        unkept: what it holds now is a secret that no snapshot copies.
        other_names: hard links beside this one.
        too_long: its difference is longer than a person is shown.
    """
    judge = Judge(cwd="/", own_paths=policy.own_paths, own_private=policy.own_private)
    judge.rules = tuple(rule for rule in policy.rules if not rule.lowers)
    span = (0, len(text.encode("utf-8", "replace")))
    places = [path, asked] if asked else [path]
    words = [Word(span, AS_PROGRAM), Word(span, "--", quoted=True), *(Word(span, name, quoted=True) for name in places)]
    ran = Ran(AS_PROGRAM, words, span, judge)
    judge.ran.append(ran)
    for word in words[2:]:
        write_path(judge, word, span, "file change")
    for name in places:
        if paths.secret(name) or unkept:
            judge.note(R2, HOLDS_CREDENTIALS, f"changes a file that holds credentials ({name})", span, "docs/edits.md")
            judge.effects.append(("secret", name))
    if other_names:
        count = "another name" if other_names == 1 else f"{other_names} other names"
        judge.note(
            R2, "edit.names", f"{path} has {count} (hard links), under which the old content stays", span, "link(2)"
        )
    if too_long:
        judge.note(R2, "edit.long", "more lines change than a person is shown", span, "docs/edits.md")
    if judge.rules:
        from guard.judge.own_rules import apply as apply_rules

        apply_rules(judge, AS_PROGRAM, words, 0, 0, False)
    ran.end_effect = len(judge.effects)
    ran.level = judge.level
    judge.plan = [("path", path)]
    if facts is not NO_FACTS:
        from guard.judge.facts import apply

        apply(judge, facts)
    level = LEVELS[judge.level]
    decision = decide(judge, level, Profile.NONE, actor=actor, enforcement=NO_ENFORCEMENT, policy=policy)
    way_back = "no" if unkept else "partial" if other_names else ""
    return JudgedChange(text, judge, level, decision, target, path, way_back)
