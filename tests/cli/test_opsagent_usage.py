"""`opsagent usage`: days, brains, sums, and what has no price."""

from __future__ import annotations

import json

import pytest

from agent import usage
from cli import opsagent
from cli.opsagent_usage import since_of
from guard.errors import UsageError
from guard.ledger.location import state_path
from guard.ledger.state import StateFolder

SPENT = (
    usage.Spent("2026-11-30T23:00:00.000Z", "far", "m", "c-1", 1000, 100, 10, 2000, 0.5),
    usage.Spent("2026-12-01T01:00:00.000Z", "near", "m", "c-1", 20, 10, 0, 500, None),
    usage.Spent("2026-12-01T02:00:00.000Z", "far", "m", "c-2", 3, 1, 0, 100, 0.25),
)


@pytest.fixture
def spent():
    folder = StateFolder.open(state_path())
    for one in SPENT:
        usage.record(one, folder)
    return folder


def test_every_day_and_brain_has_a_row_and_a_total(spent, capsys):
    assert opsagent.main(["usage", "--since", "2026-11-30"]) == 0
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines()] == [
        ["day", "brain", "replies", "in", "cached", "out", "time", "cost"],
        ["2026-11-30", "far", "1", "1,000", "10", "100", "2.0", "s", "0.5000"],
        ["2026-12-01", "far", "1", "3", "0", "1", "0.1", "s", "0.2500"],
        ["2026-12-01", "near", "1", "20", "0", "10", "0.5", "s", "-"],
        ["all", "3", "1,023", "10", "111", "2.6", "s", "0.7500"],
    ]
    assert err == "opsagent: 1 replies have no price and are not in the cost\n"


def test_json_has_the_same_figures_and_since_limits_them(spent, capsys):
    assert opsagent.main(["usage", "--json", "--since", "2026-12-01"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert [(row["day"], row["brain"], row["input_tokens"], row["cost"]) for row in got["days"]] == [
        ("2026-12-01", "far", 3, 0.25),
        ("2026-12-01", "near", 20, None),
    ]
    assert (got["total"]["replies"], got["total"]["unpriced"], got["unread"]) == (2, 1, 0)


def test_nothing_spent_is_said(capsys):
    assert opsagent.main(["usage", "--since", "2026-12-01"]) == 0
    assert capsys.readouterr().out == "no model was asked since 2026-12-01\n"


@pytest.mark.parametrize(("text", "since"), [("7d", "2026-11-24"), ("0d", "2026-12-01"), ("2026-02-03", "2026-02-03")])
def test_a_time_is_a_day_or_so_many_days(text, since):
    assert since_of(text, today="2026-12-01") == since


@pytest.mark.parametrize("text", ["", "7", "2026-13-01", "2026-2-3", "yesterday", "-7d", "99999d"])
def test_another_time_is_a_usage_error(text):
    with pytest.raises(UsageError, match="--since takes a day"):
        since_of(text, today="2026-12-01")
