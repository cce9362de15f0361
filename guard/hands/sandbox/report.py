"""The supervisor: answers the calls that the filter hands over, and notes what was refused to whom.

It decides nothing that Landlock decides: those calls are noted and go on. What the filter refuses it answers
with EPERM. A path in a note is what the process had in memory at that moment: a report, never a control.
When the supervisor is gone, the kernel answers the calls with ENOSYS, so nothing gets through.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from guard.hands.liveness import process_stat
from guard.hands.sandbox.kernel import Kernel
from guard.hands.sandbox.limits import set_limits
from guard.hands.sandbox.memory import (
    FAMILIES,
    address_text,
    memory,
    message_parts,
    sent_bytes,
    signed,
    string,
)
from guard.hands.sandbox.profiles import O_TRUNC, OUTPUTS, QUESTIONS, REPORTED, SENDS, TO_THE_KERNEL, WRITE_FLAGS
from guard.hands.sandbox.questions import MOST_MESSAGE_BYTES, is_to_the_kernel, only_asks
from guard.hands.sandbox.stand_in import StandIn
from guard.types import Interference

RECEIVE, SEND, ADD_DESCRIPTOR, SET_FLAGS = 0xC0502100, 0xC0182101, 0x40182103, 0x40082104
SYNC_WAKE_UP = 1
CONTINUE = 1
NOTE_LIMIT = 200
"""Notes kept per run; how many more there were is said."""

PATH_ARGUMENT = {
    "open": (0, None), "creat": (0, None), "truncate": (0, None), "rename": (1, None), "link": (1, None),
    "symlink": (1, None), "mkdir": (0, None), "rmdir": (0, None), "unlink": (0, None), "mknod": (0, None),
    "openat": (1, 0), "openat2": (1, 0), "mkdirat": (1, 0), "unlinkat": (1, 0), "mknodat": (1, 0),
    "renameat": (3, 2), "renameat2": (3, 2), "linkat": (3, 2), "symlinkat": (2, 1),
    "chmod": (0, None), "chown": (0, None), "lchown": (0, None), "fchmodat": (1, 0), "fchmodat2": (1, 0),
    "fchownat": (1, 0), "utime": (0, None), "utimes": (0, None), "futimesat": (1, 0), "utimensat": (1, 0),
    "setxattr": (0, None), "lsetxattr": (0, None), "removexattr": (0, None), "lremovexattr": (0, None),
    "setxattrat": (1, 0), "removexattrat": (1, 0), "file_setattr": (1, 0),
    "mount": (1, None), "umount2": (0, None), "chroot": (0, None), "pivot_root": (0, None), "swapon": (0, None),
    "swapoff": (0, None), "acct": (0, None), "mq_open": (0, None), "mq_unlink": (0, None),
}  # fmt: skip
"""Call → (argument that holds the path, argument that holds the folder's descriptor)."""
DESCRIPTOR_ARGUMENT = ("fchmod", "fchown", "fsetxattr", "fremovexattr")
AT_FDCWD = -100
NSCD = ("/var/run/nscd/socket", "/run/nscd/socket")
LIBC_LOG_TYPE = 0o2000002
"""SOCK_DGRAM|SOCK_CLOEXEC: how syslog(3) opens its socket (`crontab -l` logs that it was asked)."""
LIBC_LOOKUP_TYPE = 0o2004001
"""SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK: how the C library asks nscd and resolvers before it reads the files."""


OPENS = {"open": (1, 2), "openat": (2, 3), "creat": (1, 1)}
"""Call → the arguments with its flags and mode."""
REMOVE_FOLDER = 0x200
"""AT_REMOVEDIR."""
NO_REPLACE = 1
"""RENAME_NOREPLACE; renameat2(2) with any other flag is not done for anybody."""
MODE_AT = {"mkdir": 1, "mkdirat": 2}
OTHER_ARGUMENT = {"rename": (0, None), "renameat": (1, 0), "symlink": (0, None), "symlinkat": (0, None)}
"""Call → where its other path is: the old name, or a link's text."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the supervisor says to one call."""

    goes_on: bool = False
    """The kernel does the call."""
    done: bool = False
    """The supervisor did it; `value` is what it returns."""
    value: int = 0
    error: int = 0
    """errno of a refusal or of what failed."""


GO_ON, REFUSED = Answer(goes_on=True), Answer(error=errno.EPERM)


@dataclass(slots=True)
class Notes:
    """What was refused to one run. Written by the supervisor alone."""

    found: dict[tuple[str, str], None] = field(default_factory=dict)
    dropped: int = 0
    limited: bool = False
    """The process limits were set before the command's own code ran."""
    place: Callable[[int], None] | None = None
    """Puts a process where it belongs (its control group), before its own code runs. Raises nothing."""

    def add(self, operation: str, path: str) -> None:
        key = (operation, path)
        if key in self.found:
            return
        if len(self.found) >= NOTE_LIMIT:
            self.dropped += 1
        else:
            self.found[key] = None

    def as_interference(self) -> tuple[Interference, ...]:
        return tuple(Interference(operation, path) for operation, path in list(self.found))


def can_hand_over(listener: int) -> bool:
    """Whether a descriptor can be given to a process that waits (Linux 5.9): asked about a call that there is not."""
    try:
        fcntl.ioctl(listener, ADD_DESCRIPTOR, bytearray(struct.pack("=QIIII", 0, 0, listener, 0, 0)))
    except OSError as error:
        return error.errno == errno.ENOENT
    return True


class Supervisor:
    """One listener, one thread. `register` and `forget` are called by the runs."""

    def __init__(self, kernel: Kernel, listener: int, scratch: str | None, *, sends: str = "", helper: int = 0) -> None:
        """Raises OSError where it would have to do writes itself and this kernel has no way to hand them over.

        Args:
            kernel: what holds the worker; without Landlock, the supervisor decides about each write itself.
            sends: what is seen to when the worker's commands send something (`SandboxProfile.sends`).
            helper: a process that starts them instead of a thread of ours, which they must not signal either.
        """
        self._names = {number: name for name, number in kernel.numbers.items()}
        self._continued = {kernel.numbers[name] for name in ("open", "openat", *REPORTED) if name in kernel.numbers}
        by_session = ("kill", "tkill", "tgkill") if kernel.landlock_abi < 6 else ()
        self._signals = {kernel.numbers[name] for name in by_session}
        # Without Landlock's truncate right the filter hands over what empties a file, to be refused: judged by
        # the flags in the registers, which cannot change under our eyes.
        self._flags_at: dict[int, int] = {}
        opens = {kernel.numbers[name]: index for name, index in (("open", 1), ("openat", 2)) if name in kernel.numbers}
        self._stand_in = None if kernel.landlock_abi else StandIn(kernel, scratch)
        if self._stand_in is not None and not can_hand_over(listener):
            raise OSError(errno.ENOTSUP, "before Linux 5.9 a supervisor cannot hand over what it opened")
        self._acted = self._continued if self._stand_in is not None else set()
        if self._stand_in is not None:
            self._continued = set()
        elif kernel.landlock_abi < 3:
            self._continued.discard(kernel.numbers["truncate"])
            self._flags_at = opens
        self._sends = {kernel.numbers[name] for name in (*SENDS, *OUTPUTS)} if sends else set()
        self._only_questions, self._sends_to_kernel = sends == QUESTIONS, sends == TO_THE_KERNEL
        self._helper = helper
        self._listener = listener
        self._scratch = scratch
        self._runs: dict[int, Notes] = {}
        self._expected = 0
        self._serving = False
        self._known = threading.Condition()
        self._thread = threading.Thread(target=self._serve, name="opsagent-supervisor", daemon=True)
        with contextlib.suppress(OSError):  # since Linux 6.6: hand over on the same processor
            fcntl.ioctl(listener, SET_FLAGS, SYNC_WAKE_UP)

    def start(self) -> None:
        self._serving = True
        self._thread.start()

    def is_alive(self) -> bool:
        return self._serving

    def expect(self) -> None:
        """A run is about to be spawned: a first call from an unknown session waits for its name."""
        with self._known:
            self._expected += 1

    def register(self, leader: int, notes: Notes) -> None:
        """From here on, what the session of this process is refused is noted there. `leader` 0: none came."""
        with self._known:
            self._expected -= 1
            if leader:
                self._runs[leader] = notes
            self._known.notify_all()

    def forget(self, leader: int) -> None:
        with self._known:
            self._runs.pop(leader, None)

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        message = bytearray(80)
        try:
            while True:
                if any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll()):
                    return  # no process is left under this filter
                message[:] = bytes(80)
                try:
                    fcntl.ioctl(self._listener, RECEIVE, message)
                except OSError as error:
                    if error.errno in (errno.ENOENT, errno.EINTR):
                        continue  # the caller died before its call was fetched
                    return
                self._answer(message)
        finally:
            self._serving = False  # before the calls begin to fail, so that no new run is given to this worker
            os.close(self._listener)

    def _answer(self, message: bytearray) -> None:
        identity, pid, _, number = struct.unpack_from("=QIIi", message)
        arguments = struct.unpack_from("=6Q", message, 32)
        name = self._names.get(number, str(number))
        notes: list[Notes] = []
        answer = REFUSED
        # The process may die or move while we look: what was decided by then stands, without a note.
        with contextlib.suppress(OSError, ValueError, IndexError):
            notes = self._begun(pid)
        with contextlib.suppress(OSError, ValueError, IndexError):
            answer = self._decided(identity, pid, name, number, arguments)
        with contextlib.suppress(OSError, ValueError, IndexError):
            self._note(pid, name, arguments, answer, notes)
        response = struct.pack(
            "=QqiI", identity, answer.value, -answer.error, CONTINUE if answer.goes_on and not answer.done else 0
        )
        with contextlib.suppress(OSError):  # ENOENT: it died while waiting
            fcntl.ioctl(self._listener, SEND, response)

    def _decided(self, identity: int, pid: int, name: str, number: int, arguments: tuple[int, ...]) -> Answer:
        if number in self._signals:
            return GO_ON if self._may_signal(pid, arguments) else REFUSED
        if number in self._acted:
            return self._act(identity, pid, name, arguments)
        if number in self._sends:
            return GO_ON if self._may_send(pid, name, arguments) else REFUSED
        if number in self._flags_at:
            flags = arguments[self._flags_at[number]]
            return REFUSED if flags & O_TRUNC and flags & os.O_ACCMODE == os.O_RDONLY else GO_ON
        return GO_ON if number in self._continued else REFUSED

    def _act(self, identity: int, pid: int, name: str, arguments: tuple[int, ...]) -> Answer:
        """Does what the call wants, when it may; the kernel never sees the call itself."""
        assert self._stand_in is not None
        path = _path(pid, name, arguments)
        try:
            if name in OPENS:
                flags, mode = (arguments[at] & 0xFFFFFFFF for at in OPENS[name])
                if name == "creat":
                    flags, mode = os.O_CREAT | os.O_WRONLY | os.O_TRUNC, arguments[1]
                opened = self._stand_in.open(pid, path, flags, mode)
                try:
                    given = bytearray(struct.pack("=QIIII", identity, 0, opened, 0, flags & os.O_CLOEXEC))
                    return Answer(done=True, value=fcntl.ioctl(self._listener, ADD_DESCRIPTOR, given))
                finally:
                    os.close(opened)
            if name == "renameat2" and arguments[4] & NO_REPLACE and os.path.lexists(path):
                return Answer(error=errno.EEXIST)
            if name == "unlinkat" and arguments[2] & REMOVE_FOLDER:
                name = "rmdir"
            self._stand_in.change(name, path, arguments[MODE_AT.get(name, 0)] & 0o7777, _other(pid, name, arguments))
        except OSError as error:
            return Answer(error=error.errno or errno.EPERM)
        return Answer(done=True)

    def _begun(self, pid: int) -> list[Notes]:
        """The notes of the process's run, whose limits are set now if they were not. None for our own worker, trying
        whether it is bound: that is not a run, and its limits are this process's."""
        if os.path.exists(f"/proc/self/task/{pid}"):
            return []
        leader, notes = self._run_of(pid)
        if leader and notes[0].place is not None:
            for process in {pid, leader}:
                notes[0].place(process)
            notes[0].place = None
        if leader and not notes[0].limited:
            with contextlib.suppress(OSError):  # then the run says so; what is refused is noted all the same
                for process in {pid, leader}:
                    set_limits(process)
                notes[0].limited = True
        return notes

    def _note(self, pid: int, name: str, arguments: tuple[int, ...], answer: Answer, notes: list[Notes]) -> None:
        silent = answer.goes_on and name in ("kill", "tkill", "tgkill", *SENDS, *OUTPUTS)
        if not notes or silent or answer.done or answer.error not in (0, errno.EPERM, errno.EXDEV):
            return
        path = self._described(pid, name, arguments)
        if path is None or (answer.goes_on and self._is_allowed(pid, path)):
            return
        for each in notes:
            each.add(name, path)

    def _run_of(self, pid: int) -> tuple[int, list[Notes]]:
        """(leader, its notes) by the session, else by the ancestors; (0, those of every run) for a lost daemon."""
        session = os.getsid(pid)
        with self._known:
            # Its first call can arrive before the spawning thread got round to naming the run.
            if session == pid and session not in self._runs:
                self._known.wait_for(lambda: session in self._runs or not self._expected, timeout=1.0)
            if session in self._runs:
                return session, [self._runs[session]]
            runs = dict(self._runs)
        for _ in range(64):
            fields = process_stat(pid)
            if fields is None or int(fields[1]) <= 1:
                break
            pid = int(fields[1])
            if pid in runs:
                return pid, [runs[pid]]
        return 0, list(runs.values())

    def _described(self, pid: int, name: str, arguments: tuple[int, ...]) -> str | None:
        """What a call is about; None when a refusal of it means nothing."""
        if name in PATH_ARGUMENT:
            if name == "openat2":
                flags = int.from_bytes((memory(pid, arguments[2], 8) or b"")[:8], "little")
                if not flags & WRITE_FLAGS:
                    return None
            path = _path(pid, name, arguments)
            return None if path == "/dev/tty" else path
        if name in DESCRIPTOR_ARGUMENT:
            return os.readlink(f"/proc/{pid}/fd/{signed(arguments[0])}")
        if name == "socket":
            family = FAMILIES.get(arguments[0], str(arguments[0]))
            # Asking nscd is the C library's habit; without it, it reads the files itself. So is telling syslog.
            return None if family == "AF_UNIX" and arguments[1] in (LIBC_LOOKUP_TYPE, LIBC_LOG_TYPE) else family
        if name in ("connect", "bind"):
            path = address_text(memory(pid, arguments[1], min(arguments[2], 128)) or b"")
            # The C library sorts the addresses of a name by connecting datagram sockets, which sends nothing.
            sorting = self._sends_to_kernel and (path == "0" or path.startswith("AF_INET"))
            return None if path in NSCD or sorting else path
        if name in ("kill", "tkill"):
            return str(signed(arguments[0]))
        if name in SENDS:
            return "more than a question"
        if name == "ioctl":
            return hex(arguments[1] & 0xFFFFFFFF)
        return ""

    def _is_allowed(self, pid: int, path: str) -> bool:
        """Whether Landlock lets this write through, so that there is nothing to report."""
        if path in ("/dev/null", "/dev/zero", "/dev/full"):
            return True
        if path.startswith(("/dev/std", "/dev/fd/", "/proc/self/", "/proc/thread-self/", f"/proc/{pid}/fd/")):
            real = os.path.realpath(path.replace("/proc/self", f"/proc/{pid}").replace("/dev/fd", f"/proc/{pid}/fd"))
            if path in ("/dev/stdout", "/dev/stderr"):
                real = os.readlink(f"/proc/{pid}/fd/{1 if path == '/dev/stdout' else 2}")
            return real.rpartition("/")[2].startswith(("pipe:", "socket:")) or real in ("/dev/null", "/dev/zero")
        if self._scratch is not None and path.startswith(self._scratch + "/"):
            # A link may lead out of it. Looking costs a call per level, so not for the endlessly deep ones.
            return path.count("/") > 40 or os.path.realpath(path).startswith(self._scratch + "/")
        return path.startswith("/memfd:")

    def _may_send(self, pid: int, name: str, arguments: tuple[int, ...]) -> bool:
        """Whether a call with which something leaves the process is an answer to us or goes to the kernel."""
        if name in OUTPUTS:
            place = os.readlink(f"/proc/{pid}/fd/{signed(arguments[0])}")
            return place == "/dev/null" or place.startswith("pipe:")
        if name == "sendmsg":
            parts = message_parts(pid, arguments[1], MOST_MESSAGE_BYTES)
        else:
            data = sent_bytes(pid, arguments[1], arguments[2], MOST_MESSAGE_BYTES)
            address = sent_bytes(pid, arguments[4], arguments[5] & 0xFFFFFFFF, 128) if arguments[4] else b""
            parts = None if data is None or address is None else (address, data)
        if parts is None or not is_to_the_kernel(parts[0]):
            return False
        return not self._only_questions or only_asks(parts[1])

    def _may_signal(self, pid: int, arguments: tuple[int, ...]) -> bool:
        """Only for kernels without Landlock's signal scope: within one's own session, by value."""
        target = signed(arguments[0])
        if target == 0:
            return True
        if abs(target) in (1, self._helper) or os.path.exists(f"/proc/self/task/{abs(target)}"):
            return False
        try:
            return os.getsid(abs(target)) == os.getsid(pid)
        except OSError:
            return False


def _path(pid: int, name: str, arguments: tuple[int, ...]) -> str:
    """The absolute path that a call is about, as far as it can be told."""
    return _absolute(pid, arguments, *PATH_ARGUMENT[name])


def _other(pid: int, name: str, arguments: tuple[int, ...]) -> str:
    if name.startswith("symlink"):
        return string(pid, arguments[OTHER_ARGUMENT[name][0]])
    if name == "renameat2" and arguments[4] in (0, NO_REPLACE):
        name = "renameat"
    return _absolute(pid, arguments, *OTHER_ARGUMENT[name]) if name in OTHER_ARGUMENT else ""


def _absolute(pid: int, arguments: tuple[int, ...], index: int, folder: int | None) -> str:
    path = string(pid, arguments[index]) if arguments[index] else ""
    if path.startswith("/"):
        return os.path.normpath(path)
    descriptor = AT_FDCWD if folder is None else signed(arguments[folder])
    place = "cwd" if descriptor == AT_FDCWD else f"fd/{descriptor}"
    try:
        base = os.readlink(f"/proc/{pid}/{place}")
    except OSError:
        return path
    return os.path.normpath(f"{base}/{path}") if path else base
