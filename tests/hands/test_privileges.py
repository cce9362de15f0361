"""What only root may do, by root, by a user whose sudo asks for nothing, by one whose sudo would, and without sudo."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from cli import opsagent_doctor
from guard.hands import privilege
from guard.judge.classify import check
from guard.types import Enforcement, Level, Policy
from tests.hands.test_attempts import python_for

PROBE = pathlib.Path(__file__).with_name("privilege_probe.py")
STRICT = Enforcement(("local", "net", "bus", "observe", "netadm", "block"), "strict", 7, True)
UID = 1000
# A user and sudoers of our own, seen in this mount namespace alone.
INNER = """set -e
place=$(mktemp -d /tmp/privileges.XXXXXX); trap 'rm -rf "$place"' EXIT
grep -v ":x:$1:" /etc/passwd > "$place/passwd"; echo "operator:x:$1:$1::/tmp:/bin/bash" >> "$place/passwd"
grep -v "^operator:" /etc/shadow > "$place/shadow"; echo 'operator:$6$none$none:19000:0:99999:7:::' >> "$place/shadow"
printf 'Defaults !lecture, !fqdn\\nroot ALL=(ALL) ALL\\n%s\\n' "$2" > "$place/sudoers"
chmod 644 "$place/passwd"; chmod 640 "$place/shadow"; chmod 440 "$place/sudoers"; chmod 755 "$place"
for name in passwd shadow sudoers; do mount --bind "$place/$name" "/etc/$name"; done
shift 2
"$@"
"""


def in_user_land(sudoers, *argv):
    """Runs a program as root where uid 1000 exists and has this line in its sudoers."""
    arguments = [str(UID), sudoers, *argv]
    return subprocess.run(
        ["unshare", "--mount", "bash", "-c", INNER, "bash", *arguments],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
    )


def as_user(sudoers, *commands):
    """The probe's report as uid 1000."""
    became = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups", "--reset-env"]
    done = in_user_land(sudoers, *became, python_for(UID), str(PROBE), *commands)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_sudo_without_a_password_is_used_and_with_one_it_answers_at_once():
    if os.geteuid():
        # Without root there is no user to make: this one's own sudo is asked, and nothing waits for a password.
        assert privilege.privilege() in (privilege.FREE, privilege.ASKS, privilege.NONE)
        return
    commands = (
        "sudo id -u",
        "sudo -u nobody id -un",
        "echo x | sudo -S id -u",
        "sudo -k id -u",
        "id -u",
        "/usr/bin/sudo id -u",
    )
    free = as_user("operator ALL=(ALL) NOPASSWD: ALL", *commands)
    assert free["privilege"] == privilege.FREE
    assert [row[:2] for row in free["rows"]] == [
        [0, "0\n"],
        [0, "nobody\n"],
        [0, "0\n"],
        [0, "0\n"],
        [0, "1000\n"],
        [0, "0\n"],
    ]

    for line, known in (("operator ALL=(ALL) ALL", privilege.ASKS), ("", privilege.ASKS)):
        asked = as_user(line, *commands)
        assert asked["privilege"] == known
        assert not any(timed_out for *_, timed_out in asked["rows"])
        assert [row[0] for row in asked["rows"]] == [1, 1, 1, 1, 0, 1]
        assert asked["rows"][0][1:3] == ["", "sudo: a password is required\n"]
        assert asked["rows"][4][1] == "1000\n"


def test_one_command_without_a_password_is_enough_to_be_used():
    if os.geteuid():
        return
    report = as_user("operator ALL=(ALL) NOPASSWD: /usr/bin/id", "sudo id -u", "sudo cat /etc/hostname")
    assert report["privilege"] == privilege.FREE
    assert [row[0] for row in report["rows"]] == [0, 1]
    assert report["rows"][1][2] == "sudo: a password is required\n"


def test_the_other_ways_to_become_root_fail_by_themselves_and_wait_for_nobody():
    if os.geteuid():
        assert not privilege.is_root()
        return
    ways = ("su -c 'id -u'", "sudo -i id -u", "runuser -u root id", "pkexec id -u", "doas id -u", "su - root -c id")
    report = as_user("operator ALL=(ALL) ALL", *ways)
    assert len(report["rows"]) == len(ways)
    for way, (code, out, _, timed_out) in zip(ways, report["rows"], strict=True):
        assert (code != 0, out.removeprefix("Password: "), timed_out) == (True, "", False), way


