"""Runs every attempt outside and inside the sandbox and prints what had an effect, as JSON.

Usage: python attempt_probe.py SCRATCH [LAYER…] (inside its own mount, network, host name, ipc and process
namespaces, in which the scratch is a file system of its own). Without a layer: outside, and inside with all of them.
With layers: inside with each of those alone, `capabilities` being there always (`namespace`: read-only in a user
namespace, `mounts`: without one); `observe`, `netadm` and `block` stand for those profiles; `userns` is all that holds
without Landlock.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from guard.errors import SandboxUnavailable
from guard.hands import sandbox
from guard.hands.environment import build_environment
from guard.hands.process import Program, run_child
from guard.hands.sandbox import PROFILES, Sandbox, landlock, seccomp, space, worker
from guard.hands.sandbox.kernel import probe
from guard.hands.sandbox.report import Notes
from guard.hands.targets.local import LocalTarget
from guard.types import Profile
from tests.hands.attempts import ATTEMPTS, Attempt


class Scene:
    """The scratch and everything in it that can be attacked."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.work = root / "work"
        self.home = root / "home"
        self.state = root / "state"
        self.victim: subprocess.Popen[bytes] | None = None
        self.listeners: list[socket.socket] = []
        self.env: dict[str, str] = {}

    def build(self) -> None:
        (self.home / ".ssh").mkdir(parents=True)
        (self.home / ".aws").mkdir()
        self.state.mkdir()
        for path in (
            self.home / ".ssh/id_test",
            self.home / ".aws/credentials",
            self.state / "log",
            self.state / "lock",
        ):
            path.write_text("secret\n")
            path.chmod(0o600)
        self.master, self.slave = os.openpty()
        self.env = {
            "KEY": str(self.home / ".ssh/id_test"),
            "STATE": str(self.state),
            "SOCK": str(self.root / "daemon.sock"),
            "DGRAM": str(self.root / "log.sock"),
            "PTS": os.ttyname(self.slave),
            "HOME": str(self.home),
            "OURS": str(os.getpid()),
        }
        self._listen()
        self._ipc()

    def _listen(self) -> None:
        for address, kind in (
            (self.env["SOCK"], socket.SOCK_STREAM),
            ("\0opsagent-attempt", socket.SOCK_STREAM),
            (self.env["DGRAM"], socket.SOCK_DGRAM),
        ):
            self._keep(socket.socket(socket.AF_UNIX, kind), address)
        self.env["PORT"] = str(self._keep(socket.socket(), ("127.0.0.1", 0))[1])
        self.env["OPEN_PORT"] = str(self._keep(socket.socket(), ("127.0.0.1", 0))[1])
        self.env["UDP"] = str(self._keep(socket.socket(type=socket.SOCK_DGRAM), ("127.0.0.1", 0))[1])

    def _keep(self, made: socket.socket, address: object) -> tuple[str, int]:
        made.bind(address)  # type: ignore[arg-type]
        if made.type == socket.SOCK_STREAM:
            made.listen(64)
            threading.Thread(target=_accept_all, args=(made,), daemon=True).start()
        self.listeners.append(made)
        return made.getsockname()

    def _ipc(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self.env["SHM"] = str(libc.shmget(0, 4096, 0o1666))
        self.env["SEM"] = str(libc.semget(0, 1, 0o1666))
        self.env["MSG"] = str(libc.msgget(0, 0o1666))

    def refresh_ipc(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmctl(int(self.env["SHM"]), 0, None)
        libc.msgctl(int(self.env["MSG"]), 0, None)
        self.env["SHM"] = str(libc.shmget(0, 4096, 0o1666))
        self.env["MSG"] = str(libc.msgget(0, 0o1666))
        libc.msgsnd(int(self.env["MSG"]), (1).to_bytes(8, "little") + b"x" * 8, 8, 0)

    def reset(self) -> None:
        """A new work folder, and a live victim with its old settings."""
        if self.victim is not None:
            self.victim.kill()
            self.victim.wait()
        if self.work.exists():
            shutil.rmtree(self.work)
        (self.work / "d/e").mkdir(parents=True)
        (self.work / "emptyd").mkdir()
        for name in ("f.txt", "other.txt", "own.txt", "d/e/k"):
            (self.work / name).write_text(f"a {name}\n" * 3)
        os.setxattr(self.work / "f.txt", "user.kept", b"1")
        os.mkfifo(self.work / "ctl.fifo")
        os.symlink(self.env["KEY"], self.work / "keylink")
        if (self.root / "suidid").exists():
            os.symlink(self.root / "suidid", self.work / "suidid")
        shutil.copy(self.root / "a.tar", self.work / "a.tar")
        shutil.copytree(self.root / "repo", self.work / "repo")
        hold = f"exec 7<>f.txt 8<{shlex.quote(self.env['KEY'])} 9<>ctl.fifo; exec sleep 600"
        self.victim = subprocess.Popen(["/bin/bash", "-c", hold], cwd=self.work, start_new_session=True)
        fd9 = pathlib.Path(f"/proc/{self.victim.pid}/fd/9")
        while not os.path.lexists(fd9):
            time.sleep(0.002)
        self.env["VICTIM"] = str(self.victim.pid)
        for listener in self.listeners:  # a full queue would look like a refusal
            if listener.type == socket.SOCK_DGRAM:
                with contextlib.suppress(BlockingIOError):
                    while True:
                        listener.recv(64, socket.MSG_DONTWAIT)
        self.refresh_ipc()

    def fingerprint(self) -> list[str]:
        found = []
        for folder, folders, files in os.walk(self.work):
            for name in sorted(folders + files):
                path = os.path.join(folder, name)
                status = os.lstat(path)
                regular = stat.S_ISREG(status.st_mode)
                content = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() if regular else ""
                attributes = [(key, os.getxattr(path, key)) for key in os.listxattr(path)] if regular else []
                times = (status.st_mtime_ns, status.st_nlink, status.st_blocks, status.st_ino) if regular else ()
                found.append(repr((path, status.st_mode, status.st_uid, times, content, attributes)))
        return found


def _accept_all(listener: socket.socket) -> None:
    while True:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            connection.close()


def command_of(attempt: Attempt) -> str:
    if not attempt.python:
        return attempt.code
    return f"exec {shlex.quote(sys.executable)} -I -S -c {shlex.quote(attempt.code)}"


def outcome(scene: Scene, attempt: Attempt, run) -> tuple[bool, object]:
    """(whether it had an effect, what `run` gave)."""
    scene.reset()
    before = scene.fingerprint()
    env = {**build_environment(source=scene.env).env, **scene.env}
    result = run(command_of(attempt), env)
    if attempt.name.endswith("left behind"):
        time.sleep(0.6)
    dead = scene.victim is None or scene.victim.poll() is not None
    return dead or "DONE" in result.stdout.text or scene.fingerprint() != before, result


def had_effect(scene: Scene, attempt: Attempt, target: LocalTarget, profile: str) -> tuple[bool, str, list[str] | None]:
    effect, result = outcome(
        scene,
        attempt,
        lambda command, env: target.run(
            command,
            cwd=str(scene.work),
            profile=profile,
            ports=[int(scene.env["OPEN_PORT"])],
            env=env,
            timeout_s=30,
            hidden=[str(scene.state)],
        ),
    )
    seen = None if result.interference is None else [f"{each.operation} {each.path}" for each in result.interference]
    return effect, result.stderr.text[-400:], seen


class NoRules:
    """Landlock switched off."""

    def enforce(self) -> None: ...

    def close(self) -> None: ...


@contextlib.contextmanager
def only(layer: str):
    """A sandbox in which this layer alone, beside the capabilities, holds what is started."""
    kernel, load, build, prove = probe(), seccomp.load, landlock.build, worker.prove
    plan, kinds = space.SpaceWorker._plan, sandbox.KINDS
    if layer in ("capabilities", "landlock"):
        kernel = dataclasses.replace(kernel, notify=False)
        seccomp.load = lambda *arguments, notify: -1
        worker.prove = lambda *arguments: None
    if layer == "capabilities":
        landlock.build = lambda *arguments, **more: NoRules()
    if layer in ("seccomp", *SPACES):
        kernel = dataclasses.replace(kernel, landlock_abi=0)
    if layer in SPACES:
        sandbox.KINDS = (space.MOUNT,) if layer.startswith("mounts") else (space.USER,)
    if layer in ("namespace", "mounts"):
        space.SpaceWorker._plan = lambda self, helper: {**plan(self, helper), "filter": ""}
    made = Sandbox(kernel)
    try:
        yield made
    finally:
        made.close()
        seccomp.load, landlock.build, worker.prove = load, build, prove
        space.SpaceWorker._plan, sandbox.KINDS = plan, kinds


def is_contained(attempt: Attempt) -> bool:
    """Whether it may have its effect: an ordinary user has no process namespace around it here, and one layer alone is
    no sandbox, so what reaches beyond the scratch (a signal to everything) would reach everything of that user."""
    return os.geteuid() == 0 or not attempt.unproven


SPACES = ("namespace", "mounts", "userns", "mounts and filter")


def in_layer(scene: Scene, attempt: Attempt, made: Sandbox, profile: str, *, masked: bool) -> bool | None:
    """Whether it had an effect; None where the profile cannot be held by that layer."""
    try:
        bound = made.worker(
            profile,
            ports=[int(scene.env["OPEN_PORT"])],
            hidden=[str(scene.state)],
            home=str(scene.home),
            masked=masked,
        )
    except SandboxUnavailable:
        return None
    notes = Notes(limited=True)
    folder = made.scratch.new_run()

    def run(command: str, env: dict[str, str]):
        argv = ["/bin/bash", "--noprofile", "--norc", "-p", "-c", command]
        if attempt.python:
            argv = [sys.executable, "-I", "-S", "-c", attempt.code]
        return run_child(
            Program(argv, {**env, "TMPDIR": str(folder)}, spawner=lambda start: bound.spawn(start, notes)),
            cwd=str(scene.work),
            timeout_s=30,
            leave_nothing=True,
        )

    effect, _ = outcome(scene, attempt, run)
    made.scratch.end_run(str(folder))
    return effect


def main() -> None:
    root = pathlib.Path(sys.argv[1])
    os.environ["HOME"] = str(root / "home")
    scene = Scene(root)
    scene.build()
    report: dict[str, object] = {}
    if sys.argv[2:]:
        for name in sys.argv[2:]:
            exact = name in PROFILES
            with only("" if exact else name) as made:
                report[name] = {
                    attempt.name: in_layer(
                        scene, attempt, made, name if exact else attempt.profile, masked=name in SPACES
                    )
                    for attempt in ATTEMPTS
                    if (attempt.profile == Profile.LOCAL if exact else is_contained(attempt))
                }
    else:
        target = LocalTarget()
        for attempt in ATTEMPTS:
            outside = None if attempt.unproven else had_effect(scene, attempt, target, Profile.NONE)
            inside = had_effect(scene, attempt, target, attempt.profile)
            report[attempt.name] = {"outside": outside, "inside": inside}
        report = {"uid": os.geteuid(), "enforced": target.enforcement().mechanism, "attempts": report}
    if scene.victim is not None:
        scene.victim.kill()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
