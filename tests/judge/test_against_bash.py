"""What is read is what a real bash runs: recording stubs on PATH, texts changed by single characters."""

import random

import pytest

from guard.judge.classify import Judged, check
from guard.types import Level
from tests.judge_texts import SHAPES, STUBS, Recorder, fits, mutated

CHANGES = 30
"""Changed texts for each shape; benchmarks/judge.py runs more."""


@pytest.fixture
def recorder(tmp_path):
    return Recorder(tmp_path)


def _is_read_in_full(assessment: Judged) -> bool:
    return not any(reason.rule.startswith("shell.") for reason in assessment.reasons)


def unread(assessment: Judged, calls: list[list[str]]) -> list[list[str]]:
    """Calls that bash made and that no command in the assessment can be."""
    return [
        argv
        for argv in calls
        if not any(ran.name == argv[0] and fits(ran.words[1:], argv[1:]) for ran in assessment.ran)
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_call_that_bash_makes_was_read(shape, recorder):
    calls, _ = recorder.run(shape)
    assert unread(check(shape), calls) == []
    acts = "kk" in shape or "rm" in shape or not _is_read_in_full(check(shape))
    assert acts or check(shape).level == Level.R0


@pytest.mark.parametrize("shape", SHAPES)
def test_a_changed_character_hides_no_call_from_the_reader(shape, recorder):
    chance = random.Random(f"one character {shape}")
    for _ in range(CHANGES):
        text = mutated(shape, chance)
        assessment = check(text)
        if not _is_read_in_full(assessment):
            assert assessment.level >= Level.R1, text
            continue
        calls, made = recorder.run(text)
        assert unread(assessment, calls) == [], text
        if assessment.level == Level.R0:
            assert made == [], text
            assert not {argv[0] for argv in calls} & {"kk", "rm", "touch", "mv"}, text


def test_the_stubs_record_what_they_are_given(recorder):
    assert recorder.run("kk 'a b' \"\" $'c\\nd'; touch x > out")[0] == [["kk", "a b", "", "c\nd"], ["touch", "x"]]
    assert recorder.run("ls > out")[1] == ["out"]
    assert recorder.run("nosuch") == ([], [])
    assert set(STUBS) == {path.name for path in recorder.bin.iterdir()}
