"""`check`: one command in, its assessment out. Pure, and never raises for any text."""

from guard.judge.assignments import note_outside
from guard.judge.engine import Judge
from guard.judge.evaluation import note_evaluation_across
from guard.judge.policy import decide, profile_of
from guard.judge.shell.parse import hidden_control, parse
from guard.judge.touches import INCOMPLETE
from guard.types import (
    BUILTIN,
    LEVELS,
    LOCAL,
    NO_ENFORCEMENT,
    NO_FACTS,
    Actor,
    Assessment,
    Effect,
    Level,
    Peer,
    PlanItem,
    Reason,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.cutting import Cut
    from guard.judge.program import Ran
    from guard.judge.shell.syntax import Script
    from guard.types import Decision, Enforcement, Facts, Policy

_SPLITTERS = str.maketrans(dict.fromkeys("\n;&|(){}`", "\n"))
MAX_PIECES = 4_000


class Judged(Assessment):
    """An assessment whose level and decision are known; the rest is told from what was found, at first access."""

    __slots__ = ("command", "level", "decision", "profile", "target", "cwd", "_judge", "_reasons")

    def __init__(
        self,
        command: str,
        judge: Judge,
        level: Level,
        decision: "Decision",
        profile: str,
        target: str,
        cwd: "str | None",
    ) -> None:
        self.command = command
        self.level = level
        self.decision = decision
        self.profile = profile
        self.target = target
        self.cwd = cwd
        self._judge = judge
        self._reasons: tuple[Reason, ...] | None = None

    @property
    def reasons(self) -> "tuple[Reason, ...]":  # type: ignore[override]
        if self._reasons is None:
            ordered = sorted(dict.fromkeys(self._judge.findings), key=lambda finding: (-finding[0], finding[3]))
            self._reasons = tuple(
                Reason(rule, text, span, LEVELS[level], source) for level, rule, text, span, source in ordered
            )
        return self._reasons

    @property
    def effects(self) -> "tuple[Effect, ...]":  # type: ignore[override]
        return tuple(Effect(kind, name) for kind, name in dict.fromkeys(self._judge.effects))

    @property
    def opaque(self) -> "tuple[Reason, ...]":  # type: ignore[override]
        return tuple(reason for reason in self.reasons if reason.source == "law 2")

    @property
    def snapshot_plan(self) -> "tuple[PlanItem, ...]":  # type: ignore[override]
        return tuple(PlanItem(kind, name) for kind, name in self._planned())

    def _planned(self) -> "list[tuple[str, str]]":
        """What is saved before it runs: files, and states that are none."""
        plan = list(dict.fromkeys(self._judge.plan))
        if self.level == Level.R0:
            return plan
        from guard.judge.states import states

        if any(kind.endswith("-glob") for kind, _ in plan):
            from guard.judge.facts import lists_otherwise

            if lists_otherwise(self._judge):
                self._judge.flags.add(INCOMPLETE)
                plan = [(kind, name) for kind, name in plan if not kind.endswith("-glob")]
        return list(dict.fromkeys([*plan, *states(self._judge)]))

    @property
    def cuts(self) -> "tuple[Cut, ...]":
        """In which ways it can keep a person out: end the connection it comes over, or turn the next log-in away."""
        if self.level == Level.R0:
            return ()
        from guard.judge.cutting import cuts

        return tuple(cuts(self._judge, self._planned()))

    @property
    def cuts_off(self) -> bool:
        """Whether it can keep a person out in a way of which what is saved before it brings something back."""
        return any(cut.saved for cut in self.cuts)

    @property
    def inputs(self) -> "tuple[PlanItem, ...]":  # type: ignore[override]
        from guard.judge.inputs import inputs

        return tuple(PlanItem(kind, name) for kind, name in inputs(self._judge, self.command))

    @property
    def reversible(self) -> str:  # type: ignore[override]
        from guard.judge.ways_back import reversible

        return reversible(self._judge, bool(self._planned()))

    @property
    def ports(self) -> "tuple[int, ...]":  # type: ignore[override]
        return tuple(sorted({port for _, port, _ in self._judge.peers if port}))

    @property
    def peers(self) -> "tuple[Peer, ...]":  # type: ignore[override]
        return tuple(Peer(host, port, protocol) for host, port, protocol in dict.fromkeys(self._judge.peers))

    @property
    def ambient(self) -> "dict[str, str]":  # type: ignore[override]
        return dict(self._judge.ambient)

    @property
    def env(self) -> "tuple[str, ...]":  # type: ignore[override]
        return tuple(sorted(self._judge.env))

    @property
    def programs(self) -> "tuple[str, ...]":
        """Names of the programs that it runs, in order, as far as the text tells."""
        return (*self._judge.programs, *self._judge.inside)

    @property
    def ran(self) -> "tuple[Ran, ...]":
        """Every command that was met, in order, with those that it carries right behind it."""
        return tuple(self._judge.ran)

    @property
    def flags(self) -> "tuple[str, ...]":
        """Why a read may still not run unenforced: `helper`, `options-from-expansion`, `recursive-read` …"""
        return tuple(sorted(self._judge.flags))

    @property
    def questions(self) -> "tuple[str, ...]":  # type: ignore[override]
        """Paths whose links and kinds would matter (`guard.judge.facts`)."""
        from guard.judge.facts import questions

        return questions(self._judge)

    @property
    def patterns(self) -> "dict[str, tuple[str, ...]]":
        """Which of `questions` bash lists, and by which patterns (`guard.judge.facts`)."""
        from guard.judge.facts import patterns

        return patterns(self._judge)


def check(
    command: str,
    *,
    target: str = LOCAL,
    cwd: "str | None" = None,
    actor: str = Actor.AGENT,
    facts: "Facts" = NO_FACTS,
    enforcement: "Enforcement" = NO_ENFORCEMENT,
    policy: "Policy" = BUILTIN,
) -> Judged:
    """Judges one command. A pure function of its arguments; never raises for any text.

    Args:
        command: what bash would get. `core.check` has refused what is no command (NUL, invalid UTF-8, too long).
        cwd: absolute folder that relative paths are read against, or None.
    Returns:
        Level and decision at once; reasons, effects and plan when asked for.
    """
    judge = Judge(
        cwd=cwd,
        own_paths=policy.own_paths,
        own_private=policy.own_private,
        trusted_bin=policy.trusted_bin,
        rules=policy.rules,
    )
    _judge_text(judge, command)
    note_evaluation_across(judge)
    if judge.ambient:
        note_outside(judge)
    if judge.lowered:
        judge.level = max(finding[0] for finding in judge.findings)
    if policy.env:
        judge.env.update(policy.env)
    if facts is not NO_FACTS:
        from guard.judge.facts import apply

        apply(judge, facts)
    level = LEVELS[judge.level]
    profile = profile_of(judge, command)
    decision = decide(judge, level, profile, actor=actor, enforcement=enforcement, policy=policy)
    return Judged(command, judge, level, decision, profile, target, cwd)


def _judge_text(judge: Judge, command: str) -> None:
    hidden = hidden_control(command)
    if hidden is not None:
        judge.opaque("shell.control", "a character that a reader does not see (control or direction)", hidden)
    source = command.encode("utf-8", "replace")
    script = parse(source)
    judge.run_script(script)
    if not judge.programs and not judge.inside and judge.level == 0 and not _assigns_only(script):
        judge.opaque("shell.nothing", "no command is found in it", (0, len(source)))
    if b"\\\n" in source:
        # Bash joins continued lines before it reads tokens, the grammar does not: both readings count.
        judge.outer = (0, len(source))
        judge.run_script(parse(source.replace(b"\\\n", b"")))
        judge.outer = None
    if "opaque" in judge.flags and judge.level < 3 and any(f[1] == "shell.syntax" for f in judge.findings):
        _judge_pieces(judge, command, len(source))


def _assigns_only(script: "Script") -> bool:
    return bool(script.values) or bool(script.functions)


def _judge_pieces(judge: Judge, command: str, size: int) -> None:
    """After a syntax error: bash runs whole lines before it meets the error, so what reads alone counts too."""
    judge.outer = (0, size)
    for count, piece in enumerate(command.translate(_SPLITTERS).split("\n")):
        if count >= MAX_PIECES or judge.level >= 3:
            break
        if piece.strip():
            judge.run_script(parse(piece.encode("utf-8", "replace")))
    judge.outer = None
