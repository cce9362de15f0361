"""The `bus` profile against a real dbus-daemon and a stub of the system manager."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

PROBE = pathlib.Path(__file__).with_name("bus_probe.py")
# systemctl asks only where systemd runs: a /run of our own says so.
BOOTED = 'mount -t tmpfs none /run; mkdir -p /run/systemd/system /run/dbus; exec "$@"'
LIST = (
    "dbus-send --system --print-reply --dest=org.freedesktop.systemd1 /org/freedesktop/systemd1 "
    "org.freedesktop.systemd1.Manager.ListUnits"
)
STOP = (
    "dbus-send --system --print-reply --dest=org.freedesktop.systemd1 /org/freedesktop/systemd1 "
    "org.freedesktop.systemd1.Manager.StopUnit string:ssh.service string:replace"
)


def results(folder, path, commands, prefix=()):
    arguments = [*prefix, sys.executable, str(PROBE), str(folder), str(path), json.dumps(commands)]
    done = subprocess.run(
        arguments, capture_output=True, text=True, timeout=120, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_reads_answer_over_the_bus_and_not_under_local(tmp_path):
    path = tmp_path / "bus.sock"
    bus, busctl, local, net = results(
        tmp_path,
        path,
        [["bus", LIST], ["bus", "busctl --system list --no-pager | grep -c systemd1"], ["local", LIST], ["net", LIST]],
    )
    assert (bus["exit_code"], bus["enforced"], bus["interference"], bus["unlimited"]) == (0, "strict", [], ["unix"])
    assert 'string "nginx.service"' in bus["stdout"]
    assert (busctl["exit_code"], busctl["stdout"]) == (0, "1\n")
    assert local["exit_code"] == 1
    assert ["connect", str(path)] in local["interference"]
    assert net["exit_code"] == 1
    assert ["socket", "AF_UNIX"] in net["interference"]


def test_bus_still_writes_no_file_and_opens_no_tcp(tmp_path):
    (result,) = results(
        tmp_path, tmp_path / "bus.sock", [["bus", f"echo x > {tmp_path}/f; (exec 3<>/dev/tcp/127.0.0.1/1) && echo tcp"]]
    )
    assert not (tmp_path / "f").exists()
    assert ["openat", f"{tmp_path}/f"] in result["interference"]
    assert ["socket", "AF_INET"] in result["interference"]


def test_a_write_over_the_bus_reaches_the_daemon_so_only_judged_verbs_may_have_it(tmp_path):
    """The kernel cannot read what is said on a socket: this is why `unix` is said in `unlimited`."""
    refused, let_through = results(tmp_path, tmp_path / "bus.sock", [["local", STOP], ["bus", STOP]])
    assert refused["calls"] == []
    assert let_through["calls"] == ["StopUnit"]


def test_systemctl_failed_answers_from_the_real_program(tmp_path):
    commands = [
        ["bus", "systemctl --failed --no-pager --plain --no-legend"],
        ["bus", "systemctl list-units --no-pager --plain"],
    ]
    if os.geteuid() == 0:
        prefix = ["unshare", "--mount", "bash", "-c", BOOTED, "bash"]
        failed, listed = results(tmp_path, "/run/dbus/system_bus_socket", commands, prefix)
        assert (failed["exit_code"], failed["enforced"], failed["interference"]) == (0, "strict", []), failed
        assert "nginx.service" in failed["stdout"]
        assert "ssh.service loaded active running Remote shells" in " ".join(listed["stdout"].split())
    else:
        # Without a /run of our own the program says that systemd does not run here, sandboxed or not.
        (result, _) = results(tmp_path, tmp_path / "bus.sock", commands)
        assert pathlib.Path("/run/systemd/system").exists() or "systemd" in result["stderr"]
