"""Every recorded machine: the same answers give the same findings, in both languages."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from runbooks.catalogue import RANKED
from runbooks.model import Severity
from tests.runbooks.replay import CASES, case_name, play

SICK = {Severity.CRIT, Severity.WARN, Severity.NOTE, Severity.NOT_CHECKED}


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_recorded_answers_give_the_expected_findings(case):
    findings, asked, recorded = play(case)
    assert findings == json.loads((case / "expected.json").read_text("utf-8"))
    assert sorted(asked) == sorted(recorded), "the recording holds exactly what is asked, once each"


def test_every_runbook_has_at_least_six_recordings_and_a_sick_one():
    cases = Counter(case.parent.name for case in CASES)
    assert set(cases) == set(RANKED)
    assert min(cases.values()) >= 6
    for id in RANKED:
        severities = {
            finding["severity"]
            for case in CASES
            if case.parent.name == id
            for finding in json.loads((case / "expected.json").read_text("utf-8"))
        }
        assert severities & SICK, id
        assert Severity.OK in severities, id


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_every_finding_is_a_sentence_in_both_languages(case):
    for finding in json.loads((case / "expected.json").read_text("utf-8")):
        assert finding["en"] and finding["zh"]
        if finding["severity"] in (Severity.CRIT, Severity.WARN):
            assert finding["next"], finding["id"]
        if finding["severity"] != Severity.NOT_CHECKED:
            assert finding["id"].split(".")[0] == case.parent.name
