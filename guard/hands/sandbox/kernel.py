"""What this kernel can enforce, and the raw calls that the standard library lacks.

`Kernel` is a port: tests construct one with less ability than the machine has and see the fallback. It can
only claim less; a claim of more fails when the worker is installed, which fails closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from dataclasses import dataclass

from guard.hands.sandbox.syscalls import AARCH64, X86_64

PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION_3 = 0x20080522
CAP_DAC_READ_SEARCH = 2
CAP_NET_ADMIN = 12
CAP_NET_RAW = 13
CAP_SYS_PTRACE = 19
CAP_SYSLOG = 34

LANDLOCK_CREATE_RULESET_VERSION = 1
SECCOMP_SET_MODE_FILTER = 1
SECCOMP_GET_ACTION_AVAIL = 2
SECCOMP_RET_USER_NOTIF = 0x7FC00000

TABLES = {"x86_64": (0xC000003E, X86_64), "aarch64": (0xC00000B7, AARCH64)}
"""Machine → (AUDIT_ARCH of linux/audit.h, name → number)."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def syscall(number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """Makes one system call on the calling thread. Raises OSError. Releases the interpreter lock."""
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = int(_libc.syscall(ctypes.c_long(number), *converted))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def prctl(option: int, argument: int, *more: int) -> None:
    """prctl(2) on the calling thread (or process, as the option says). Raises OSError."""
    rest = [*more, 0, 0, 0][:3]
    if _libc.prctl(option, ctypes.c_ulong(argument), *(ctypes.c_ulong(value) for value in rest)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


@dataclass(frozen=True, slots=True)
class Kernel:
    """The abilities that the sandbox builds on."""

    landlock_abi: int
    """0: no Landlock. 3: truncate. 4: TCP ports. 5: device ioctls. 6: signal and abstract socket scopes."""
    seccomp: bool
    """Filters can be installed and there is a system call table for this architecture."""
    notify: bool
    """A filter can hand a call to a supervisor (Linux 5.0), so that refusals are reported."""
    machine: str = ""
    """`x86_64` or `aarch64`; anything else has no table."""
    namespaces: bool = False
    """Making user and mount namespaces is worth a try; whether they can be made is known when one was
    (`space.py`). Only used without Landlock."""

    @property
    def numbers(self) -> dict[str, int]:
        return TABLES[self.machine][1]

    @property
    def audit_arch(self) -> int:
        return TABLES[self.machine][0]


def probe() -> Kernel:
    """Asks the running kernel. Cheap, has no effect, never raises."""
    machine = platform.machine() if os.uname().sysname == "Linux" else ""
    if machine not in TABLES or struct.calcsize("P") != 8:
        return Kernel(0, seccomp=False, notify=False, machine=machine)
    numbers = TABLES[machine][1]
    abi = 0
    with contextlib.suppress(OSError):
        abi = syscall(numbers["landlock_create_ruleset"], None, 0, LANDLOCK_CREATE_RULESET_VERSION)
    return Kernel(
        abi,
        seccomp=_has_action(numbers, 0x00050000),
        notify=_has_action(numbers, SECCOMP_RET_USER_NOTIF),
        machine=machine,
        namespaces=os.path.exists("/proc/self/ns/mnt"),
    )


def _has_action(numbers: dict[str, int], action: int) -> bool:
    try:
        syscall(numbers["seccomp"], SECCOMP_GET_ACTION_AVAIL, 0, struct.pack("=I", action))
    except OSError:
        return False
    return True


def no_new_privileges() -> None:
    """The calling thread and all that it starts can gain no privilege by execve (setuid, file capabilities)."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities(numbers: dict[str, int], keep: frozenset[int]) -> None:
    """Leaves the calling thread and all that it starts with `keep` at most. Irreversible; per thread."""
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    current = ctypes.create_string_buffer(24)
    syscall(numbers["capget"], header, current)
    low_effective, low_permitted, _, high_effective, high_permitted, _ = struct.unpack("=6I", current.raw)
    if low_effective & 1 << 8 or low_permitted & 1 << 8:  # CAP_SETPCAP: else the bounding set is not ours to change
        for capability in range(64):
            if capability not in keep:
                try:
                    prctl(PR_CAPBSET_DROP, capability)
                except OSError:
                    break  # past the last one that this kernel knows
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    low = sum(1 << number for number in keep if number < 32)
    high = sum(1 << number - 32 for number in keep if number >= 32)
    wanted = struct.pack(
        "=6I", low_effective & low, low_permitted & low, 0, high_effective & high, high_permitted & high, 0
    )
    syscall(numbers["capset"], header, wanted)


def close_our_memory() -> None:
    """No process without CAP_SYS_PTRACE can read this process's memory, environment or descriptors. Process-wide.

    A worker thread is in the same Landlock domain as what it starts, so through /proc/TID its children could
    read ours. execve(2) resets this for the children. Also: no core dump of this process, no debugger on it.
    """
    prctl(PR_SET_DUMPABLE, 0)


def become_subreaper() -> None:
    """Orphans of our children become our children, so that a sweep can find them. Process-wide."""
    with contextlib.suppress(OSError):
        prctl(PR_SET_CHILD_SUBREAPER, 1)
