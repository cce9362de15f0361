"""A machine of its own with a real sshd, and a client on another one: a session that may cut itself off, and what
becomes of it.

Usage: python -m tests.deadman.inside ORDER (JSON: folder, and what `Story` reads). Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time

import execution
from acting import deadman
from guard.hands.connection import connection_of, somebody_is_in
from guard.hands.liveness import process_start

PORT = 2222
HERE, THERE = "192.0.2.1", "192.0.2.2"
"""This machine's address, and the client's (RFC 5737)."""
ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 40.0
USER, USER_ID = "somebody", 4711
PASSPHRASE = "open sesame"


def main() -> None:
    order = json.loads(sys.argv[1])
    told = Story(pathlib.Path(order["folder"]), order).told()
    print(json.dumps(told))
    kill_all_but()


class Story:
    """
    Args:
        order: `change` a command, or `edit` [path, old, new]; `seconds`; `then` what the shell runs after it;
            `attempts` names of ways to confirm it; `kills` whether everything of ours is killed.
    """

    def __init__(self, folder: pathlib.Path, order: dict) -> None:
        self.folder, self.order = folder, order
        self.python = shlex.quote(sys.executable)
        self.shared = folder / "shared"
        self.client: list[str] = []

    def told(self) -> dict:
        self.network()
        server = self.sshd()
        until(lambda: self.ssh("true").returncode == 0, "sshd")
        early = self.early() if "early" in self.order.get("attempts", ()) else None
        first = self.session()
        answer = json.loads((self.folder / "answer.json").read_text())
        assert answer["execution"], answer
        self.execution = answer["execution"]
        guard = execution.open_guard()
        armed = deadman.armed_for(self.execution, guard)
        assert armed is not None, answer
        subprocess.run(["sh", "-c", self.order.get("then", "true")], check=True)
        told = {"answer": answer, "changed": state()}
        told["attempts"] = {name: getattr(self, name)() for name in self.order.get("attempts", ()) if name != "early"}
        if early is not None:
            (self.folder / "go").touch()
            pid = int(until((self.folder / "early").read_text, "a log-in"))
            told["early"] = as_user(lambda: seen_of(pid))
            early.kill()
        if self.order.get("kills"):
            told["cut"] = self.ssh("true").returncode != 0
            kill_all_but(server.pid, armed.pid, self.peer.pid)
            first.wait()
        if self.order.get("confirms"):
            told["confirmed"] = self.new()
        told["ended"] = until(lambda: deadman.ended_as(self.execution, guard), f"the end of {told}")
        until(lambda: not deadman.is_alive(armed), "the helper's end")
        told["after"] = state()
        told["somebody_is_in"] = somebody_is_in()
        told["comes_in"] = until(lambda: self.ssh("true").returncode == 0, "a way in")
        told["entries"] = [
            [entry["kind"], entry.get("result") or entry.get("status")]
            for entry in guard.ledger.entries()
            if str(entry["kind"]).startswith("deadman") or entry["kind"] in ("started", "ended", "rollback_planned")
        ]
        told["texts"] = [entry.get("text") for entry in guard.ledger.entries() if entry["kind"] == deadman.FIRED]
        return told

    # ── the machine ──────────────────────────────────────────────────────────────────────────────────────────────

    def network(self) -> None:
        self.peer = subprocess.Popen(["unshare", "-n", "sleep", "600"], start_new_session=True)
        pid = self.peer.pid
        until(lambda: os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"), "a network")
        self.client = ["nsenter", "-t", str(pid), "-n", "--"]
        run("ip link set lo up", f"ip link add v0 type veth peer name v1 netns {pid}")
        run(f"ip addr add {HERE}/24 dev v0", "ip link set v0 up")
        for words in (f"ip addr add {THERE}/24 dev v1", "ip link set v1 up", "ip link set lo up"):
            subprocess.run([*self.client, *words.split()], check=True)

    def sshd(self) -> subprocess.Popen[bytes]:
        """On /etc/ssh/sshd_config of this machine's own /etc."""
        for name, phrase in (("host", ""), ("user", ""), ("sealed", PASSPHRASE)):
            make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-f", str(self.folder / name)]
            subprocess.run(make, check=True)
        keys = b"".join((self.folder / f"{name}.pub").read_bytes() for name in ("user", "sealed"))
        pathlib.Path("/run/keys").write_bytes(keys)  # where every user may read it
        with open("/etc/passwd", "a", encoding="utf-8") as file:
            file.write(f"{USER}:x:{USER_ID}:{USER_ID}::/:/bin/sh\n")
        config = pathlib.Path("/etc/ssh/sshd_config")
        config.write_text(
            f"Port {PORT}\nListenAddress 0.0.0.0\nHostKey {self.folder}/host\nAuthorizedKeysFile /run/keys\n"
            "StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile /run/sshd.pid\n"
            f"SetEnv OPSAGENT_HOME={os.environ['OPSAGENT_HOME']}\n"
        )
        os.makedirs("/run/sshd", exist_ok=True)
        return subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-f", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def argv(self, command: str, *options: str, user: str = "root", host: str = HERE, key: str = "user") -> list[str]:
        words = ["ssh", "-p", str(PORT), "-i", str(self.folder / key), "-F", "none", *options]
        for option in (
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "ConnectTimeout=2",
            "LogLevel=ERROR",
            "IdentitiesOnly=yes",
        ):
            words += ["-o", option]
        return [*(self.client if host == HERE else ()), *words, f"{user}@{host}", command]

    def ssh(self, command: str, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
        argv = self.argv(command, *options, **more)
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)

    def session(self) -> subprocess.Popen[bytes]:
        """The first connection: makes the change, and stays."""
        faults = self.folder / "session.err"
        order = json.dumps({**self.order, "folder": str(self.folder)})
        inside = f"cd {shlex.quote(str(ROOT))} && exec {self.python} -m tests.deadman.session {shlex.quote(order)}"
        argv = self.argv(
            f"{inside} 2> {shlex.quote(str(faults))}", "-o", "ControlMaster=yes", "-o", f"ControlPath={self.shared}"
        )
        first = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        until((self.folder / "answer.json").exists, f"the change: {faults}")
        return first

    # ── ways to confirm ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def confirm(self) -> str:
        code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli import opsx; sys.exit(opsx.main(sys.argv[1:]))"
        return f"cd / && {self.python} -c {shlex.quote(code)} confirm {self.execution}"

    def new(self) -> list:
        """A new connection from outside."""
        return ended(self.ssh(self.confirm, "-tt"))

    def without_variables(self) -> list:
        """As under sudo, which takes them away."""
        return ended(
            self.ssh(f"env -u SSH_CONNECTION -u SSH_CLIENT -u SSH_TTY sh -c {shlex.quote(self.confirm)}", "-tt")
        )

    def same(self) -> list:
        """A second session over the connection that the change was made over."""
        return ended(self.ssh(self.confirm, "-tt", "-o", f"ControlPath={self.shared}"))

    def itself(self) -> list:
        """The machine's own call to itself."""
        return ended(self.ssh(self.confirm, "-tt", host="127.0.0.1"))

    def own_address(self) -> list:
        """The same by the address that others use."""
        argv = self.argv(self.confirm, "-tt")[len(self.client) :]
        return ended(subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False))

    def pretended(self) -> list:
        """The old connection with the variable of another."""
        other = f"{THERE} 50000 {HERE} {PORT}"
        return ended(
            self.ssh(
                f"SSH_CONNECTION={shlex.quote(other)} sh -c {shlex.quote(self.confirm)}",
                "-tt",
                "-o",
                f"ControlPath={self.shared}",
            )
        )

    def tmux(self) -> list:
        """A terminal of tmux that a new connection looks at; its server is older."""
        if shutil.which("tmux") is None:
            return [1, "this terminal belongs to tmux"]
        out, tmux = self.folder / "tmux.out", f"tmux -f /dev/null -S {self.folder}/tmux"
        script = f"{self.confirm}; echo $? > {out}; exec sleep 60"
        self.ssh(f"{tmux} new-session -d -x 300 {shlex.quote(script)}", "-tt")
        until(lambda: out.exists() and out.read_text(), "tmux")
        shown = subprocess.run([*tmux.split(), "capture-pane", "-p", "-J"], capture_output=True, text=True, check=True)
        return [int(out.read_text()), shown.stdout]

    def early(self) -> subprocess.Popen[bytes]:
        """A connection that was accepted before the change, in which somebody logs in after it, as a user."""
        go, asks = self.folder / "go", self.folder / "asks"
        ask = self.folder / "ask"
        ask.write_text(f"#!/bin/sh\ntouch {asks}\nwhile [ ! -e {go} ]; do sleep 0.1; done\necho '{PASSPHRASE}'\n")
        ask.chmod(0o755)
        argv = self.argv("echo $$; exec sleep 60", user=USER, key="sealed")
        with open(self.folder / "early", "wb") as out:
            waiting = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, "SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"},
                start_new_session=True,
            )
        until(asks.exists, "the question for a passphrase")
        return waiting


