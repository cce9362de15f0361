"""Disk space and inodes of every real file system; names a mount that does not answer."""

from guard.lines import lines_of
from runbooks import named_paths
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.mounts import is_quiet, mounts_in, writable_in_fstab
from runbooks.reading import files_command, files_in, first_line, not_checked, number_of, why_not
from runbooks.space import SPACE, quoted, space, space_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where
    from runbooks.mounts import Mount

ID = "disk"
TITLE = Words("Disk", "磁盘")
ABOUT = Words(
    "free space and inodes of every file system, mounts that hang or became read-only",
    "各文件系统的剩余空间和 inode，卡住或变为只读的挂载点",
)

INODES = Threshold(80, 95, "%", source="as for space, earlier because inodes of ext4 cannot be added (mke2fs(8), -N)")
PATHS = ("/proc/self/mountinfo", "/etc/fstab")
TOGETHER_S = 5.0
ALONE_S = 4.0
RETRY_S = 2.5
MOST_MOUNTS = 64
"""Of disks, and as many in memory: a host of containers has hundreds of the latter."""


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """First the mount table; then one `df` for local file systems and one for each that can hang."""
    if "mounts" not in have:
        return [Command("mounts", files_command(PATHS), 3.0), *named_paths.commands(where)]
    mounts = to_ask(have)
    local = [mount.point for mount in mounts if not mount.remote]
    asked: list[Command] = []
    if local and "df" not in have:
        asked += [
            Command("df", ("df", "-PT", *local), TOGETHER_S),
            Command("dfi", ("df", "-Pi", *local), TOGETHER_S),
        ]
    together = have.get("df")
    if together is not None and together.status == "timed_out":
        alone = [mount.point for mount in mounts if not mount.remote and not is_quiet(mount)]
        asked += [Command(f"df:{point}", ("df", "-PT", point), RETRY_S) for point in alone]
    asked += [Command(f"df:{mount.point}", ("df", "-PT", mount.point), ALONE_S) for mount in mounts if mount.remote]
    return [command for command in asked if command.key not in have]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """One finding for each file system, one for inodes, and what hangs or was switched to read-only."""
    table = files_in(have.get("mounts"), PATHS)
    why = why_not(have.get("mounts"), "grep")
    if PATHS[0] not in table:
        why = why or Words("the mount table is empty", "挂载表为空")
        return [not_checked(ID, TITLE, why, have.get("mounts"))]
    every = mounts_in(table[PATHS[0]])
    findings = _read_only(every, table.get(PATHS[1], ""), have["mounts"])
    asked = to_ask(have)
    figures: dict[tuple[int, int, int], str] = {}
    fine: list[tuple[int, Mount]] = []
    for mount in asked:
        answer = have.get(f"df:{mount.point}") or have.get("df")
        row = space_in(answer.stdout, mount.point) if answer is not None and answer.ended else None
        if row is None:
            if not is_unlimited(mount, answer) and not is_quiet(mount):
                findings.append(_no_answer(mount, answer))
        elif is_quiet(mount) and SPACE.severity(row[3]) != Severity.CRIT:
            continue
        elif mount.memory and SPACE.severity(row[3]) == Severity.OK:
            fine.append((row[3], mount))
        elif mount.root != "/" and row[:3] in figures:
            continue  # a bind mount of what `/` shows already, as containers have for /etc/hosts
        else:
            figures[row[:3]] = mount.point
            findings.append(space(mount, *row, answer))
    if fine:
        findings.append(_in_memory(fine, have.get("df")))
    told = [mount for mount in every if not mount.read_only and not is_quiet(mount)]
    if len([mount for mount in asked if not is_quiet(mount)]) < len(told):
        left_out = Words(f"only the first {MOST_MOUNTS} mounts were asked", f"只检查了前 {MOST_MOUNTS} 个挂载点")
        findings.append(not_checked(ID, TITLE, left_out))
    findings += _inodes([mount for mount in asked if not mount.remote and not is_quiet(mount)], have.get("dfi"))
    return named_paths.answered(findings, have, where)


def to_ask(have: "Answers") -> "list[Mount]":
    """The mounts that `df` is asked about: not those that are read-only on purpose, and no unprintable names."""
    table = files_in(have.get("mounts"), PATHS)
    mounts = [mount for mount in mounts_in(table.get(PATHS[0], "")) if not mount.read_only or mount.turned_read_only]
    mounts = [mount for mount in mounts if mount.point.isprintable()]
    disks = [mount for mount in mounts if not mount.memory][:MOST_MOUNTS]
    return disks + sorted((mount for mount in mounts if mount.memory), key=is_quiet)[:MOST_MOUNTS]


def is_unlimited(mount: "Mount", answer: "Answer | None") -> bool:
    """A memory file system without a limit (`size=0`), for which `df` shows no percentage."""
    lines = lines_of(answer.stdout) if mount.memory and answer is not None else []
    return any(line.endswith(f" - {mount.point}") for line in lines)


