"""What this machine lacks of what the sandbox builds on: what that means for commands, and how it is mended."""

from __future__ import annotations

import os
from collections.abc import Callable
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
    """In the order of their weight; empty on a machine that has everything. Measures, and makes the private folder."""
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
            "writes are stopped by the filter and its supervisor alone; secret paths are masked only for reads of a "
            "whole tree, by a namespace where one can be made; reads over the network need approval"
        )
        mend = "Linux 5.13 with lsm=…,landlock; in a container, allow the landlock_* calls"
        found.append(Missing("Landlock", meaning, mend))
        found += _missing_space(sandbox)
    else:
        found += [Missing(name, means, NEWER) for abi, name, means in BY_ABI if kernel.landlock_abi < abi]
    if kernel.seccomp and not sandbox.measure().reports:
        meaning = "what is refused cannot be told (`interference` is null), and observe and netadm do not hold"
        if not kernel.landlock_abi:
            meaning = "nothing is enforced: without Landlock somebody has to answer for each write"
        mend = "in a container, or inside another sandbox, a filter with a listener has to be allowed"
        if not kernel.landlock_abi:
            mend = f"Linux 5.9, which can answer with what it opened; {mend}"
        found.append(Missing("seccomp user notification", meaning, mend if kernel.notify else "Linux 5.0"))
    found += _missing_groups(sandbox)
    if sandbox.scratch.root() is None:
        meaning = "programs that need a temporary file may answer wrongly; `interference` says so each time"
        found.append(Missing("a private folder", meaning, "make /run/user/UID or /tmp writable"))
    return found


DELEGATE = "a slice or service that hands down memory and pids (systemd: Delegate=yes, or systemd-run --user --scope)"


def _missing_groups(sandbox: Sandbox) -> list[Missing]:
    """Limits in sum that no control group holds here."""
    lacking, found = {"memory", "pids"} - sandbox.groups.controls, []
    if "memory" in lacking:
        meaning = "memory is limited for each process of a run, not for all of them together"
        found.append(Missing("a memory control group that can be written", meaning, DELEGATE))
    if "pids" in lacking:
        meaning = (
            "for uid 0 processes are counted four times a second and the run is ended, instead of never started"
            if os.geteuid() == 0
            else "processes are limited for all of a user together, not for a run"
        )
        found.append(Missing("a pids control group that can be written", meaning, DELEGATE))
    return found


KNOBS: tuple[tuple[str, Callable[[int], bool], str, str], ...] = (
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        lambda value: value != 0,
        "AppArmor keeps programs without a profile from using one (Ubuntu since 23.10)",
        "an AppArmor profile with `userns,` for this interpreter, or kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        lambda value: value == 0,
        "Debian's switch for users without root is off",
        "kernel.unprivileged_userns_clone=1",
    ),
    (
        "/proc/sys/user/max_user_namespaces",
        lambda value: value == 0,
        "the kernel is told to make none",
        "user.max_user_namespaces above 0",
    ),
    (
        "/proc/sys/user/max_mnt_namespaces",
        lambda value: value == 0,
        "the kernel is told to make no mount namespaces",
        "user.max_mnt_namespaces above 0",
    ),
)
"""(setting, whether it is the reason, what that means, how it is mended)."""


def why_no_space(because: str, read: Callable[[str], int | None] | None = None) -> tuple[str, str]:
    """(why no namespace could be made, how that is mended).

    Args:
        because: what the attempt said.
        read: gives the number in a file below /proc/sys, None where there is none.
    """
    for path, is_it, why, mend in KNOBS:
        value = (read or _number)(path)
        if value is not None and is_it(value) and (os.geteuid() != 0 or path.startswith("/proc/sys/user")):
            return why, mend
    if "permitted" in because:
        return "something above us refuses it: a container's own filter, or its missing rights", (
            "in a container, allow unshare, clone and mount with namespaces (docker: its seccomp profile, "
            "--security-opt seccomp=FILE)"
        )
    return because or "it was not tried", NEWER


def _missing_space(sandbox: Sandbox) -> list[Missing]:
    if not sandbox.measure().reports or sandbox.space():
        return []
    why, mend = why_no_space(sandbox.no_space_because)
    meaning = "a read of a whole tree needs approval, because nothing closes keys for it"
    return [Missing(f"a namespace for reads: {why}", meaning, mend)]


def _number(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None
