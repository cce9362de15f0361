"""The corpus holds: every row has the level (and decision) that it says, and no row was silently lowered."""

import json
from pathlib import Path

import pytest

from guard.judge.classify import check

FOLDER = Path(__file__).parent
ROWS = [json.loads(line) for path in sorted(FOLDER.glob("*.jsonl")) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_row_has_the_level_that_it_says(row):
    assessment = check(row["cmd"], cwd="/srv/work")
    assert assessment.level.name == row["level"], [(str(r.level), r.rule, r.text) for r in assessment.reasons]
    if "decision" in row:
        assert assessment.decision.verdict == row["decision"]
    if "rule" in row:
        assert row["rule"] in {reason.rule for reason in assessment.reasons}


def test_ids_are_unique_and_rows_have_only_known_fields():
    ids = [row["id"] for row in ROWS]
    assert len(ids) == len(set(ids)) >= 400
    assert all(set(row) <= {"id", "cmd", "level", "decision", "rule"} for row in ROWS)


def test_lowered_rows_name_existing_rows_and_go_down():
    for line in (FOLDER / "lowered.md").read_text().splitlines():
        if line.startswith("| ") and not line.startswith(("| id", "| ---")):
            ident, old, new, why = (cell.strip() for cell in line.strip("|").split("|"))
            assert ident in {row["id"] for row in ROWS}
            assert new < old and why
