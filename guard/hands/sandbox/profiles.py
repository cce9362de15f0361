"""The sandbox profiles as data: which sockets, calls, capabilities and device requests each one leaves.

`local`, `net` and `bus` hold whatever bash makes of a command. `observe`, `netadm` and `block` leave one right more, so
they are for one program with an argv that is known exactly (`guard.exact`), started without a shell.
"""

from __future__ import annotations

from dataclasses import dataclass

from guard.hands.sandbox.kernel import CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_PTRACE
from guard.hands.sandbox.requests import BLOCK_IOCTLS, IOCTLS, NETADM_IOCTLS
from guard.types import Profile

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SOCK_STREAM, SOCK_DGRAM = 1, 2
IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6 = 1, 6, 17, 58
NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_NETFILTER, NETLINK_GENERIC = 0, 4, 12, 16
SOCK_RAW, IPPROTO_RAW = 3, 255


@dataclass(frozen=True, slots=True)
class SocketRule:
    """One kind of socket(2) call that is left: family, type without flags (0 = any), protocols."""

    family: int
    type: int
    protocols: tuple[int, ...]


NETLINK = SocketRule(AF_NETLINK, 0, (NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_GENERIC))
"""Reading links, routes and sockets. Changing them needs CAP_NET_ADMIN, which is dropped. USERSOCK is left
out: it carries messages between processes."""
UNIX_STREAM = SocketRule(AF_UNIX, SOCK_STREAM, (0,))
"""Streams only: a datagram socket can name another receiver in each sendmsg(2), where a filter cannot look."""
INET = (
    SocketRule(AF_INET, SOCK_STREAM, (0, IPPROTO_TCP)),
    SocketRule(AF_INET6, SOCK_STREAM, (0, IPPROTO_TCP)),
    SocketRule(AF_INET, SOCK_DGRAM, (0, IPPROTO_UDP, IPPROTO_ICMP)),
    SocketRule(AF_INET6, SOCK_DGRAM, (0, IPPROTO_UDP, IPPROTO_ICMPV6)),
)
"""No MPTCP, SCTP or DCCP: Landlock's port rules know TCP alone."""
ADDRESSLESS = (SocketRule(AF_INET, SOCK_DGRAM, (0,)), SocketRule(AF_INET6, SOCK_DGRAM, (0,)))
"""fuser tells by them which device sockets are on. They cannot be connected, and nothing can be sent through them."""
TO_THE_KERNEL, QUESTIONS = "to the kernel", "questions"
FIREWALL = (
    SocketRule(AF_NETLINK, SOCK_RAW, (NETLINK_ROUTE, NETLINK_NETFILTER)),
    SocketRule(AF_INET, SOCK_RAW, (IPPROTO_RAW,)),
    SocketRule(AF_INET6, SOCK_RAW, (IPPROTO_RAW,)),
)
"""nft and iptables-nft ask over netlink; the old iptables asks a raw socket with getsockopt(2)."""


@dataclass(frozen=True, slots=True)
class SandboxProfile:
    """What one profile leaves beyond reading files."""

    name: str
    sockets: tuple[SocketRule, ...]
    connect: bool
    """connect(2) is left; where it goes is then limited by Landlock (TCP) or by the judged verb (daemons)."""
    bind_any: bool
    """bind(2) is left for every address; else only for one of netlink's length."""
    ports: bool
    """TCP connections are limited to the judged ports by Landlock (ABI 4 or later)."""
    unlimited: tuple[str, ...]
    """What the kernel cannot limit here, for the result."""
    min_abi: int = 0
    """The least Landlock ABI. 0: seccomp alone can hold it, with a supervisor that answers for each write."""
    landlock: bool = True
    """A Landlock domain cannot look into other processes, so the profile that does so has none."""
    capabilities: tuple[int, ...] = ()
    """Kept for root beside CAP_DAC_READ_SEARCH."""
    ioctls: frozenset[int] = IOCTLS
    devices: bool = False
    """Block devices, and the controllers of disks, can be opened for reading."""
    sends: str = ""
    """What the supervisor sees to when something is sent: `to the kernel`, or that it is `questions` alone to it."""
    exact: bool = False
    """Only for one program with an exact argv (`guard.exact.PROGRAMS`)."""


PROFILES = {
    profile.name: profile
    for profile in (
        # An unconnected AF_UNIX stream can do nothing, and its connect(2) shows the path that was wanted.
        SandboxProfile(Profile.LOCAL, (NETLINK, UNIX_STREAM), False, False, False, ()),
        SandboxProfile(Profile.NET, (NETLINK, *INET), True, True, True, ("udp",), min_abi=4),
        SandboxProfile(Profile.BUS, (NETLINK, UNIX_STREAM), True, True, False, ("unix",)),
        SandboxProfile(
            Profile.OBSERVE,
            (NETLINK, UNIX_STREAM, *ADDRESSLESS),
            *(False, False, False, ()),
            sends=TO_THE_KERNEL,
            landlock=False,
            capabilities=(CAP_SYS_PTRACE,),
            exact=True,
        ),
        SandboxProfile(
            Profile.NETADM,
            (*FIREWALL, UNIX_STREAM),
            *(False, False, False, ()),
            capabilities=(CAP_NET_ADMIN, CAP_NET_RAW),
            ioctls=NETADM_IOCTLS,
            sends=QUESTIONS,
            exact=True,
        ),
        SandboxProfile(
            Profile.BLOCK,
            (NETLINK, UNIX_STREAM),
            *(False, False, False, ()),
            ioctls=BLOCK_IOCTLS,
            devices=True,
            exact=True,
        ),
    )
}

