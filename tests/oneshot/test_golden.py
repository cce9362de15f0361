"""The pages that people and monitoring systems see are the ones that were read and found good."""

from __future__ import annotations

import time

import pytest

from tests.oneshot.golden import FOLDER, NAMES, page


@pytest.fixture(autouse=True)
def utc_zone(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_what_it_was(name):
    assert page(name) == (FOLDER / name).read_text("utf-8")


def test_no_other_page_lies_about():
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(NAMES)