def ended(done: subprocess.CompletedProcess[str]) -> list:
    return [done.returncode, " ".join((done.stdout + done.stderr).split())]


def seen_of(pid: int) -> list:
    """What is known about the connection of a process."""
    one = connection_of(pid)
    since_s = process_start(pid) / os.sysconf("SC_CLK_TCK")
    return [os.getuid(), since_s, *(() if one is None else (one.opened_boot_s, one.is_live, one.is_own, one.text))]


def as_user(what):
    """What a function says when an ordinary user asks."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setgid(USER_ID)
        os.setuid(USER_ID)
        os.write(write, json.dumps(what()).encode())
        os._exit(0)
    os.close(write)
    os.wait()
    return json.loads(os.read(read, 4096))


def run(*lines: str) -> None:
    for line in lines:
        subprocess.run(line.split(), check=True)


def state() -> dict:
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True, check=True).stdout
    return {"rule": "--dport" in rules, "config": "AllowUsers" in pathlib.Path("/etc/ssh/sshd_config").read_text()}


def until(found, what: str):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.1)
    name = what.rpartition(" ")[2]
    raise AssertionError(f"waited in vain for {what}\n{pathlib.Path(name).read_text() if os.path.isfile(name) else ''}")


def kill_all_but(*spared: int) -> None:
    """SIGKILL to every process of this pid namespace but these and the first ones."""
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in {1, os.getpid(), os.getppid(), *spared}:
            try:
                os.kill(int(name), signal.SIGKILL)
            except ProcessLookupError:
                continue


if __name__ == "__main__":
    main()
