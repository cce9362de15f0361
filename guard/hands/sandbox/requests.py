"""The ioctl(2) requests that a sandboxed command may make; everything else is refused and reported by number.

Source: the uapi headers of Linux 6.17.
"""

from __future__ import annotations

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
would miss the next file system's: btrfs makes subvolumes through a descriptor that was opened for reading."""

SIOCETHTOOL = 0x8946
NETADM_IOCTLS = IOCTLS - {SIOCETHTOOL}
"""Its writes need CAP_NET_ADMIN, which that profile has; what it asks stands behind a pointer."""

BLOCK_IOCTLS = IOCTLS | frozenset(
    # BLKROGET, BLKGETSIZE, BLKRAGET, BLKFRAGET, BLKSECTGET, BLKSSZGET, BLKBSZGET, BLKGETSIZE64, BLKIOMIN, BLKIOOPT,
    # BLKALIGNOFF, BLKPBSZGET, BLKDISCARDZEROES, BLKROTATIONAL, BLKGETDISKSEQ, BLKGETZONESZ, BLKGETNRZONES
    {0x125E, 0x1260, 0x1263, 0x1265, 0x1267, 0x1268, 0x80081270, 0x80081272, 0x1278, 0x1279}
    | {0x127A, 0x127B, 0x127C, 0x127E, 0x80081280, 0x80041284, 0x80041285}
    # BLKREPORTZONE, HDIO_GETGEO, HDIO_GET_UNMASKINTR, HDIO_GET_MULTCOUNT, HDIO_GET_QDMA, HDIO_OBSOLETE_IDENTITY,
    # HDIO_GET_KEEPSETTINGS, HDIO_GET_32BIT, HDIO_GET_NOWERR, HDIO_GET_DMA, HDIO_GET_NICE, HDIO_GET_IDENTITY,
    # HDIO_GET_WCACHE, HDIO_GET_ACOUSTIC, HDIO_GET_ADDRESS, HDIO_GET_BUSSTATE
    | {0xC0101282, 0x0301, 0x0302, 0x0304, 0x0305, 0x0307, 0x0308, 0x0309, 0x030A, 0x030B, 0x030C, 0x030D}
    | {0x030E, 0x030F, 0x0310, 0x031A}
    # CDROM_DRIVE_STATUS, CDROM_GET_CAPABILITY, CDROM_LAST_WRITTEN; LOOP_GET_STATUS, LOOP_GET_STATUS64
    | {0x5326, 0x5331, 0x5395, 0x4C03, 0x4C05}
    # RAID_VERSION, GET_ARRAY_INFO, GET_DISK_INFO, GET_BITMAP_FILE
    | {0x800C0910, 0x80480911, 0x80140912, 0x90000915}
    # SG_IO, SG_GET_VERSION_NUM, SCSI_IOCTL_GET_IDLUN, SCSI_IOCTL_GET_BUS_NUMBER; NVME_IOCTL_ID, NVME_IOCTL_ADMIN_CMD
    | {0x2285, 0x2282, 0x5382, 0x5386, 0x4E40, 0xC0484E41}
)
"""What is asked about disks. Raw commands (SG_IO, NVME_IOCTL_ADMIN_CMD) come from a process without CAP_SYS_RAWIO and
CAP_SYS_ADMIN and a descriptor opened for reading: the kernel lets through those that only read (scsi_cmd_allowed,
nvme_cmd_allowed)."""
