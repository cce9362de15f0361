"""A goal: the conversation goes on by itself between turns until it is reached or something needs a person. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from guard.errors import UsageError

ROUNDS, MOST_ROUNDS = 6, 20
REACHED = "GOAL REACHED"
"""The line that a brain ends its answer with when there is nothing left to do."""
USAGE = "/goal TEXT [--rounds N]"


@dataclass(frozen=True, slots=True)
class Goal:
    """What is pursued, and how far it is."""

    text: str
    rounds: int = ROUNDS
    round: int = 0
    """The running one, from 1; 0 before the first."""

    def shown(self) -> str:
        """`goal: round 2 of 6: TEXT`"""
        return f"goal: round {self.round} of {self.rounds}: {self.text}"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a turn ended, as far as a goal cares."""

    exit_code: int
    answer: str
    asked: bool = False
    """A person was asked for an approval."""
    unknown: bool = False
    """Of something it is not known whether it ran."""


def goal_of(words: str) -> Goal:
    """The goal in the words behind `/goal`. Raises UsageError."""
    text, rounds = words.strip(), ROUNDS
    head, mark, tail = text.rpartition("--rounds")
    if mark:
        number = tail.strip().removeprefix("=").strip()
        if not (number.isascii() and number.isdigit() and 1 <= int(number) <= MOST_ROUNDS):
            raise UsageError(f"--rounds takes 1 to {MOST_ROUNDS}", not_done="no goal was set", hint=USAGE)
        text, rounds = head.strip(), int(number)
    if not text:
        raise UsageError("a goal needs words", not_done="no goal was set", hint=USAGE)
    return Goal(text, rounds)


def next_round(goal: Goal) -> tuple[Goal, str]:
    """The goal in its next round, and what the brain is told. The number of rounds has to allow it."""
    goal = replace(goal, round=goal.round + 1)
    told = f"{'Work' if goal.round == 1 else 'Go on'} towards this goal: {goal.text}"
    return (
        goal,
        f"{told}\nThis is round {goal.round} of {goal.rounds}. When it is reached, end with the line {REACHED}.",
    )


def why_over(goal: Goal, ended: Ended) -> str:
    """Why there is no next round, in words; "" when there is one."""
    if ended.unknown:
        return "the goal stops: of something it is not known whether it ran"
    if ended.exit_code == 4:
        return "the goal stops: something was denied or refused"
    if ended.exit_code == 130:
        return "the goal stops: it was interrupted"
    if ended.asked or ended.exit_code == 3:
        return "the goal stops: a person was asked"
    if ended.exit_code:
        return "the goal stops: the turn did not end well"
    if any(line.strip().strip("*_. ") == REACHED for line in ended.answer.splitlines()):
        return f"the goal is reached after round {goal.round}"
    if goal.round >= goal.rounds:
        return f"the goal stops after its {goal.rounds} rounds"
    return ""
