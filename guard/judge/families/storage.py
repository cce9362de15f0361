"""Disks, file systems, volumes. Source: util-linux, e2fsprogs, LVM2, ZFS and mdadm manuals."""

from guard.judge.landing import note_taken
from guard.judge.levels import R2, R3
from guard.judge.options import Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, reader, table, verbs
from guard.judge.shell.syntax import Word
from guard.judge.tables import names

EXAMPLES = {
    "R0": ("lsblk -f", "blkid", "fdisk -l /dev/sda", "mount", "findmnt", "mount | column -t", "pvs", "vgs", "lvs -a",
        "zpool status", "zfs list", "mdadm --detail /dev/md0", "cat /proc/mdstat", "smartctl -a /dev/sda",
        "parted -l", "sfdisk -l", "tune2fs -l /dev/sda1", "xfs_info /srv", "btrfs filesystem show",
        "dumpe2fs -h /dev/sda1", "fsck -N /dev/sda1", "swapon --show", "nvme list", "hdparm -I /dev/sda", "quota",
        "repquota -a", "cryptsetup status x", "multipath -ll", "losetup -a", "mount -l", "iscsiadm -m session",
        "showmount -e h"),
    "R2": ("mount /dev/sdb1 /mnt", "umount /mnt", "mount -o remount,rw /", "lvextend -L +1G vg/lv",
        "lvcreate -L 1G vg", "pvcreate /dev/sdb", "resize2fs /dev/sda1", "fsck /dev/sda1", "zfs snapshot a@b",
        "mdadm --create /dev/md0", "tune2fs -c 0 /dev/sda1", "losetup /dev/loop0 f", "cryptsetup open /dev/sdb x",
        "zpool scrub x", "fstrim -a", "hdparm -y /dev/sda", "sync; blockdev --setro /dev/sda",
        "btrfs subvolume create x"),
    "R3": ("mkfs.ext4 /dev/sdb1", "mkfs -t xfs /dev/sdb", "fdisk /dev/sda", "wipefs -a /dev/sda", "lvremove vg/lv",
        "vgremove vg", "pvremove /dev/sdb", "zfs destroy a", "zpool destroy a", "mkswap /dev/sdb",
        "sgdisk --zap-all /dev/sda", "parted /dev/sda mklabel gpt", "blkdiscard /dev/sda",
        "cryptsetup luksFormat /dev/sda", "mdadm --zero-superblock /dev/sda", "zfs rollback -r a@b",
        "lvreduce -L -1G vg/lv", "nvme format /dev/nvme0", "btrfs subvolume delete x",
        "hdparm --security-erase x /dev/sda", "badblocks -w /dev/sda", "sfdisk /dev/sda", "mke2fs /dev/sdb1"),
}  # fmt: skip


def _mount(call: Call, parsed: Parsed) -> None:
    listing = ("-l", "-t", "-v", "-h", "-V", "-O", "-p")
    if parsed.operands or any(option.name not in listing for option in parsed.options):
        call.note(R2, "storage.mount", "changes what is mounted", None, "mount(8)")
    # One word names what fstab has for it, and a kernel's own file system is at home there.
    if len(parsed.operands) > 1 and not _is_remount(call, parsed):
        own = parsed.value("-t")
        goal = call.value(parsed.operands[-1]) or ""
        if (own is None or call.value(own) not in _KERNEL) and goal.rstrip("/") not in _MADE_FOR_IT:
            note_taken(call, parsed.operands[-1], "hides with what it mounts there")


_KERNEL = ("proc", "sysfs", "devtmpfs")
_MADE_FOR_IT = names("/boot /home /var /tmp /var/tmp /usr/local")
"""Where disks of their own are at home."""


def _is_remount(call: Call, parsed: Parsed) -> bool:
    return any(
        option.name == "-o" and "remount" in (call.value(option.value) or "").split(",")
        for option in parsed.options
        if option.value is not None
    )


def _fdisk(call: Call, parsed: Parsed) -> None:
    call.need("block")
    if not any(parsed.has(name) for name in ("-l", "-s", "-V", "-h", "-d", "-J", "-x")):
        call.note(R3, "storage.partition", "changes the partition table", None, f"{call.name}(8)")


