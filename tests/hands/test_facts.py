"""What paths really are, and what is said of those that cannot be looked at."""

from __future__ import annotations

import os
import threading

import pytest

import core
from guard.hands import facts
from guard.hands.facts import facts_for
from guard.types import Enforcement, Level, Mode, Policy, Verdict

STRICT = Enforcement(("local", "net", "bus"), "strict", 7, True)


def judged(command, cwd, *, mode=Mode.GUARDED, own=(), enforcement=STRICT):
    """Twice, as a request is: by its text, then with what was found out about its paths."""
    policy = Policy(mode=mode, own_paths=own, is_root=True)

    def check(**more):
        return core.check(command, cwd=str(cwd), enforcement=enforcement, policy=policy, **more)

    return check(facts=facts_for(check(), str(cwd), own_paths=own))


@pytest.fixture
def linked(tmp_path):
    """A folder with innocent names that lead to what is protected, and the protected folder."""
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "errors.py").write_text("")
    place = tmp_path / "place"
    place.mkdir()
    (place / "gd").symlink_to(ours)
    (place / "loop").symlink_to("loop")
    (place / "plain").write_text("")
    return place, str(ours)


def refusing(monkeypatch, name):
    """Makes the look-up of one path fail, as /proc/PID/cwd does for whoever may not look."""
    real = os.path.realpath

    def closed(path, **more):
        if os.fspath(path).endswith(name):
            raise PermissionError(13, "Permission denied", path)
        return real(path, **more)

    monkeypatch.setattr(facts.os.path, "realpath", closed)


def test_one_that_cannot_be_looked_at_keeps_nobody_from_the_others(linked, monkeypatch):
    place, ours = linked
    refusing(monkeypatch, "/closed")
    found = judged("cat closed; cp plain gd/errors.py", place, own=(ours,))
    assert (found.decision.verdict, found.decision.code) == (Verdict.REFUSE, "law-6")


@pytest.mark.parametrize("mode", [Mode.GUARDED, Mode.LAB])
@pytest.mark.parametrize("command", ["cp plain closed", "touch closed", "cat closed; touch plain", "echo a > closed"])
def test_a_change_that_names_what_could_not_be_looked_at_asks(linked, monkeypatch, command, mode):
    place, ours = linked
    assert judged(command, place, own=(ours,)).level == Level.R1
    refusing(monkeypatch, "/closed")
    found = judged(command, place, own=(ours,), mode=mode)
    assert (found.level, found.decision.verdict) == (Level.R2, Verdict.NEEDS_STAMP)
    assert any("could not be looked up" in reason.text for reason in found.reasons)


def test_a_read_of_what_could_not_be_looked_at_runs_only_where_keys_are_masked(linked, monkeypatch):
    place, _ = linked
    refusing(monkeypatch, "/closed")
    assert judged("cat closed", place).decision.verdict == Verdict.RUN
    seccomp = Enforcement(("local",), "seccomp", 0, True)
    found = judged("cat closed", place, enforcement=seccomp)
    assert (found.level, found.decision.code) == (Level.R0, "cannot-enforce")
    assert judged("cat plain", place, enforcement=seccomp).decision.verdict == Verdict.RUN


@pytest.mark.parametrize("count", [600, 5_000])
def test_however_many_paths_stand_before_it_our_own_files_are_not_changed(linked, count):
    place, ours = linked
    names = " ".join(f"f{number}" for number in range(count))
    found = judged(f"touch {names} gd/errors.py", place, own=(ours,), mode=Mode.LAB)
    assert found.decision.verdict != Verdict.RUN
    assert found.level >= Level.R2


def test_more_names_than_are_looked_at_behind_a_pattern_ask(linked, monkeypatch):
    place, ours = linked
    monkeypatch.setattr(facts, "_MOST_LISTED", 2)
    assert judged(f"touch {place}/*", place, own=(ours,)).level == Level.R2
    assert judged(f"touch {place}/pl*", place, own=(ours,)).level == Level.R1


def test_a_look_up_that_never_ends_asks(linked, monkeypatch):
    place, ours = linked
    waiting = threading.Event()
    real = os.path.realpath

    def hangs(path):
        if path.endswith("hung"):
            waiting.wait(60)
        return real(path)

    monkeypatch.setattr(facts, "_PATIENCE_S", 0.1)
    monkeypatch.setattr(facts.os.path, "realpath", hangs)
    try:
        found = judged("touch hung gd/errors.py", place, own=(ours,), mode=Mode.LAB)
        assert found.level == Level.R2
        assert found.decision.verdict == Verdict.NEEDS_STAMP
    finally:
        waiting.set()


def test_what_is_not_there_is_answered(linked):
    place, ours = linked
    for name in ("nothing", "plain/below", "loop", "x" * 300):
        assert judged(f"touch {name}", place, own=(ours,)).level == Level.R1


def test_our_own_place_that_is_closed_to_us_is_where_it_is_named(linked, monkeypatch):
    place, _ = linked
    refusing(monkeypatch, "/theirs")
    assert judged("touch plain", place, own=("/root/theirs",)).level == Level.R1
    assert judged("touch /root/theirs/x", place, own=("/root/theirs",)).decision.code == "law-6"
