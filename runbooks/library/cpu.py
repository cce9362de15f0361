"""Load, CPU pressure, stolen time and the busiest processes; a control group's quota where there is one.

A high load alone is no finding: Linux counts tasks that wait for a disk too (proc(5), loadavg). It becomes one
together with CPU pressure or a run queue.
"""

from guard.lines import lines_of
from runbooks.cgroup import CpuLimit, cpu_limit, cpu_paths
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import (
    files_command,
    files_in,
    is_count,
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

ID = "cpu"
TITLE = Words("CPU", "CPU")
ABOUT = Words(
    "load, CPU pressure, stolen time, throttling, the busiest processes",
    "负载、CPU 压力、被偷走的时间、限流、最忙的进程",
)

LOAD = Threshold(1, 2, "per core", source="runnable tasks for each core; counted only with pressure or a run queue")
PSI_SOME = Threshold(20, 50, "%", source="PSI: share of a minute in which some task waited for a CPU (psi.rst)")
STEAL = Threshold(10, None, "%", source="time that the hypervisor gave to others (proc(5), steal)")
THROTTLED = Threshold(10, 50, "%", source="share of quota periods cut short (sched-bwc.rst)")

OWN_TASKS = 5
"""So many runnable tasks can be ours: this program and four reads at once."""
IDLE_BELOW = 5
"""With less CPU pressure (%) than this, tasks that count in the load wait for something else than a CPU."""

LOADAVG, PSI, GROUP = "/proc/loadavg", "/proc/pressure/cpu", "/proc/self/cgroup"
PATHS = (LOADAVG, PSI, GROUP)
_SCALE = (Severity.OK, Severity.WARN, Severity.CRIT)


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The kernel's files and one second of `top`; without a readable `top`, `vmstat` and `ps`."""
    if "files" not in have:
        first = [Command("files", files_command(PATHS), 3.0), Command("nproc", ("nproc",), 3.0)]
        if not where.light:
            first.append(Command("top", ("top", "-b", "-n", "2", "-d", "1"), 6.0))
        return first
    more = []
    paths = cpu_paths(where.groups or files_in(have["files"], PATHS).get(GROUP, ""))
    if paths:
        more.append(Command("group", files_command(paths), 3.0))
    if "top" in have and _second_of_top(have["top"]) is None:
        more.append(Command("vmstat", ("vmstat", "1", "2"), 5.0))
        more.append(Command("ps", ("ps", "-eo", "pid,pcpu,comm", "--sort=-pcpu"), 5.0))
    return [command for command in more if command.key not in have]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Load with what confirms it, then the quota, stolen time and what is busy."""
    answer = have.get("files")
    files = files_in(answer, PATHS)
    cores, cores_why = _cores(have)
    sample = _second_of_top(have.get("top")) or _second_of_vmstat(have.get("vmstat"))
    limit = cpu_limit(files_in(have.get("group"), cpu_paths(where.groups or files.get(GROUP, ""))))
    findings = [_load(files, cores, cores_why, sample, answer)]
    if limit is not None:
        findings.append(_quota(limit, have.get("group"), cores))
    if sample is not None and "steal" in sample and STEAL.severity(sample["steal"]) != Severity.OK:
        findings.append(
            Finding(
                "cpu.steal",
                Severity.WARN,
                Words(
                    f"The hypervisor gave {percent(sample['steal'])} of this machine's CPU time to others "
                    f"(warning at {STEAL.warn:g}%).",
                    f"宿主机拿走了本机 {percent(sample['steal'])} 的 CPU 时间（{STEAL.warn:g}% 起警告）。",
                ),
                subject="steal",
                number=sample["steal"],
                unit="%",
                threshold=STEAL,
                next="vmstat 1 5",
                answer=have.get("top") if "vmstat" not in have else have.get("vmstat"),
            )
        )
    findings += _busy(have, sample, where)
    return findings


def _cores(have: "Answers") -> "tuple[float | None, Words | None]":
    answer = have.get("nproc")
    why = why_not(answer, "nproc", empty_is_fine=False)
    if why is None and answer is not None and is_count(answer.stdout.strip()):
        return float(answer.stdout.strip()), None
    return None, why or Words("nproc is unreadable", "nproc 无法解析")


def _load(
    files: "dict[str, str]",
    cores: "float | None",
    cores_why: "Words | None",
    sample: "dict[str, float] | None",
    answer: "Answer | None",
) -> Finding:
    fields = files.get(LOADAVG, "").split()
    load = number_of(fields[0]) if len(fields) >= 4 else None
    if load is None:
        why = why_not(answer, "grep") or Words("/proc/loadavg does not tell", "/proc/loadavg 没有给出")
        return not_checked(ID, Words("load", "负载"), why, answer)
    if not cores:
        return not_checked(ID, Words("load", "负载"), cores_why or Words("number of cores unknown", "核数未知"), answer)
    waited = pressure(files.get(PSI), "some", "avg60")
    running = sample.get("running") if sample else None
    if running is None and waited is None:
        # Only a glance is left, and our own reads are in it.
        now = number_of(fields[3].partition("/")[0])
        running = None if now is None else max(0.0, now - OWN_TASKS)
    per_core = load / cores
    severity = LOAD.severity(per_core)
    confirmed = Severity.OK if waited is None else PSI_SOME.severity(waited)
    if running is not None and running > cores:
        confirmed = max(confirmed, LOAD.severity(running / cores), key=_SCALE.index)
    unconfirmed = severity != Severity.OK and confirmed == Severity.OK
    severity = Severity.NOTE if unconfirmed else min(severity, confirmed, key=_SCALE.index)
    limit = LOAD.crossed(severity)
    word_en, word_zh = {Severity.WARN: (", warning", "警告"), Severity.CRIT: (", critical", "严重")}.get(
        severity, ("", "")
    )
    tail_en = f"{word_en} at {limit:g}" if word_en else ""
    tail_zh = f"，{limit:g} 起{word_zh}" if word_zh else ""
    cores_en = "core" if cores == 1 else "cores"
    some_en = f"; CPU pressure {percent(waited)} of the last minute" if waited is not None else ""
    some_zh = f"；过去一分钟 CPU 压力 {percent(waited)}" if waited is not None else ""
    if unconfirmed and waited is not None and waited < IDLE_BELOW:
        some_en += ": tasks wait for something else, most often a disk or a network file system"
        some_zh += "：任务在等别的东西，多半是磁盘或网络文件系统"
    return Finding(
        "cpu.load",
        severity,
        Words(
            f"Load {load:g} on {cores:g} {cores_en} ({per_core:.1f} per core{tail_en}){some_en}.",
            f"负载 {load:g}，共 {cores:g} 核（每核 {per_core:.1f}{tail_zh}）{some_zh}。",
        ),
        subject="load",
        number=round(per_core, 2),
        unit="per core",
        threshold=LOAD,
        next="" if severity == Severity.OK else "ps -eo state,pid,wchan:20,comm" if unconfirmed else "top -b -n 1",
        answer=answer,
    )


def _quota(limit: CpuLimit, answer: "Answer | None", cores: "float | None") -> Finding:
    share = 100 * limit.throttled / limit.periods if limit.periods else 0.0
    severity = THROTTLED.severity(share)
    of_en = f" of {cores:g}" if cores else ""
    of_zh = f"（共 {cores:g} 核）" if cores else ""
    waited = pressure(limit.pressure, "some", "avg60")
    now_en = f", its pressure {percent(waited)} of the last minute" if waited is not None else ""
    now_zh = f"，过去一分钟压力 {percent(waited)}" if waited is not None else ""
    # Throttling is counted since the group began. Where the group's own pressure is known, it tells about now.
    if waited is not None and severity != Severity.OK:
        severity = min(severity, max(Severity.OK, PSI_SOME.severity(waited), key=_SCALE.index), key=_SCALE.index)
        severity = Severity.NOTE if severity == Severity.OK else severity
    return Finding(
        "cpu.quota",
        severity,
        Words(
            f"This control group ({limit.group}) may use {limit.cores:g}{of_en} cores; "
            f"cut short in {percent(share)} of its periods{now_en}.",
            f"本控制组（{limit.group}）最多可用 {limit.cores:g} 核{of_zh}；{percent(share)} 的周期被限流{now_zh}。",
        ),
        subject=limit.group,
        number=round(share, 1),
        unit="%",
        threshold=THROTTLED,
        next="top -b -n 1" if severity != Severity.OK else "",
        answer=answer,
    )


def _busy(have: "Answers", sample: "dict[str, float] | None", where: "Where") -> "list[Finding]":
    if where.light:
        return []
    top, what = have.get("top"), Words("the busiest processes", "最忙的进程")
    if sample is None or "busy" not in sample:
        why = why_not(top, "top", empty_is_fine=False) or Words("top is unreadable", "top 无法解析")
        return [not_checked(ID, what, why, top)]
    from_top = "vmstat" not in have
    source = top if from_top else have.get("ps")
    names = (_names_of_top if from_top else _names_of_ps)(source, where.pid)
    listed = ", ".join(f"{name} {share:g}%" for name, share in names)
    life_en, life_zh = ("", "") if from_top else (" (over their lifetime)", "（按进程一生平均）")
    return [
        Finding(
            "cpu.busy",
            Severity.OK,
            Words(
                f"CPU {percent(sample['busy'])} busy over one second"
                + (f"; busiest{life_en}: {listed}." if listed else "."),
                f"一秒内 CPU 使用率 {percent(sample['busy'])}" + (f"；最忙{life_zh}：{listed}。" if listed else "。"),
            ),
            subject="cpu",
            number=sample["busy"],
            unit="%",
            answer=top if from_top else have.get("vmstat"),
        )
    ]


def _second_of_top(answer: "Answer | None") -> "dict[str, float] | None":
    """busy, steal and running from the second round of procps' `top -b -n 2`; None when it is another top."""
    block = _last_round(answer)
    if block is None:
        return None
    sample: dict[str, float] = {}
    for line in block:
        if line.startswith("%Cpu"):
            parts = line.partition(":")[2].split(",")
            shares = {part.split()[1]: number_of(part.split()[0]) for part in parts if len(part.split()) == 2}
            idle, waiting, stolen = shares.get("id"), shares.get("wa"), shares.get("st")
            if idle is not None and waiting is not None:
                sample["busy"] = round(max(0.0, 100 - idle - waiting), 1)
            if stolen is not None:
                sample["steal"] = stolen
        elif line.startswith("Tasks:"):
            for part in line.partition(":")[2].split(","):
                fields = part.split()
                if len(fields) == 2 and fields[1] == "running" and is_count(fields[0]):
                    sample["running"] = max(0.0, float(fields[0]) - 1)  # top itself
    return sample if "busy" in sample else None


def _last_round(answer: "Answer | None") -> "list[str] | None":
    if answer is None or not answer.ended or answer.exit_code:
        return None
    lines = lines_of(answer.stdout)
    starts = [i for i, line in enumerate(lines) if line.startswith("top - ")]
    return lines[starts[-1] :] if len(starts) >= 2 else None


def _names_of_top(answer: "Answer | None", own: int) -> "list[tuple[str, float]]":
    block = _last_round(answer) or []
    heads = [i for i, line in enumerate(block) if "PID" in line.split() and "%CPU" in line.split()]
    if not heads:
        return []
    columns = block[heads[0]].split()
    at_pid, at_share = columns.index("PID"), columns.index("%CPU")
    found = []
    for line in block[heads[0] + 1 :]:
        fields = line.split(None, len(columns) - 1)
        if len(fields) == len(columns):
            share = number_of(fields[at_share])
            if share and fields[-1].strip() != "top" and fields[at_pid] != str(own):
                found.append((f"{fields[-1].strip()} (pid {fields[at_pid]})", share))
    return sorted(found, key=lambda pair: -pair[1])[:3]


def _names_of_ps(answer: "Answer | None", own: int) -> "list[tuple[str, float]]":
    found = []
    for line in lines_of(answer.stdout) if answer is not None and answer.ended else ():
        fields = line.split(None, 2)
        if len(fields) == 3 and is_count(fields[0]) and fields[2] != "ps" and int(fields[0]) != own:
            share = number_of(fields[1])
            if share:
                found.append((f"{fields[2]} (pid {fields[0]})", share))
    return found[:3]


def _second_of_vmstat(answer: "Answer | None") -> "dict[str, float] | None":
    row = vmstat_row(answer)
    if row is None or not {"r", "id", "wa"} <= row.keys():
        return None
    sample = {"busy": max(0.0, 100 - row["id"] - row["wa"]), "running": row["r"]}
    if "st" in row:
        sample["steal"] = row["st"]
    return sample