@pytest.mark.parametrize(
    ("command", "root", "user"),
    [
        ("sudo cat /etc/hostname", ("run", "read"), ("needs_stamp", "privilege")),
        ("sudo -u nobody cat /etc/hostname", None, ("needs_stamp", "privilege")),
        ("sudo systemctl status nginx", ("run", "read"), ("needs_stamp", "privilege")),
        ("sudo lsof -i", ("run", "read"), ("needs_stamp", "privilege")),
        ("cat /etc/hostname", ("run", "read"), ("run", "read")),
    ],
)
def test_a_read_with_sudo_is_a_plain_read_for_root_alone(command, root, user):
    for policy, wanted in ((Policy(is_root=True), root), (Policy(), user)):
        found = check(command, enforcement=STRICT, policy=policy)
        if wanted is not None:
            assert (found.decision.verdict, found.decision.code) == wanted
    if user[1] == "privilege":
        assert "run opsagent as root for this" in check(command, enforcement=STRICT).decision.text
    assert check(command, enforcement=STRICT, policy=Policy(is_root=True)).decision.verdict != "refuse"


def test_a_change_with_sudo_is_no_smaller_than_without():
    for command in ("systemctl restart nginx", "apt install nginx", "rm -rf /srv/x"):
        plain, raised = check(command), check(f"sudo {command}")
        assert raised.level >= max(plain.level, Level.R1)


def test_the_shim_stands_only_in_front_of_a_sudo_that_is_there(monkeypatch):
    monkeypatch.setattr(privilege.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(privilege, "SUDO_PLACES", ("/nonexistent/sudo",))
    assert privilege.sudo_shim() == ""
    assert privilege.privilege() == privilege.NONE
    monkeypatch.setattr(privilege, "SUDO_PLACES", ("/bin/true",))
    assert "exec /bin/true -n" in privilege.sudo_shim()
    assert privilege.privilege() == privilege.FREE


def test_doctor_has_words_for_every_answer():
    answers = {privilege.ROOT, privilege.FREE, privilege.ASKS, privilege.NONE}
    assert answers == opsagent_doctor._MEANING.keys()


def test_a_sudo_that_does_not_answer_is_one_that_asks(monkeypatch, tmp_path):
    slow = tmp_path / "sudo"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setattr(privilege.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(privilege, "SUDO_PLACES", (str(slow),))
    monkeypatch.setattr(privilege, "ANSWER_LIMIT_S", 0.2)
    assert privilege.privilege() == privilege.ASKS


CALL = (
    "import os, sys; sys.path[:0] = [sys.argv[1]]; os.environ['HOME'] = os.environ['OPSAGENT_HOME'] = sys.argv[2];"
    "from cli import opsagent, opsx; import importlib;"
    "sys.exit({'opsx': opsx, 'opsagent': opsagent}[sys.argv[3]].main(sys.argv[4:]))"
)


@pytest.mark.parametrize("sudoers", ["operator ALL=(ALL) NOPASSWD: ALL", ""], ids=["sudo", "no sudo"])
def test_the_whole_program_as_a_user_says_what_it_cannot_do_and_how_it_could(tmp_path, sudoers):
    if os.geteuid():
        return
    home = pathlib.Path(subprocess.check_output(["mktemp", "-d", "/tmp/operator.XXXXXX"], text=True).strip())
    os.chown(home, UID, UID)
    closed = home.parent / f"{home.name}-closed"
    closed.write_text("root's own")
    closed.chmod(0o600)
    reachable = str(PROBE.with_name("reachable.py"))

    def call(program, *arguments):
        argv = [sys.executable, reachable, str(UID), sys.executable, "-X", "utf8", "-c", CALL]
        done = in_user_land(sudoers, *argv, str(PROBE.parents[2]), str(home), program, *arguments)
        assert done.stdout.startswith("{"), done.stderr[-2000:]
        return done.returncode, json.loads(done.stdout)

    try:
        code, read = call("opsx", "exec", "--json", "--", "cat /etc/hostname; id -u")
        assert (code, read["enforced"], read["stdout"].splitlines()[-1]) == (0, "strict", str(UID))
        code, raised = call("opsx", "exec", "--json", "--", "sudo cat /etc/hostname")
        assert (code, raised["status"], raised["level"]) == (3, "needs_stamp", "R0")
        code, failed = call("opsx", "exec", "--json", "--", f"cat {closed}")
        assert code == 1
        assert "Permission denied" in failed["stderr"]
        code, saved = call("opsx", "snapshot", "create", "--json", str(closed))
        assert code == 5
        assert saved["error"]["hint"].startswith("run opsagent as root for this; ")
        _, report = call("opsagent", "doctor", "--json")
        [told] = [one for one in report["checks"] if one["name"] == "privileges"]
        assert "run at once" in told["detail"] and "need" in told["detail"]
        assert ("a rollback runs without sudo" in told["detail"]) == bool(sudoers)
        assert told["mend"].startswith("run opsagent as root for ")
        records = [one for one in report["checks"] if one["name"] == "records"]
        assert records[-1]["detail"] == f"{home} can be written", "a user's records are his own"
        assert told["detail"].startswith("sudo answers without a password" if sudoers else privilege.ASKS)
    finally:
        closed.unlink()
        subprocess.run(["rm", "-rf", str(home)], check=True)
