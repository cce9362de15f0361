"""Makes a namespace in which everything is read-only and secret paths are closed, and starts commands in it.

A program of its own, run by path with nothing of ours importable: `python -I -S space_helper.py DESCRIPTOR`. Making a
user namespace needs a process with one thread, and only this process's children can be in it; they are made with
CLONE_PARENT, so that they are children of the process that started this one, which waits for them as for any other.

What is said over the socket is 4 bytes of length, little-endian, then a JSON object; descriptors come with the length.
The first one is the plan (`space.py`), each further one is a command. It ends when the other side closes the socket.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import functools
import json
import os
import re
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

CLONE_NEWUSER, CLONE_NEWNS, CLONE_PARENT = 0x10000000, 0x00020000, 0x00008000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
LOCKED = {"ro": 1, "nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024, "nodiratime": 2048, "relatime": 1 << 21}
"""What a mount has and a namespace with fewer rights cannot take away: asked for again when it is changed."""
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 4, 24, 38, 47, 4
SECCOMP_SET_MODE_FILTER, FILTER_NEW_LISTENER = 1, 8
CAPABILITY_VERSION_3 = 0x20080522
DEVICES = ("null", "zero", "full", "random", "urandom")
GONE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES)
"""Why a path cannot be closed and need not be: nothing is there, or nobody here gets there."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _worked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _call(number: int, *arguments: int | bytes | None) -> int:
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _worked(int(_libc.syscall(ctypes.c_long(number), *converted)))


def _prctl(option: int, *arguments: int) -> None:
    _worked(_libc.prctl(option, *(ctypes.c_ulong(value) for value in [*arguments, 0, 0, 0, 0][:4])))


def _mount(source: str | None, target: str, flags: int) -> None:
    given = None if source is None else os.fsencode(source)
    _worked(_libc.mount(given, os.fsencode(target), None, ctypes.c_ulong(flags), None))


class Link:
    """The socket to the process that started us."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)

    def say(self, told: Mapping[str, Any], descriptor: int = -1) -> None:
        text = json.dumps(told).encode()
        passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))] if descriptor >= 0 else []
        self._socket.sendmsg([struct.pack("<I", len(text))], passed)
        self._socket.sendall(text)

    def hear(self) -> tuple[dict[str, Any], list[int]]:
        return hear(self._socket)


def hear(link: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """(what was said, descriptors that came with it). Raises EOFError when nobody is there any more."""
    space = socket.CMSG_SPACE(8 * 4)
    head, extra, _, _ = link.recvmsg(4, space, socket.MSG_CMSG_CLOEXEC | socket.MSG_WAITALL)
    descriptors = array.array("i")
    for level, kind, data in extra:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    if len(head) < 4:
        raise EOFError
    size = struct.unpack("<I", head)[0]
    text = b""
    while len(text) < size:
        more = link.recv(size - len(text))
        if not more:
            raise EOFError
        text += more
    return json.loads(text), list(descriptors)


def make_space(plan: Mapping[str, Any], link: Link) -> None:
    """Enters the namespaces and closes in them what the plan says. Raises OSError."""
    _worked(_libc.unshare(CLONE_NEWUSER if plan["user"] else CLONE_NEWNS))
    if plan["user"]:
        if plan["mapped_outside"]:
            link.say({"at": "map"})
            link.hear()
        else:  # one's own name alone: all that an ordinary user may map
            for name, text in (
                ("uid_map", f"{plan['uid']} {plan['uid']} 1"),
                ("setgroups", "deny"),
                ("gid_map", f"{plan['gid']} {plan['gid']} 1"),
            ):
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
        _worked(_libc.unshare(CLONE_NEWNS))
    _mount(None, "/", MS_REC | MS_PRIVATE)
    for path in plan["closed"]:
        try:
            _mount(plan["closed_folder"] if os.path.isdir(path) else plan["closed_file"], path, MS_BIND)
        except OSError as error:
            if error.errno not in GONE:
                raise OSError(error.errno, f"{path} could not be closed: {error.strerror}") from error
    devices = [f"/dev/{name}" for name in DEVICES if os.path.exists(f"/dev/{name}")]
    for device in devices:
        _mount(device, device, MS_BIND)
    if not plan["mount_setattr"] or not _all_read_only(plan["mount_setattr"], devices):
        _each_read_only(devices)


def _all_read_only(number: int, devices: list[str]) -> bool:
    """In one call, since Linux 5.12. False where the kernel does not know it."""
    try:
        attributes = struct.pack("=4Q", ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV, 0, 0, 0)
        _call(number, AT_FDCWD, b"/", AT_RECURSIVE, attributes, len(attributes))
    except OSError as error:
        if error.errno == errno.ENOSYS:
            return False
        raise
    for device in devices:
        attributes = struct.pack("=4Q", 0, ATTR_NODEV, 0, 0)
        _call(number, AT_FDCWD, device.encode(), 0, attributes, len(attributes))
    return True


def _each_read_only(devices: list[str]) -> None:
    """One mount after the other, as the table lists them; one below another that nobody here gets to is left out."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        table = [line.split(" ")[4:6] for line in lines]
    for escaped, options in table:
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), escaped)
        flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | (0 if point in devices else MS_NODEV)
        for option in options.split(","):
            flags |= LOCKED.get(option, 0) if option != "nodev" or point not in devices else 0
        try:
            _mount(None, point, flags)
        except OSError as error:
            if error.errno not in GONE:
                raise OSError(error.errno, f"{point} could not be made read-only: {error.strerror}") from error


