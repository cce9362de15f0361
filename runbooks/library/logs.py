"""Errors that the system logged in the last hour, grouped by who wrote them."""

import time

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import first_line, is_count, iso_s, not_checked, says_permission, unreadable, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "logs"
TITLE = Words("Logs", "日志")
ABOUT = Words("errors in the journal or the system log in the last hour", "最近一小时 journal 或系统日志中的错误")

ERRORS = Threshold(100, None, "/h", source="more than one error in 36 s is a fault that goes on, not an incident")
ASKED_LINES = 1000
TAIL_LINES = 2000
PLAIN_LOGS = ("/var/log/syslog", "/var/log/messages")
ERROR_WORDS = ("error", "fail", "critical", "panic", "fatal", "segfault", "emerg", "denied")
"""A plain log has no severities; a line with one of these words counts, and the sentence says so."""
JOURNAL = (
    "journalctl",
    "-p",
    "err",
    "--since=-1h",
    "-n",
    str(ASKED_LINES),
    "-o",
    "short-iso",
    "--no-pager",
)


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The journal; where there is none, the tail of the plain log."""
    if "journal" not in have:
        return [Command("journal", JOURNAL, 8.0)]
    if _journal_missing(have["journal"]) and "plain" not in have:
        return [Command("plain", ("tail", "-n", str(TAIL_LINES), *PLAIN_LOGS), 5.0)]
    return []


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """The number of errors, the loudest writers and the last message."""
    journal, plain = have.get("journal"), have.get("plain")
    if plain is not None:
        return _of_plain(plain, journal, where)
    why = why_not(journal, "journalctl")
    if why is not None or journal is None:
        return [not_checked(ID, TITLE, why or Words("journalctl was not run", "没有运行 journalctl"), journal)]
    findings = []
    if says_permission(journal.stderr):
        why = Words("this user sees only its own messages in the journal", "当前用户只能看到自己的日志")
        findings.append(not_checked(ID, Words("the system's messages", "系统日志"), why, journal, needs_root=True))
    rows = [line for line in lines_of(journal.stdout) if line and not line.startswith(("-- ", " ", "\t", "Hint:"))]
    entries = [entry for entry in map(_entry, rows) if entry is not None]
    if findings and not entries:
        return findings
    if rows and not entries:
        return [not_checked(ID, TITLE, unreadable("journalctl"), journal)]
    return [_count(entries, journal, at_least=len(entries) >= ASKED_LINES), *findings]


def _journal_missing(answer: "Answer") -> bool:
    """There is no journal on this machine, or nothing that reads it (and not: it was not allowed or too slow)."""
    said = f"{answer.stderr} {answer.stdout[:300]}"
    return answer.exit_code == 127 or "No journal files were found" in said or "No journal files were opened" in said


def _count(
    entries: "list[tuple[str, str, str]]", answer: "Answer", *, at_least: bool = False, words: bool = False
) -> Finding:
    number = len(entries)
    at_en, at_zh = ("at least ", "至少 ") if at_least else ("", "")
    what_en, what_zh = ("lines that speak of errors", "行提到错误") if words else ("errors", "条错误")
    if not number:
        return Finding(
            "logs.errors",
            Severity.OK,
            Words(f"No {what_en} in the last hour.", f"最近一小时没有{'提到错误的行' if words else '错误'}。"),
            subject="log",
            number=0,
            unit="/h",
            threshold=ERRORS,
            answer=answer,
        )
    severity = Severity.WARN if ERRORS.severity(number) == Severity.WARN else Severity.NOTE
    by_writer: dict[str, int] = {}
    for _, writer, _ in entries:
        by_writer[writer] = by_writer.get(writer, 0) + 1
    top = sorted(by_writer.items(), key=lambda pair: -pair[1])[:5]
    listed = ", ".join(f"{writer} {count}" for writer, count in top)
    when, writer, message = entries[-1]
    limit_en = f" (warning at {ERRORS.warn:g})" if severity == Severity.WARN else ""
    limit_zh = f"（{ERRORS.warn:g} 起警告）" if severity == Severity.WARN else ""
    if number == 1 and not words:
        what_en = "error"
    first_en = f"{at_en.capitalize()}{number} {what_en} in the last hour{limit_en}: {listed}"
    first_zh = f"最近一小时{at_zh or ' '}{number} {what_zh}{limit_zh}：{listed}"
    return Finding(
        "logs.errors",
        severity,
        Words(
            f"{first_en}; last at {when} from {writer}: {message}",
            f"{first_zh}；最后一条 {when}，来自 {writer}：{message}",
        ),
        subject=top[0][0],
        number=number,
        unit="/h",
        threshold=ERRORS,
        next="journalctl -p err --since=-1h --no-pager" if not words else f"tail -n 200 {PLAIN_LOGS[0]}",
        answer=answer,
    )


def _entry(line: str) -> "tuple[str, str, str] | None":
    """Time, writer and message of a journal line (`2026-12-01T04:50:12+0000 host name[pid]: message`)."""
    fields = line.split(" ", 3)
    if len(fields) < 4 or len(fields[0]) < 19 or fields[0][10:11] != "T":
        return None
    writer = fields[2].rstrip(":").partition("[")[0]
    return fields[0][11:16], writer, first_line(fields[3], 120)


def _of_plain(plain: "Answer", journal: "Answer | None", where: "Where") -> "list[Finding]":
    there = [path for path in PLAIN_LOGS if f"==> {path} <==" in plain.stdout] if plain.ended else []
    if not there and plain.ended and plain.stdout.strip():
        there = [path for path in PLAIN_LOGS if path not in plain.stderr][:1]
    if not there:
        denied = says_permission(plain.stderr)
        why = why_not(plain, "tail") or Words("tail said nothing", "tail 没有输出")
        if not denied and plain.ended:
            why = Words("there is no journal and no plain system log here", "本机没有 journal，也没有系统日志文件")
        return [not_checked(ID, TITLE, why, plain, needs_root=denied)]
    entries, oldest, dated = [], where.now_s, 0
    for line in lines_of(plain.stdout):
        parts = _plain_entry(line, where.now_s)
        if parts is None:
            continue
        dated += 1
        oldest = min(oldest, parts[0])
        lower = line.lower()
        if where.now_s - 3600 <= parts[0] <= where.now_s + 60 and any(word in lower for word in ERROR_WORDS):
            entries.append(parts[1:])
    if not dated:
        why = Words("its lines carry no time that can be read", "日志行里没有可识别的时间")
        return [not_checked(ID, Words(there[0], there[0]), why, plain)]
    # If the tail does not reach back a whole hour, there may be more than was counted.
    return [_count(entries, plain, words=True, at_least=oldest > where.now_s - 3600 and dated >= TAIL_LINES - 5)]


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _plain_entry(line: str, now_s: float) -> "tuple[float, str, str, str] | None":
    """Unix time, clock time, writer and message of a syslog line in the traditional or the ISO form."""
    if line[4:5] == "-" and line[10:11] == "T":
        fields = line.split(" ", 3)
        when = iso_s(fields[0])
        if len(fields) < 4 or when is None:
            return None
        return when, fields[0][11:16], fields[2].rstrip(":").partition("[")[0], first_line(fields[3], 120)
    fields = line.split(None, 5)
    if len(fields) < 6 or fields[0] not in _MONTHS or not is_count(fields[1]) or fields[2].count(":") != 2:
        return None
    try:
        hour, minute, second = (int(part) for part in fields[2].split(":"))
    except ValueError:
        return None
    year, month = time.localtime(now_s).tm_year, _MONTHS.index(fields[0]) + 1
    try:
        when = time.mktime((year, month, int(fields[1]), hour, minute, second, 0, 0, -1))
        if when > now_s + 86_400:  # the form has no year: December read in January
            when = time.mktime((year - 1, month, int(fields[1]), hour, minute, second, 0, 0, -1))
    except (ValueError, OverflowError):
        return None
    return when, fields[2][:5], fields[4].rstrip(":").partition("[")[0], first_line(fields[5], 120)
