"""Becomes a program in surroundings that forbid some things, as a container's own filter does.

Usage: python contained.py UID WHAT,… PROGRAM ARGUMENT… with WHAT of `landlock`, `namespaces`, `notify`, `seccomp`.
"""

from __future__ import annotations

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from guard.hands.sandbox import seccomp
from guard.hands.sandbox.kernel import probe

CLONE_NEW = 0x7E020000


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


def main() -> None:
    uid, what, program = int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:]
    if uid != os.geteuid():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    seccomp.load(probe(), forbidding(what), notify=False)
    os.execv(program[0], program)


main()
