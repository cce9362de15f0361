"""A real `dpkg -i` whose postinst takes long: whatever takes its asker away, it ends whole and its end is on record."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest

from tests.approvals.terminal import ROOT, Terminal
from tests.services.slow_package import SlowPackage

CODE = """
import sys; sys.path.insert(0, {root!r}); sys.argv = ["opsx"]
import cli.actor; cli.actor.HOST_NAMES = frozenset(); cli.actor.HOST_MARKS = ()
from acting import change; change.carry_out.__kwdefaults__["limit_s"] = {limit_s!r}
from cli.opsx import main; sys.exit(main({arguments!r}))
"""
GOES_ON = "not stopped, it goes on by itself: stopping would leave dpkg: a package database left half configured"


def opsx(*arguments, limit_s=600):
    return [sys.executable, "-X", "utf8", "-c", CODE.format(root=str(ROOT), arguments=list(arguments), limit_s=limit_s)]


@pytest.fixture
def package(tmp_path):
    return SlowPackage(tmp_path)


@pytest.fixture
def desk(package):
    """Starts opsx on a terminal of its own; the postinst is released, whatever the test does."""
    opened = []

    def start(argv):
        opened.append(Terminal(argv, env=dict(os.environ), cwd=str(package.folder), rows=200, columns=400))
        return opened[-1]

    yield start
    package.release()
    for one in opened:
        one.close()


@pytest.fixture
def installing(package, desk):
    """Approves the installation and starts it; returns the terminal once the postinst is at work."""

    def start(*, limit_s=600, shell=""):
        asked = desk(opsx("approve", "--", package.command))
        asked.wait_for("anything else is no")
        asked.answer("yes\r")
        assert asked.end() == 0, asked.text
        argv = opsx("exec", "--", package.command, limit_s=limit_s)
        terminal = desk(["/bin/sh", "-c", f"exec {shlex.join(argv)} {shell}"] if shell else argv)
        package.wait_until_at_work()
        return terminal

    return start


def said(*arguments):
    """What opsx answers without a terminal: (exit code, JSON)."""
    done = subprocess.run(opsx(*arguments, "--json"), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


def the_run():
    (run,) = said("executions")[1]["executions"]
    return run


def ends_right(package, id_):
    """It is at work still; released, it ends succeeded, `wait` tells it, and nothing is left half done."""
    assert the_run()["status"] == "running"
    assert package.audit() != ""
    package.release()
    code, ended = said("wait", id_)
    assert (code, ended["status"], ended["exit_code"]) == (0, "succeeded", 0)
    assert the_run()["status"] == "succeeded"
    assert package.audit() == ""
    assert package.state() == "install ok installed"
    assert said("audit", "verify")[0] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["Ctrl-C", "TERM", "HUP"])
def test_an_interrupted_installation_goes_on_and_says_so(package, installing, number):
    terminal = installing()
    if number == signal.SIGINT:
        terminal.type("\x03")
    else:
        os.kill(terminal.pid, number)
    assert terminal.end() == 124, terminal.text
    id_ = the_run()["id"]
    assert GOES_ON in terminal.text
    assert f"it is still running: opsx wait {id_}" in terminal.text
    ends_right(package, id_)


def test_an_installation_outlives_its_closed_terminal(package, installing):
    terminal = installing()
    terminal.hang_up()
    terminal.end()
    ends_right(package, the_run()["id"])
    entries = said("show", the_run()["id"])[1]["entries"]
    assert [entry["kind"] for entry in entries if entry["kind"] != "snapshot"] == ["started", "running", "ended"]


@pytest.mark.parametrize("shell", ["</dev/null", "<&-"])
def test_an_installation_is_followed_to_its_end_when_there_is_no_input(package, installing, shell):
    terminal = installing(shell=shell)
    assert the_run()["status"] == "running"
    package.release()
    assert terminal.end() == 0, terminal.text
    assert f"{the_run()['id']} succeeded" in terminal.text
    assert (the_run()["status"], package.audit(), package.state()) == ("succeeded", "", "install ok installed")


def test_end_of_input_on_the_terminal_stops_nothing(package, installing):
    terminal = installing()
    terminal.type("\x04")
    package.release()
    assert terminal.end() == 0, terminal.text
    assert (the_run()["status"], package.audit(), package.state()) == ("succeeded", "", "install ok installed")


def test_an_installation_that_passes_the_time_limit_goes_on_and_says_so(package, installing):
    terminal = installing(limit_s=0.2)
    assert terminal.end() == 124, terminal.text
    id_ = the_run()["id"]
    assert f"it is still running: opsx wait {id_}" in terminal.text
    ends_right(package, id_)


def test_stopping_an_installation_is_refused_with_what_would_be_left(package, installing):
    terminal = installing()
    terminal.type("\x03")
    terminal.end()
    code, refused = said("cancel", the_run()["id"])
    assert code == 4
    assert "would leave dpkg: a package database left half configured" in refused["error"]["message"]
    ends_right(package, the_run()["id"])
