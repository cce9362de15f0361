"""An approved change through sudo, as a user: asked for, approved on a terminal, run, and taken back."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from guard.hands import privilege
from guard.hands.capture import survey
from tests.approvals.terminal import Terminal, opsx
from tests.hands.test_privileges import INNER, UID

FREE, ASKS = "operator ALL=(ALL) NOPASSWD: ALL", "operator ALL=(ALL) ALL"
REACHABLE = str(pathlib.Path(__file__).with_name("reachable.py"))


class Operator:
    """Uid 1000 in a mount namespace where its sudoers has one line; its folders are its own, `etc` is root's."""

    def __init__(self, sudoers):
        made = subprocess.check_output(["mktemp", "-d", "/tmp/operator.XXXXXX"], text=True).strip()
        self.home, self._sudoers, self._opened = pathlib.Path(made), sudoers, []
        os.chown(self.home, UID, UID)
        self.etc = pathlib.Path(
            subprocess.check_output(["mktemp", "-d", "/tmp/operator-etc.XXXXXX"], text=True).strip()
        )
        self.etc.chmod(0o755)
        self._environ = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C.UTF-8",
            "HOME": made,
            "OPSAGENT_HOME": f"{made}/state",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TERM": "xterm",
        }

    def _argv(self, *arguments):
        inner = [sys.executable, REACHABLE, str(UID), *opsx(*arguments)]
        return ["/usr/bin/unshare", "--mount", "bash", "-c", INNER, "bash", str(UID), self._sudoers, *inner]

    def said(self, *arguments):
        """(exit code, JSON) without a terminal."""
        argv = self._argv(*arguments)
        place = str(self.home)
        done = subprocess.run(
            argv, env=self._environ, cwd=place, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
        )
        assert done.stdout.startswith(b"{"), done.stderr
        return done.returncode, json.loads(done.stdout)

    def on_a_terminal(self, *arguments, asks="", answer="yes\r"):
        """(exit code, screen) on a terminal."""
        terminal = Terminal(self._argv(*arguments), env=self._environ, cwd=str(self.home), rows=200, columns=300)
        self._opened.append(terminal)
        if asks:
            terminal.wait_for(asks)
            terminal.answer(answer)
        return terminal.end(), terminal.text

    def close(self):
        for terminal in self._opened:
            terminal.close()
        subprocess.run(["rm", "-rf", str(self.home), str(self.etc)], check=True)


@pytest.fixture
def operator():
    made = []

    def make(sudoers):
        made.append(Operator(sudoers))
        return made[-1]

    yield make
    for one in made:
        one.close()


def facts(path):
    """Owner, mode and text of a file."""
    return path.stat().st_uid, path.stat().st_mode & 0o777, path.read_text()


ASKED = "anything else is no"
NO_RIGHT = "the right to put it back: a rollback runs without sudo; run opsagent as root for a way back"


def changed(user, command):
    """Asks, approves and runs; (exit code, answer, the screen on which it was approved)."""
    code, asked = user.said("exec", "--json", "--", command)
    assert (code, asked["status"]) == (3, "needs_stamp")
    code, shown = user.on_a_terminal("approve", asked["request"], asks=ASKED)
    assert code == 0, shown
    return *user.said("exec", "--json", "--", command), shown


def is_ordinary():
    """Without root there is no user to make: then this user's own rights are the ones that are looked at."""
    if not os.geteuid():
        return False
    assert privilege.privilege() != privilege.ROOT
    assert not privilege.may_put_back([node_of("/etc/passwd")])
    return True


def node_of(path):
    (found,) = survey([path], recursive=False)
    return found


def test_a_change_of_ones_own_with_sudo_is_approved_run_and_taken_back(operator):
    if is_ordinary():
        return
    user = operator(FREE)
    config = user.home / "app.conf"
    config.write_text("port = 80\n")
    os.chown(config, UID, UID)
    before = facts(config)
    code, ran, shown = changed(user, f"sudo sed -i s/80/443/ {config}")
    assert (code, ran["status"], config.read_text()) == (0, "succeeded", "port = 443\n")
    assert NO_RIGHT not in shown
    code, shown = user.on_a_terminal("rollback", ran["execution"], asks="changes nothing:")
    assert code == 0, shown
    assert "back and verified: 1 of 1 path" in shown
    assert facts(config) == before
    assert user.said("audit", "verify", "--json")[1]["ok"]


def test_a_change_of_roots_with_sudo_says_before_the_yes_who_can_put_it_back(operator):
    if is_ordinary():
        return
    user = operator(FREE)
    config = user.etc / "app.conf"
    config.write_text("port = 80\n")
    config.chmod(0o644)
    code, ran, shown = changed(user, f"sudo sed -i s/80/443/ {config}")
    assert (code, ran["status"], config.read_text()) == (0, "succeeded", "port = 443\n")
    assert NO_RIGHT in shown
    assert "partly, only what is saved first" in shown
    asked = user.on_a_terminal("approve", "--", "sudo sysctl -w net.ipv4.ip_forward=1", asks=ASKED, answer="no\r")
    assert asked[0] == 4
    assert NO_RIGHT in asked[1]
    after = facts(config)
    code, shown = user.on_a_terminal("rollback", ran["execution"], asks="changes nothing:")
    assert code == 1
    assert f"{config}: is not permitted: only root can put it back" in shown
    assert facts(config) == after
    assert list(user.etc.iterdir()) == [config]


def test_an_approved_change_whose_sudo_needs_a_password_fails_at_once_and_changes_nothing(operator):
    if is_ordinary():
        return
    user = operator(ASKS)
    config = user.home / "app.conf"
    config.write_text("port = 80\n")
    os.chown(config, UID, UID)
    before = facts(config)
    code, ran, _ = changed(user, f"sudo sed -i s/80/443/ {config}")
    assert (code, ran["status"], ran["exit_code"]) == (1, "failed", 1)
    assert ran["stderr"] == "sudo: a password is required\n"
    assert facts(config) == before
    code, back = user.said("rollback", "--json", ran["execution"])
    assert (code, back["status"]) == (0, "succeeded")
