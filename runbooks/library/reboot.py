"""When the machine started, and whether it had been shut down in order before."""

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import age, files_command, files_in, first_line, local_stamp, not_checked, number_of, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "reboot"
TITLE = Words("Reboots", "重启")
ABOUT = Words("when the machine started, and whether it was shut down in order before", "何时启动，此前是否正常关机")

RECENT = Threshold(24, None, "h", below=True, source="a start of the last day explains most of what changed today")
UPTIME = "/proc/uptime"
LAST = ("last", "-x", "-F", "-n", "20", "reboot", "shutdown")


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The time since boot and the login records of boots and shutdowns."""
    if "uptime" in have:
        return []
    return [Command("uptime", files_command((UPTIME,)), 3.0), Command("last", LAST, 5.0)]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """The start, then what came before it."""
    answer, records = have.get("uptime"), have.get("last")
    up_s = number_of(files_in(answer, (UPTIME,)).get(UPTIME, "").split(" ")[0])
    if up_s is None:
        why = why_not(answer, "grep") or Words(f"{UPTIME} does not tell", f"{UPTIME} 没有给出")
        return [not_checked(ID, TITLE, why, answer)]
    hours = up_s / 3600
    up_en, up_zh = age(up_s)
    began = local_stamp(where.now_s - up_s)
    severity = Severity.NOTE if RECENT.severity(hours) == Severity.WARN else Severity.OK
    events = _events(records)
    clean = _clean(events)
    if clean is False:
        severity = Severity.WARN if severity == Severity.NOTE else Severity.NOTE
    before_en = {True: " after a shutdown in order", False: " with no shutdown in order before", None: ""}[clean]
    before_zh = {True: "，此前正常关机", False: "，此前没有正常关机的记录", None: ""}[clean]
    findings = [
        Finding(
            "reboot.started",
            severity,
            Words(f"Started {up_en} ago ({began}){before_en}.", f"{up_zh.strip()}前启动（{began}）{before_zh}。"),
            subject="boot",
            number=round(hours, 1),
            unit="h",
            threshold=RECENT,
            next="journalctl -b -1 -n 100 --no-pager" if severity in (Severity.WARN, Severity.NOTE) else "",
            answer=answer,
        )
    ]
    if clean is None:
        why = why_not(records, "last") or Words("no boot is on record", "没有启动记录")
        findings.append(
            not_checked(ID, Words("whether the last shutdown was in order", "上次是否正常关机"), why, records)
        )
    elif len([kind for kind in events if kind == "reboot"]) > 1:
        boots = len([kind for kind in events if kind == "reboot"])
        since = first_line((records.stdout if records else "").rpartition("begins")[2])
        since_en, since_zh = (f" since {since}", f"（自 {since} 起）") if since else ("", "")
        findings.append(
            Finding(
                "reboot.count",
                Severity.OK,
                Words(f"{boots} starts on record{since_en}.", f"记录中共启动 {boots} 次{since_zh}。"),
                subject="boot",
                number=boots,
                answer=records,
            )
        )
    return findings


def _events(answer: "Answer | None") -> "list[str]":
    """`reboot` and `shutdown`, newest first."""
    found = []
    for line in lines_of(answer.stdout) if answer is not None and answer.ended and not answer.exit_code else ():
        word = line.partition(" ")[0]
        if word in ("reboot", "shutdown"):
            found.append(word)
    return found


def _clean(events: "list[str]") -> "bool | None":
    """Whether a shutdown stands before the newest start; None when the records do not reach back so far."""
    if "reboot" not in events:
        return None
    older = events[events.index("reboot") + 1 :]
    return older[0] == "shutdown" if older else None
