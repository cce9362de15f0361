"""Builds and loads the system call filter of a profile.

The filter is classic BPF, assembled here from the tables in `profiles`. Every conditional jump is followed by
a long jump, so that no distance is limited to the 255 instructions of BPF's own conditional offsets. System
calls without argument rules stay constant-allow, which the kernel caches per number and never runs again.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from guard.hands.sandbox import profiles as table
from guard.hands.sandbox.kernel import SECCOMP_SET_MODE_FILTER, Kernel, no_new_privileges, syscall

RET_ERRNO = 0x00050000
RET_NOTIFY = 0x7FC00000
RET_ALLOW = 0x7FFF0000
EPERM, ENOSYS = 1, 38
FILTER_NEW_LISTENER = 8

LOAD, JUMP, EQUAL, GREATER, ANY_BIT, RETURN, AND, SHIFT_RIGHT = 0x20, 0x05, 0x15, 0x25, 0x45, 0x06, 0x54, 0x74
NUMBER, ARCH = 0, 4
"""Offsets in struct seccomp_data; arguments begin at 16, low word first on both architectures."""


@dataclass(slots=True)
class Assembler:
    """Instructions with named jump targets."""

    code: list[tuple[int, int, int, int]] = field(default_factory=list)
    jumps: dict[int, str] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)

    def emit(self, operation: int, value: int) -> None:
        self.code.append((operation, 0, 0, value))

    def load_argument(self, index: int, *, high: bool = False) -> None:
        self.emit(LOAD, 16 + 8 * index + (4 if high else 0))

    def go(self, label: str) -> None:
        self.jumps[len(self.code)] = label
        self.emit(JUMP, 0)

    def when(self, test: int, value: int, label: str) -> None:
        """Goes to `label` when the test holds, else falls through."""
        self.code.append((test, 0, 1, value))
        self.go(label)

    def unless(self, test: int, value: int, label: str) -> None:
        self.code.append((test, 1, 0, value))
        self.go(label)

    def label(self, name: str) -> None:
        if name in self.labels:
            raise ValueError(f"label {name} is set twice")
        self.labels[name] = len(self.code)

    def assemble(self) -> bytes:
        """struct sock_filter[]. Raises KeyError for a jump to nowhere, ValueError for one backwards."""
        code = list(self.code)
        for position, label in self.jumps.items():
            distance = self.labels[label] - position - 1
            if distance < 0:
                raise ValueError(f"jump backwards to {label}")
            code[position] = (JUMP, 0, 0, distance)
        if len(code) > 4096:
            raise ValueError("longer than BPF_MAXINSNS")
        return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


class _Filter:
    """One profile's rules, in the order in which they are asked."""

    def __init__(self, kernel: Kernel, profile: table.SandboxProfile, worker: tuple[int, int]) -> None:
        self.kernel = kernel
        self.profile = profile
        self.process, self.thread = worker
        self.numbers = kernel.numbers
        self.asm = Assembler()

    def build(self, *, notify: bool) -> bytes:
        if not notify and (self.profile.sends or not self.kernel.landlock_abi):
            raise ValueError("without Landlock, and where what is sent is read, a supervisor has to answer")
        asm = self.asm
        asm.emit(LOAD, ARCH)
        # A 32-bit entry (int 0x80) numbers its calls differently: none of it is allowed.
        asm.unless(EQUAL, self.kernel.audit_arch, "absent")
        asm.emit(LOAD, NUMBER)
        # Calls younger than the table, and all of x32 (bit 30), are answered as if the kernel did not have them.
        asm.when(GREATER, max(self.numbers.values()), "absent")
        bodies = self._argument_rules()
        for name in bodies:
            if name in self.numbers:
                asm.when(EQUAL, self.numbers[name], f"rule {name}")
        for names, label in (
            (table.REPORTED, "report"),
            (table.REFUSED, "refuse"),
            (table.ABSENT, "absent"),
            (self._refused_here(), "refuse"),
        ):
            for name in names:
                if name in self.numbers and name not in bodies:
                    asm.when(EQUAL, self.numbers[name], label)
        asm.go("allow")
        for name, body in bodies.items():
            if name in self.numbers:
                asm.label(f"rule {name}")
                body()
        for label, value in (
            ("refuse", RET_NOTIFY if notify else RET_ERRNO | EPERM),
            ("report", RET_NOTIFY if notify else RET_ALLOW),
            ("signal", RET_NOTIFY if notify else RET_ERRNO | EPERM),
            ("absent", RET_ERRNO | ENOSYS),
            ("allow", RET_ALLOW),
        ):
            asm.label(label)
            asm.emit(RETURN, value)
        return asm.assemble()

    def _refused_here(self) -> list[str]:
        refused = [] if self.profile.connect else ["connect"]
        if not self.kernel.landlock_abi:
            refused += table.LOOKING_IN
        if self.profile.sends:
            refused.append("sendmmsg")
        if self.profile.sends == table.QUESTIONS:
            refused += table.SILENT
        return refused

    def _argument_rules(self) -> dict[str, Callable[[], None]]:
        rules: dict[str, Callable[[], None]] = {
            "openat": lambda: self._open(2),
            "open": lambda: self._open(1),
            "ioctl": lambda: self._only(1, self.profile.ioctls),
            "fcntl": lambda: self._not(1, table.FCNTL_REFUSED),
            "clone": self._clone,
            "socket": self._socket,
            "socketpair": self._socketpair,
            "prlimit64": self._prlimit,
            "syslog": lambda: self._only(0, table.SYSLOG_READS),
            "shmctl": lambda: self._only(1, table.SHM_READS, 0xFF),
            "semctl": lambda: self._only(2, table.SEM_READS, 0xFF),
            "msgctl": lambda: self._only(1, table.MSG_READS, 0xFF),
            "quotactl": self._quotactl,
            # who = 0 is the caller itself, but with PRIO_USER or IOPRIO_WHO_USER it is everything of that user.
            "setpriority": lambda: self._priority(2),
            "ioprio_set": lambda: self._priority(3),
            "sched_setparam": lambda: self._only(0, (0,)),
            "sched_setscheduler": lambda: self._only(0, (0,)),
            "sched_setattr": lambda: self._only(0, (0,)),
            "sched_setaffinity": lambda: self._only(0, (0,)),
            "sendto": lambda: self._no_bits(3, table.MSG_FASTOPEN),
            "sendmsg": lambda: self._no_bits(2, table.MSG_FASTOPEN),
            "sendmmsg": lambda: self._no_bits(3, table.MSG_FASTOPEN),
        }
        if not self.profile.bind_any:
            # struct sockaddr_nl has 12 bytes. A stream socket bound to a name of that length cannot listen.
            rules["bind"] = lambda: self._only(2, (12,))
        if self.kernel.landlock_abi < 3:
            rules["truncate"] = lambda: self.asm.go("refuse")
            rules["openat2"] = lambda: self.asm.go("absent")
        if self.profile.sends:
            del rules["sendmmsg"]
            rules |= {name: lambda: self.asm.go("report") for name in table.SENDS}
        if self.profile.sends == table.QUESTIONS:
            rules |= dict.fromkeys(table.OUTPUTS, self._output)
            rules["setsockopt"] = lambda: self._only(1, table.SOCKET_OPTIONS)
        for name, arguments in table.SIGNALS.items():
            rules[name] = lambda name=name, arguments=arguments: self._signal(name, arguments)  # type: ignore[misc]
        return rules

    def _signal(self, name: str, arguments: tuple[int, ...]) -> None:
        """Nobody signals the worker: it is in the same domain, so Landlock would let its children end all of us."""
        asm = self.asm
        for index in arguments:
            asm.load_argument(index)
            asm.when(EQUAL, self.thread, "refuse")
            asm.when(EQUAL, self.process, "refuse")
        if self.kernel.landlock_abi >= 6 or name == "pidfd_open":
            asm.go("allow")
        else:  # no signal scope: the supervisor decides by session, or nobody may
            asm.go("signal" if name in ("kill", "tkill", "tgkill") else "refuse")

    def _open(self, index: int) -> None:
        asm = self.asm
        asm.load_argument(index)
        asm.unless(ANY_BIT, table.WRITE_FLAGS, "allow")
        if self.kernel.landlock_abi < 3:  # without the truncate right, O_RDONLY|O_TRUNC would empty a file
            keep = f"open {index} keeps"
            asm.unless(ANY_BIT, table.O_TRUNC, keep)
            asm.emit(AND, 0o3)
            asm.when(EQUAL, 0, "refuse")
            asm.label(keep)
        asm.go("report")

    def _only(self, index: int, values: Iterable[int], mask: int = 0) -> None:
        self.asm.load_argument(index)
        if mask:
            self.asm.emit(AND, mask)
        for value in sorted(values):
            self.asm.when(EQUAL, value, "allow")
        self.asm.go("refuse")

    def _not(self, index: int, values: Iterable[int]) -> None:
        self.asm.load_argument(index)
        for value in values:
            self.asm.when(EQUAL, value, "refuse")
        self.asm.go("allow")

    def _no_bits(self, index: int, bits: int) -> None:
        self.asm.load_argument(index)
        self.asm.when(ANY_BIT, bits, "refuse")
        self.asm.go("allow")

    def _clone(self) -> None:
        if self.profile.sends == table.QUESTIONS:  # nobody may change memory while the supervisor reads it
            self.asm.load_argument(0)
            self.asm.emit(AND, table.THREAD_FLAGS)
            self.asm.unless(EQUAL, table.THREAD_FLAGS, "refuse")
        self._no_bits(0, table.CLONE_NEW)

    def _output(self) -> None:
        """Other descriptors are refused here: a child that has not begun its program yet must not wait for an answer,
        because the interpreter's lock is held until it has."""
        self.asm.load_argument(0)
        for descriptor in (1, 2):
            self.asm.when(EQUAL, descriptor, "report")
        self.asm.emit(RETURN, RET_ERRNO | EPERM)

    def _priority(self, everybody: int) -> None:
        self.asm.load_argument(0)
        self.asm.when(EQUAL, everybody, "refuse")
        self._only(1, (0,))

    def _prlimit(self) -> None:
        asm = self.asm
        asm.load_argument(0)
        asm.when(EQUAL, 0, "allow")
        for high in (False, True):  # looking at another process's limits: no new ones given
            asm.load_argument(2, high=high)
            asm.unless(EQUAL, 0, "refuse")
        asm.go("allow")

    def _quotactl(self) -> None:
        self.asm.load_argument(0)
        self.asm.emit(SHIFT_RIGHT, 8)
        for value in table.QUOTA_READS:
            self.asm.when(EQUAL, value, "allow")
        self.asm.go("refuse")

    def _socket(self) -> None:
        asm = self.asm
        for position, rule in enumerate(self.profile.sockets):
            following = f"socket rule after {position}"
            asm.load_argument(0)
            asm.unless(EQUAL, rule.family, following)
            if rule.type:
                asm.load_argument(1)
                asm.emit(AND, 0xF)  # SOCK_TYPE_MASK: without SOCK_CLOEXEC and SOCK_NONBLOCK
                asm.unless(EQUAL, rule.type, following)
            asm.load_argument(2)
            for protocol in rule.protocols:
                asm.when(EQUAL, protocol, "allow")
            asm.label(following)
        asm.go("refuse")

    def _socketpair(self) -> None:
        # A datagram pair could still send to any named socket; streams and SOCK_SEQPACKET only reach each other.
        self.asm.load_argument(1)
        self.asm.emit(AND, 0xF)
        self.asm.when(EQUAL, table.SOCK_STREAM, "allow")
        self.asm.when(EQUAL, 5, "allow")
        self.asm.go("refuse")


def program(kernel: Kernel, profile: table.SandboxProfile, *, notify: bool, worker: tuple[int, int] = (0, 0)) -> bytes:
    """The filter as struct sock_filter[], 8 bytes an instruction.

    Args:
        worker: process and thread id of the thread that will be bound, which its children must not signal.
    """
    return _Filter(kernel, profile, worker).build(notify=notify)


def load(kernel: Kernel, code: bytes, *, notify: bool) -> int:
    """Installs a filter on the calling thread and what it starts, for good.

    Returns: the listener's descriptor (close-on-exec), or -1 without `notify`.
    Raises: OSError; EBUSY when a filter with a listener is already there.
    """
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    no_new_privileges()
    result = syscall(kernel.numbers["seccomp"], SECCOMP_SET_MODE_FILTER, FILTER_NEW_LISTENER if notify else 0, header)
    return result if notify else -1
