"""The dead man where systemd is the manager, with real logins over ssh: whatever is killed, it fires, and once."""

from __future__ import annotations

import shlex
import sys

import pytest

from tests.slow.box import KEY, ROOT, Box
from tests.waiting import until

CUTS = "iptables -A INPUT -p tcp --dport 22 -j DROP"
HARMLESS = "iptables -A INPUT -p tcp --dport 2299 -j DROP"
SECONDS = 6
SSH = (
    f"ssh -i {KEY} -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "
    "-o ConnectTimeout=2 root@127.0.0.1"
)
KILL = """
for process in /proc/[0-9]*; do
    pid=${process#/proc/}; read -r name < $process/comm || continue
    case $name in systemd|systemd-journal|systemd-logind|dbus-daemon) continue ;; esac
    [ $pid = $$ ] || kill -9 $pid || true
done
"""
"""SIGKILL to everything but the manager and its closest."""
OURS = "grep -al '[d]eadman' /proc/[0-9]*/cmdline | grep -v /self/ | wc -l"


@pytest.fixture
def box():
    machine = Box()
    yield machine
    machine.close()


CODE = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli import opsx; sys.exit(opsx.main(sys.argv[1:]))"
OPSX = shlex.join([sys.executable, "-c", CODE])


class Session:
    """A login over ssh in which a change was made under a dead man."""

    def __init__(self, box: Box, change: str, seconds: int = SECONDS) -> None:
        inside = shlex.join([sys.executable, "-m", "tests.slow.session", change, str(seconds)])
        self.box = box
        box.start(f"{SSH} -tt {shlex.quote(f'cd {ROOT} && exec {inside}')}")
        self.execution = until(lambda: box.run("cat /srv/probe/answer", check=False), "the change")

    def record(self):
        return self.box.ask(execution=self.execution)

    def end(self):
        """What is on record once it is settled and nothing of it is left."""
        until(lambda: self.record()["ended"] and not self.record()["waits"], "the end")
        return self.record()


def is_fired_once(record):
    fired = [result for kind, result in record["entries"] if kind == "deadman_fired"]
    kinds = [kind for kind, _ in record["entries"]]
    return (fired[0], fired[-1]) == ("begins", "succeeded") and kinds.count("rollback_planned") == 1


def test_it_fires_once_after_everything_was_killed_and_no_process_waited(box):
    session = Session(box, CUTS)
    record = session.record()
    assert record["unit"].endswith(".timer")
    assert record["pid"] == 1
    assert record["waits"]
    box.run(KILL)
    assert box.run(OURS) == "0"
    assert "--dport 22 " in box.run("iptables -S")
    record = session.end()
    assert record["ended"] == "fired"
    assert is_fired_once(record)
    assert "dport" not in box.run("iptables -S")
    until(lambda: box.run(f"{SSH} echo in", check=False) == "in", "a new login")
    assert box.run("systemctl list-units --all --plain --no-legend 'opsagent-deadman-*'") == ""


def test_end_of_the_login_takes_its_processes_along_and_not_the_dead_man(box):
    session = Session(box, CUTS)
    (login,) = box.run("loginctl list-sessions --no-legend | awk '{print $1}'").split()
    assert box.run(f"systemctl show -p KillMode --value session-{login}.scope") != "none"
    box.run(f"loginctl terminate-session {login}")
    until(lambda: box.run("pgrep -f '[t]ests.slow.session'", check=False) == "", "the end of the login")
    assert session.record()["waits"]
    record = session.end()
    assert is_fired_once(record)
    assert "dport" not in box.run("iptables -S")


def test_confirmation_over_a_new_login_ends_the_wait(box):
    session = Session(box, HARMLESS, seconds=120)
    until(lambda: box.run("ls /srv/probe/ended", check=False), "the end of the change")
    said = box.run(f"{SSH} -tt {shlex.quote(f'{OPSX} confirm {session.execution}')} < /dev/null", check=False)
    record = session.record()
    assert (record["ended"], record["waits"]) == ("confirmed", False), said
    assert "2299" in box.run("iptables -S")
    assert box.run("systemctl list-timers --all --no-legend 'opsagent-deadman-*'") == ""


def test_what_takes_it_back_is_started_again_when_it_is_killed(box):
    session = Session(box, CUTS)
    # While everything is frozen it tries and tries again: long enough to be killed in the middle.
    box.run(f"{OPSX} freeze")
    until(lambda: session.record()["ended"] == "fired", "the first try")
    box.run(f"systemctl kill -s KILL opsagent-deadman-{session.execution}.service")
    box.ask(execution=session.execution, thaw=True)
    record = session.end()
    assert [result for kind, result in record["entries"] if kind == "deadman_fired"].count("begins") == 2
    assert is_fired_once(record)
    assert "dport" not in box.run("iptables -S")


def test_a_target_that_stops_everything_does_not_stop_it(box):
    session = Session(box, "systemctl isolate rescue.target")
    until(lambda: box.run("systemctl is-active ssh", check=False) == "inactive", "the end of ssh")
    record = session.end()
    assert record["ended"] == "fired"
    assert box.run("systemctl is-active ssh") == "active"
    assert box.run(f"{SSH} echo in") == "in"
