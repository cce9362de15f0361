"""Every command of every runbook is a read that the guard lets run, however a recording came to ask it."""

from __future__ import annotations

import json

import pytest

import core
from guard.quoting import joined
from guard.types import Actor, Enforcement, Level, Profile, Verdict
from tests.runbooks.replay import CASES

ENFORCED = Enforcement(
    [Profile.LOCAL, Profile.NET, Profile.BUS, Profile.OBSERVE, Profile.NETADM, Profile.BLOCK], "strict", 6, True
)
COMMANDS = sorted(
    {tuple(row["argv"]) for case in CASES for row in json.loads((case / "commands.json").read_text("utf-8"))["answers"]}
)


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: " ".join(argv)[:60])
def test_a_runbooks_command_is_a_read_that_runs(argv):
    judged = core.check(joined(argv), cwd="/", actor=Actor.RUNBOOK, enforcement=ENFORCED)
    assert (judged.level, judged.decision.verdict) == (Level.R0, Verdict.RUN), judged.decision.text
