"""`observe`, `netadm`, `block`: reads answer as outside, nothing else gets their right, and no write goes through."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys

import pytest

from guard.errors import SandboxUnavailable
from guard.exact import FIRST_WORDS, PROGRAMS
from guard.hands.sandbox import PROFILES, landlock
from guard.types import Interference

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXACT = [name for name, profile in PROFILES.items() if profile.exact]


@pytest.fixture
def sleeper(tmp_path):
    """A process of ours with a listener and an open file of its own."""
    held = tmp_path / "held.txt"
    held.write_text("x")
    code = (
        "import socket, sys, time; s = socket.create_server(('127.0.0.1', 0)); f = open(sys.argv[1]);"
        "print(s.getsockname()[1], flush=True); time.sleep(600)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(held)], stdout=subprocess.PIPE, text=True)
    port = child.stdout.readline().strip()
    yield child.pid, port, held
    child.kill()
    child.communicate()


def alike(run, profile, command):
    inside, outside = run(command, profile=profile), run(command, profile="none")
    assert (inside.exit_code, inside.stdout.text, inside.stderr.text) == (
        outside.exit_code,
        outside.stdout.text,
        outside.stderr.text,
    )
    assert inside.interference == ()
    assert inside.enforced == ("strict" if PROFILES[profile].landlock else "seccomp")
    return inside.stdout.text


@pytest.mark.parametrize(
    "command",
    [
        "ss -tlnpH 'sport = :PORT'",
        "ss -tlnp | grep ':PORT ' | wc -l",
        "sudo ss -tlnpH 'sport = :PORT' 2>/dev/null",
        "lsof -nP -a -p PID -iTCP:PORT",
        "lsof -p PID | sort | tail -n 3",
        "fuser -v HELD 2>&1 | sort",
        "fuser PORT/tcp 2>&1",
        "LC_ALL=C lsof -t HELD",
    ],
)
def test_observe_sees_whose_a_socket_and_a_file_are(run, sleeper, command):
    pid, port, held = sleeper
    if "sudo" in command and os.geteuid():
        command = command.removeprefix("sudo ")
    text = alike(run, "observe", command.replace("PORT", port).replace("PID", str(pid)).replace("HELD", str(held)))
    assert str(pid) in text or text == "1\n" or "TYPE" in text or "\n" in text


def test_what_observe_is_for_is_not_seen_in_local(run, sleeper):
    pid, port, _ = sleeper
    command = f"ss -tlnpH 'sport = :{port}'"
    assert f"pid={pid}" in run(command, profile="observe").stdout.text
    assert f"pid={pid}" not in run(command).stdout.text


NETADM_PROBE = """
import sys; sys.path.insert(0, sys.argv[1])
from guard.hands.environment import build_environment
from guard.hands.targets.local import LocalTarget
import subprocess
def shell(text): return subprocess.run(text, shell=True, capture_output=True, text=True).stdout
shell("ip link set lo up; iptables-nft -A INPUT -p tcp --dport 22 -j ACCEPT; iptables-legacy -A OUTPUT -j ACCEPT;"
      "nft add table inet t; nft add chain inet t c; nft add rule inet t c tcp dport 80 counter accept;"
      "nft add set inet t s '{ type ipv4_addr; }'; nft add element inet t s '{ 192.0.2.1 }'")
target = LocalTarget()
def run(command, profile):
    return target.run(command, cwd="/", profile=profile, env=build_environment(source={}).env, timeout_s=30)
for command in (
    "iptables -S", "iptables -L -n -v", "iptables-save", "iptables-legacy -S", "iptables-legacy -L INPUT -n",
    "ip6tables -S",
    "nft list ruleset", "nft list tables",
    "nft list table inet t", "nft list set inet t s", "nft -a list chain inet t c",
    "nft -j list ruleset", "iptables -S | grep -c ACCEPT", "iptables -t nat -S", "iptables -C INPUT -j DROP",
):
    inside, outside = run(command, "netadm"), run(command, "none")
    seen = [(r.exit_code, [l for l in r.stdout.text.splitlines() if not l.startswith("#")]) for r in (inside, outside)]
    assert seen[0] == seen[1], (command, seen, inside.stderr.text, inside.interference)
    assert inside.enforced == "strict" and inside.interference == (), (command, inside.interference)
