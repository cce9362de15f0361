"""How long tasks waited for disks, and which disk is busy."""

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import (
    files_command,
    files_in,
    is_absent,
    not_checked,
    number_of,
    percent,
    pressure,
    vmstat_row,
    why_not,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "io"
TITLE = Words("Disk I/O", "磁盘 I/O")
ABOUT = Words("how long tasks waited for disks, and which disk is busy", "任务等待磁盘的时间，哪块磁盘繁忙")

SOME = Threshold(10, None, "%", source="PSI: share of a minute in which some task waited (accounting/psi.rst)")
FULL = Threshold(None, 5, "%", source="PSI: share of a minute in which every task waited (accounting/psi.rst)")
WAIT = Threshold(20, None, "%", source="vmstat(8), wa: CPU time idle with a request under way")
BUSY = Threshold(90, None, "%", source="iostat(1), %util: counts only together with slow requests on one queue")
SLOW_MS = 50
"""A request slower than this is slow even for a turning disk (a seek and a turn take about 15 ms)."""

PSI, STATS, UPTIME = "/proc/pressure/io", "/proc/diskstats", "/proc/uptime"
PATHS = (PSI, STATS, UPTIME)
AGAIN = (UPTIME, STATS)
"""The same files in another order, so that the second sample is another command than the first."""


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """Pressure and counters; unless for an overview a second of vmstat, and the counters again after it."""
    if "first" not in have:
        return [Command("first", files_command(PATHS), 3.0)]
    if where.light:
        return []
    if "vmstat" not in have:
        return [Command("vmstat", ("vmstat", "1", "2"), 5.0)]
    return [Command("second", files_command(AGAIN), 3.0)] if "second" not in have else []


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Pressure (or the share of waiting CPU time where the kernel has no pressure files), then the busiest disk."""
    first = have.get("first")
    files = files_in(first, PATHS)
    findings = []
    some, full = pressure(files.get(PSI), "some", "avg60"), pressure(files.get(PSI), "full", "avg60")
    if some is not None and full is not None:
        findings.append(_pressure(some, full, first))
    elif where.light or not is_absent(first, PSI):
        why = why_not(first, "grep") or Words("/proc/pressure/io does not tell", "/proc/pressure/io 没有给出")
        findings.append(not_checked(ID, Words("I/O pressure", "I/O 压力"), why, first))
    else:
        findings.append(_waiting(have.get("vmstat")))
    if not where.light:
        findings += _busiest(have)
    return findings


def _pressure(some: float, full: float, answer: "Answer | None") -> Finding:
    if FULL.severity(full) == Severity.CRIT:
        severity, number, limits = Severity.CRIT, full, FULL
        text = Words(
            f"Every task waited for a disk {percent(full)} of the last minute (critical at {FULL.crit:g}%).",
            f"过去一分钟有 {percent(full)} 的时间所有任务都在等磁盘（{FULL.crit:g}% 起严重）。",
        )
    elif SOME.severity(some) == Severity.WARN:
        severity, number, limits = Severity.WARN, some, SOME
        text = Words(
            f"Tasks waited for a disk {percent(some)} of the last minute (warning at {SOME.warn:g}%).",
            f"过去一分钟有 {percent(some)} 的时间有任务在等磁盘（{SOME.warn:g}% 起警告）。",
        )
    else:
        severity, number, limits = Severity.OK, some, SOME
        text = Words(
            f"Tasks waited for a disk {percent(some)} of the last minute.",
            f"过去一分钟有 {percent(some)} 的时间有任务在等磁盘。",
        )
    next_look = "ps -eo state,pid,wchan:20,comm" if severity != Severity.OK else ""
    return Finding(
        "io.pressure",
        severity,
        text,
        subject="disks",
        number=number,
        unit="%",
        threshold=limits,
        next=next_look,
        answer=answer,
    )


def _waiting(answer: "Answer | None") -> Finding:
    row = vmstat_row(answer)
    if row is None or "wa" not in row:
        why = why_not(answer, "vmstat", empty_is_fine=False) or Words("vmstat is unreadable", "vmstat 无法解析")
        return not_checked(ID, Words("waiting for disks", "等待磁盘的时间"), why, answer)
    severity = WAIT.severity(row["wa"])
    tail_en = f" (warning at {WAIT.warn:g}%)" if severity != Severity.OK else ""
    tail_zh = f"（{WAIT.warn:g}% 起警告）" if severity != Severity.OK else ""
    return Finding(
        "io.wait",
        severity,
        Words(
            f"The CPUs waited for a disk {percent(row['wa'])} of one second{tail_en}.",
            f"一秒内 CPU 有 {percent(row['wa'])} 的时间在等磁盘{tail_zh}。",
        ),
        subject="disks",
        number=row["wa"],
        unit="%",
        threshold=WAIT,
        next="vmstat 1 5" if severity != Severity.OK else "",
        answer=answer,
    )


def _busiest(have: "Answers") -> "list[Finding]":
    second = have.get("second")
    before, after = files_in(have.get("first"), PATHS), files_in(second, AGAIN)
    span_s = _between(before.get(UPTIME, ""), after.get(UPTIME, ""))
    old, new = _counters(before.get(STATS, "")), _counters(after.get(STATS, ""))
    what = Words("the busiest disk", "最忙的磁盘")
    if not old or not new or span_s is None:
        why = why_not(second, "grep") or Words("/proc/diskstats shows no disk", "/proc/diskstats 中没有磁盘")
        if old and new:
            why = Words("the two samples lie too close together", "两次采样间隔太短")
        return [not_checked(ID, what, why, second)]
    rates = []
    for name in old.keys() & new.keys():
        done, waited_ms, busy_ms = (b - a for a, b in zip(old[name], new[name], strict=True))
        if done >= 0 and waited_ms >= 0 and busy_ms >= 0:
            rates.append((min(100.0, busy_ms / (10 * span_s)), waited_ms / done if done else 0.0, done / span_s, name))
    if not rates:
        return [not_checked(ID, what, Words("its counters went backwards", "计数器倒退"), second)]
    share, each_ms, per_s, name = max(rates)
    severity = BUSY.severity(share) if each_ms >= SLOW_MS else Severity.OK
    tail_en = f" (warning at {BUSY.warn:g}% with {SLOW_MS} ms)" if severity != Severity.OK else ""
    tail_zh = f"（{BUSY.warn:g}% 且 {SLOW_MS} 毫秒起警告）" if severity != Severity.OK else ""
    return [
        Finding(
            "io.busy",
            severity,
            Words(
                f"Busiest disk: {name}, {share:.0f}% of the time, {per_s:.0f} requests/s, "
                f"{each_ms:.0f} ms each{tail_en}.",
                f"最忙的磁盘：{name}，{share:.0f}% 的时间忙碌，每秒 {per_s:.0f} 个请求，"
                f"每个 {each_ms:.0f} 毫秒{tail_zh}。",
            ),
            subject=name,
            number=round(share),
            unit="%",
            threshold=BUSY,
            next="vmstat -d" if severity != Severity.OK else "",
            answer=second,
        )
    ]


def _between(before: str, after: str) -> "float | None":
    start, end = number_of(before.split(" ")[0]), number_of(after.split(" ")[0])
    return None if start is None or end is None or end - start < 0.2 else end - start


def _counters(text: str) -> "dict[str, tuple[float, float, float]]":
    """Requests done, their waiting and the disk's busy milliseconds by whole disk (admin-guide/iostats.rst)."""
    rows = {}
    for line in lines_of(text):
        fields = line.split()
        if len(fields) >= 13 and not fields[2].startswith(("loop", "ram", "zram", "sr", "fd")):
            numbers = [number_of(field) for field in fields[3:13]]
            if all(number is not None for number in numbers):
                reads, _, _, read_ms, writes, _, _, write_ms, _, busy_ms = (number or 0.0 for number in numbers)
                rows[fields[2]] = reads + writes, read_ms + write_ms, busy_ms
    return {name: row for name, row in rows.items() if not _is_part(name, rows)}


def _is_part(name: str, names: "dict[str, tuple[float, float, float]]") -> bool:
    whole = name.rstrip("0123456789")
    return whole != name and (whole in names or (whole.endswith("p") and whole[:-1] in names))
