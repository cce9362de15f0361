"""Tries, inside a sandbox, what a sandbox must stop and what it must leave; prints what happened as one JSON object.

A program of its own, run by path with nothing of ours importable: `python -I -S canary_probe.py PLACES`, PLACES being a
JSON object (`canaries.Scene`). Every attempt is harmless when it works: it touches the scene only, or sets something to
what it is already.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import socket
import struct
import sys
import time
from collections.abc import Callable

STOPPED, ALLOWED = "stopped", "allowed"
REFUSALS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EXDEV)
NETLINK_NETFILTER = 12

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class Attempts:
    """One method per canary. It returns when it worked and raises OSError when it did not."""

    def __init__(self, places: dict[str, str]) -> None:
        self.folder = places["folder"]
        self.victim = int(places["victim"])
        self.places = places

    # What a read needs.
    def read_a_file(self) -> None:
        os.close(os.open("/etc/passwd", os.O_RDONLY))

    def write_to_null(self) -> None:
        opened = os.open("/dev/null", os.O_WRONLY)
        os.close(opened)

    def write_in_the_private_folder(self) -> None:
        path = os.environ["TMPDIR"] + "/canary"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        os.unlink(path)

    # Files.
    def write_a_file(self) -> None:
        os.close(os.open(f"{self.folder}/file", os.O_WRONLY))

    def empty_a_file_without_a_write_mode(self) -> None:
        os.close(os.open(f"{self.folder}/file", os.O_RDONLY | os.O_TRUNC))

    def make_a_file(self) -> None:
        os.close(os.open(f"{self.folder}/made", os.O_WRONLY | os.O_CREAT, 0o600))

    def make_a_folder(self) -> None:
        os.mkdir(f"{self.folder}/made-folder")

    def remove_a_file(self) -> None:
        os.unlink(f"{self.folder}/removable")

    def rename_a_file(self) -> None:
        os.rename(f"{self.folder}/movable", f"{self.folder}/moved")

    def link_a_file(self) -> None:
        os.link(f"{self.folder}/file", f"{self.folder}/linked")

    def change_a_mode(self) -> None:
        os.chmod(f"{self.folder}/file", 0o600)

    def change_times(self) -> None:
        os.utime(f"{self.folder}/file")

    def set_an_attribute(self) -> None:
        os.setxattr(f"{self.folder}/file", "user.canary", b"1")

    def write_through_the_folder_of_a_process(self) -> None:
        os.close(os.open(f"/proc/{self.victim}/cwd/file", os.O_WRONLY))

    # Other processes.
    def signal_a_process(self) -> None:
        os.kill(self.victim, 0)

    def trace_a_process(self) -> None:
        _call("ptrace", 0x4206, self.victim, 0, 0)

    def write_into_a_process(self) -> None:
        os.close(os.open(f"/proc/{self.victim}/mem", os.O_RDWR))

    def see_the_files_of_a_process(self) -> None:
        os.readlink(f"/proc/{self.victim}/fd/0")

    def set_the_limits_of_a_process(self) -> None:
        _call("prlimit", self.victim, 7, struct.pack("=QQ", 64, 64), 0)

    def slow_a_process_down(self) -> None:
        os.setpriority(os.PRIO_PROCESS, self.victim, 19)  # whatever it has: only down is free for a user

    # The machine.
    def mount_something(self) -> None:
        _call("mount", b"none", self.folder.encode(), b"tmpfs", 0, 0)

    def set_the_host_name(self) -> None:
        name = os.uname().nodename.encode()
        _call("sethostname", name, len(name))

    def set_the_clock(self) -> None:
        # With a time that no clock can have: refused before it is looked at, or found wrong.
        _syscall({"x86_64": 227, "aarch64": 112}[platform.machine()], 0, struct.pack("=qq", 0, -1))

    def use_kernel_keys(self) -> None:
        _syscall({"x86_64": 250, "aarch64": 219}[platform.machine()], 0, -3, 0)

    def use_shared_memory(self) -> None:
        made = _call("shmget", 0, 4096, 0o1600)
        _call("shmctl", made, 0, 0)

    def type_into_a_terminal(self) -> None:
        _ioctl(0x5412)

    def remove_partitions(self) -> None:
        _ioctl(0x125F)

    def use_io_uring(self) -> None:
        os.close(_syscall(425, 1, b"\0" * 200))

    def enter_by_the_32_bit_door(self) -> None:
        if platform.machine() != "x86_64":
            raise PermissionError(errno.ENOSYS, "there is none")
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid); int 0x80; ret
        function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        _worked(function())

    def enter_by_the_x32_door(self) -> None:
        if platform.machine() != "x86_64":
            raise PermissionError(errno.ENOSYS, "there is none")
        _syscall(0x40000000 | 39)

    def make_an_unknown_call(self) -> None:
        _syscall(1 << 20)

    # Talking.
    def ask_a_daemon(self) -> None:
        with socket.socket(socket.AF_UNIX) as made:
            made.settimeout(2)
            made.connect(self.places["daemon"])

    def send_a_datagram_to_a_daemon(self) -> None:
        left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with left, right:
            left.sendto(b"x", self.places["datagrams"])

    def reach_the_judged_port(self) -> None:
        self._connect(int(self.places["port"]))

    def reach_another_port(self) -> None:
        self._connect(int(self.places["other_port"]))

    def _connect(self, port: int) -> None:
        with socket.socket() as made:
            made.settimeout(2)
            made.connect(("127.0.0.1", port))

    def send_a_datagram_over_the_network(self) -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as made:
            made.sendto(b"x", ("127.0.0.1", int(self.places["udp_port"])))

    def listen_on_the_network(self) -> None:
        with socket.socket() as made:
            made.bind(("127.0.0.1", 0))
            made.listen()

    def ask_the_firewall(self) -> None:
        # NFT_MSG_GETGEN: which generation of its rules there is.
        self._netfilter(struct.pack("=IHHIIBBH", 20, 10 << 8 | 16, 1, 1, 0, 0, 0, 0))

    def change_the_firewall(self) -> None:
        # NFNL_MSG_BATCH_BEGIN for nf_tables and nothing more; then NFT_MSG_DELTABLE of a table that nobody has.
        begin = struct.pack("=IHHIIBBH", 20, 16, 1, 1, 0, 0, 0, 10 << 8)
        name = b"opsagent-canary\0"
        attribute = struct.pack("=HH", 4 + len(name), 1) + name
        delete = struct.pack("=IHHIIBBH", 20 + len(attribute), 10 << 8 | 2, 1, 2, 0, 1, 0, 0) + attribute
        self._netfilter(begin + delete)

    def _netfilter(self, message: bytes) -> None:
        with socket.socket(16, socket.SOCK_RAW, NETLINK_NETFILTER) as made:
            made.sendto(message, (0, 0))

    # Secrets and rights.
    def read_what_is_hidden(self) -> None:
        os.close(os.open(self.places["hidden"], os.O_RDONLY))

    def open_a_terminal(self) -> None:
        os.close(os.open("/dev/ptmx", os.O_RDONLY))

    def gain_rights_by_a_program(self) -> None:
        if "NoNewPrivs:\t1" in _status():
            raise PermissionError(errno.EPERM, "no program gives any")

    def keep_rights_to_change(self) -> None:
        # All but CAP_DAC_READ_SEARCH, CAP_SYSLOG, and what a profile keeps because something stands before its use.
        kept = 1 << 2 | 1 << 34 | 1 << 12 | 1 << 13 | 1 << 19
        held = int(_status().partition("CapBnd:")[2].split()[0], 16) if os.geteuid() == 0 else 0
        effective = int(_status().partition("CapEff:")[2].split()[0], 16)
        if not (held | effective) & ~kept:
            raise PermissionError(errno.EPERM, "none is left")

    def make_a_namespace(self) -> None:
        # The last one: outside, this process would be without rights over everything else from here on.
        _call("unshare", 0x10000000)


def _status() -> str:
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        return file.read()


def _worked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno() if result == -1 else -result
        raise OSError(code, os.strerror(code))
    return result


def _call(name: str, *arguments: int | bytes) -> int:
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _worked(int(getattr(_libc, name)(*converted)))


def _syscall(number: int, *arguments: int | bytes) -> int:
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _worked(int(_libc.syscall(ctypes.c_long(number), *converted)))


def _ioctl(request: int) -> None:
    """A device request on a descriptor that does not know it: refused by number, or not understood."""
    fcntl.ioctl(0, request, b"\0" * 8)


def outcome_of(attempt: Callable[[], None]) -> str:
    """`allowed`, `stopped`, or the error when it was neither."""
    try:
        attempt()
    except OSError as error:
        if error.errno in REFUSALS:
            return STOPPED
        # It got past what should have stopped it and failed later, in the kernel's own checks.
        return f"{ALLOWED}: {error.strerror}"
    return ALLOWED


def names() -> list[str]:
    """Every canary, in order."""
    return [name for name in vars(Attempts) if not name.startswith("_")]


def main() -> None:
    """Tries them all. Takes some milliseconds."""
    attempts = Attempts(json.loads(sys.argv[1]))
    started = time.monotonic()
    found = {name: outcome_of(getattr(attempts, name)) for name in names()}
    json.dump({"canaries": found, "took_ms": round((time.monotonic() - started) * 1000)}, sys.stdout)


if __name__ == "__main__":
    main()
