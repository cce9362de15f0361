"""The sandbox profiles as data: which sockets, calls and device requests each one leaves.

Three profiles are held here: `local`, `net` and `bus`. `observe`, `netadm` and `block` need an exact argv
beside their kernel rules; until that exists they are not in `PROFILES`, and asking for one is an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from guard.types import Profile

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SOCK_STREAM, SOCK_DGRAM = 1, 2
IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6 = 1, 6, 17, 58
NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_GENERIC = 0, 4, 16


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
    min_abi: int = 1


PROFILES = {
    profile.name: profile
    for profile in (
        # An unconnected AF_UNIX stream can do nothing, and its connect(2) shows the path that was wanted.
        SandboxProfile(Profile.LOCAL, (NETLINK, UNIX_STREAM), False, False, False, ()),
        SandboxProfile(Profile.NET, (NETLINK, *INET), True, True, True, ("udp",), min_abi=4),
        SandboxProfile(Profile.BUS, (NETLINK, UNIX_STREAM), True, True, False, ("unix",)),
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

REPORTED = (
    "openat2", "creat", "truncate", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "link", "linkat",
    "unlink", "unlinkat", "symlink", "symlinkat", "mknod", "mknodat",
)  # fmt: skip
"""Landlock decides about these; the supervisor only reports what was tried."""

IOCTLS = frozenset(
    # terminals as seen through a pipe or a private pty, and descriptors
    {0x5401, 0x5413, 0x540F, 0x5410, 0x5429, 0x541B, 0x5411, 0x5421, 0x5450, 0x5451, 0x5452, 0x80045430, 0x80045432}
    # file systems: FIBMAP, FIGETBSZ, FIEMAP, GETFLAGS, FSGETXATTR, GETVERSION, GETFSUUID, GETFSSYSFSPATH, GETFSLABEL
    | {0x1, 0x2, 0xC020660B, 0x80086601, 0x801C581F, 0x80087601, 0x80111500, 0x80811501, 0x81009431}
    # btrfs, reads only: TREE_SEARCH, SPACE_INFO, DEV_INFO, FS_INFO, INO_PATHS, GET_FEATURES, SUBVOL_INFO, …_GETFLAGS
    | {0xD0009411, 0xC0109414, 0xD000941E, 0x8400941F, 0xC0389423, 0x80189439, 0x81F8943C, 0x80089419}
    # namespaces: NS_GET_USERNS … NS_GET_ID; pidfd information
    | {0xB701, 0xB702, 0xB703, 0xB704, 0x8008B705, 0x8004B706, 0x8004B707, 0x8004B708, 0x8004B709, 0x8008B70D}
    # what a socket can be asked about interfaces (SIOCGIF*, SIOCETHTOOL: its writes need CAP_NET_ADMIN)
    | {0x8905, 0x8906, 0x8907, 0x8910, 0x8912, 0x8913, 0x8915, 0x8917, 0x8919, 0x891B, 0x891D, 0x8921, 0x8927}
    | {0x8933, 0x8938, 0x8942, 0x8946, 0x8970}
)
"""The only ioctl requests that are left; unknown ones are refused and reported by number. A list of bad ones
would miss the next file system's: btrfs makes subvolumes through a descriptor that was opened for reading.
Source: the uapi headers of Linux 6.17."""

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
