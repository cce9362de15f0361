"""Processes that the kernel killed for memory, from its counter, the journal and its message buffer."""

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import (
    age,
    files_command,
    files_in,
    first_line,
    is_count,
    iso_s,
    local_stamp,
    not_checked,
    number_of,
    spoke,
    why_not,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "oom"
TITLE = Words("Out of memory", "内存溢出")
ABOUT = Words("processes that the kernel killed for memory", "被内核因内存不足杀死的进程")

KILLED_AGO = Threshold(7 * 24, 24, "h", below=True, source="a kill of this week is worth a look, one of today is news")

VMSTAT, UPTIME = "/proc/vmstat", "/proc/uptime"
PATHS = (VMSTAT, UPTIME)
# `-k` would leave out earlier boots; the field match does not (systemd.journal-fields(7)).
JOURNAL = (
    "journalctl",
    "_TRANSPORT=kernel",
    "--since=-7d",
    "--grep=Killed process|oom-kill:",
    "-n",
    "200",
    "-o",
    "short-iso",
    "--no-pager",
)
DMESG = ("dmesg", "--time-format=iso")

NEXT_JOURNAL = "journalctl _TRANSPORT=kernel --since=-7d --grep='oom|Killed process' --no-pager"
NEXT_DMESG = "dmesg --time-format=iso"
"""Where to look next: in what told of the kill."""


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The kernel's counter and the journal; the message buffer if the journal cannot tell when."""
    if "files" not in have:
        return [Command("files", files_command(PATHS), 3.0), Command("journal", JOURNAL, 8.0)]
    if _counted(have) != 0 and not _journal_tells(have.get("journal")) and "dmesg" not in have:
        return [Command("dmesg", DMESG, 5.0)]
    return []


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """The last kill with its process and time; without a log the count since boot."""
    files, journal, dmesg = have.get("files"), have.get("journal"), have.get("dmesg")
    counted = _counted(have)
    kills: list[tuple[float, str]] = []
    source = journal if _journal_tells(journal) else dmesg
    if source is not None and source.ended:
        kills = [kill for kill in map(_kill, lines_of(source.stdout)) if kill is not None]
    if kills:
        return [_killed(kills, source, where, journal=source is journal)]
    if counted == 0:
        findings = [_none(have, where)]
        if not _journal_tells(journal):
            why = Words("there is no journal here", "本机没有 journal")
            if journal is None or "No journal files" not in journal.stderr:
                why = why_not(journal, "journalctl") or why
            findings.append(not_checked(ID, Words("kills before the last boot", "上次启动之前的情况"), why, journal))
        return findings
    if counted is None:
        if _journal_tells(journal):
            return [
                Finding(
                    "oom.killed",
                    Severity.OK,
                    Words(
                        "The journal of the last 7 days knows of no kill for memory.",
                        "近 7 天的 journal 中没有因内存被杀的记录。",
                    ),
                    subject="kernel",
                    number=0,
                    answer=journal,
                )
            ]
        why = (
            why_not(journal, "journalctl")
            or why_not(files, "grep")
            or Words("this kernel does not count kills and there is no journal", "内核没有计数，也没有 journal")
        )
        return [not_checked(ID, TITLE, why, journal)]
    return _only_counted(counted, have, where)


def _killed(kills: "list[tuple[float, str]]", answer: "Answer | None", where: "Where", *, journal: bool) -> Finding:
    when, who = max(kills)
    hours = max(0.0, (where.now_s - when) / 3600)
    severity = KILLED_AGO.severity(hours)
    severity = Severity.NOTE if severity == Severity.OK else severity
    more = len(kills) - 1
    others_en = f"; {more} more in 7 days" if more else ""
    others_zh = f"；7 天内另有 {more} 次" if more else ""
    ago_en, ago_zh = age(where.now_s - when)
    return Finding(
        "oom.killed",
        severity,
        Words(
            f"{who} was killed for memory {ago_en} ago ({local_stamp(when)}){others_en}.",
            f"{who} 在{ago_zh}前因内存不足被杀（{local_stamp(when)}）{others_zh}。",
        ),
        subject=who,
        number=round(hours, 1),
        unit="h",
        threshold=KILLED_AGO,
        next=NEXT_JOURNAL if journal else NEXT_DMESG,
        answer=answer,
    )


def _none(have: "Answers", where: "Where") -> Finding:
    up_en, up_zh = age(_up_s(have) or 0.0)
    return Finding(
        "oom.killed",
        Severity.OK,
        Words(
            f"Nothing was killed for memory since the boot {up_en} ago.", f"自{up_zh}前启动以来没有进程因内存不足被杀。"
        ),
        subject="kernel",
        number=0,
        answer=have.get("files"),
    )


def _only_counted(counted: int, have: "Answers", where: "Where") -> "list[Finding]":
    """The kernel has counted kills, but no log says which and when: they lie between boot and now."""
    up_s = _up_s(have) or 0.0
    severity = KILLED_AGO.severity(up_s / 3600)
    severity = Severity.NOTE if severity == Severity.OK else severity
    up_en, up_zh = age(up_s)
    times = "1 process was" if counted == 1 else f"{counted} processes were"
    why = why_not(have.get("dmesg"), "dmesg") or Words("no log tells any more", "日志中已查不到")
    return [
        Finding(
            "oom.killed",
            severity,
            Words(
                f"{times} killed for memory since the boot {up_en} ago.",
                f"自{up_zh}前启动以来有 {counted} 个进程因内存不足被杀。",
            ),
            subject="kernel",
            number=counted,
            next=NEXT_DMESG if severity != Severity.OK else "",
            answer=have.get("files"),
        ),
        not_checked(ID, Words("which and when", "是哪些进程、何时"), why, have.get("dmesg")),
    ]


def _journal_tells(answer: "Answer | None") -> bool:
    """The journal was read whole: entries, or "no entries" (which is exit code 1 with --grep) without an excuse."""
    if answer is None or not answer.ended or "No journal files" in answer.stderr:
        return False
    if "not seeing messages" in answer.stderr or (answer.interference and not answer.stdout.strip()):
        return False
    if "Compiled without pattern matching" in answer.stderr:
        return False
    if spoke(answer, besides=("-- ",)) and not any(iso_s(line.split(" ", 1)[0]) for line in lines_of(answer.stdout)):
        return False
    return answer.exit_code == 0 or (answer.exit_code == 1 and not first_line(answer.stderr))


def _counted(have: "Answers") -> "int | None":
    for line in lines_of(files_in(have.get("files"), PATHS).get(VMSTAT, "")):
        name, _, value = line.partition(" ")
        if name == "oom_kill" and is_count(value):
            return int(value)
    return None


def _up_s(have: "Answers") -> "float | None":
    return number_of(files_in(have.get("files"), PATHS).get(UPTIME, "").split(" ")[0])


def _kill(line: str) -> "tuple[float, str] | None":
    """Time and process of a line `… Killed process 77 (java) …`."""
    head, mark, tail = line.partition("Killed process ")
    if not mark:
        return None
    when = iso_s(head.split(" ", 1)[0])
    pid, _, rest = tail.partition(" ")
    name = rest[1 : rest.find(")")] if rest.startswith("(") else ""
    if when is None or not is_count(pid):
        return None
    return when, f"{name or 'process'} (pid {pid})"
