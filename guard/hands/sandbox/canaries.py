"""Whether each profile holds here, tried now: a program inside it attempts what must be stopped and what must be left.

The one source of such attempts for `opsx sandbox doctor`, `opsx selftest` and `opsagent doctor`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass

from guard.errors import SandboxUnavailable
from guard.hands.child import Child, Start
from guard.hands.process import Program, run_child
from guard.hands.sandbox import PROFILES, Sandbox
from guard.hands.sandbox import canary_probe as probe
from guard.hands.sandbox.canary_probe import ALLOWED, STOPPED
from guard.hands.sandbox.report import Notes
from guard.hands.sandbox.scratch import cache_places
from guard.hands.sandbox.worker import HELD_BY_SPACE
from guard.types import Profile

EVERYWHERE = ("read_a_file", "write_to_null", "write_in_the_private_folder")
"""What each profile leaves."""
LEFT: dict[str, tuple[str, ...]] = {
    Profile.NET: ("reach_the_judged_port", "send_a_datagram_over_the_network"),
    Profile.BUS: ("ask_a_daemon",),
    Profile.OBSERVE: ("see_the_files_of_a_process", "read_what_is_hidden", "open_a_terminal"),
    Profile.NETADM: ("ask_the_firewall",),
}
"""Profile → what it leaves beside that; everything else has to be stopped."""
BY_LANDLOCK_ALONE = ("see_the_files_of_a_process", "read_what_is_hidden", "open_a_terminal")
"""Reads. Without Landlock nothing is said about them but in a namespace: they change nothing, and what reads a whole
tree is asked about, or run in one."""
MASKED = " in a namespace"
"""What is added to the name of a profile whose secret paths a namespace closes."""
TIME_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Scene:
    """What the attempts are made on: a folder, a process and sockets of ours, outside the sandbox."""

    folder: str
    victim: str
    hidden: str
    daemon: str
    datagrams: str
    port: str
    other_port: str
    udp_port: str


@dataclass(frozen=True, slots=True)
class Canary:
    """One attempt in one profile."""

    profile: str
    name: str
    expected: str
    """`stopped` or `allowed`."""
    seen: str
    """The same, with the error after a colon where it was neither refused nor done; or that it was not tried."""

    @property
    def passed(self) -> bool:
        return self.seen.partition(":")[0] == self.expected

    @property
    def words(self) -> str:
        """For people: `local: cannot write a file`."""
        can = "can" if self.expected == ALLOWED else "cannot"
        return f"{self.profile}: {can} {self.name.replace('_', ' ')}"


def try_canaries(sandbox: Sandbox, profiles: Iterable[str]) -> Iterator[Canary]:
    """Tries each attempt in each of the profiles, and where there is a namespace for them, in that, too; some 50 ms
    each.

    Effects: makes a folder below the temporary one, a process and sockets on the loopback device, all gone at the end.
    """
    with _scene() as scene:
        for profile in profiles:
            yield from _in_profile(sandbox, profile, scene)
            if profile in HELD_BY_SPACE and sandbox.space():
                yield from _in_profile(sandbox, profile, scene, masked=True)


def expected_in(profile: str, mechanism: str) -> dict[str, str]:
    """Canary → what has to happen to it in this profile, as far as anything has to."""
    left = (*EVERYWHERE, *LEFT.get(profile, ()))
    expected = {name: ALLOWED if name in left else STOPPED for name in probe.names()}
    if mechanism == "seccomp":
        for name in BY_LANDLOCK_ALONE:
            del expected[name]
    if os.geteuid() != 0:
        # The firewall answers nobody but root, and whose files are seen is the user's own affair.
        expected.pop("ask_the_firewall")
    return expected


def _in_profile(sandbox: Sandbox, profile: str, scene: Scene, *, masked: bool = False) -> Iterator[Canary]:
    label = profile + MASKED if masked else profile
    before = _state_of(scene.folder)
    try:
        mechanism, seen = _seen_inside(sandbox, profile, scene, masked=masked)
    except SandboxUnavailable as error:
        mechanism, seen = "strict", {}
        why = f"not tried: {error.message}"
    else:
        why = "not tried: the program that tries it did not answer"
    for name, expected in expected_in(profile, mechanism).items():
        yield Canary(label, name, expected, seen.get(name, why))
    # Whatever was said inside: outside, nothing may be different.
    changed = _state_of(scene.folder) != before
    yield Canary(label, "leave_a_change_behind", STOPPED, ALLOWED if changed else STOPPED)


def _seen_inside(sandbox: Sandbox, profile: str, scene: Scene, *, masked: bool) -> tuple[str, dict[str, str]]:
    worker = sandbox.worker(profile, ports=[int(scene.port)], hidden=[scene.hidden], masked=masked)
    notes = Notes(limited=True)

    def spawn(start: Start) -> Child:
        return worker.spawn(start, notes)

    folder = sandbox.scratch.new_run()
    env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **(cache_places(folder) if folder else {"TMPDIR": "/nowhere"})}
    started: list[int] = []
    try:
        ended = run_child(
            Program([sys.executable, "-I", "-S", probe.__file__, json.dumps(asdict(scene))], env, spawner=spawn),
            cwd="/",
            timeout_s=TIME_LIMIT_S,
            leave_nothing=True,
            on_spawn=started.append,
        )
    finally:
        for pid in started:
            worker.forget(pid)
        if folder is not None:
            sandbox.scratch.end_run(folder)
    try:
        found = json.loads(ended.stdout.text)["canaries"]
    except (ValueError, KeyError, TypeError):
        found = {}
    return worker.mechanism if PROFILES[profile].landlock else "strict", found


@contextmanager
def _scene() -> Iterator[Scene]:
    folder = os.path.realpath(tempfile.mkdtemp(prefix="opsagent-canaries-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        inside = f"{folder}/scene"
        os.mkdir(inside, 0o700)
        for name in ("file", "removable", "movable"):
            _write(f"{inside}/{name}")
        os.mkdir(f"{folder}/hidden", 0o700)
        _write(f"{folder}/hidden/log")
        victim = subprocess.Popen(
            ["/bin/sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=inside, env={}
        )
        stack.callback(victim.wait)
        stack.callback(victim.kill)

        def bound(family: int, kind: int, address: object) -> socket.socket:
            made = stack.enter_context(socket.socket(family, kind))
            made.bind(address)  # type: ignore[arg-type]
            if kind == socket.SOCK_STREAM:
                made.listen(64)
            return made

        bound(socket.AF_UNIX, socket.SOCK_STREAM, f"{folder}/daemon")
        bound(socket.AF_UNIX, socket.SOCK_DGRAM, f"{folder}/datagrams")
        ports = [
            str(bound(socket.AF_INET, kind, ("127.0.0.1", 0)).getsockname()[1])
            for kind in (socket.SOCK_STREAM, socket.SOCK_STREAM, socket.SOCK_DGRAM)
        ]
        yield Scene(inside, str(victim.pid), f"{folder}/hidden/log", f"{folder}/daemon", f"{folder}/datagrams", *ports)


def _write(path: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write("before")


def _state_of(folder: str) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for name in sorted(os.listdir(folder)):
        status = os.stat(f"{folder}/{name}")
        with open(f"{folder}/{name}", "rb") as file:
            content = file.read(64)
        found.append((name, status.st_mode, status.st_ino, status.st_nlink, status.st_mtime_ns, content))
    return found
