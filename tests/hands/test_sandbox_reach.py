"""What a sandboxed command can read: everything as outside, but the masked paths; and that this stays true."""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import socket
import subprocess
import threading
import time

import pytest

from guard.hands.environment import build_environment
from guard.hands.sandbox import landlock, masks
from guard.hands.sandbox.kernel import probe

READS = (
    "df -P / | tail -n 1 | cut -d' ' -f1",
    "ps -o pid= -p 1",
    "id",
    "uname -a",
    "ss -tlnH sport = :1 | wc -l",  # who else listens changes while tests run
    "ip -o addr show lo",
    "ip route",
    "git -C repo log --format=%s",
    "git -C repo status --short",
    "git -C repo diff",
    "find /etc -name '*.conf' | sort | head -n 50",
    "ls -la /etc | wc -l",
    "ls -la /dev/null /dev/shm /proc/self/fd/0 | wc -l",
    "grep -c . /etc/passwd",
    "grep -rl root /etc/passwd /etc/group",
    "cat /etc/ssh/sshd_config /etc/hosts 2>/dev/null | wc -l",
    "cat /proc/meminfo | wc -l",
    "cat /proc/1/status | head -n 1",
    "dpkg -l 2>/dev/null | wc -l",
    "apt-cache policy bash 2>/dev/null | wc -l",
    "python3 -c 'print(1+1)'",
    "getent passwd root",
    "stat -c %s /etc/passwd",
    "du -s repo/.git/refs",
    "lsblk -n 2>/dev/null | wc -l",
    "mount | wc -l",
    "findmnt -n /",
    "sysctl vm.swappiness",
    "sha256sum /bin/ls",
    "seq 20000 | sort -rn | head -n 1",
    "diff <(echo a) <(echo b)",
    "cat <<EOF\nhere\nEOF",
    "timeout 0.1 sleep 5; echo $?",
    "sleep 30 & p=$!; kill $p; wait $p; echo $?",
    "seq 5 | xargs -n1 echo",
    "coproc cat; echo x >&${COPROC[1]}; exec {COPROC[1]}>&-; cat <&${COPROC[0]}",
    "nice -n 5 echo n",
    "lscpu | head -n 1",
    "uptime -s",
    "head -c 4 /dev/zero | od -An -tx1",
    "head -c 4 /dev/urandom | wc -c",
    "openssl rand 8 2>/dev/null | wc -c",
    "cat missing; echo $?",
)


