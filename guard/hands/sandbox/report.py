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
import resource
import select
import struct
import threading
from dataclasses import dataclass, field

from guard.hands.liveness import process_stat
from guard.hands.sandbox.kernel import Kernel
from guard.hands.sandbox.profiles import O_TRUNC, REPORTED, WRITE_FLAGS
from guard.types import Interference

RECEIVE, SEND, SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082104
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
FAMILIES = {1: "AF_UNIX", 2: "AF_INET", 10: "AF_INET6", 16: "AF_NETLINK", 17: "AF_PACKET", 38: "AF_ALG", 40: "AF_VSOCK"}
AT_FDCWD = -100
NSCD = ("/var/run/nscd/socket", "/run/nscd/socket")
LIBC_LOOKUP_TYPE = 0o2004001
"""SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK: how the C library asks nscd and resolvers before it reads the files."""


@dataclass(slots=True)
class Notes:
    """What was refused to one run. Written by the supervisor alone."""

    found: dict[tuple[str, str], None] = field(default_factory=dict)
    dropped: int = 0
    limited: bool = False
    """The process limits were set before the command's own code ran."""

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


class Supervisor:
    """One listener, one thread. `register` and `forget` are called by the runs."""

    def __init__(self, kernel: Kernel, listener: int, scratch: str | None) -> None:
        self._names = {number: name for name, number in kernel.numbers.items()}
        self._continued = {kernel.numbers[name] for name in ("open", "openat", *REPORTED) if name in kernel.numbers}
        by_session = ("kill", "tkill", "tgkill") if kernel.landlock_abi < 6 else ()
        self._signals = {kernel.numbers[name] for name in by_session}
        # Without Landlock's truncate right the filter hands over what empties a file, to be refused: judged by
        # the flags in the registers, which cannot change under our eyes.
        self._flags_at: dict[int, int] = {}
        if kernel.landlock_abi < 3:
            self._continued.discard(kernel.numbers["truncate"])
            names = (("open", 1), ("openat", 2))
            self._flags_at = {kernel.numbers[name]: index for name, index in names if name in kernel.numbers}
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
        go_on = number in self._continued
        if number in self._flags_at:
            flags = arguments[self._flags_at[number]]
            go_on = not (flags & O_TRUNC and flags & os.O_ACCMODE == os.O_RDONLY)
        try:
            if number in self._signals:
                go_on = self._may_signal(pid, arguments)
            self._note(pid, name, arguments, go_on)
        except (OSError, ValueError, IndexError):
            pass  # the process died or moved while we looked: the answer below stands without a note
        response = (
            struct.pack("=QqiI", identity, 0, 0, CONTINUE)
            if go_on
            else struct.pack("=QqiI", identity, 0, -errno.EPERM, 0)
        )
        with contextlib.suppress(OSError):  # ENOENT: it died while waiting
            fcntl.ioctl(self._listener, SEND, response)

    def _note(self, pid: int, name: str, arguments: tuple[int, ...], go_on: bool) -> None:
        if os.path.exists(f"/proc/self/task/{pid}"):
            return  # our own worker, trying whether it is bound: not a run, and its limits are this process's
        leader, notes = self._run_of(pid)
        if leader and not notes[0].limited:
            for process in {pid, leader}:
                set_limits(process)
            notes[0].limited = True
        if not notes or (go_on and name in ("kill", "tkill", "tgkill")):
            return
        path = self._described(pid, name, arguments)
        if path is None or (go_on and self._is_allowed(pid, path)):
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
            index, folder = PATH_ARGUMENT[name]
            if name == "openat2":
                flags = int.from_bytes((_memory(pid, arguments[2], 8) or b"")[:8], "little")
                if not flags & WRITE_FLAGS:
                    return None
            path = _string(pid, arguments[index]) if arguments[index] else ""
            if path.startswith("/"):
                return None if path == "/dev/tty" else os.path.normpath(path)
            descriptor = AT_FDCWD if folder is None else _signed(arguments[folder])
            place = "cwd" if descriptor == AT_FDCWD else f"fd/{descriptor}"
            try:
                base = os.readlink(f"/proc/{pid}/{place}")
            except OSError:
                return path
            return os.path.normpath(f"{base}/{path}") if path else base
        if name in DESCRIPTOR_ARGUMENT:
            return os.readlink(f"/proc/{pid}/fd/{_signed(arguments[0])}")
        if name == "socket":
            family = FAMILIES.get(arguments[0], str(arguments[0]))
            # Asking nscd is the C library's habit; without it, it reads the files itself.
            return None if family == "AF_UNIX" and arguments[1] == LIBC_LOOKUP_TYPE else family
        if name in ("connect", "bind"):
            path = _address(_memory(pid, arguments[1], min(arguments[2], 128)) or b"")
            return None if path in NSCD else path
        if name in ("kill", "tkill"):
            return str(_signed(arguments[0]))
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

    def _may_signal(self, pid: int, arguments: tuple[int, ...]) -> bool:
        """Only for kernels without Landlock's signal scope: within one's own session, by value."""
        target = _signed(arguments[0])
        if target == 0:
            return True
        if target == -1 or os.path.exists(f"/proc/self/task/{abs(target)}"):
            return False
        try:
            return os.getsid(abs(target)) == os.getsid(pid)
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of each process of a run; the kernel's, by setrlimit(2)."""

    data_bytes: int
    file_bytes: int = 512 << 20
    descriptors: int = 4096
    more_processes: int = 1024
    """Beyond what runs on the machine at the start: RLIMIT_NPROC counts all of a user's."""


