"""Usage: what replies cost, kept line by line, added up by day."""

from __future__ import annotations

import os
import threading

import pytest

from agent import usage
from agent.providers.base import Tokens
from agent.usage import Spent
from guard.errors import StateError
from guard.ledger.state import StateFolder

ONE = Spent("2026-11-30T23:59:59.999Z", "local", "qwen3", "c-1", 1000, 200, 50, 1500, 0.25)
TWO = Spent("2026-12-01T00:00:00.000Z", "local", "qwen3", "c-1", 10, 2, 0, 15, None)
THREE = Spent("2026-12-01T10:00:00.000Z", "anthropic", "claude", "c-2", 100, 20, 0, 150, 0.5)


@pytest.fixture
def folder(tmp_path):
    return StateFolder.open(str(tmp_path / "state"))


def test_what_was_recorded_is_read_again_in_files_by_month(folder):
    for one in (ONE, TWO, THREE):
        usage.record(one, folder)
    assert usage.read(folder) == usage.Found((ONE, TWO, THREE))
    place = os.path.join(folder.path, "usage")
    assert sorted(os.listdir(place)) == ["2026-11.jsonl", "2026-12.jsonl"]
    assert {os.stat(os.path.join(place, name)).st_mode & 0o777 for name in os.listdir(place)} == {0o600}


def test_nothing_recorded_is_nothing_found(folder):
    assert usage.read(folder) == usage.Found(())


@pytest.mark.parametrize(("since", "left"), [("2026-12", (TWO, THREE)), ("2026-12-01T01", (THREE,)), ("2027", ())])
def test_a_time_limits_what_is_read(folder, since, left):
    for one in (ONE, TWO, THREE):
        usage.record(one, folder)
    assert usage.read(folder, since=since).spent == left


def test_lines_that_are_not_ours_are_counted_and_the_rest_is_read(folder):
    usage.record(TWO, folder)
    path = os.path.join(folder.path, "usage", "2026-12.jsonl")
    good = TWO.as_json()
    import json

    bad = [
        "torn {",
        "[]",
        json.dumps({**good, "format": 9}),
        json.dumps({**good, "input_tokens": -1}),
        json.dumps({**good, "input_tokens": True}),
        json.dumps({**good, "cost": "free"}),
        json.dumps({**good, "brain": "x" * 2000}),
        json.dumps({name: value for name, value in good.items() if name != "at"}),
    ]
    with open(path, "a", encoding="ascii") as file:
        file.write("\n".join(bad) + "\n")
    usage.record(THREE, folder)
    assert usage.read(folder) == usage.Found((TWO, THREE), unread=len(bad))


def test_writers_beside_each_other_lose_nothing(folder):
    def work():
        for _ in range(50):
            usage.record(TWO, folder)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert usage.read(folder) == usage.Found((TWO,) * 200)


def test_a_place_that_is_a_link_is_not_written(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", os.path.join(folder.path, "usage"))
    with pytest.raises(StateError):
        usage.record(ONE, folder)
    assert os.listdir(tmp_path / "elsewhere") == []


def test_sums_are_by_day_and_brain_and_say_what_has_no_price():
    sums = usage.by_day((ONE, TWO, THREE, TWO))
    assert [(one.day, one.brain, one.replies) for one in sums] == [
        ("2026-11-30", "local", 1),
        ("2026-12-01", "anthropic", 1),
        ("2026-12-01", "local", 2),
    ]
    assert (sums[2].input, sums[2].output, sums[2].cost, sums[2].unpriced) == (20, 4, None, 2)
    whole = usage.total((ONE, TWO, THREE))
    assert (whole.input, whole.output, whole.cached, whole.took_ms) == (1110, 222, 50, 1665)
    assert (whole.cost, whole.unpriced) == (0.75, 1)


@pytest.mark.parametrize(
    ("price_in", "price_out", "cost"), [(None, None, None), (2.0, None, 2.0), (2.0, 8.0, 4.0), (0.0, 0.0, 0.0)]
)
def test_cost_is_told_only_where_a_price_is_known(price_in, price_out, cost):
    assert usage.cost_of(Tokens(1_000_000, 250_000), price_in, price_out) == cost


def test_what_came_from_the_cache_may_have_a_price_of_its_own():
    tokens = Tokens(1_000_000, 0, cached=400_000)
    assert usage.cost_of(tokens, 10.0, None) == 10.0
    assert usage.cost_of(tokens, 10.0, None, 1.0) == pytest.approx(6.4)
