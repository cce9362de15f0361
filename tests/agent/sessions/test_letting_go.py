"""Conversations that were not used for long go when another is opened; none that is open, and never unsaid."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from agent.brains.choice import RUNBOOKS
from agent.brains.entries import entry_of
from agent.brains.opening import open_conversation
from agent.messages import User
from agent.sessions.store import Sessions
from guard.keeping import SESSION_DAYS, Keeping
from guard.types import Policy
from tests.capabilities.world import guard_in

LINKS = (entry_of("near", {"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m"}, redact=str), RUNBOOKS)


@pytest.fixture
def place(tmp_path):
    """A guard, and its conversations, each last used so many days ago."""

    def made(*ages, keeping=None):
        guard = replace(guard_in(tmp_path), policy=Policy(keeping=keeping or Keeping()))
        sessions = Sessions.open(guard.redactor, str(tmp_path / "state"))
        ids = []
        for age in ages:
            transcript = sessions.create(cwd="/")
            transcript.append(User(f"{age} days ago"))
            transcript.close()
            used = time.time() - age * 86_400
            os.utime(tmp_path / "state" / "sessions" / f"{transcript.id}.jsonl", (used, used))
            ids.append(transcript.id)
        return guard, sessions, ids

    made.folder = tmp_path
    return made


def opened(guard, sessions, folder, **more):
    held = open_conversation(guard, LINKS, sessions, cwd=str(folder), shell="repl", environ={}, **more)
    held.conversation.close()
    return held


def left(sessions):
    return {row.id for row in sessions.listing()}


def test_what_was_not_used_for_a_year_goes_and_is_named(place):
    guard, sessions, (young, old) = place(SESSION_DAYS - 1, SESSION_DAYS + 1)
    (note,) = opened(guard, sessions, place.folder).notes
    assert note == f"1 conversation was not used for 365 days and deleted ([sessions] keep_days): {old}"
    assert left(sessions) == {young}
    assert opened(guard, sessions, place.folder).notes == ()


@pytest.mark.parametrize(("days", "gone"), [(30, 2), (500, 0), (0, 0)])
def test_the_age_is_what_the_configuration_says_and_zero_keeps_all(place, days, gone):
    guard, sessions, ids = place(10, 40, 400, keeping=Keeping(session_days=days))
    notes = opened(guard, sessions, place.folder).notes
    assert left(sessions) == set(ids[: 3 - gone]) and len(notes) == bool(gone)


def test_the_one_that_goes_on_now_and_one_that_is_open_elsewhere_stay(place):
    guard, sessions, (resumed, elsewhere, old) = place(400, 500, 600)
    with_it = sessions.resume(elsewhere)
    used = time.time() - 500 * 86_400
    os.utime(place.folder / "state" / "sessions" / f"{elsewhere}.jsonl", (used, used))
    opened(guard, sessions, place.folder, resume=resumed)
    assert left(sessions) == {resumed, elsewhere} and old not in left(sessions)
    with_it.close()


def test_many_are_counted_and_only_some_named(place):
    guard, sessions, _ = place(*range(400, 406))
    (note,) = opened(guard, sessions, place.folder).notes
    assert note.startswith("6 conversations were not used") and note.endswith("and 3 more") and left(sessions) == set()


def test_a_folder_that_cannot_be_written_costs_no_conversation(place, monkeypatch):
    from guard.errors import StateError

    guard, sessions, ids = place(400)

    def fails(**more):
        raise StateError("the disk is sick", not_done="nothing was deleted")

    monkeypatch.setattr(sessions, "prune", fails)
    held = opened(guard, sessions, place.folder)
    assert any("could not be deleted: the disk is sick" in note for note in held.notes) and left(sessions) == set(ids)