def default_limits() -> Limits:
    """Half of the memory, at most 4 GiB and at least 512 MiB, of private writable memory per process."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Limits(data_bytes=max(512 << 20, min(4 << 30, memory // 2)))


LIMITS = default_limits()


def threads_on_machine() -> int:
    """How many threads there are, from /proc/loadavg; 0 when it cannot be read."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            return int(file.read(128).split()[3].partition(b"/")[2])
    except (OSError, IndexError, ValueError):
        return 0


def set_limits(pid: int, limits: Limits = LIMITS) -> None:
    """Sets them on a process that is stopped in its first intercepted call. Raises OSError."""
    for kind, wanted in (
        # One byte, not 0: only this value also stops a dump into a program (core(5), "piping core dumps").
        (resource.RLIMIT_CORE, 1),
        # Not RLIMIT_AS: Go, Java and V8 reserve far more addresses than they use.
        (resource.RLIMIT_DATA, limits.data_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.descriptors),
        (resource.RLIMIT_NPROC, threads_on_machine() + limits.more_processes),
    ):
        _, hard = resource.prlimit(pid, kind)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.prlimit(pid, kind, (value, value))


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def _memory(pid: int, address: int, size: int) -> bytes | None:
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
            file.seek(address)
            return file.read(size)
    except (OSError, OverflowError, ValueError):
        return None


def _string(pid: int, address: int) -> str:
    # A string may end just before an unmapped page: read up to the page's end, then the next one.
    text = b""
    while len(text) < 4096 and b"\0" not in text:
        more = _memory(pid, address + len(text), 4096 - ((address + len(text)) & 0xFFF))
        if not more:
            break
        text += more
    return text.partition(b"\0")[0].decode("utf-8", "replace")


def _address(raw: bytes) -> str:
    if len(raw) < 2:
        return ""
    family = struct.unpack_from("=H", raw)[0]
    if family == 1:
        name = raw[2:]
        if name[:1] == b"\0":
            return "@" + name[1:].decode("utf-8", "replace").rstrip("\0")
        return name.partition(b"\0")[0].decode("utf-8", "replace")
    if family in (2, 10) and len(raw) >= 4:
        return f"{FAMILIES[family]} port {struct.unpack_from('!H', raw, 2)[0]}"
    return FAMILIES.get(family, str(family))