UNCONFINED = frozenset({Profile.NONE, Profile.REMOTE})
"""Profiles of commands that a person approved or that run elsewhere: no sandbox."""

REFUSED = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "setxattr", "lsetxattr",
    "fsetxattr", "setxattrat",
    "removexattr", "lremovexattr", "fremovexattr", "removexattrat", "file_setattr", "utime", "utimes", "futimesat",
    "utimensat",
    "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig",
    "fsmount", "fspick",
    "mount_setattr", "setns", "unshare", "quotactl_fd", "swapon", "swapoff", "acct",
    "reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "iopl", "ioperm",
    "modify_ldt",
    "settimeofday", "clock_settime", "sethostname", "setdomainname", "vhangup",
    "ptrace", "process_vm_writev", "pidfd_getfd", "process_madvise", "process_mrelease", "bpf", "perf_event_open",
    "userfaultfd",
    "add_key", "request_key", "keyctl", "mq_open", "mq_unlink",
    "shmget", "shmat", "semget", "semop", "semtimedop", "msgget", "msgsnd", "msgrcv",
    "open_by_handle_at", "fanotify_init", "listen", "move_pages", "migrate_pages", "lsm_set_self_attr",
)  # fmt: skip
"""Refused whatever the arguments. shmat, semop and msgrcv take an id that anybody can guess, so refusing the
*get calls alone would leave other programs' segments open. open_by_handle_at would go round the masks.
listen(2) on a socket without an address picks a port by itself, past Landlock's bind rule."""

ABSENT = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "pidfd_send_signal")
"""Answered as if the kernel did not know them, so that programs fall back. io_uring acts outside the filter;
clone3 hides its flags behind a pointer; a pidfd hides whom a signal is for."""

SIGNALS = {
    "kill": (0,),
    "tkill": (0,),
    "tgkill": (0, 1),
    "rt_sigqueueinfo": (0,),
    "rt_tgsigqueueinfo": (0, 1),
    "pidfd_open": (0,),
}
"""Call → arguments that name a process or thread."""

LOOKING_IN = ("process_vm_readv", "kcmp")
"""Refused where no Landlock domain keeps other processes' memory closed."""

SENDS = {"sendto": 0, "sendmsg": 0}
"""Call → the argument with the descriptor. With `sends`, the supervisor looks where it goes, and what it is."""
OUTPUTS = ("write", "writev")
"""With questions only: only to standard output and error, and only while those are what they were at the start."""
SILENT = (
    "pwrite64", "pwritev", "pwritev2", "sendfile", "splice", "tee", "vmsplice", "copy_file_range",
    "io_submit", "io_setup", "fork",
)  # fmt: skip
"""With questions only: further ways to send, and to have memory changed while the supervisor reads it."""
SOCKET_OPTIONS = (1, 270)
"""SOL_SOCKET and SOL_NETLINK. At the protocol levels, setsockopt(2) is how the old iptables replaces its tables."""
THREAD_FLAGS = 0x00004100
"""CLONE_VM and CLONE_VFORK: with questions only, a child may only share memory while its parent waits for it."""

REPORTED = (
    "openat2", "creat", "truncate", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "link", "linkat",
    "unlink", "unlinkat", "symlink", "symlinkat", "mknod", "mknodat",
)  # fmt: skip
"""Landlock decides about these; the supervisor only reports what was tried."""

QUOTA_READS = (0x800004, 0x800005, 0x800007, 0x800009, 0x5803, 0x5805, 0x5808, 0x5809)
SYSLOG_READS = (3, 9, 10)
"""READ_ALL, SIZE_UNREAD, SIZE_BUFFER. READ (2) consumes, as does everything above CLEAR."""
SHM_READS = (2, 3, 13, 14, 15)
SEM_READS = (2, 3, 11, 12, 13, 14, 15, 18, 19, 20)
MSG_READS = (2, 3, 11, 12, 13)
"""The *ctl commands that only look: IPC_STAT, IPC_INFO and the like. shmctl's 11 and 12 lock memory."""
FCNTL_REFUSED = (8, 10, 15, 1024, 1036, 1038)
"""F_SETOWN, F_SETSIG and F_SETOWN_EX send a chosen signal to a chosen thread; F_SETLEASE makes other programs
wait; the write-life hints change an inode."""
CLONE_NEW = 0x7E020000
"""Every CLONE_NEW* flag that clone(2) takes. 0x80 is part of its exit signal, not CLONE_NEWTIME."""
MSG_FASTOPEN = 0x20000000
"""Connects inside sendto(2), where Landlock's port rule does not look."""
WRITE_FLAGS = 0o3 | 0o100 | 0o1000 | 0o20000000
"""O_ACCMODE, O_CREAT, O_TRUNC, __O_TMPFILE; the same on x86_64 and aarch64."""
O_TRUNC = 0o1000