state = "iptables-nft-save; iptables-legacy-save; nft list ruleset"
before = [l for l in shell(state).splitlines() if not l.startswith("#")]
assert any("dport 22" in l for l in before) and any("192.0.2.1" in l for l in before)
for command in (
    "iptables -A INPUT -j DROP", "iptables -F", "iptables -P INPUT DROP", "iptables -Z", "iptables -N new",
    "iptables -D INPUT 1",
    "iptables-legacy -A INPUT -j DROP", "iptables-legacy -F", "iptables-legacy -P INPUT DROP", "iptables-legacy -Z",
    "nft add table inet x", "nft flush ruleset", "nft delete table inet t", "nft add rule inet t c drop",
    "nft add element inet t s '{ 192.0.2.2 }'", "nft list ruleset '; flush ruleset'", "nft reset counters",
    "nft 'list ruleset; add table inet y'", "ip6tables -A INPUT -j DROP",
):
    inside = run(command, "netadm")
    after = [l for l in shell(state).splitlines() if not l.startswith("#")]
    assert after == before, (command, after)
    if inside.exit_code == 0:
        assert "reset" in command, (command, inside)
print("fine")
"""


@pytest.mark.guarantee("G-R0-ONE-RIGHT")
def test_netadm_lists_every_firewall_as_outside_and_changes_none(run):
    if os.geteuid():
        refused = run("iptables -S", profile="netadm")
        assert (refused.exit_code, refused.stdout.text) == (run("iptables -S", profile="none").exit_code, "")
        return
    done = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, "-c", NETADM_PROBE, str(ROOT)],
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr[-3000:]


@pytest.fixture
def image(tmp_path):
    """A disk in a file, with a partition table and a file system."""
    disk, volume = tmp_path / "disk.img", tmp_path / "volume.img"
    for path, size in ((disk, 8 << 20), (volume, 1 << 20)):
        with open(path, "wb") as file:
            file.truncate(size)
    subprocess.run(["sfdisk", "-q", str(disk)], input="label: gpt\nsize=2MiB\nsize=2MiB\n", text=True, check=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", str(volume)], check=True)
    return disk, volume


@pytest.mark.parametrize(
    "command",
    [
        "fdisk -l DISK",
        "fdisk -l",
        "sfdisk -d DISK",
        "sfdisk -J DISK | wc -l",
        "blkid -p VOLUME",
        "blkid",
        "wipefs VOLUME",
        "tune2fs -l VOLUME 2>/dev/null | tail -n +2",
        "dumpe2fs -h VOLUME 2>/dev/null",
        "blockdev --getsize64 /dev/vda | wc -l",
    ],
)
def test_block_reads_disks_as_outside(run, image, command):
    disk, volume = image
    alike(run, "block", command.replace("DISK", str(disk)).replace("VOLUME", str(volume)))


@pytest.mark.parametrize(
    "command",
    [
        "wipefs -a VOLUME",
        "tune2fs -L changed VOLUME",
        "sfdisk --delete DISK",
        "sfdisk --part-label DISK 1 changed",
        "parted -s DISK mklabel msdos",
        "blkid -c CACHE VOLUME",
        "dumpe2fs VOLUME > /dev/null",
    ],
)
def test_block_changes_nothing(run, image, tmp_path, command):
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    disk, volume = image
    text = command.replace("DISK", str(disk)).replace("VOLUME", str(volume)).replace("CACHE", str(tmp_path / "cache"))
    run(text, profile="block")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_observe_kills_nobody_and_closes_no_socket(run, sleeper):
    pid, port, held = sleeper
    result = run(f"fuser -k {held}", profile="observe")
    assert Interference("kill", str(pid)) in result.interference
    run(f"ss -K 'sport = :{port}'", profile="observe")
    socket.create_connection(("127.0.0.1", int(port)), 10).close()
    assert pathlib.Path(f"/proc/{pid}").exists()


@pytest.mark.guarantee("G-R0-ONE-RIGHT")
@pytest.mark.parametrize("profile", EXACT)
@pytest.mark.parametrize(
    "command",
    [
        "id",
        "bash -c id",
        "PROGRAM; id",
        "PROGRAM $(id)",
        "PROGRAM && id",
        "PROGRAM > made",
        "env PROGRAM",
        "PROGRAM\nid",
    ],
)
def test_a_profile_with_one_right_more_is_for_its_programs_alone(run, tmp_path, profile, command):
    program = min(PROGRAMS[profile])
    with pytest.raises(SandboxUnavailable, match="for one program with literal words"):
        run(command.replace("PROGRAM", program), profile=profile)
    assert list(tmp_path.iterdir()) == [tmp_path / "home"]


def test_what_stands_behind_the_pipe_has_no_further_right(run, sleeper):
    pid, _, held = sleeper
    command = f"ss -V | readlink /proc/{pid}/fd/0 /proc/{pid}/exe"
    assert run(command, profile="observe").stdout.text == ""
    caps = run("ss -V | grep CapEff /proc/self/status", profile="observe").stdout.text
    assert caps == run("grep CapEff /proc/self/status").stdout.text
    assert run(f"ss -V | tee {held}", profile="observe").exit_code != 0


def test_both_ends_of_a_pipe_say_what_was_refused_to_them(run, tmp_path):
    result = run(f"wipefs -a /dev/null 2>/dev/null | tee {tmp_path}/made", profile="block")
    assert Interference("openat", f"{tmp_path}/made") in result.interference


def test_a_program_that_never_ends_goes_with_the_one_that_reads_it(run):
    result = run("lsof -p 1 -r 1 | head -n 1", profile="observe", timeout_s=30)
    assert result.exit_code == 0
    assert not result.timed_out


def test_a_time_limit_ends_both(run):
    result = run("lsof -p 1 -r 1 | grep never-there", profile="observe", timeout_s=0.5)
    assert (result.timed_out, result.exit_code) == (True, 143)
    left = subprocess.run(["pgrep", "-P", str(os.getpid()), "lsof"], capture_output=True, text=True).stdout
    assert left == ""


@pytest.mark.parametrize(
    ("profile", "command"),
    [(profile, name) for profile, names in PROGRAMS.items() for name in sorted(names) if name not in FIRST_WORDS]
    + [("block", "nvme list")],
)
def test_a_program_that_is_not_installed_is_told_by_the_shell(run, tmp_path, profile, command):
    result = run(command, profile=profile, env={"PATH": str(tmp_path)})
    missing = command.split()[0]
    assert (result.exit_code, result.stderr.text) == (127, f"/bin/bash: line 1: {missing}: command not found\n")


def test_the_limits_are_set_on_a_program_that_needs_no_answer(run, sleeper):
    result = run("ss -V", profile="observe")
    assert result.notes == ()


def test_only_disks_and_their_controllers_are_opened_for_block(tmp_path, monkeypatch):
    kinds = {
        "sda": "b", "sg0": "c", "nvme0": "c", "nvme0n1": "b", "tty1": "c", "mem": "c", "kmsg": "c", "mapper/vg": "b",
        "bsg/0:0:0:0": "c", "fuse": "c", "pts/1": "c", "loop-control": "c", "net/tun": "c",
    }  # fmt: skip
    for name in kinds:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    real = os.lstat

    def lstat(path):
        status = real(path)
        kind = kinds.get(os.path.relpath(path, tmp_path))
        return status if kind is None else os.stat_result(({"b": 0o060600, "c": 0o020600}[kind], *status[1:]))

    monkeypatch.setattr(landlock.os, "lstat", lstat)
    found = {os.path.relpath(path, tmp_path) for path in landlock.disks(str(tmp_path))}
    assert found == {"sda", "sg0", "nvme0", "nvme0n1", "mapper/vg", "bsg/0:0:0:0"}
