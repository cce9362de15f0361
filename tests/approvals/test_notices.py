"""`[pending] notify`: a person's own command is run once for each new request, beside us and never in the way."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys

import pytest

from acting import notifying
from cli import surroundings
from execution import open_guard
from guard.types import Request
from tests.approvals.terminal import LIMIT_S
from tests.waiting import until

SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def notified(tmp_path, monkeypatch):
    """Configures a command that writes its environment into a file, and returns what it wrote."""
    state, script, out = tmp_path / "state", tmp_path / "told.sh", tmp_path / "told"
    (state / "config").mkdir(parents=True)
    for folder in (state, state / "config"):
        os.chmod(folder, 0o700)
    monkeypatch.setenv("OPSAGENT_HOME", str(state))

    def configured(body='env -0 >> "$0.new"; printf . >> "$0.count"; mv "$0.new" "${0%.sh}"', argv=None):
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o700)
        (state / "config" / "config.toml").write_text(f"[pending]\nnotify = {argv or [str(script)]}\n")
        os.chmod(state / "config" / "config.toml", 0o600)
        return open_guard(surroundings.policy())

    configured.out = out
    configured.count = tmp_path / "told.sh.count"
    return configured


def keep(guard, command, tmp_path):
    import execution

    request = Request(command, cwd=str(tmp_path), actor="agent", shell="opsx", client="codex 1.2")
    return guard.ledger.keep_request(request, execution.assess(request, guard))


def failures(guard):
    return [entry for entry in guard.ledger.entries() if entry.get("code") == "notify-failed"]


def test_new_request_is_told_once_with_everything_but_its_secrets(notified, tmp_path):
    guard = notified()
    request = keep(guard, f"curl -H 'Authorization: Bearer {SECRET}' -X POST\n https://example.org/\x1b[2J", tmp_path)
    until(notified.out.exists)
    told = dict(line.split("=", 1) for line in notified.out.read_text().split("\0") if line)
    assert told["OPSAGENT_REQUEST"] == request
    assert (told["OPSAGENT_LEVEL"], told["OPSAGENT_TARGET"], told["OPSAGENT_ACTOR"]) == ("R2", "local", "agent")
    assert told["OPSAGENT_FOLDER"] == str(tmp_path)
    assert told["OPSAGENT_CLIENT"] == "codex 1.2"
    assert "example.org/⟨ESC⟩" in told["OPSAGENT_COMMAND"]
    assert "\n" not in told["OPSAGENT_COMMAND"]
    assert SECRET not in notified.out.read_text()
    # The same request again is the same request, and the next one is another.
    assert (
        keep(guard, f"curl -H 'Authorization: Bearer {SECRET}' -X POST\n https://example.org/\x1b[2J", tmp_path)
        == request
    )
    keep(guard, "touch b", tmp_path)
    until(lambda: notified.count.read_text() == "..")
    assert failures(guard) == []


def test_environment_of_the_asker_does_not_reach_the_command(notified, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-asker")
    monkeypatch.setenv("LD_PRELOAD", "")
    keep(notified(), "touch a", tmp_path)
    until(notified.out.exists)
    names = {line.partition("=")[0] for line in notified.out.read_text().split("\0") if line}
    assert {"AWS_SECRET_ACCESS_KEY", "LD_PRELOAD"} & names == set()


@pytest.mark.parametrize(
    ("argv", "why"),
    [(["/nonexistent/notify"], "cannot be started: No such file"), (["/bin/false"], "/bin/false ended with 1")],
)
def test_command_that_fails_is_on_record_and_the_request_waits_all_the_same(notified, tmp_path, argv, why):
    guard = notified(argv=argv)
    request = keep(guard, "touch a", tmp_path)
    assert [kept.id for kept in guard.ledger.pending()] == [request]
    (entry,) = until(lambda: failures(guard))
    assert (entry["request"], why in entry["text"]) == (request, True)


def test_command_that_hangs_is_ended_with_all_that_it_started(monkeypatch, tmp_path):
    monkeypatch.setattr(notifying, "LIMIT_S", 0.3)
    pids = tmp_path / "pids"
    argv = ["/bin/sh", "-c", f"echo $$ > {pids}; sleep 1000 & echo $! >> {pids}; wait"]
    assert "was ended after" in notifying._fault_of({"argv": argv, "env": {"PATH": os.defpath}})
    for pid in pids.read_text().split():
        until(lambda pid=pid: not os.path.exists(f"/proc/{pid}") or "\nState:\tZ" in _status(pid))


def _status(pid):
    try:
        with open(f"/proc/{pid}/status") as file:
            return file.read()
    except OSError:
        return "\nState:\tZ"


def test_asker_does_not_wait_for_the_command(notified, tmp_path):
    """A process that keeps a request ends while its notice goes on."""
    release = tmp_path / "release"
    os.mkfifo(release)
    notified(body=f"cat {release} > {tmp_path}/told")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import execution; from cli import surroundings; "
        "from guard.types import Request; guard = execution.open_guard(surroundings.policy()); "
        "print(execution.run(Request('touch a', cwd='/'), guard).outcome.request_id)"
    )
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = subprocess.run(
        [sys.executable, "-c", code, root], capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    assert done.stdout.startswith("a-")
    assert not (tmp_path / "told").exists() or (tmp_path / "told").read_text() == ""
    release.write_text("now\n")
    until(lambda: (tmp_path / "told").exists() and (tmp_path / "told").read_text() == "now\n")


@pytest.mark.parametrize(
    ("bus", "passed"),
    [
        ("unix:path=/run/user/1000/bus", True),
        ("unix:abstract=/tmp/dbus-1;unix:path=/run/bus,guid=0", True),
        ("unixexec:path=/bin/sh,argv1=-c,argv2=id", False),
        ("unix:path=/run/bus;unixexec:path=/bin/sh", False),
        ("autolaunch:", False),
    ],
)
def test_asker_chooses_neither_the_home_nor_a_program_for_the_notice(notified, tmp_path, bus, passed):
    guard = notified()
    kept = guard.ledger.request(keep(guard, "touch a", tmp_path))
    env = notifying.environment_of(kept, str, {"HOME": "/tmp/theirs", "USER": "x", "DBUS_SESSION_BUS_ADDRESS": bus})
    assert env["HOME"] == pwd.getpwuid(os.geteuid()).pw_dir and env["USER"] != "x"
    assert ("DBUS_SESSION_BUS_ADDRESS" in env) is passed
