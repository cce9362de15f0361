"""What this machine lacks of what the sandbox builds on: what that means for commands, and how it is mended."""

from __future__ import annotations

import os
from typing import NamedTuple

from guard.hands.sandbox import Sandbox
from guard.hands.sandbox.kernel import TABLES

NEWER = "a newer kernel"
BY_ABI = (
    (2, "Landlock ABI 2 (Linux 5.19)", "files in the private folder cannot be moved from one folder to another"),
    (3, "Landlock ABI 3 (Linux 6.2)", "emptying a file is refused by its flags, not by Landlock; that holds too"),
    (4, "Landlock ABI 4 (Linux 6.7)", "reads over the network need approval: nothing limits which ports they reach"),
    (5, "Landlock ABI 5 (Linux 6.10)", "requests to devices are limited by the filter's list alone"),
    (6, "Landlock ABI 6 (Linux 6.12)", "signals are decided by session, and the bus profile reaches abstract sockets"),
)  # fmt: skip
"""(since which ABI there is something, its name, what its lack means)"""


class Missing(NamedTuple):
    """One thing that is not there."""

    piece: str
    meaning: str
    mend: str


def missing_pieces(sandbox: Sandbox) -> list[Missing]:
    """In the order of their weight; empty on a machine that has everything. Effects: makes the private folder."""
    kernel, found = sandbox.kernel, []
    if kernel.machine not in TABLES:
        return [
            Missing(
                f"a table of system calls for {kernel.machine or os.uname().machine}",
                "nothing is enforced: reads beyond the plainest need approval",
                "Linux on x86_64 or aarch64",
            )
        ]
    if not kernel.seccomp:
        meaning = "nothing is enforced: reads beyond the plainest need approval"
        found.append(Missing("seccomp filters", meaning, "CONFIG_SECCOMP_FILTER; in a container, allow seccomp(2)"))
    if not kernel.landlock_abi:
        meaning = (
            "writes are stopped by the filter and its supervisor alone; secret paths are not masked, so a read of a "
            "whole tree needs approval, and so do reads over the network"
        )
        mend = "Linux 5.13 with lsm=…,landlock; in a container, allow the landlock_* calls"
        found.append(Missing("Landlock", meaning, mend))
    else:
        found += [Missing(name, means, NEWER) for abi, name, means in BY_ABI if kernel.landlock_abi < abi]
    if kernel.seccomp and not kernel.notify:
        meaning = "what is refused cannot be told (`interference` is null), and observe and netadm do not hold"
        found.append(Missing("seccomp user notification", meaning, "Linux 5.0"))
    if os.geteuid() == 0 and sandbox.pids is None:
        meaning = "for uid 0 processes are counted four times a second and the run is ended, instead of never started"
        found.append(Missing("a pids cgroup that can be written", meaning, "cgroup version 1 with the pids controller"))
    if sandbox.scratch.root() is None:
        meaning = "programs that need a temporary file may answer wrongly; `interference` says so each time"
        found.append(Missing("a private folder", meaning, "make /run/user/UID or /tmp writable"))
    return found
