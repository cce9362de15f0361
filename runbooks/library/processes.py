"""Zombies, tasks stuck in the kernel, and how many files and tasks are left."""

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import files_command, files_in, is_count, not_checked, number_of, percent, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "processes"
TITLE = Words("Processes", "进程")
ABOUT = Words(
    "zombies, tasks stuck in the kernel, open files and tasks against their limits",
    "僵尸进程、卡在内核里的任务、打开文件数和任务数",
)

ZOMBIES = Threshold(
    20, None, "", source="a few zombies are normal for a moment; many mean that a parent does not wait(2)"
)
STUCK = Threshold(1, None, "", source="state D in two samples a second apart (proc(5), stat)")
FILES = Threshold(80, 95, "%", source="/proc/sys/fs/file-nr against its maximum; at 100 % nobody can open a file")
TASKS = Threshold(80, 95, "%", source="tasks against pid_max and threads-max; at 100 % nobody can fork")

FILE_NR, LOADAVG = "/proc/sys/fs/file-nr", "/proc/loadavg"
PID_MAX, THREADS_MAX = "/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"
PATHS = (FILE_NR, LOADAVG, PID_MAX, THREADS_MAX)
FIELDS = "pid,ppid,stat,wchan:24,comm"
SHOWN = 3


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """One listing; if it shows tasks in D, a second of vmstat and a second listing."""
    if "files" not in have:
        return [Command("files", files_command(PATHS), 3.0), Command("ps", ("ps", "-eo", FIELDS), 5.0)]
    if not _in_d(_rows(have.get("ps"))):
        return []
    if "vmstat" not in have:
        return [Command("vmstat", ("vmstat", "1", "2"), 5.0)]  # for the second that it takes
    return [Command("again", ("ps", "-eo", FIELDS, "--no-headers"), 5.0)] if "again" not in have else []


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Stuck tasks and zombies, then the two limits of the whole system."""
    listing = have.get("ps")
    rows = _rows(listing)
    if rows:
        findings = [*_stuck(rows, have), _zombies(rows, listing)]
    else:
        why = why_not(listing, "ps", empty_is_fine=False) or Words("ps is unreadable", "ps 无法解析")
        findings = [not_checked(ID, Words("states of processes", "进程状态"), why, listing)]
    return findings + _limits(have.get("files"))


def _rows(answer: "Answer | None") -> "list[tuple[int, int, str, str, str]]":
    """pid, parent, state, where it waits, name."""
    found = []
    for line in lines_of(answer.stdout) if answer is not None and answer.ended and not answer.exit_code else ():
        fields = line.split(None, 4)
        if len(fields) == 5 and is_count(fields[0]) and is_count(fields[1]):
            found.append((int(fields[0]), int(fields[1]), fields[2], fields[3], fields[4]))
    return found


def _in_d(rows: "list[tuple[int, int, str, str, str]]") -> "dict[int, tuple[str, str]]":
    """Tasks in uninterruptible sleep, without the kernel's own threads (children of kthreadd, pid 2)."""
    return {
        pid: (name, wait) for pid, parent, state, wait, name in rows if state.startswith("D") and parent != 2 != pid
    }


def _stuck(rows: "list[tuple[int, int, str, str, str]]", have: "Answers") -> "list[Finding]":
    first, again = _in_d(rows), have.get("again")
    if not first:
        return []
    second_rows = _rows(again)
    if not second_rows:
        why = why_not(again, "ps", empty_is_fine=False) or Words("the second ps is unreadable", "第二次 ps 无法解析")
        return [not_checked(ID, Words("whether tasks in D are stuck", "D 状态的任务是否卡住"), why, again)]
    stuck = {pid: task for pid, task in _in_d(second_rows).items() if pid in first}
    if not stuck:
        return []
    waits: dict[str, int] = {}
    for _, wait in stuck.values():
        waits[wait] = waits.get(wait, 0) + 1
    place = max(waits, key=lambda wait: waits[wait])
    listed = ", ".join(f"{name} (pid {pid})" for pid, (name, _) in list(stuck.items())[:SHOWN])
    at_en = f" on {place}" if place != "-" else ""
    at_zh = f"，等待 {place}" if place != "-" else ""
    tasks = "1 task is" if len(stuck) == 1 else f"{len(stuck)} tasks are"
    return [
        Finding(
            "processes.stuck",
            Severity.WARN,
            Words(
                f"{tasks} stuck in the kernel{at_en}, a second apart: {listed}.",
                f"{len(stuck)} 个任务卡在内核里{at_zh}（相隔一秒仍在 D 状态）：{listed}。",
            ),
            subject=next(iter(stuck.values()))[0],
            number=len(stuck),
            threshold=STUCK,
            next="ps -eo state,pid,wchan:32,comm",
            answer=again,
        )
    ]


