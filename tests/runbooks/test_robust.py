"""Outputs that are cut, shuffled or damaged: every parser answers, none breaks, and healthy machines stay quiet."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runbooks import runner
from runbooks.catalogue import load
from runbooks.model import Answer, Answers, Severity, Where
from tests.runbooks.replay import CASES, NOW_S, Recorded, case_name

HEALTHY = ("healthy", "quiet", "idle", "well", "current", "nothing-killed", "in-order", "long-ago")
AT = "2026-12-01T04:40:00.000Z"


def where_of(recording) -> Where:
    named = {name: recording.get(name, ()) for name in ("words", "numbers", "paths")}
    return Where("web-1", recording.get("euid", 0), NOW_S, recording.get("light", False), **named)


@pytest.mark.parametrize("case", [case for case in CASES if any(word in case.name for word in HEALTHY)], ids=case_name)
def test_a_healthy_machine_gives_no_warning(case):
    expected = json.loads((case / "expected.json").read_text("utf-8"))
    assert not [row["en"] for row in expected if row["severity"] in (Severity.WARN, Severity.CRIT)]


@pytest.mark.parametrize("case", CASES, ids=case_name)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_outputs_break_no_parser(case, data):
    recording = json.loads((case / "commands.json").read_text("utf-8"))
    where, recorded, book = where_of(recording), Recorded(recording["answers"]), load(case.parent.name)

    def damaged(answer: Answer) -> Answer:
        text = answer.stdout
        kind = data.draw(st.sampled_from(("whole", "cut", "lines", "shuffled", "noise", "long")))
        if kind == "cut":
            text = text[: data.draw(st.integers(0, len(text)))]
        elif kind == "lines":
            text = "".join(line for line in text.splitlines(keepends=True) if data.draw(st.booleans()))
        elif kind == "shuffled":
            text = "".join(data.draw(st.permutations(text.splitlines(keepends=True)[:40])))
        elif kind == "noise":
            at = data.draw(st.integers(0, len(text)))
            text = text[:at] + data.draw(st.text(max_size=12)) + text[at:]
        elif kind == "long":
            text = text.replace("1", "9" * 400)
        return answer.replace(stdout=text)

    have = Answers()
    for _ in range(runner.MOST_ROUNDS):
        asked = book.commands(have, where)
        for command in asked:
            known = command.argv in recorded.by_argv
            have.add(
                command.key, damaged(recorded(command.argv, 1.0)) if known else Answer(127, status="failed", at=AT)
            )
        if not asked:
            break
    for finding in book.read(have, where):
        assert finding.text.en and finding.text.zh
        assert finding.number is None or finding.number - finding.number == 0, "a finite number, for JSON"
