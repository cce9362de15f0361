"""Which file systems a disk check should ask about, from /proc/self/mountinfo and /etc/fstab. Pure.

Sources: proc(5) for mountinfo, fstab(5), and the kernel's Documentation/filesystems/sharedsubtree.rst.
"""

from guard.lines import lines_of
from guard.types import Value

# File systems without a disk of their own, or whose fill level says nothing: a squashfs image is always 100 % full.
SKIPPED_TYPES = frozenset(
    [
        "proc",
        "sysfs",
        "devtmpfs",
        "devpts",
        "ramfs",
        "rootfs",
        "cgroup",
        "cgroup2",
        "cpuset",
        "securityfs",
        "debugfs",
        "tracefs",
        "configfs",
        "fusectl",
        "pstore",
        "efivarfs",
        "bpf",
        "mqueue",
        "hugetlbfs",
        "autofs",
        "binfmt_misc",
        "rpc_pipefs",
        "nfsd",
        "nsfs",
        "selinuxfs",
        "smackfs",
        "squashfs",
        "iso9660",
        "udf",
        "erofs",
        "cramfs",
        "romfs",
        "fuse.portal",
        "fuse.gvfsd-fuse",
        "fuse.lxcfs",
        "fuse.snapfuse",
        "fuse.squashfuse",
        "fuse.archivemount",
        "fuse.fuse-archive",
        "binder",
        "secretmem",
        "resctrl",
    ]
)

# Images: full from the day on which they were made, which is no finding.
IMAGE_TYPES = frozenset(["squashfs", "iso9660", "udf", "erofs", "cramfs", "romfs", "fuse.snapfuse", "fuse.squashfuse"])

MEMORY_TYPE = "tmpfs"
"""A file system in memory with a size of its own: a full /run or /tmp stops services as a full disk does."""
QUIET_MEMORY = (
    "/dev",
    "/sys",
    "/proc",
    "/run/user",
    "/run/credentials",
    "/run/secrets",
    "/run/containerd",
    "/run/docker",
    "/run/containers",
    "/var/lib/docker",
    "/var/lib/containers",
    "/var/lib/containerd",
    "/var/lib/kubelet",
)
"""Where a memory file system belongs to the kernel, to one user, one container or one program, which may fill it by
design (a database's shared memory in /dev/shm): told of only when it is about to refuse writes."""

# Asked one by one with a time limit each: a server or daemon that is gone blocks whoever looks (statfs(2) waits).
REMOTE_TYPES = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ncpfs",
        "9p",
        "ceph",
        "afs",
        "coda",
        "lustre",
        "gpfs",
        "beegfs",
        "glusterfs",
        "ocfs2",
        "gfs2",
        "orangefs",
        "virtiofs",
        "vboxsf",
        "prl_fs",
        "vmhgfs",
        "fuseblk",
    ]
)


class Mount(Value):
    """One mounted file system that is worth asking about."""

    __slots__ = ("point", "type", "source", "device", "root", "remote", "memory", "read_only", "turned_read_only")
    point: str
    type: str
    source: str
    device: str
    """major:minor; equal for bind mounts of one file system."""
    root: str
    """The folder of the file system that is mounted here; not `/` for a bind mount."""
    remote: bool
    memory: bool
    """In memory (tmpfs): judged by its percentage alone."""
    read_only: bool
    """Mounted read-only on purpose or not: it cannot fill up."""
    turned_read_only: bool
    """Mounted for writing, but the kernel has stopped all writes: it met errors."""

    def __init__(
        self,
        point: str,
        type: str,
        source: str,
        device: str = "0:0",
        root: str = "/",
        read_only: bool = False,
        turned_read_only: bool = False,
    ) -> None:
        self.point = point
        self.type = type
        self.source = source
        self.device = device
        self.root = root
        self.remote = type in REMOTE_TYPES or type.startswith("fuse")
        self.memory = type == MEMORY_TYPE
        self.read_only = read_only
        self.turned_read_only = turned_read_only


def is_quiet(mount: Mount) -> bool:
    """A memory file system that is told of only when it is critical (QUIET_MEMORY)."""
    return mount.memory and any(
        mount.point == folder or mount.point.startswith(f"{folder}/") for folder in QUIET_MEMORY
    )


def mounts_in(mountinfo: str) -> "list[Mount]":
    """The file systems to ask about, one entry for each, in the order of their mount points.

    Left out: types without a disk, overlays other than `/` (their space is their host file system's), mounts that
    a later mount on the same folder hides, and bind mounts of a file system that is there already.
    """
    by_point: dict[str, Mount | None] = {}
    for line in lines_of(mountinfo):
        mount = _mount_in(line)
        if mount is not None:
            # The later one hides the earlier, and a hidden one cannot be asked even if the later is no disk.
            by_point.pop(mount.point, None)
            by_point[mount.point] = mount if _wanted(mount) else None
    kept: dict[str, Mount] = {}
    for mount in by_point.values():
        if mount is None:
            continue
        # An anonymous device (0:N) is one superblock too, so bind mounts and subvolumes share it.
        other = kept.get(mount.device)
        if other is None or _better(mount, other):
            kept[mount.device] = mount
    return sorted(kept.values(), key=lambda mount: mount.point)


def _wanted(mount: Mount) -> bool:
    if mount.type == "overlay":
        return mount.point == "/"
    return mount.type not in SKIPPED_TYPES


def _better(mount: Mount, other: Mount) -> bool:
    return (mount.root != "/", len(mount.point), mount.point) < (other.root != "/", len(other.point), other.point)


def _mount_in(line: str) -> "Mount | None":
    left, dash, right = line.partition(" - ")
    fields, rest = left.split(" "), right.split(" ")
    if not dash or len(fields) < 6 or len(rest) < 3:
        return None
    here, whole = fields[5].split(","), rest[2].split(",")
    stopped = "emergency_ro" in whole or "shutdown" in whole
    return Mount(
        unescaped(fields[4]),
        rest[0],
        unescaped(rest[1]),
        fields[2],
        unescaped(fields[3]),
        read_only="ro" in here,
        # mount(8) sets both flags; the kernel's own switch after an error sets only the superblock's.
        turned_read_only=rest[0] != MEMORY_TYPE and (stopped or ("rw" in here and "ro" in whole)),
    )


def writable_in_fstab(fstab: str) -> "set[str]":
    """The mount points that /etc/fstab wants writable at boot (no `ro`, no `noauto`)."""
    points = set()
    for line in lines_of(fstab):
        fields = line.split()
        if len(fields) >= 4 and not fields[0].startswith("#"):
            options = fields[3].split(",")
            if "ro" not in options and "noauto" not in options:
                points.add(unescaped(fields[1]))
    return points


def unescaped(field: str) -> str:
    """A field of mountinfo with its octal escapes (`\\040` is a blank) undone."""
    if "\\" not in field:
        return field
    out, i = bytearray(), 0
    raw = field.encode("utf-8", "surrogateescape")
    while i < len(raw):
        digits = raw[i + 1 : i + 4]
        if raw[i] == 0x5C and len(digits) == 3 and all(0x30 <= d <= 0x37 for d in digits):
            out.append(int(digits, 8) & 0xFF)
            i += 4
        else:
            out.append(raw[i])
            i += 1
    return out.decode("utf-8", "surrogateescape")
