"""What `df` says of one file system, as a finding. Pure."""

from guard.lines import lines_of
from runbooks.model import Finding, Severity, Threshold, Words
from runbooks.reading import GIB, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer
    from runbooks.mounts import Mount

SPACE = Threshold(85, 95, "%", source="usual alert levels; ext4 keeps 5 % back for root (mke2fs(8), -m)")
LEFT = Threshold(5, 1, "GiB", below=True, source="one package upgrade or one day of logs of a busy host")
LEFT_COUNTS_FROM_GIB = 20
"""Absolute limits hold on file systems of at least this size: a 2 GiB /boot never has 5 GiB left."""
LEFT_WARNS_FROM_PERCENT = 80


def space_in(df_output: str, point: str) -> "tuple[int, int, int, int] | None":
    """Total, used and available KiB and the Capacity percentage of `point` in the output of `df -PT`, or None.

    Capacity is df's own: it leaves out the blocks that are kept for root, used/total does not.
    """
    for line in lines_of(df_output):
        if not line.endswith(" " + point):
            continue
        fields = line[: -len(point)].rsplit(None, 4)
        if len(fields) == 5 and fields[4].endswith("%"):
            numbers = [number_of(field.rstrip("%")) for field in fields[1:]]
            if all(number is not None for number in numbers):
                total, used, available, capacity = (int(number) for number in numbers if number is not None)
                return total, used, available, capacity
    return None


def space(mount: "Mount", total: int, used: int, available: int, capacity: int, answer: "Answer | None") -> Finding:
    """How full a file system is: sizes in KiB, `capacity` the percentage of df."""
    left, size = available * 1024, total * 1024
    severity, because = SPACE.severity(capacity), ""
    limit_en, limit_zh = "", ""
    if severity != Severity.OK:
        at = SPACE.crossed(severity)
        limit_en, limit_zh = f"at {at:g}%", f"{at:g}% 起"
    if size >= LEFT_COUNTS_FROM_GIB * GIB and not mount.memory:
        by_left = LEFT.severity(left / GIB)
        if by_left == Severity.WARN and capacity < LEFT_WARNS_FROM_PERCENT:
            by_left = Severity.OK
        if (by_left, severity) in (
            (Severity.CRIT, Severity.WARN),
            (Severity.CRIT, Severity.OK),
            (Severity.WARN, Severity.OK),
        ):
            severity, because = by_left, "left"
            limit_en, limit_zh = f"below {LEFT.crossed(by_left):g} GiB", f"剩余不足 {LEFT.crossed(by_left):g} GiB 时"
    word_en, word_zh = {Severity.WARN: ("warning", "警告"), Severity.CRIT: ("critical", "严重")}.get(severity, ("", ""))
    tail_en = f" ({word_en} {limit_en})" if word_en else ""
    tail_zh = f"（{limit_zh}{word_zh}）" if word_zh else ""
    return Finding(
        "disk.space",
        severity,
        Words(
            f"{mount.point} is {capacity}% full, {amount(left)} left of {amount(size)}{tail_en}.",
            f"{mount.point} 已用 {capacity}%，剩 {amount(left)}，共 {amount(size)}{tail_zh}。",
        ),
        subject=mount.point,
        number=round(left / GIB, 1) if because else capacity,
        unit="GiB" if because else "%",
        threshold=LEFT if because else SPACE,
        next=f"du -xhd1 {quoted(mount.point)}" if severity != Severity.OK else "",
        answer=answer,
    )


def amount(size_bytes: float) -> str:
    """A size for a sentence: GiB with one decimal, MiB below one GiB."""
    if size_bytes < GIB:
        return f"{size_bytes / 1024**2:.0f} MiB"
    return f"{size_bytes / GIB:.1f} GiB"


def quoted(path: str) -> str:
    """The path as one word of a shell command."""
    from shlex import quote

    return quote(path)
