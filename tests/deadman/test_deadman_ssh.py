"""A change that cuts its own ssh session, with a real sshd in namespaces of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import core
import execution
from acting import approving, deadman
from guard.errors import CannotRun
from guard.types import Actor, Request
from tests.services.machine import IN_PLACE, ROOT, is_root

PLACE = 'mount -t tmpfs none /run; exec "$@"'
CUTS = "iptables -A INPUT -p tcp --dport 2222 -j DROP"
HARMLESS = "iptables -A INPUT -p tcp --dport 2299 -j DROP"


def told(folder, change, *, seconds, confirm=False):
    order = {"folder": str(folder), "change": change, "seconds": seconds, "confirm": confirm}
    done = subprocess.run(
        [*IN_PLACE, "bash", "-ec", PLACE, "bash", sys.executable, "-m", "tests.deadman.inside", json.dumps(order)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
        env={
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "OPSAGENT_HOME": f"{folder}/state",
            "HOME": str(folder),
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.guarantee("G-DEAD-MAN")
def test_rule_that_cuts_the_session_is_back_after_everything_of_ours_was_killed(tmp_path):
    if not is_root():
        an_ordinary_user_is_not_left_without_a_way_back()
        return
    story = told(tmp_path, CUTS, seconds=6)
    assert story["answer"]["status"] == "succeeded", story
    assert any("opsx confirm e-" in note for note in story["answer"]["notes"])
    assert story["changed"]
    assert story["cut"]
    assert story["ended"] == "fired"
    assert not story["still_changed"]
    assert story["comes_in"]
    fired = [result for kind, result in story["entries"] if kind == "deadman_fired"]
    assert fired == ["begins", "succeeded"]
    assert [kind for kind, _ in story["entries"]].count("rollback_planned") == 1
    assert story["entries"][0][0] == "deadman_armed"


@pytest.mark.guarantee("G-DEAD-MAN")
def test_only_a_connection_opened_after_the_change_confirms_it(tmp_path):
    if not is_root():
        an_ordinary_user_is_not_left_without_a_way_back()
        return
    story = told(tmp_path, HARMLESS, seconds=20, confirm=True)
    assert story["answer"]["over_the_old_connection"].startswith("this connection was opened before the change ended")
    assert story["confirmed"][0] == 0, story["confirmed"]
    assert story["ended"] == "confirmed"
    assert story["still_changed"]
    kinds = [kind for kind, _ in story["entries"]]
    assert "deadman_confirmed" in kinds
    assert "deadman_fired" not in kinds
    assert "rollback_planned" not in kinds


def an_ordinary_user_is_not_left_without_a_way_back():
    """Who cannot read a firewall could not take its change back either: the dead man does not answer for it."""
    guard = execution.open_guard()
    request = Request(CUTS, cwd="/", actor=Actor.PERSON)
    plan = approving.plan_of(request, core.check(CUTS, cwd="/"))
    snapshot = execution.snapshot(plan, guard, cwd="/")
    with pytest.raises(CannotRun, match="could not be taken back"):
        deadman.arm("e-22222222222", snapshot, 60, plan, guard)