@pytest.fixture
def repo(tmp_path):
    git = ["git", "-c", "user.name=a", "-c", "user.email=b", "-C", str(tmp_path / "repo")]
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/a").write_text("1\n")
    for arguments in (["init", "-q"], ["add", "a"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    (tmp_path / "repo/a").write_text("2\n")


@pytest.mark.parametrize("command", READS)
def test_a_read_answers_as_outside(run, repo, command):
    plain = run(command, profile="none")
    boxed = run(command)
    assert (boxed.exit_code, boxed.stdout.text, boxed.stderr.text) == (
        plain.exit_code,
        plain.stdout.text,
        plain.stderr.text,
    )
    assert boxed.interference == ()


@pytest.fixture
def home(tmp_path):
    home = pathlib.Path(os.environ["HOME"])
    for name in (".ssh", ".aws", ".kube"):
        (home / name).mkdir()
    for name in (
        ".ssh/id_ed25519", ".ssh/work-key", ".ssh/id_ed25519.pub", ".ssh/known_hosts", ".ssh/config",
        ".ssh/authorized_keys", ".aws/credentials", ".kube/config", ".netrc", ".bashrc",
    ):  # fmt: skip
        (home / name).write_text("content\n")
    return home


@pytest.mark.guarantee("G-R0-SECRETS")
def test_keys_are_closed_and_what_lies_beside_them_is_open(run, home):
    result = run(
        'cd "$HOME"; for f in .ssh/* .aws/* .kube/* .netrc .bashrc; do cat "$f" >/dev/null 2>&1 && echo "$f"; done'
    )
    assert result.stdout.text.split() == [
        ".ssh/authorized_keys", ".ssh/config", ".ssh/id_ed25519.pub", ".ssh/known_hosts", ".bashrc",
    ]  # fmt: skip
    for name in (".ssh/id_ed25519", ".ssh/work-key", ".aws", ".kube", ".netrc"):
        assert str(home / name) in result.masked


def test_masked_names_exist(run, home):
    masked = run("true").masked
    assert masked[-1] == "/dev/*"
    assert all(os.path.lexists(path) for path in masked[:-1])
    assert len(set(masked)) == len(masked)


def test_masked_folders_can_be_listed_and_walked(run, home):
    result = run('ls -la "$HOME/.ssh" | wc -l; find "$HOME" | wc -l; grep -rs content "$HOME" | wc -l; ls /etc | wc -l')
    listed, found, matched, etc = map(int, result.stdout.text.split())
    assert (listed, found) == (9, 14)
    assert matched == 5
    assert etc == len([name for name in os.listdir("/etc") if not name.startswith(".")])


def test_a_link_to_a_key_elsewhere_closes_the_place_it_leads_to(run, home, tmp_path):
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "real").write_text("secret")
    (home / ".ssh/linked").symlink_to(vault / "real")
    result = run(f'cat "$HOME/.ssh/linked" {vault}/real')
    assert (result.exit_code, result.stdout.text) == (1, "")


@pytest.mark.guarantee("G-R0-SECRETS")
def test_the_state_folder_is_closed_in_every_way(run, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    (state / "log").write_text("entry\n")
    (tmp_path / "beside").write_text("open\n")
    result = run(
        "cat state/log; cat beside; cat < /proc/self/cwd/state/log; flock -n state/log echo locked; "
        "sha256sum state/log; exec 9<state/log && echo opened",
        hidden=[str(state)],
    )
    assert result.stdout.text == "open\n"
    assert str(state) in result.masked


def test_a_state_folder_behind_a_link_is_closed_too(run, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real/log").write_text("entry\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert run("cat link/log real/log", hidden=[str(tmp_path / "link")]).stdout.text == ""


def test_a_state_folder_made_later_is_closed(run, tmp_path):
    hidden = [str(tmp_path / "state")]
    assert run("true", hidden=hidden).exit_code == 0
    (tmp_path / "state").mkdir()
    (tmp_path / "state/log").write_text("entry\n")
    assert run("cat state/log", hidden=hidden).stdout.text == ""


def test_a_key_made_later_is_closed(run, home):
    assert run("true").exit_code == 0
    (home / ".ssh/fresh").write_text("secret")
    (home / ".pgpass").write_text("secret")
    assert run('cat "$HOME/.ssh/fresh" "$HOME/.pgpass"').stdout.text == ""


@pytest.mark.parametrize("way", ["create", "replace", "folder"])
def test_what_appears_beside_a_masked_path_can_be_read(run, home, way):
    beside = home / ".ssh/config"
    assert run(f"cat {beside}").stdout.text == "content\n"
    if way == "create":
        beside = home / ".ssh/known_hosts2"
        beside.write_text("new\n")
    elif way == "replace":
        fresh = home / ".ssh/fresh"
        fresh.write_text("new\n")
        fresh.rename(beside)
    else:
        (home / "project").mkdir()
        beside = home / "project/file"
        beside.write_text("new\n")
    assert run(f"cat {beside}").stdout.text == "new\n"


def test_a_worker_is_kept_while_nothing_changes_and_replaced_when_something_does(target, run, home):
    def worker():
        return target._sandbox.worker("local", home=str(home))

    # Folders that other programs of this machine use are watched too: one quiet moment of a few must be enough.
    for _ in range(20):
        first = worker()
        run("true")
        if worker() is first:
            break
    else:
        raise AssertionError("the worker is replaced although nothing changes")
    (home / "new").write_text("x")
    assert worker() is not first


def test_a_new_mount_makes_the_rules_stale():
    if os.geteuid():
        assert landlock.mount_points()
        return
    code = (
        "import subprocess, sys; sys.path.insert(0, sys.argv[1]);"
        "from guard.hands.sandbox import landlock;"
        "reach = landlock.reach_around([], []); assert reach.is_current() and reach.is_current();"
        "subprocess.run(['mount', '-t', 'tmpfs', 'none', '/mnt'], check=True);"
        "assert not reach.is_current()"
    )
    root = str(pathlib.Path(landlock.__file__).parents[3])
    subprocess.run(["unshare", "--mount", "/usr/bin/python3", "-c", code, root], check=True, timeout=60)


def test_a_variable_of_its_family_reopens_what_it_names_and_nothing_else(run, home):
    command = 'cat "$HOME/.kube/config" "$HOME/.aws/credentials"'
    assert run(command).stdout.text == ""
    asked = build_environment(["KUBECONFIG"])
    assert asked.env["KUBECONFIG"] == str(home / ".kube/config")
    assert run(command, env=asked.env).stdout.text == "content\n"
    assert run(command).stdout.text == ""


def test_paths_that_permissions_close_already_close_nothing_around_them(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    monkeypatch.setattr(os, "access", lambda path, mode, **more: not path.startswith("/etc/"))
    monkeypatch.setattr(os, "supports_effective_ids", {os.access})
    assert not [path for path in masks.find_masks(()).present if path.startswith("/etc/shadow")]


def test_a_path_that_hangs_is_left_out_in_time(monkeypatch):
    release = threading.Event()

    def hang(path):
        release.wait(30)
        return None

    monkeypatch.setattr(landlock, "_open_path", hang)
    started = time.monotonic()
    assert landlock._open_in_time("/anywhere", limit_s=0.05) is None
    release.set()
    assert time.monotonic() - started < 20


def test_net_reaches_the_judged_port_only(run):
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [listener.getsockname()[1] for listener in listeners]
    command = f"for p in {ports[0]} {ports[1]}; do (exec 3<>/dev/tcp/127.0.0.1/$p) 2>/dev/null && echo $p; done"
    try:
        assert run(command, profile="net", ports=[ports[0]]).stdout.text.split() == [str(ports[0])]
        assert run(command, profile="net", ports=[ports[1]]).stdout.text.split() == [str(ports[1])]
        assert run(command, profile="net").stdout.text == ""
        assert run(command, profile="local").stdout.text == ""
        assert run("true", profile="net").unlimited == ("udp",)
    finally:
        for listener in listeners:
            listener.close()


def test_dmesg_works_for_root_where_the_log_is_restricted_and_the_log_is_not_consumed(run):
    # Its number of lines says nothing where the log is full: each new line drops an old one.
    last = run("dmesg | tail -n 1", profile="none").stdout.text.rstrip("\n")
    find = f"dmesg | grep -qFx -- {shlex.quote(last)} && echo there"
    boxed = run(f"{find}; dmesg -C; dmesg -n 1; timeout 1 head -c1 /dev/kmsg; {find}")
    found = "there\n" if last else ""
    assert boxed.stdout.text == found * 2
    assert run(find, profile="none").stdout.text == found
    if os.geteuid() == 0:
        assert run("grep -c . /proc/kmsg").exit_code != 0


def test_sudo_without_options_is_the_command_itself_for_root(run):
    if os.geteuid():
        return  # tests/hands/test_privileges.py
    result = run("sudo id -u; sudo sudo echo twice; echo 'x' | sudo cat")
    assert (result.stdout.text, result.stderr.text) == ("0\ntwice\nx\n", "")
    refused = run("sudo -u nobody id; sudo A=b id; sudo")
    assert refused.stdout.text == ""
    assert refused.exit_code != 0


def test_our_sudo_cannot_be_replaced_from_inside(run):
    if os.geteuid():
        return
    run('p=$(command -v sudo); echo "#!/bin/sh" > "$p"; rm -f "$p"; mv "$p" "$p.old"; echo x > "${p%/*}/ls"')
    assert run("sudo echo intact").stdout.text == "intact\n"
    assert run("command -v ls").stdout.text == "/usr/bin/ls\n"


def test_kernel_is_probed_without_effect():
    assert probe() == probe()


def test_a_private_folder_that_a_cleaner_removed_is_made_again(target, run):
    shutil.rmtree(target._sandbox.scratch.root())
    result = run('echo x > "$TMPDIR/f" && cat "$TMPDIR/f"')
    assert (result.stdout.text, result.interference) == ("x\n", ())


def test_root_reads_a_crontab_in_the_sandbox(run):
    if os.geteuid():
        return  # for users its program has a right of its own, so that the judge asks (tests/judge/test_policy.py)
    plain, boxed = run("crontab -l; echo $?", profile="none"), run("crontab -l; echo $?")
    assert (boxed.stdout.text, boxed.stderr.text, boxed.interference) == (plain.stdout.text, plain.stderr.text, ())
