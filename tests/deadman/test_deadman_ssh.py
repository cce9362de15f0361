"""Changes that cut their own ssh session, with a real sshd and a client on another machine, in namespaces."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import core
import execution
from acting import approving, deadman
from guard.errors import CannotRun, SnapshotImpossible
from guard.types import Actor, Request
from tests.services.machine import IN_PLACE, ROOT, is_root

PLACE = """
mount -t tmpfs none /run
mkdir /run/etc; cp -a /etc/. /run/etc; mount -t tmpfs none /etc; cp -a /run/etc/. /etc; rm -r /run/etc
exec "$@"
"""
CUTS = "iptables -A INPUT -p tcp --dport 2222 -j DROP"
HARMLESS = "iptables -A INPUT -p tcp --dport 2299 -j DROP"
INSIDE = "tests.deadman.inside"
SETTINGS = "/etc/ssh/sshd_config"
LOCKS_OUT = ["PermitRootLogin yes", "PermitRootLogin yes\nAllowUsers nobody"]
READ_AGAIN = "kill -HUP $(cat /run/sshd.pid)"


def told(folder, **order):
    order["folder"] = str(folder)
    done = subprocess.run(
        [*IN_PLACE, "bash", "-ec", PLACE, "bash", sys.executable, "-m", INSIDE, json.dumps(order)],
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


def kinds(story):
    return [kind for kind, _ in story["entries"]]


@pytest.mark.guarantee("G-DEAD-MAN")
def test_rule_that_cuts_the_session_is_back_after_everything_of_ours_was_killed(tmp_path):
    if not is_root():
        an_ordinary_user_is_not_left_without_a_way_back()
        return
    story = told(tmp_path, change=CUTS, seconds=6, kills=True)
    assert story["answer"]["status"] == "succeeded", story
    assert any("opsx confirm e-" in note for note in story["answer"]["notes"])
    assert story["changed"]["rule"]
    assert story["cut"]
    assert story["ended"] == "fired"
    assert not story["after"]["rule"]
    assert not story["somebody_is_in"]
    assert story["comes_in"]
    fired = [result for kind, result in story["entries"] if kind == "deadman_fired"]
    assert fired == ["begins", "succeeded"]
    assert kinds(story).count("rollback_planned") == 1
    assert story["entries"][0][0] == "deadman_armed"


@pytest.mark.parametrize(
    "change",
    [
        {"edit": [SETTINGS, *LOCKS_OUT], "then": READ_AGAIN},
        {"change": f"echo 'AllowUsers nobody' >> {SETTINGS}", "then": READ_AGAIN},
        {"change": f"echo 'AllowUsers nobody' >> {SETTINGS} && {READ_AGAIN}"},
    ],
    ids=["file change", "command", "command that has it read too"],
)
@pytest.mark.guarantee("G-DEAD-MAN")
def test_settings_that_turn_log_ins_away_are_back_and_the_server_has_read_them(tmp_path, change):
    if not is_root():
        an_ordinary_user_is_not_left_without_a_way_back()
        return
    story = told(tmp_path, seconds=6, kills=True, **change)
    assert story["answer"]["status"] == "succeeded", story
    assert (story["changed"]["config"], story["after"]["config"]) == (True, False)
    assert story["cut"]
    assert story["ended"] == "fired"
    assert story["comes_in"]
    assert any("reads its settings again" in (text or "") for text in story["texts"]), story


@pytest.mark.guarantee("G-DEAD-MAN")
def test_only_a_connection_from_outside_that_opened_after_the_change_confirms_it(tmp_path):
    if not is_root():
        an_ordinary_user_is_not_left_without_a_way_back()
        return
    no = ["same", "pretended", "itself", "own_address", "tmux", "early"]
    story = told(tmp_path, change=HARMLESS, seconds=100, attempts=no, confirms=True)
    old = "this connection was opened before the change ended"
    assert story["answer"]["over_the_old_connection"].startswith(old)
    said = story["attempts"]
    assert old in said["same"][1]
    assert old in said["pretended"][1]
    assert "comes from this machine itself" in said["itself"][1]
    assert "comes from this machine itself" in said["own_address"][1]
    assert "this terminal belongs to tmux" in said["tmux"][1]
    assert all(said[name][0] != 0 for name in said)
    # Accepted before the change, and only logged in after it: it shows nothing about connections that open now.
    user, logged_in_s, opened_s, *rest = story["early"]
    assert opened_s < story["answer"]["boot_s"] < logged_in_s
    assert (user, rest[0], rest[1], rest[2].split()[0]) == (4711, True, False, "192.0.2.2")
    assert story["somebody_is_in"]
    assert story["confirmed"][0] == 0, story["confirmed"]
    assert story["ended"] == "confirmed"
    assert story["after"]["rule"]
    assert "deadman_confirmed" in kinds(story)
    assert "deadman_fired" not in kinds(story)
    assert "rollback_planned" not in kinds(story)


@pytest.mark.guarantee("G-DEAD-MAN")
def test_a_change_without_the_variable_is_known_by_its_server_and_confirmed_without_it(tmp_path):
    if not is_root():
        an_ordinary_user_is_not_left_without_a_way_back()
        return
    story = told(tmp_path, change=HARMLESS, seconds=100, attempts=["without_variables"])
    assert story["attempts"]["without_variables"][0] == 0, story
    assert story["ended"] == "confirmed"


def an_ordinary_user_is_not_left_without_a_way_back():
    """Who cannot read a firewall could not take its change back either: the dead man does not answer for it."""
    guard = execution.open_guard()
    request = Request(CUTS, cwd="/", actor=Actor.PERSON)
    plan = approving.plan_of(request, core.check(CUTS, cwd="/"))
    with pytest.raises((CannotRun, SnapshotImpossible), match=r"could not be taken back|cannot be read"):
        deadman.arm("e-22222222222", execution.snapshot(plan, guard, cwd="/"), 60, plan, guard)