def _in_memory(fine: "list[tuple[int, Mount]]", answer: "Answer | None") -> Finding:
    """All memory file systems that have room, in one line: a stock machine has half a dozen."""
    share, mount = max(fine, key=lambda pair: pair[0])
    return Finding(
        "disk.memory",
        Severity.OK,
        Words(
            f"File systems in memory (tmpfs): at most {share}% full ({mount.point}).",
            f"内存文件系统（tmpfs）：最多已用 {share}%（{mount.point}）。",
        ),
        subject=mount.point,
        number=share,
        unit="%",
        threshold=SPACE,
        answer=answer,
    )


def _no_answer(mount: "Mount", answer: "Answer | None") -> Finding:
    if answer is not None and answer.status == "timed_out":
        of = f"{mount.type}, {mount.source}"
        seconds = ALONE_S if mount.remote else RETRY_S
        return Finding(
            "disk.hung",
            Severity.CRIT,
            Words(
                f"{mount.point} does not answer: df got nothing in {seconds:g} s ({of}).",
                f"{mount.point} 没有响应：df 等了 {seconds:g} 秒仍无结果（{of}）。",
            ),
            subject=mount.point,
            number=seconds,
            unit="s",
            next=f"grep -F {quoted(' ' + mount.point + ' ')} /proc/self/mountinfo",
            answer=answer,
        )
    why = why_not(answer, "df")
    if answer is not None and answer.ended:
        said = [line for line in lines_of(answer.stderr) if mount.point in line]
        why = Words(first_line(said[0]), first_line(said[0])) if said else why
    return not_checked(
        ID,
        Words(f"space of {mount.point}", f"{mount.point} 的空间"),
        why or Words("df did not list it", "df 没有列出它"),
        answer,
        needs_root=bool(said_no_permission(answer, mount.point)),
    )


def said_no_permission(answer: "Answer | None", point: str) -> bool:
    """df was not allowed to look at this mount point."""
    lines = lines_of(answer.stderr) if answer else []
    return any(point in line and "permission denied" in line.lower() for line in lines)


def _inodes(local: "list[Mount]", answer: "Answer | None") -> "list[Finding]":
    if not local:
        return []
    if answer is not None and answer.status == "timed_out":
        return []  # the mount that hangs is named by its own finding
    used: list[tuple[int, Mount]] = []
    for mount in local:
        for line in lines_of(answer.stdout) if answer is not None and answer.ended else ():
            if line.endswith(" " + mount.point):
                share = number_of(line[: -len(mount.point)].split()[-1].rstrip("%"))
                if share is not None:
                    used.append((int(share), mount))
    if not used:
        why = why_not(answer, "df -Pi")
        return [not_checked(ID, Words("inodes", "inode"), why, answer)] if why else []
    findings = []
    for share, mount in used:
        severity = INODES.severity(share)
        if severity != Severity.OK:
            word_en, word_zh = ("warning", "警告") if severity == Severity.WARN else ("critical", "严重")
            limit = f"{INODES.crossed(severity):g}%"
            findings.append(
                Finding(
                    "disk.inodes",
                    severity,
                    Words(
                        f"{mount.point} has used {share}% of its inodes ({word_en} at {limit}).",
                        f"{mount.point} 的 inode 已用 {share}%（{limit} 起{word_zh}）。",
                    ),
                    subject=mount.point,
                    number=share,
                    unit="%",
                    threshold=INODES,
                    next=f"du --inodes -xd2 {quoted(mount.point)}",
                    answer=answer,
                )
            )
    if not findings:
        share, mount = max(used, key=lambda pair: pair[0])
        findings.append(
            Finding(
                "disk.inodes",
                Severity.OK,
                Words(
                    f"Inodes: at most {share}% used ({mount.point}).", f"inode：最多用了 {share}%（{mount.point}）。"
                ),
                subject=mount.point,
                number=share,
                unit="%",
                threshold=INODES,
                answer=answer,
            )
        )
    return findings


def _read_only(mounts: "list[Mount]", fstab: str, answer: "Answer") -> "list[Finding]":
    wanted = writable_in_fstab(fstab)
    findings = []
    for mount in mounts:
        if mount.turned_read_only:
            severity = Severity.CRIT
            text = Words(
                f"{mount.point} was mounted for writing, but the kernel has made it read-only: it met errors.",
                f"{mount.point} 以可写方式挂载，但内核已将其改为只读：它遇到了错误。",
            )
        elif mount.read_only and mount.point in wanted:
            severity = Severity.WARN
            text = Words(
                f"{mount.point} is mounted read-only, though /etc/fstab wants it writable.",
                f"{mount.point} 以只读方式挂载，而 /etc/fstab 要求可写。",
            )
        else:
            continue
        findings.append(
            Finding(
                "disk.read-only",
                severity,
                text,
                subject=mount.point,
                next="dmesg --level=err,crit,alert,emerg",
                answer=answer,
            )
        )
    return findings
