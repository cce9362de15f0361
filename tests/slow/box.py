"""A machine with a real systemd as its first process: namespaces of its own over this machine's files, nothing of which
it can change. Root only.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from tests.waiting import until

ROOT = pathlib.Path(__file__).resolve().parents[2]
SYSTEMD = "/lib/systemd/systemd"
NEEDED = (SYSTEMD, "/usr/bin/dbus-daemon", "/usr/sbin/sshd", "/usr/bin/nsenter", "/usr/sbin/iptables")
KEY = "/root/.ssh/box"
BOOT = """
mount --make-rprivate /
mount -t tmpfs -o size=512m box /mnt
mkdir /mnt/u /mnt/w /mnt/root
mount -t overlay box -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/root
cd /mnt/root
mount -t proc proc proc
# Its units must not set what is the whole machine's.
mount --bind proc/sys proc/sys; mount -o remount,bind,ro proc/sys
mount --bind proc/sys/net proc/sys/net; mount -o remount,bind,rw proc/sys/net
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup sys/fs/cgroup
for unit in sysctl modules-load binfmt random-seed; do ln -sf /dev/null etc/systemd/system/systemd-$unit.service; done
mount -t tmpfs -o mode=755 dev dev
for name in null zero full random urandom tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd; ln -s fd/0 dev/stdin; ln -s fd/1 dev/stdout; ln -s fd/2 dev/stderr
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
# What this machine starts by itself is no part of the box.
rm -rf etc/systemd/system/*.wants etc/systemd/system/*.requires etc/systemd/system.control
eval "$PREPARE"
mkdir .old
pivot_root . .old
umount -l /.old
exec env -i container=box PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --log-target=null
"""
PREPARE = f"""
mkdir -p root/.ssh srv/probe etc/systemd/logind.conf.d etc/systemd/system/multi-user.target.wants
ssh-keygen -q -t ed25519 -N '' -f .{KEY}
cp .{KEY}.pub root/.ssh/authorized_keys; chmod 700 root/.ssh
rm -f etc/ssh/ssh_host_*; ssh-keygen -A -f . > /dev/null
printf 'SetEnv OPSAGENT_HOME=/srv/state\\n' > etc/ssh/sshd_config.d/box.conf
printf '[Login]\\nKillUserProcesses=yes\\nKillExcludeUsers=\\n' > etc/systemd/logind.conf.d/box.conf
ln -sf /lib/systemd/system/ssh.service etc/systemd/system/multi-user.target.wants/ssh.service
"""
ENV = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "OPSAGENT_HOME": "/srv/state",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}


class Box:
    """One such machine, from its start to its end."""

    def __init__(self, prepare: str = "") -> None:
        """Args: prepare: shell text that runs in its root folder before it starts."""
        missing = [path for path in NEEDED if not os.path.exists(path)]
        assert os.geteuid() == 0, "needs root"
        assert not missing, f"not installed here: {missing}"
        self._guests: list[subprocess.Popen[bytes]] = []
        self._tree = tempfile.mkdtemp(prefix="box-cgroup-")
        subprocess.run(["mount", "-t", "cgroup2", "cgroup", self._tree], check=True)
        self._group = pathlib.Path(self._tree) / f"opsagent-box-{os.getpid()}"
        self._group.mkdir()
        enter = f'echo $$ > {self._group}/cgroup.procs; exec "$@"'
        # Whoever ends this test ends the box.
        apart = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            "--mount",
            "--net",
            "--uts",
            "--ipc",
            "--pid",
            "--cgroup",
            "--fork",
            "--kill-child",
        ]
        self._outer = subprocess.Popen(
            ["bash", "-ec", enter, "bash", *apart, "bash", "-ec", BOOT],
            env={**ENV, "PREPARE": PREPARE + prepare},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self.pid = until(self._first_process, "the first process")
            until(lambda: self.run("systemctl is-system-running", check=False) in ("running", "degraded"), "its start")
            self.run("ip link set lo up")
        except BaseException:
            self.close()
            raise

    def _first_process(self) -> int:
        assert self._outer.poll() is None, "the box did not start"
        for pid in pathlib.Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children").read_text().split():
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(f"/proc/{pid}/exe").endswith("/systemd"):
                    return int(pid)
        return 0

    def enter(self, *argv: str) -> list[str]:
        """The argv that runs a program inside."""
        spaces = ["--mount", "--net", "--uts", "--ipc", "--pid", "--cgroup", "--root", "--wd"]
        return ["nsenter", "--target", str(self.pid), *spaces, "--", *argv]

    def run(self, text: str, *, check: bool = True) -> str:
        """What shell text prints inside."""
        done = subprocess.run(
            self.enter("bash", "-ec", text), env=ENV, capture_output=True, text=True, timeout=120, check=False
        )
        assert not check or done.returncode == 0, (text, done.stdout, done.stderr)
        return done.stdout.strip()

    def start(self, text: str) -> None:
        """Starts shell text inside, which ends with the box at the latest."""
        quiet = subprocess.DEVNULL
        self._guests.append(subprocess.Popen(self.enter("bash", "-c", text), stdin=quiet, stdout=quiet, stderr=quiet))

    def ask(self, **order: object) -> dict[str, object]:
        """The answer of `tests.slow.inside` to an order."""
        words = self.enter(sys.executable, "-m", "tests.slow.inside", json.dumps(order))
        words[words.index("--wd")] = f"--wd=/proc/{self.pid}/root{ROOT}"
        done = subprocess.run(words, env=ENV, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, (done.stdout[-3000:], done.stderr[-3000:])
        return json.loads(done.stdout.splitlines()[-1])

    def close(self) -> None:
        self._outer.kill()
        for one in (self._outer, *self._guests):
            one.wait()
        until(lambda: not (self._group / "cgroup.events").read_text().startswith("populated 1"), "its end")
        for folder, _, _ in os.walk(self._group, topdown=False):
            os.rmdir(folder)
        subprocess.run(["umount", self._tree], check=True)
        os.rmdir(self._tree)
