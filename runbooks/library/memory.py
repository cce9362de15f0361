"""Memory that is left, pressure, swap and the largest processes; a control group's limit where there is one."""

from guard.lines import lines_of
from runbooks.cgroup import MemoryLimit, memory_limit, memory_paths
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import (
    GIB,
    files_command,
    files_in,
    gib,
    is_absent,
    is_count,
    not_checked,
    percent,
    pressure,
    vmstat_row,
    why_not,
)
from runbooks.space import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "memory"
TITLE = Words("Memory", "内存")
ABOUT = Words(
    "memory that is left, pressure, swapping, the largest processes", "可用内存、内存压力、换页、占用最多的进程"
)

AVAILABLE = Threshold(10, 5, "%", below=True, source="MemAvailable is what can be had without swapping (proc(5))")
SOME = Threshold(5, None, "%", source="PSI: share of a minute in which some task waited (accounting/psi.rst)")
FULL = Threshold(None, 1, "%", source="PSI: share of ten seconds in which every task waited (accounting/psi.rst)")
SWAP = Threshold(25, None, "%", source="counts only while pages move: old pages in swap do no harm")

MEMINFO, PSI, SWAPS, GROUP = "/proc/meminfo", "/proc/pressure/memory", "/proc/swaps", "/proc/self/cgroup"
PATHS = (MEMINFO, PSI, SWAPS, GROUP)


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The kernel's files; then the limits of the control group, and a second of vmstat if much is swapped out."""
    if "files" not in have:
        first = [Command("files", files_command(PATHS), 3.0)]
        if not where.light:
            first.append(Command("ps", ("ps", "-eo", "pid,rss,comm", "--sort=-rss"), 5.0))
        return first
    files = files_in(have["files"], PATHS)
    more = []
    paths = memory_paths(where.groups or files.get(GROUP, ""))
    if paths:
        more.append(Command("group", files_command(paths), 3.0))
    if SWAP.severity(_swapped(files)) != Severity.OK:
        more.append(Command("vmstat", ("vmstat", "1", "2"), 5.0))
    return [command for command in more if command.key not in have]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """What is left for the machine and for our control group, then pressure and swap."""
    answer = have.get("files")
    files = files_in(answer, PATHS)
    info = _meminfo(files.get(MEMINFO, ""))
    findings = []
    total, available = info.get("MemTotal"), info.get("MemAvailable")
    if total and available is not None:
        findings.append(
            _left(
                "memory.available", Words("Memory", "内存"), total, available, answer, largest=_largest(have, where.pid)
            )
        )
    else:
        why = why_not(answer, "grep") or Words("/proc/meminfo does not tell", "/proc/meminfo 没有给出")
        findings.append(not_checked(ID, TITLE, why, answer))
    limit = memory_limit(files_in(have.get("group"), memory_paths(where.groups or files.get(GROUP, ""))))
    if limit is not None:
        findings.append(_group_left(limit, have, available))
    findings += _pressure(files, answer)
    findings += _swap(files, have)
    return findings


NO_WORDS = Words("", "")


def _left(
    id: str,
    name: Words,
    total: int,
    available: int,
    answer: "Answer | None",
    *,
    largest: Words = NO_WORDS,
    group: str = "",
) -> Finding:
    share = 100 * available / total if total else 0.0
    severity = AVAILABLE.severity(share)
    limit = AVAILABLE.crossed(severity)
    tail_en = tail_zh = ""
    if severity != Severity.OK:
        word_en, word_zh = ("warning", "警告") if severity == Severity.WARN else ("critical", "严重")
        tail_en, tail_zh = f", {word_en} below {limit:g}%", f"，低于 {limit:g}% {word_zh}"
    left, whole = amount(available), amount(total)
    # "22.1 of 23.5 GiB", "12 of 96 MiB", but "70 MiB of 1.0 GiB": 0.1 of 1.0 would say too little
    left_en = left if left[-3:] != whole[-3:] else left[:-4]
    return Finding(
        id,
        severity,
        Words(
            f"{name.en}: {left_en} of {whole} available ({percent(share)}{tail_en}){largest.en}.",
            f"{name.zh}：共 {whole}，可用 {left}（{percent(share)}{tail_zh}）{largest.zh}。",
        ),
        subject=group or "memory",
        number=round(share, 1),
        unit="%",
        threshold=AVAILABLE,
        next="ps -eo pid,user,rss,comm --sort=-rss" if severity != Severity.OK else "",
        answer=answer,
    )


def _group_left(limit: MemoryLimit, have: "Answers", available: "int | None") -> Finding:
    room = max(0, limit.limit - limit.used)
    if available is not None:
        room = min(room, available)  # the machine may have less than the group is allowed
    name = Words(f"Limit of this control group ({limit.group})", f"本控制组的上限（{limit.group}）")
    return _left("memory.limit", name, limit.limit, room, have.get("group"), group=limit.group)


