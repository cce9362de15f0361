"""A check that could not be made never says "fine", whichever of its commands fails and however."""

from __future__ import annotations

import json

import pytest

from guard.types import Interference
from runbooks import runner
from runbooks.catalogue import RANKED
from runbooks.model import Answer, Severity, Where
from tests.runbooks.replay import CASES, NOW_S, Recorded, case_name

FAILURES = {
    "missing": {"exit_code": 127, "stderr": "bash: line 1: x: command not found", "status": "failed"},
    "failed": {"exit_code": 1, "stderr": "x: boom", "status": "failed"},
    "denied": {"exit_code": 1, "stderr": "x: Permission denied", "status": "failed"},
    "killed": {"exit_code": 137, "stderr": "", "status": "failed"},
    "slow": {"exit_code": None, "status": "timed_out"},
    "refused": {"exit_code": None, "status": "needs_stamp", "reason": "cannot enforce"},
    "hindered": {"exit_code": 0, "interference": [Interference("openat", "/x")]},
    "gibberish": {"exit_code": 0, "stdout": "\x00\x1b[31m!!\n%&/()=\n- - - - - - - - - -\n"},
}
AT = "2026-12-01T04:40:00.000Z"
WHERE = Where("web-1", 0, NOW_S)


def failing(kind: str) -> Answer:
    return Answer(execution="e-failed", at=AT, **FAILURES[kind])


@pytest.mark.guarantee("G-NOT-CHECKED")
@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("id", RANKED)
def test_when_every_command_fails_nothing_is_fine(id, kind):
    checked = runner.run([id], lambda argv, timeout_s: failing(kind), WHERE, utc=lambda: AT)
    assert checked.findings, "silence is no answer either"
    fine = [finding.text.en for finding in checked.findings if finding.severity == Severity.OK]
    assert not fine, fine


@pytest.mark.guarantee("G-NOT-CHECKED")
@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_when_one_command_fails_no_fine_finding_stands_on_it(case, kind):
    recording = json.loads((case / "commands.json").read_text("utf-8"))
    where = Where(
        "web-1",
        0,
        NOW_S,
        recording.get("light", False),
        recording.get("words", ()),
        recording.get("numbers", ()),
        recording.get("paths", ()),
    )
    for victim in (tuple(row["argv"]) for row in recording["answers"]):
        recorded = Recorded(recording["answers"])

        def ask(argv, timeout_s, recorded=recorded, victim=victim):
            if argv == victim:
                return failing(kind)
            if argv not in recorded.by_argv:  # what is asked instead, such as another engine
                return failing("missing")
            return recorded(argv, timeout_s)

        checked = runner.run([case.parent.name], ask, where, utc=lambda: AT)
        assert checked.findings, victim
        fine = [
            finding.text.en
            for finding in checked.findings
            if finding.execution == "e-failed" and finding.severity == Severity.OK
        ]
        assert not fine, (victim, fine)
        broken = [finding.text.en for finding in checked.findings if "could not be read" in finding.text.en]
        assert not broken, (victim, broken)