def prove_space(plan: Mapping[str, Any]) -> None:
    """Tries, before the filter could be what stops it, what the namespace alone must refuse. Raises OSError."""
    _must_fail("new folder", lambda: os.mkdir(f"{plan['own_folder']}/canary"), (errno.EROFS,))
    for path in plan["closed"]:
        _must_fail(path, functools.partial(_read_something, path), GONE)


def _read_something(path: str) -> None:
    """Raises OSError when there is nothing: in a container the rights of uid 0 reach into what we close with, too."""
    try:
        names = os.listdir(path)
    except NotADirectoryError:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            names = ["something"] * len(os.read(descriptor, 1))
        finally:
            os.close(descriptor)
    if not names:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def _must_fail(name: str, attempt: Callable[[], object], expected: Sequence[int]) -> None:
    try:
        attempt()
    except OSError as error:
        if error.errno in expected:
            return
        raise OSError(error.errno, f"the canary {name} failed for another reason: {error.strerror}") from error
    raise OSError(errno.EPERM, f"the canary {name} was not stopped")


def bind_ourselves(plan: Mapping[str, Any], keep: frozenset[int]) -> int:
    """Gives up every right but `keep`, and takes the filter. Returns its listener, -1 without a filter."""
    numbers = plan["numbers"]
    if plan["group"] >= 0:
        # Looking into a process of root's with as few rights takes the same groups, and this is nobody's.
        os.setresgid(plan["group"], plan["group"], plan["group"])
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(64):
        if capability not in keep:
            try:
                _prctl(PR_CAPBSET_DROP, capability)
            except OSError:
                break  # past the last one that this kernel knows
    with contextlib.suppress(OSError):
        _prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    words = [sum(1 << number % 32 for number in keep if number // 32 == word) for word in (0, 1)]
    _call(numbers["capset"], header, struct.pack("=6I", words[0], words[0], 0, words[1], words[1], 0))
    # Whoever is in here is in the same user namespace and must not read this process's memory.
    _prctl(PR_SET_DUMPABLE, 0)
    if not plan["filter"]:
        return -1
    code = bytes.fromhex(plan["filter"])
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    return _call(numbers["seccomp"], SECCOMP_SET_MODE_FILTER, FILTER_NEW_LISTENER, program)


def prove_filter(numbers: Mapping[str, int]) -> None:
    """Tries what the filter and its supervisor must refuse. Raises OSError."""
    refused = errno.EACCES, errno.EPERM
    _must_fail("socket", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).close(), refused)
    _must_fail("signal", lambda: _call(numbers["kill"], os.getpid(), 0), refused)
    _must_fail("write", lambda: os.close(os.open("/proc/self/comm", os.O_WRONLY | os.O_CLOEXEC)), refused)


def start(job: Mapping[str, Any], descriptors: list[int], clone: int) -> int:
    """Starts one command as our parent's child and returns its id.

    Args:
        descriptors: standard input, output and error, and a pipe that says how it failed to begin: its end without a
            word is the program's beginning.
    """
    argv = [os.fsencode(word) for word in job["argv"]]
    env = {os.fsencode(name): os.fsencode(value) for name, value in job["env"].items()}
    cwd = os.fsencode(job["cwd"])
    child = _call(clone, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if child:
        return child
    stage = b"program"
    try:
        os.setsid()
        for kind, value in job["limits"]:
            hard = resource.getrlimit(kind)[1]
            least = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (least, least))
        for place in range(3):
            os.dup2(descriptors[place], place)
        stage = b"folder"
        os.chdir(cwd)
        stage = b"program"
        os.execve(argv[0], argv, env)  # noqa: S606 — the bash that was asked for
    except OSError as error:
        os.write(descriptors[3], b"%d %s" % (error.errno or errno.EINVAL, stage))
    finally:
        os._exit(127)


def serve(link: Link, clone: int) -> None:
    """Starts what is asked for until the other side is gone."""
    while True:
        job, descriptors = link.hear()
        try:
            link.say({"pid": start(job, descriptors, clone)})
        except OSError as error:
            link.say({"errno": error.errno or errno.EINVAL})
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


def main() -> None:
    """Takes the plan, enters the namespace, and serves."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):  # what Python changes, its children would inherit
        signal.signal(number, signal.SIG_DFL)
    link = Link(int(sys.argv[1]))
    plan, _ = link.hear()
    try:
        make_space(plan, link)
        prove_space(plan)
        listener = bind_ourselves(plan, frozenset(plan["keep"]))
        link.say({"at": "bound"}, listener)
        link.hear()
        if listener >= 0:
            os.close(listener)
            prove_filter(plan["numbers"])
    except OSError as error:
        link.say({"error": f"{error.strerror or error}", "errno": error.errno})
        return
    link.say({"at": "ready"})
    serve(link, plan["numbers"]["clone"])


if __name__ == "__main__":
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        main()
