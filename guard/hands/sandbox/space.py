"""Where Landlock is missing: a helper process in a namespace in which all is read-only and secret paths are closed.

It stands beside the filter and its supervisor, which decide about every write as they do without a namespace. What it
adds is that the secret paths and the device nodes cannot be opened, so that a whole tree can be read. In it some things
look otherwise than they are: every mount read-only, and, for all but root, the files and processes of others as
nobody's. So only what reads a tree is started there.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from guard.hands.child import Adopted, Child, Start
from guard.hands.sandbox import landlock, seccomp, space_helper
from guard.hands.sandbox.kernel import CAP_DAC_READ_SEARCH, close_our_memory
from guard.hands.sandbox.limits import wanted_limits
from guard.hands.sandbox.masks import find_masks
from guard.hands.sandbox.report import Notes, Supervisor
from guard.hands.sandbox.worker import MOUNT, USER, Retired, Worker
from guard.hands.sweep import HELPERS

INSTALL_LIMIT_S = 10.0
"""It takes 30 to 60 ms; a file system that hangs must not hold up more than this."""
UNMAPPED = (1 << 32) - 2
"""An owner whom nobody in the namespace is: what is theirs and closed stays closed for root in there, too."""


class SpaceWorker(Worker):
    """A helper process that starts commands in a namespace, and its supervisor."""

    _helper: subprocess.Popen[bytes] | None = None
    _link: socket.socket | None = None
    _let_go: Callable[[], object] = staticmethod(lambda: None)

    @property
    def mechanism(self) -> str:
        """What holds it, as in `Enforcement.mechanism`."""
        return "userns"

    def is_usable(self) -> bool:
        """Whether it still stands for what is on disk, and its supervisor and helper live."""
        return super().is_usable() and self._helper is not None and self._helper.poll() is None

    def _reach(self) -> tuple[landlock.Reach, tuple[str, ...]]:
        masks = find_masks(self.key.hidden, self.key.home)
        reach = landlock.reach_around(masks.present, [path for path in masks.candidates if path not in masks.present])
        return reach, closed_around(masks.present, self.key.reopened, reach)

    def _install(self) -> None:
        if not self.reports:
            raise ValueError("where Landlock is missing, a supervisor has to answer")
        close_our_memory()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._link = ours
        ours.settimeout(INSTALL_LIMIT_S)
        with theirs:
            self._helper = subprocess.Popen(
                [sys.executable or "", "-I", "-S", space_helper.__file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd="/",
                env={},
                start_new_session=True,
            )
        HELPERS.add(self._helper.pid)
        # At the latest when this process ends or forgets the worker.
        self._let_go = weakref.finalize(self, _end, ours, self._helper)
        try:
            self._lead(self._helper.pid)
        except EOFError:
            raise OSError("the helper that makes the namespace ended") from None
        ours.settimeout(None)

    def _lead(self, helper: int) -> None:
        """Says the plan and answers until the helper serves."""
        plan = self._plan(helper)
        self._say(plan)
        while True:
            told, descriptors = self._hear()
            if "error" in told:
                raise OSError(told["error"])
            if told["at"] == "ready":
                return
            if told["at"] == "map":
                for kind in ("uid", "gid"):
                    with open(f"/proc/{helper}/{kind}_map", "w") as file:
                        file.write(same_ids(kind))
            elif plan["filter"]:
                if not descriptors:
                    raise OSError("the filter has nobody to ask")
                self._supervisor = Supervisor(self._kernel, descriptors[0], self._scratch, helper=helper)
                self._supervisor.start()
            self._say({})

    def _plan(self, helper: int) -> dict[str, Any]:
        if self._closed_folder is None:
            raise OSError("there is no private folder to close others with")
        root = os.path.dirname(self._closed_folder)
        code = seccomp.program(self._kernel, self._profile, notify=True, worker=(os.getpid(), helper))
        return {
            "user": self.key.space == USER,
            "mapped_outside": os.geteuid() == 0,
            "uid": os.geteuid(),
            "gid": os.getegid(),
            "closed": self.masked,
            "closed_file": "/dev/null",  # on a mount without devices: nobody can open it, whatever their rights
            "closed_folder": _closed_folder(root),
            "own_folder": self._closed_folder,
            "mount_setattr": self._kernel.numbers["mount_setattr"],
            "numbers": self._kernel.numbers,
            "keep": [CAP_DAC_READ_SEARCH] if os.geteuid() == 0 and _may_read_all() else [],
            "group": UNMAPPED if self.key.space == MOUNT else -1,
            "filter": code.hex(),
        }

    def spawn(self, start: Start, notes: Notes) -> Child:
        """Starts a process in the namespace and waits for its exec. Raises OSError, Retired."""
        supervisor, child = self._supervisor, None
        with self._taking:  # one command at a time is begun; the supervisor needs no lock that is held here
            if self._retired:
                raise Retired
            if supervisor is not None:
                supervisor.expect()
            try:
                child = self._begin(start)
            finally:
                if supervisor is not None:
                    supervisor.register(child.pid if child is not None else 0, notes)
        notes.limited = True
        return child

    def _begin(self, start: Start) -> Adopted:
        read, write = os.pipe()
        try:
            try:
                job = {"argv": list(start.argv), "env": dict(start.env), "cwd": start.cwd, "limits": wanted_limits()}
                self._say(job, [start.stdin, start.stdout, start.stderr, write])
            finally:
                os.close(write)
            told, _ = self._hear()
            if "errno" in told:
                raise OSError(told["errno"], os.strerror(told["errno"]))
            child = Adopted(told["pid"])
            failed = os.read(read, 64).split()
        except EOFError:
            raise Retired from None  # somebody ended the helper: a new one is made
        finally:
            os.close(read)
        if failed:
            child.wait()
            code = int(failed[0])
            raise OSError(code, os.strerror(code), start.cwd if failed[1] == b"folder" else start.argv[0])
        return child

    def _say(self, told: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        assert self._link is not None
        text = json.dumps(told).encode()
        passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        try:
            self._link.sendmsg([struct.pack("<I", len(text))], passed)
            self._link.sendall(text)
        except (BrokenPipeError, ConnectionResetError):
            raise EOFError from None

    def _hear(self) -> tuple[dict[str, Any], list[int]]:
        assert self._link is not None
        try:
            return space_helper.hear(self._link)
        except ConnectionResetError:
            raise EOFError from None

    def retire(self) -> None:
        """Lets the helper end. Its running children stay bound, and supervised, until they end."""
        with self._taking:
            self._retired = True
            self._let_go()
        self.reach.close()


def _end(link: socket.socket, helper: subprocess.Popen[bytes]) -> None:
    """Lets the helper end, which it does when nobody is at the other end of its socket."""
    link.close()
    try:
        helper.wait(2.0)
    except subprocess.TimeoutExpired:
        helper.kill()
        helper.wait()
    HELPERS.discard(helper.pid)


def closed_around(masked: Sequence[str], reopened: Sequence[str], reach: landlock.Reach) -> tuple[str, ...]:
    """What to close so that the masked paths are, and what this run needs stays open.

    Args:
        reopened: real paths below masked ones, or masked themselves. A folder that holds one is closed entry by entry,
            and watched, so that what is added to it makes the worker stale.
    """
    closed = []
    for path in masked:
        if path in reopened:
            continue
        if not any(kept.startswith(path + "/") for kept in reopened):
            closed.append(path)
            continue
        reach.watch(path)
        with contextlib.suppress(OSError):
            inside = [f"{path}/{name}" for name in sorted(os.listdir(path))]
            closed += closed_around([one for one in inside if not os.path.islink(one)], reopened, reach)
    return tuple(closed)


def same_ids(kind: str) -> str:
    """The map with which everybody who has a number here has the same in there; but for one, who is nobody there.

    Args:
        kind: `uid` or `gid`.
    """
    lines = []
    with open(f"/proc/self/{kind}_map") as file:
        for line in file:
            first, _, count = map(int, line.split())
            count = min(count, UNMAPPED - first)
            if count > 0:
                lines.append(f"{first} {first} {count}\n")
    return "".join(lines)


def _closed_folder(root: str) -> str:
    """An empty folder that is put over others. Root's rights reach into it where there is no user namespace, or no
    owner outside of it: then it looks empty, else closed."""
    folder = f"{root}/closed"
    if not os.path.lexists(folder):
        os.mkdir(folder, 0)
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):
                os.chown(folder, UNMAPPED, UNMAPPED)
    return folder


def _may_read_all() -> bool:
    """Whether this process has CAP_DAC_READ_SEARCH to leave to others."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        permitted = int(file.read().partition("CapPrm:")[2].split()[0], 16)
    return bool(permitted >> CAP_DAC_READ_SEARCH & 1)
