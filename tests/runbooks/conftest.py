"""The runbooks' sentences carry local times; the tests read them in UTC wherever they run."""

from __future__ import annotations

import time

import pytest


@pytest.fixture(autouse=True)
def utc_zone(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
