"""Run by test_hung_mount.py in a mount namespace of its own: a disk question beside a FUSE mount that never answers.

Prints the findings as JSON. Exits 77 when this user or kernel cannot mount FUSE.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from runbooks import runner
from runbooks.library import disk
from runbooks.model import Answer, Where

CANNOT = 77
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x00020000, 0x4000, 1 << 18
FUSE_INIT = 26


def mount_dead_fuse(point: str) -> None:
    """Mounts a FUSE file system on `point` that says hello and then nothing, as a server that is gone."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "no mount namespace")
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    if libc.mount(b"dead:/export", point.encode(), b"fuse.dead", 0, options.encode()):
        raise OSError(ctypes.get_errno(), "cannot mount FUSE")
    threading.Thread(target=_serve, args=(fuse,), daemon=True).start()


def _serve(fuse: int) -> None:
    while True:
        request = os.read(fuse, 1 << 20)
        _, opcode, unique = struct.unpack_from("<IIQ", request)
        if opcode == FUSE_INIT:
            # fuse_init_out of protocol 7.31 (include/uapi/linux/fuse.h); 64 bytes after the 16 of the header
            body = struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, 0, *[0] * 7)
            os.write(fuse, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)


def ask(argv, timeout_s):
    """Runs the command as it is: what is tested is the runbook and the runner, not the sandbox."""
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()  # comes back only when the kernel lets go of the child
        return Answer(None, status="timed_out")
    return Answer(child.returncode, out, err, "succeeded" if child.returncode == 0 else "failed")


def through_the_guard():
    """The `ask` of the program itself: judged, in the sandbox, whose own preparations must not wait for the mount."""
    from capabilities.run import read_only_runner
    from cli import surroundings
    from execution import open_guard

    return read_only_runner(open_guard(surroundings.policy(), outputs_folder=None))


def main(point: str, how: str = "plain") -> None:
    try:
        mount_dead_fuse(point)
    except OSError as error:
        print(error, file=sys.stderr)
        os._exit(CANNOT)
    disk.ALONE_S = 0.5
    asked = through_the_guard() if how == "guard" else ask
    checked = runner.run(["disk"], asked, Where("web-1", os.geteuid(), 0.0), utc=lambda: "2026-12-01T04:40:00.000Z")
    print(json.dumps([[f.severity, f.id, f.subject] for f in checked.findings]), flush=True)
    os._exit(0)  # closes /dev/fuse, which frees whoever still waits


if __name__ == "__main__":
    main(*sys.argv[1:])