def _parted(call: Call) -> None:
    call.need("block")
    rest = [word.value or "?" for word in call.args if not (word.value or "x").startswith("-")]
    flags = [word.value or "" for word in call.args if (word.value or "").startswith("-")]
    if any(flag in ("-l", "--list", "-v", "--version", "-h", "--help") for flag in flags) and len(rest) < 2:
        return
    verbs_ = [
        value
        for value in rest[1:]
        if value
        not in (
            "unit",
            "MiB",
            "GiB",
            "MB",
            "GB",
            "s",
            "B",
            "%",
            "free",
            "all",
            "devices",
            "list",
            "KiB",
            "TiB",
            "compact",
        )
    ]
    if verbs_ and all(
        value in ("print", "p", "align-check", "opt", "min", "help", "version", "quit") or value.isdigit()
        for value in verbs_
    ):
        return
    call.note(R3, "storage.partition", "changes the partition table", None, "parted(8)")


def _lvm_read(call: Call, parsed: Parsed) -> None:
    call.need("block")


def _wipefs(call: Call, parsed: Parsed) -> None:
    call.need("block")
    if parsed.has("-n"):
        return
    if parsed.has("-a") or parsed.has("-o"):
        call.note(R3, "storage.wipe", "wipes signatures from a device", None, "wipefs(8)")


def _mdadm(call: Call) -> None:
    values = [word.value or "?" for word in call.args]
    if any(value.startswith(("--stop", "-S", "--run", "--grow", "-G", "--create", "-C", "--assemble", "-A", "--add",
                             "--manage", "--update", "-I", "--incremental", "--readwrite", "--readonly", "--set-"))
           for value in values):  # fmt: skip
        call.note(R2, "storage.raid", "changes a RAID array", None, "mdadm(8)")
    if any(value.startswith(("--ze", "--re", "--fa", "--r", "--f")) for value in values):
        call.note(
            R3 if any(value.startswith("--ze") for value in values) else R2, "storage.raid", "changes a RAID array"
        )
    elif any(
        value
        in (
            "-D",
            "--detail",
            "-E",
            "--examine",
            "-Q",
            "--query",
            "--version",
            "--help",
            "--detail-platform",
            "--examine-badblocks",
            "-Es",
            "-Ds",
        )
        for value in values
    ):
        call.need("block")
    else:
        call.note(R2, "storage.raid", "changes a RAID array", None, "mdadm(8)")


def _hdparm(call: Call) -> None:
    call.need("block")
    reads = set("IitTgCHAaBbcdkKMmNQruWvV")
    shown = [word.value or "" for word in call.args]
    asks_only = all(set(value[1:]) <= set("IitTgCHvV") for value in shown if value[:1] == "-" and value[1:2] != "-")
    for word in call.args:
        value = word.value or "?"
        if value.startswith(
            (
                "--security-erase",
                "--dco",
                "--make-bad",
                "--write-sector",
                "--repair-sector",
                "--trim",
                "--fwdownload",
                "--sanitize",
                "--user-master",
                "--security",
            )
        ):
            call.note(R3, "storage.erase", "erases or damages a disk", word, "hdparm(8)")
        elif (value.startswith("--") and value not in ("--direct", "--verbose", "--Istdout", "--fibmap")) or (
            value.startswith("-") and (not set(value[1:]) <= reads or any(char.isdigit() for char in value))
        ):
            call.note(R2, "storage.hdparm", "changes a disk's settings", word)
        elif not asks_only and not (word.value or word.prefix).startswith(("/", "-")):
            # `-A 0` is `-A0`: whatever is no path behind an option that asks is the value that it sets.
            call.note(R2, "storage.hdparm", "changes a disk's settings", word)


_SMART_LOGS = frozenset(("error", "xerror", "selftest", "xselftest", "devstat", "gplog", "smartlog", "nvmelog", "ssd"))


def _smart(call: Call, parsed: Parsed) -> None:
    call.need("block")
    for option in parsed.options:
        if option.name == "-l" and option.value is not None and "," in (call.value(option.value) or ","):
            what = (call.value(option.value) or "?").partition(",")[0]
            if what not in _SMART_LOGS:
                call.note(R2, "storage.smart-set", "sets a time limit of the disk", option.word)


