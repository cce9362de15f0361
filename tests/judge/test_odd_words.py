"""Words that nobody types: empty ones, lone dashes, blanks. No family may stumble over them."""

from __future__ import annotations

import pytest

from guard.judge.classify import check
from guard.judge.families import _NAMES

TAILS = (
    "''",
    "'' ''",
    "-",
    "--",
    "-- ''",
    "-x ''",
    "--x= ''",
    "= ''",
    "' '",
    "-'' x",
    "+ ''",
    ". ..",
    "'' -c ''",
    "x '' y",
)


@pytest.mark.parametrize("tail", TAILS)
def test_no_program_stumbles_over_odd_words(tail):
    names = sorted(name for part in _NAMES.values() for name in (part.split() if isinstance(part, str) else part))
    assert len(names) > 1000
    faults = [
        name
        for name in names
        if any(reason.rule == "judge.fault" for reason in check(f"{name} {tail}", cwd="/srv").reasons)
    ]
    assert faults == []
