"""Becomes a program in surroundings that forbid some things, as a container's own filter does.

Usage: python contained.py UID WHAT,… PROGRAM ARGUMENT… with WHAT of `landlock`, `namespaces`, `notify`, `seccomp`, and
`userns`: no more user namespaces, by the kernel's own setting (in one that is made for that; all keep their numbers).
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from guard.hands.sandbox import seccomp
from guard.hands.sandbox.kernel import PR_SET_DUMPABLE, prctl, probe

CLONE_NEW = 0x7E020000
CLONE_NEWUSER = 0x10000000


def forbidding(what: list[str]) -> bytes:
    numbers, asm = probe().numbers, seccomp.Assembler()
    asm.emit(seccomp.LOAD, seccomp.NUMBER)
    if "landlock" in what:
        for name in ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"):
            asm.when(seccomp.EQUAL, numbers[name], "absent")
    if "namespaces" in what:
        for name in ("unshare", "mount", "setns"):
            asm.when(seccomp.EQUAL, numbers[name], "forbidden")
        asm.when(seccomp.EQUAL, numbers["clone"], "clone")
    if "seccomp" in what or "notify" in what:
        asm.when(seccomp.EQUAL, numbers["seccomp"], "seccomp")
    asm.go("allowed")
    asm.label("clone")
    asm.load_argument(0)
    asm.when(seccomp.ANY_BIT, CLONE_NEW, "forbidden")
    asm.go("allowed")
    asm.label("seccomp")
    if "seccomp" in what:
        asm.go("forbidden")
    asm.load_argument(1)
    asm.when(seccomp.ANY_BIT, seccomp.FILTER_NEW_LISTENER, "forbidden")
    for label, value in (("allowed", 0x7FFF0000), ("forbidden", 0x00050001), ("absent", 0x00050026)):
        asm.label(label)
        asm.emit(seccomp.RETURN, value)
    return asm.assemble()


def switch_off_user_namespaces() -> None:
    """Goes on in a child; this process waits for it, and ends as it did."""
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.close(go[1])
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWUSER):
            raise OSError(ctypes.get_errno(), "unshare")
        os.write(ready[1], b"1")
        if not os.read(go[0], 1):
            raise EOFError
        pathlib.Path("/proc/sys/user/max_user_namespaces").write_text("0")
        return
    os.read(ready[0], 1)
    if os.geteuid():
        pathlib.Path(f"/proc/{child}/setgroups").write_text("deny")
    for kind, own in (("uid", os.geteuid()), ("gid", os.getegid())):
        everybody = pathlib.Path(f"/proc/self/{kind}_map").read_text().split()
        lines = f"0 0 {everybody[2]}" if os.geteuid() == 0 else f"{own} {own} 1"
        pathlib.Path(f"/proc/{child}/{kind}_map").write_text(lines + "\n")
    os.write(go[1], b"1")
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


def main() -> None:
    uid, what, program = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
    if uid != os.geteuid():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        prctl(PR_SET_DUMPABLE, 1)  # a change of user closes /proc/PID to oneself
    if "userns" in what:
        switch_off_user_namespaces()
    seccomp.load(probe(), forbidding(what), notify=False)
    os.execv(program[0], program)


main()
