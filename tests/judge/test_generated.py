"""Thousands of generated texts, seeded: each is judged, explained and listed without an exception."""

import random

from guard.judge.classify import check
from guard.judge.explain import explain
from guard.types import LEVELS, Verdict
from tests.judge_texts import generated

COUNT = 3_000
"""benchmarks/judge.py runs 100,000."""


def test_every_generated_text_gets_an_answer():
    chance = random.Random("generated")
    for number in range(COUNT):
        text = generated(chance)
        assessment = check(text, cwd="/srv")
        assert assessment.level in LEVELS
        assert assessment.decision.verdict in (Verdict.RUN, Verdict.NEEDS_STAMP, Verdict.REFUSE)
        if number % 10 == 0:
            size = len(text.encode("utf-8", "replace"))
            assert all(0 <= reason.span[0] <= reason.span[1] <= size for reason in assessment.reasons), text
            assert explain(assessment) and assessment.inputs is not None and assessment.effects is not None
            assert assessment.snapshot_plan is not None and assessment.questions is not None