def _nvme(call: Call) -> None:
    verb = call.args[0].value if call.args else "help"
    call.need("block")
    if verb in (
        "list",
        "list-subsys",
        "id-ctrl",
        "id-ns",
        "smart-log",
        "error-log",
        "fw-log",
        "get-feature",
        "list-ns",
        "list-ctrl",
        "show-regs",
        "version",
        "help",
        "get-log",
        "effects-log",
        "ana-log",
        "self-test-log",
        "endurance-log",
        "changed-ns-list-log",
        "show-hostnqn",
        "show-topology",
        "get-ns-id",
        "id-nvmset",
        "id-iocs",
    ):
        return
    erase = verb in ("format", "sanitize", "delete-ns", "write", "write-zeroes", "write-uncor", "dsm", "reset")
    call.note(R3 if erase else R2, "storage.nvme", "changes or erases a disk", None, "nvme(1)")


def _losetup(call: Call, parsed: Parsed) -> None:
    listing = any(parsed.has(name) for name in ("-a", "-l", "-j")) or not (parsed.options or parsed.operands)
    if not listing and (parsed.operands or not parsed.has("-f")):
        call.note(R2, "storage.loop", "attaches or detaches a loop device")


def _luks(call: Call, verb: str, rest: "list[Word]", level: int) -> None:
    if level == 0:
        call.need("block")


MKFS = table("-n!ok", operands="data", level="R3", text="makes a new file system over whatever was there")
FSCK = table("-n,-N!ok -V -T -M -A -y -p -f -a -r -l -C? -t: -R -v -c -k -b: -B: -j: -L: -D -E: -s", operands="data",
    unknown="R2",
    check=lambda call, parsed: call.need("block") if parsed.has("-n") and not any(parsed.has(o) for o in ("-y", "-p",
            "-a", "-c")) else call.note(R2, "storage.fsck", "repairs a file system, which can lose data", None,
        "fsck(8)"))  # fmt: skip
_LVM = (
    "-a,--all -o,--options: -O,--sort: -S,--select: -v,--verbose -q,--quiet -u -P,--partial "
    "-c,--colon -C,--columns -s,--short -m,--maps --units: --noheadings --nosuffix --separator: "
    "--reportformat: --segments --config:!R2 --readonly --nolocking -H,--history --unquoted --binary "
    "--rows --nameprefixes --unbuffered --aligned --foreign --ignoreskippedcluster --logonly "
    "--profile: -t,--test --driverloaded: --longhelp --help -h --version -A: -d,--debug -y --yes -D -l"
)