def _zombies(rows: "list[tuple[int, int, str, str, str]]", answer: "Answer | None") -> Finding:
    names = {pid: name for pid, _, _, _, name in rows}
    parents: dict[int, int] = {}
    for _, parent, state, _, _ in rows:
        if state.startswith("Z"):
            parents[parent] = parents.get(parent, 0) + 1
    count = sum(parents.values())
    severity = ZOMBIES.severity(count)
    who_en = who_zh = ""
    if count:
        parent = max(parents, key=lambda pid: parents[pid])
        name = names.get(parent, "?")
        who_en = f"; {parents[parent]} of them are children of {name} (pid {parent})"
        who_zh = f"；其中 {parents[parent]} 个的父进程是 {name} (pid {parent})"
    limit_en = f" (warning at {ZOMBIES.warn:g})" if severity != Severity.OK else ""
    limit_zh = f"（{ZOMBIES.warn:g} 起警告）" if severity != Severity.OK else ""
    zombies = "1 zombie" if count == 1 else f"{count} zombies"
    return Finding(
        "processes.zombies",
        severity,
        Words(
            f"{len(rows)} processes, {zombies}{limit_en}{who_en}.",
            f"共 {len(rows)} 个进程，{count} 个僵尸进程{limit_zh}{who_zh}。",
        ),
        subject="processes",
        number=count,
        threshold=ZOMBIES,
        next="ps -eo ppid,pid,state,comm --sort=ppid" if severity != Severity.OK else "",
        answer=answer,
    )


def _limits(answer: "Answer | None") -> "list[Finding]":
    files = files_in(answer, PATHS)
    open_now, _, most = (number_of(field) for field in ([*files.get(FILE_NR, "").split(), "", "", ""])[:3])
    findings = []
    if open_now is None or not most:
        why = why_not(answer, "grep") or Words(f"{FILE_NR} does not tell", f"{FILE_NR} 没有给出")
        findings.append(not_checked(ID, Words("open files", "打开文件数"), why, answer))
    else:
        findings.append(
            _share("processes.files", FILES, open_now, most, Words("Open files", "打开文件"), "lsof -n", answer)
        )
    loads = files.get(LOADAVG, "").split()
    tasks = number_of(loads[3].partition("/")[2]) if len(loads) >= 4 else None
    tops = [top for top in (number_of(files.get(path, "").strip()) for path in (PID_MAX, THREADS_MAX)) if top]
    if tasks is None or not tops:
        why = why_not(answer, "grep") or Words("/proc does not tell", "/proc 没有给出")
        findings.append(not_checked(ID, Words("number of tasks", "任务数"), why, answer))
    else:
        findings.append(
            _share(
                "processes.tasks",
                TASKS,
                tasks,
                min(tops),
                Words("Tasks", "任务"),
                "ps -eo nlwp,pid,comm --sort=-nlwp",
                answer,
            )
        )
    return findings


def _share(
    id: str, limits: Threshold, now: float, most: float, name: Words, look: str, answer: "Answer | None"
) -> Finding:
    share = 100 * now / most
    severity = limits.severity(share)
    limit = limits.crossed(severity)
    tail_en = tail_zh = ""
    if severity != Severity.OK:
        word_en, word_zh = ("warning", "警告") if severity == Severity.WARN else ("critical", "严重")
        tail_en, tail_zh = f", {word_en} at {limit:g}%", f"，{limit:g}% 起{word_zh}"
    # The kernel's default maximum of open files is 2^63-1: "of 9223372036854775807" tells nobody anything.
    of_en, of_zh = (f" of {most:,.0f}", f"，上限 {most:,.0f}") if most < 1e15 else (", no limit", "，无上限")
    share_en, share_zh = (
        (f" ({percent(share)}{tail_en})", f"（{percent(share)}{tail_zh}）") if most < 1e15 else ("", "")
    )
    return Finding(
        id,
        severity,
        Words(f"{name.en}: {now:,.0f}{of_en}{share_en}.", f"{name.zh}：{now:,.0f}{of_zh}{share_zh}。"),
        subject=name.en.lower(),
        number=round(share, 1),
        unit="%",
        threshold=limits,
        next=look if severity != Severity.OK else "",
        answer=answer,
    )