def _largest(have: "Answers", own: int) -> Words:
    answer = have.get("ps")
    if answer is None or not answer.ended:
        return NO_WORDS
    for line in lines_of(answer.stdout):
        fields = line.split(None, 2)
        if len(fields) == 3 and is_count(fields[0]) and is_count(fields[1]) and int(fields[1]):
            if int(fields[0]) == own:
                continue
            size = int(fields[1]) * 1024
            shown = f"{gib(size)} GiB" if size >= GIB // 10 else f"{size / 1024**2:.0f} MiB"
            return Words(
                f"; largest: {fields[2]} {shown} (pid {fields[0]})",
                f"；最大的进程：{fields[2]} {shown}（pid {fields[0]}）",
            )
    return NO_WORDS


def _pressure(files: "dict[str, str]", answer: "Answer | None") -> "list[Finding]":
    text = files.get(PSI)
    some, full = pressure(text, "some", "avg60"), pressure(text, "full", "avg10")
    if some is None or full is None:
        if answer is None or not answer.ended:
            return []  # the memory finding has said why
        why = why_not(answer, "grep") or Words(f"{PSI} is empty", f"{PSI} 为空")
        if is_absent(answer, PSI):
            why = Words("this kernel does not offer /proc/pressure", "此内核不提供 /proc/pressure")
        return [not_checked(ID, Words("memory pressure", "内存压力"), why, answer)]
    severity = max(SOME.severity(some), FULL.severity(full), key=(Severity.OK, Severity.WARN, Severity.CRIT).index)
    if severity == Severity.CRIT:
        number, threshold = full, FULL
        text_en = f"Every task waited for memory {percent(full)} of the last 10 s (critical at {FULL.crit:g}%)."
        text_zh = f"过去 10 秒有 {percent(full)} 的时间所有任务都在等内存（{FULL.crit:g}% 起严重）。"
    elif severity == Severity.WARN:
        number, threshold = some, SOME
        text_en = f"Tasks waited for memory {percent(some)} of the last minute (warning at {SOME.warn:g}%)."
        text_zh = f"过去一分钟有 {percent(some)} 的时间有任务在等内存（{SOME.warn:g}% 起警告）。"
    else:
        number, threshold = some, SOME
        text_en = f"Memory pressure: tasks waited {percent(some)} of the last minute."
        text_zh = f"内存压力：过去一分钟有 {percent(some)} 的时间有任务在等内存。"
    return [
        Finding(
            "memory.pressure",
            severity,
            Words(text_en, text_zh),
            subject="memory",
            number=number,
            unit="%",
            threshold=threshold,
            next="vmstat 1 5" if severity != Severity.OK else "",
            answer=answer,
        )
    ]


def _swap(files: "dict[str, str]", have: "Answers") -> "list[Finding]":
    total, used = _swap_bytes(files.get(SWAPS, ""))
    answer = have.get("files")
    if not total:
        return []
    share = 100 * used / total
    base_en, base_zh = (
        f"Swap: {gib(used)} of {gib(total)} GiB used",
        f"交换分区：共 {gib(total)} GiB，已用 {gib(used)} GiB",
    )
    severity = Severity.OK
    tail_en = tail_zh = ""
    if "vmstat" in have:
        moved = _moved(have["vmstat"])
        if moved is None:
            why = why_not(have["vmstat"], "vmstat", empty_is_fine=False) or Words(
                "vmstat is unreadable", "vmstat 无法解析"
            )
            return [not_checked(ID, Words("swapping", "换页"), why, have["vmstat"])]
        answer = have["vmstat"]
        tail_en = f", {moved:g} KiB/s moving now"
        tail_zh = f"，当前每秒换页 {moved:g} KiB"
        if moved > 0:
            severity = Severity.WARN
            tail_en += f" (warning at {SWAP.warn:g}% while pages move)"
            tail_zh += f"（{SWAP.warn:g}% 起且有换页时警告）"
    return [
        Finding(
            "memory.swap",
            severity,
            Words(f"{base_en} ({percent(share)}){tail_en}.", f"{base_zh}（{percent(share)}）{tail_zh}。"),
            subject="swap",
            number=round(share, 1),
            unit="%",
            threshold=SWAP,
            next="vmstat 1 5" if severity != Severity.OK else "",
            answer=answer,
        )
    ]


def _moved(answer: "Answer") -> "float | None":
    """KiB a second in and out of swap; None when vmstat does not tell."""
    row = vmstat_row(answer)
    return None if row is None or not {"si", "so"} <= row.keys() else row["si"] + row["so"]


def _swapped(files: "dict[str, str]") -> float:
    total, used = _swap_bytes(files.get(SWAPS, ""))
    return 100 * used / total if total else 0.0


def _swap_bytes(text: str) -> "tuple[int, int]":
    total = used = 0
    for line in lines_of(text):
        fields = line.split()
        # zram is memory itself: its size says nothing about a disk that slows us down, but it can run full alike.
        if len(fields) >= 5 and is_count(fields[-3]) and is_count(fields[-2]):
            total += int(fields[-3]) * 1024
            used += int(fields[-2]) * 1024
    return total, used


def _meminfo(text: str) -> "dict[str, int]":
    """Bytes by name."""
    sizes = {}
    for line in lines_of(text):
        name, _, rest = line.partition(":")
        fields = rest.split()
        if len(fields) == 2 and fields[1] == "kB" and is_count(fields[0]):
            sizes[name] = int(fields[0]) * 1024
    return sizes
