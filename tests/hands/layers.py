"""Which layer of the sandbox stops which attempt by itself, for uid 0, where the capabilities are dropped each time.

A layer that has nothing to say about an attempt is no fault: this is why there are three of them. The table is compared
with what really happens, so a layer that stops more or less than before shows up here.
"""

from __future__ import annotations

EVERY_LAYER = (
    "chown",
    "mknod",
    "write through a root",
    "write through a cwd",
    "write through a descriptor",
    "kernel setting",
    "environment of ours",
    "memory of ours",
    "descriptors of ours",
    "attach",
    "seize",
    "memory of another",
    "descriptor of another",
    "environment of another",
    "nice of another",
    "nice of all of mine",
    "io priority of all of mine",
    "processor of another",
    "scheduler of another",
    "host name",
    "clock",
    "mount",
    "remount",
    "mount namespace",
    "namespace of another",
    "chroot",
    "new mount api",
    "bpf",
    "perf",
    "fanotify",
    "typed into a terminal",
    "unknown call",
    "network device",
    "address",
    "raw packets",
    "kernel crypto",
    "key through a descriptor of another",
    "key through a root of another",
    "key by a new name",
    "file by a new name",
    "kernel memory",
    "kernel log, consumed",
)
"""The capabilities alone stop it, and so do the others beside them."""
NAMESPACE_LEAVES = (
    "fifo write",
    "lease",
    "kill",
    "kill probe",
    "kill the group",
    "kill all",
    "tgkill",
    "pidfd signal",
    "queued signal",
    "thread of ours",
    "thread of ours by group",
    "thread of ours by queue",
    "thread of ours by descriptor",
    "thread of ours by owner",
    "write into another",
    "limits of another",
    "user namespace",
    "clone into a user namespace",
    "clone3 into a user namespace",
    "io_uring",
    "user faults",
    "kernel key",
    "message queue",
    "system v segment",
    "system v segment of another",
    "system v semaphore of another",
    "system v semaphore set",
    "system v message of another",
    "system v removal",
    "32-bit call",
    "daemon socket",
    "datagram socket",
    "datagram through a pair",
    "abstract socket",
    "own abstract socket",
    "short abstract socket",
    "tcp connection",
    "tcp listener",
    "udp",
    "netlink to other programs",
    "tcp from bus",
    "datagram from bus",
    "abstract socket from bus",
    "listener from bus",
)
"""What read-only mounts and closed paths say nothing about: pipes and sockets in the tree, other processes, IPC. What
holds there is the filter and its supervisor, which is why there is no namespace without them."""
BY_CHANCE = "write left behind"
"""What has lost its mark is known by its filter. Where the capabilities are alone there is none, and whether it is
ended in time is chance."""
LEFT_WITHOUT_LANDLOCK = ("abstract socket from bus",)
"""What filter, supervisor and namespace together leave open, and say (`unlimited`)."""
LANDLOCK_ALONE = (
    "state",
    "state through root",
    "state listed and searched",
    "key",
    "key through a link",
    "key through a cwd",
    "cloud credentials",
    "key through O_PATH",
    "shadow",
    "terminal read",
    "abstract socket from bus",
)
"""Reads of what is masked, and abstract sockets: open without Landlock, so a read of a whole tree is asked about."""
SECCOMP_ALONE = (
    "touch",
    "chmod",
    "setfattr",
    "fchmodat2",
    "remove an attribute",
    "thread of ours",
    "thread of ours by group",
    "thread of ours by queue",
    "thread of ours by descriptor",
    "thread of ours by owner",
    "write into another",
    "limits of another",
    "user namespace",
    "clone into a user namespace",
    "clone3 into a user namespace",
    "io_uring",
    "user faults",
    "kernel key",
    "system v segment",
    "system v segment of another",
    "system v semaphore of another",
    "system v semaphore set",
    "system v message of another",
    "system v removal",
    "32-bit call",
    "daemon socket",
    "datagram socket",
    "datagram through a pair",
    "own abstract socket",
    "short abstract socket",
    "tcp connection",
    "tcp listener",
    "udp",
    "netlink to other programs",
    "tcp from bus",
    "datagram from bus",
    "listener from bus",
)
"""What Landlock knows nothing of: metadata, IPC, sockets, other entries into the kernel, the worker's own threads."""
NO_LAYER = ("setuid program",)
"""Has no effect for uid 0: there is nothing to gain."""
NEEDS_LANDLOCK = {
    "another port": "L?",
    "post to another port": "L?",
    "listener": "L?",
    "file": "L?",
    "another port by fast open": "?",
    "another port by fast open message": "?",
    "another port by mptcp": "?",
    "listener without an address": "?",
    "daemon": "?",
}
"""In `net`, which there is none of without Landlock → the layer that stops it."""
OPEN_IN_OBSERVE = (
    "environment of ours",
    "memory of ours",
    "descriptors of ours",
    "environment of another",
    "state",
    "state through root",
    "state listed and searched",
    "key",
    "key through a link",
    "key through a cwd",
    "key through a descriptor of another",
    "key through a root of another",
    "cloud credentials",
    "key through O_PATH",
    "shadow",
    "terminal read",
)
"""`observe` looks into processes and has no Landlock, so it sees these. Nothing but its own programs runs there."""

AMONG_EQUALS = {
    "environment of another": "L",
    "key through a descriptor of another": "L",
    "key through a root of another": "L",
    "nice of another": "S",
    "nice of all of mine": "S",
    "processor of another": "S",
    "scheduler of another": "S",
}
"""Root without capabilities may do less to root's processes than a user to their own: what stops these for a user."""


def stopping(name: str) -> str:
    """The layers that stop an attempt alone: letters of Capabilities, Landlock, Seccomp, a user Namespace with what is
    mounted in it, Mounts without one; `?`: cannot be held by it."""
    if name in NO_LAYER:
        return ""
    without = "" if name in NAMESPACE_LEAVES else "NM"
    if name == "limits of another":
        without = "M"  # those with the same user and other groups are others, for this
    return _among_three(name) + ("??" if name in NEEDS_LANDLOCK else without)


def _among_three(name: str) -> str:
    if name in NEEDS_LANDLOCK:
        return NEEDS_LANDLOCK[name]
    if name in EVERY_LAYER:
        return "CLS"
    return "L" if name in LANDLOCK_ALONE else "S" if name in SECCOMP_ALONE else "LS"