PROGRAMS: dict[str, Program] = {
    **many("lsblk", reader("", operands="data")),
    **many("blkid", reader(
            "-c,--cache-file:!write -o,--output: -s,--match-tag: -t,--match-token: -L,--label: -U,--uuid: "
            "-p,--probe -i,--info -k,--list-filesystems -l,--list-one -g,--garbage-collect!R1 -u,--usages: "
            "-n,--match-types: -O,--offset: -S,--size: -D,--no-part-details -d,--no-encoding -H,--hint: "
            "-h,--help -V,--version -w:!write", operands="data", need="block", plain=False, unknown="R2")),
    **many("mount", table("-a,--all -o,--options: -t,--types: -l,--show-labels -r,--read-only -w,--rw,--read-write "
            "-v,--verbose -n,--no-mtab -f,--fake -B,--bind -R,--rbind -M,--move -L,--label: -U,--uuid: "
            "-T,--fstab: -O: -F -s -c -i -N: --make-shared!R2 --make-private!R2 --make-rprivate!R2 "
            "--make-rshared!R2 --make-slave!R2 -h,--help -V,--version -p,--print --source: --target: "
            "-m,--mkdir? --options-mode: --options-source:", operands="data", check=_mount, unknown="R2", plain=True)),
    **many("umount fusermount fusermount3 sshfs s3fs gcsfuse udisksctl pmount pumount mount.nfs mount.cifs "
        "automount bindfs encfs gocryptfs veracrypt", table("", operands="data", level="R2",
            text="changes what is mounted")),
    **many("fdisk sfdisk cfdisk", table(
            "-l,--list!ok -s,--getsz,--show-size!ok -x,--list-details!ok -J,--json!ok -d,--dump!ok "
            "-o,--output: -u,--units? -b,--sector-size: -B -c? -C: -H: -S: -t: -L? -w: -W: --bytes "
            "-V,-v,--version!ok -h,--help!ok -q,--quiet -n,--no-act --color?", operands="data", check=_fdisk,
            unknown="R2")),
    **many("gdisk cgdisk", table("-l", operands="data", check=_fdisk, unknown="R2")),
    "sgdisk": table("-p,--print!ok -i,--info:!ok -v,--verify!ok -O,--print-mbr!ok -V,--version!ok "
        "-F,--first-in-largest -E,--end-of-largest -L,--list-types -Z,--zap-all!R3 -z,--zap!R3 "
        "-o,--clear!R3 -d,--delete:!R3 -n,--new:!R3 -t,--typecode:!R3 -g,--mbrtogpt!R3 "
        "-G,--randomize-guids!R3 -R,--replicate:!R3 -b,--backup:!write -l,--load-backup:!R3 "
        "-c,--change-name:!R2 -u,--partition-guid:!R2 -e,--move-second-header!R2 -s,--sort!R2 -a: "
        "-P,--pretend -h,--hybrid:!R3", operands="data", need="block", unknown="R2"),
    "parted": custom(_parted),
    **many("partprobe kpartx partx addpart delpart growpart", table("-l,--list!ok -s,--show!ok -d!ok --dry-run",
            operands="data", level="R2", text="tells the kernel about partitions")),
    "pvscan": reader("-s,--short -e,--exported -n,--novg -u,--uuid -t,--test -v,--verbose -q,--quiet --noheadings "
        "--reportformat: -h,--help --version --cache!R2 -a,--activate:!R2 -b,--background!R2 -j,--major: --minor:",
        operands="data", check=_lvm_read, plain=False, unknown="R2"),
    **many("pvs vgs lvs pvdisplay vgdisplay lvdisplay vgscan lvscan lvmdiskscan", reader(
            _LVM + " --cache!R2 --mknodes!R2", operands="data", check=_lvm_read, plain=False, unknown="R2")),
    **many("pvcreate vgcreate lvcreate vgextend lvextend pvresize vgchange lvchange pvchange vgrename "
        "lvrename pvmove vgreduce vgsplit vgmerge lvconvert vgexport vgimport vgcfgbackup pvck vgck lvm "
        "lvmconfig lvmdump fsadm", table("", operands="data", level="R2", text="changes logical volumes")),
    **many("lvreduce lvresize lvremove vgremove pvremove vgcfgrestore", table("", operands="data", level="R3",
            text="shrinks or removes volumes with their data")),
    "dmsetup": verbs("-v --noheadings -c -C -o: -O: --target: --noflush -j: -m: -u:",
        "R0 ls|info|status|table|deps|targets|version|splitname|help\nR3 remove|remove_all|wipe_table|clear",
        check=_luks, danger="--exec:!exec --showkeys!secret"),
    "zpool": verbs("-h", danger="-c:!exec --clear!R2", levels=
        """R0 list|status|iostat|get|history|events|version
        R2 scrub|online|offline|clear|import|export|attach|replace|add|create|set|upgrade|trim|resilver|reopen|
        checkpoint|split|wait
        R3 destroy|remove|detach|labelclear|initialize"""),
    "zfs": verbs("-h",
        """R0 list|get|holds|diff|userspace|groupspace|projectspace|version
        R2 set|create|snapshot|snap|clone|rename|mount|unmount|umount|send|hold|release|promote|inherit|upgrade|
        share|unshare|load-key|unload-key|change-key|bookmark
        R3 destroy|rollback|receive|recv"""),
    "zdb": reader("-d -dd -c -b -C -l -h -i -m -s -S -u -L -v -e -p: -U: -A -D -E -k -P -q -V -X -F", operands="data",
        plain=False, need="block", unknown="R2"),
    "btrfs": verbs("-q -v --help --version",
        """R0 filesystem show|filesystem df|filesystem usage|filesystem du|fi show|fi df|fi usage|fi du|subvolume list|
        subvolume show|subvolume get-default|sub list|sub show|device stats|device usage|scrub status|balance status|
        qgroup show|inspect-internal dump-super|inspect-internal inode-resolve|property get|property list|version|
        help|replace status|quota status
        R2 check|scrub start
        R3 subvolume delete|sub delete|device delete|device remove|rescue zero-log""", danger="-z,--reset!R2"),
    "mdadm": custom(_mdadm),
    **many("mkfs mke2fs mkswap mkdosfs mkntfs mkudffs mkfs. newfs", MKFS),
    **many("fsck e2fsck xfs_repair dosfsck ntfsfix fsck. zerofree", FSCK),
    **many("xfs_growfs resize2fs e2label xfs_admin fstrim e4defrag xfs_fsr debugreiserfs quotaon quotaoff "
        "quotacheck edquota setquota swaplabel fatlabel ntfsresize exfatlabel fsfreeze btrfstune", table("-n!ok",
            operands="data", level="R2", text="changes a file system")),
    **many("xfs_info dumpe2fs quota repquota e2freefrag filefrag", reader("-i:!R2 -o: -h -b -f -g -x -a -A "
            "-B -c -C -e -E -F: -k -l -m -n -O -p -P -q -Q -s,--human-readable -t -u,--user -v,--verbose -V -w -X "
            "--group "
            "--project --format: --all --help --version --no-wrap --quiet --raw-grace --show-mntpoint --hide-device",
            operands="data", plain=False, check=lambda call, parsed: call.need("block") if call.name in ("xfs_info",
                "dumpe2fs", "e2freefrag") else None)),
    "tune2fs": table("-l!ok", operands="data", unknown="R2",
        check=lambda call, parsed: call.need("block") if parsed.has(
            "-l") and len(parsed.options) == 1 else call.note(R2, "storage.tune", "changes a file system")),
    "debugfs": table("-R: -w!R3 -c -f:!R2 -V -D -i", operands="data", level="R2",
        text="reads and changes a file system below the kernel"),
    "wipefs": table("-a,--all -o,--offset: -n,--no-act -p,--parsable -J,--json -O,--output: -i,--noheadings "
        "-f,--force -b,--backup -q,--quiet -t,--types: -h,--help -V,--version --lock?", operands="data",
        check=_wipefs, unknown="R2"),
    **many("blkdiscard blkzone nwipe fdformat", table("", operands="data", level="R3", text="erases a device")),
    **many("badblocks", table("-w!R3 -n!R2 -o:!write -s -v -b: -c: -d: -e: -f -i: -p: -t: -X -B", operands="data",
            level="R2", text="reads (and with -w overwrites) a device")),
    "blockdev": reader("--getro --getss --getsz --getsize64 --getbsz --getpbsz --getra --getfra --report --getsize "
        "--getiomin --getioopt --getalignoff --getmaxsect --getdiskseq --getdiscardzeroes -q -v -h,--help "
        "-V,--version --setro!R2 --setrw!R2 --setra:!R2 --setfra:!R2 --setbsz:!R2 --flushbufs!R2 " "--rereadpt!R2",
        operands="data", need="block", plain=False, unknown="R2"),
    **many("smartctl", reader(
            "-a,--all -x,--xall -i,--info -H,--health -A,--attributes -l,--log: -c,--capabilities --scan "
            "--scan-open -d,--device: -j,--json? -q,--quietmode: -n,--nocheck: -T,--tolerance: "
            "-v,--vendorattribute: -F,--firmwarebug: -P,--presets: -B,--drivedb:!read -r,--report: -g,--get: "
            "-f,--format: -b,--badsum: -V,--version -h,--help --identify? -s,--smart:!R2 -S,--saveauto:!R2 "
            "-o,--offlineauto:!R2 -t,--test:!R2 -X,--abort!R2 -C,--captive!R2 --set:!R2", operands="data",
            check=_smart, plain=False, unknown="R2")),
    "nvme": custom(_nvme),
    "hdparm": custom(_hdparm),
    "sdparm": table("-i -l -a --inquiry --all -q --get:", operands="data", unknown="R2", check=_smart),
    "cryptsetup": verbs(
        "-v -q,--batch-mode -t: -T: -d,--key-file:!read --header: --type: -h -c: -s: --debug --usage "
        "--version --help",
        """R0 status|isLuks|luksDump|luksUUID|help|benchmark
        R2 open|luksOpen|close|luksClose|resize|luksAddKey|luksHeaderBackup|refresh|luksSuspend|luksResume|
        luksChangeKey|convert|tcryptDump|repair
        R3 luksFormat|erase|luksErase|luksKillSlot|luksRemoveKey|reencrypt|luksHeaderRestore|format""", check=_luks,
        danger="--dump-master-key!secret --dump-volume-key!secret --external-tokens-path:!exec "
        "--volume-key-file:!write --master-key-file:!write"),
    "losetup": table(
        "-a,--all!ok -l,--list!ok -j,--associated:!ok -O,--output: -n,--noheadings -J,--json --raw -f,--find",
        operands="data", unknown="R2", check=lambda call, parsed: _losetup(call, parsed)),
    **many("multipath", table("-l!ok -ll!ok -v: -d!ok -t!ok -T -h -c", operands="data", unknown="R2",
            check=lambda call, parsed: None if any(parsed.has(n) for n in ("-l", "-ll", "-d", "-t")) else call.note(
                R2, "storage.multipath", "changes paths to disks"))),
    "iscsiadm": table("-m,--mode: -P,--print: -T,--targetname: -p,--portal: -S,--show!secret -V,--version -h,--help "
        "-d,--debug: -r,--sid: -I,--interface:", operands="none", unknown="R2", check=lambda call, parsed: None if not
        parsed.has("-m") or (call.value(parsed.value("-m") or call.word) in ("session", "node", "iface", "host")) else
        call.note(R2, "storage.iscsi", "looks for targets and records them")),
    **many("showmount nfsstat nfsiostat mountstats rpcinfo smbstatus cifsiostat lsiscsi", reader("-d!R2 -z!R2 "
            "-a,--all -b,--brief -B,--byterange -c,--client -e,--exports -f -F -h,--human -j,--json -k -l,--locks -L "
            "-m,--mounts -n,--numeric -N,--notify -o: -p,--processes -P,--profile -q -r,--rpc -R "
            "-s,--server,--since: -S "
            "-t -T: -u: -v,--version -V -2 -3 -4 -[0-9] --help --no-headers --directories --shares --fast --verbose "
            "--resolve-uids --dec: --nfs --sort: --list: --sleep --zero!R2", operands="data", plain=False)),
    **many("exportfs", table("-v!ok -s!ok", operands="data", unknown="R2",
        check=lambda call, parsed: None if not parsed.operands and
            not parsed.unknown else call.note(R2, "storage.export", "changes what is exported"))),
    **many("ceph rbd rados gluster", verbs(
            "-c,--conf:!config -n,--name,--id: -k,--keyring: --cluster: -f,--format: -p,--pool: -h --version "
            "-s,--status -w --user: --connect-timeout: --mode=script",
            """R0 status|health|health detail|-s|df|osd tree|osd df|osd status|osd stat|osd ls|osd pool ls|osd pool get|
        osd pool stats|osd dump|osd perf|mon stat|mon dump|mgr stat|mgr services|mgr dump|pg stat|pg dump|pg ls|
        pg query|fs ls|fs status|fs dump|mds stat|versions|features|quorum_status|time-sync-status|crash ls|
        crash info|log last|orch ls|orch ps|orch status|orch host ls|orch device ls|device ls|ls|info|du|lspools|
        stat|showmapped|snap ls|lock ls|volume info|volume list|volume status|peer status|pool list|snapshot list|
        report
        R3 osd pool delete|osd pool rm|osd destroy|osd purge|osd rm|rm|remove|snap rm|snap purge|snap rollback|purge|
        rmpool|fs rm|volume delete|pool delete|cleanup|trash purge|trash remove""", flags=("helper",))),
    "eject": table("", operands="data", level="R1"),
    "sg_inq": reader("", operands="data", plain=False, need="block"),
}  # fmt: skip
