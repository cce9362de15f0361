"""Whether the clock is synchronised, how far it is off, and the time zone."""

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import first_line, iso_s, not_checked, number_of, unreadable, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "time"
TITLE = Words("Time", "时间")
ABOUT = Words("whether the clock is synchronised, its offset, the time zone", "时钟是否同步、偏差、时区")

OFFSET = Threshold(0.1, 1, "s", source="Kerberos and TOTP bear minutes; logs of several hosts are in order below 0.1 s")


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """systemd's and chrony's view, and the zone as programs see it."""
    if "date" in have:
        return []
    return [
        Command("date", ("date", "+%Y-%m-%dT%H:%M:%S%z %Z"), 3.0),
        Command("timedatectl", ("timedatectl", "show"), 5.0),
        Command("chrony", ("chronyc", "-n", "tracking"), 3.0),
    ]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Synchronised or not (chrony knows the offset too), then the zone."""
    return [*_synchronised(have), _zone(have)]


def _synchronised(have: "Answers") -> "list[Finding]":
    chrony, control = have.get("chrony"), have.get("timedatectl")
    rows = _rows(chrony, " : ")
    if "Leap status" in rows and "System time" in rows:
        return [_by_chrony(rows, chrony)]
    rows = _rows(control, "=")
    word = rows.get("NTPSynchronized")
    if word == "yes":
        text = Words("The clock is synchronised.", "时钟已同步。")
        return [Finding("time.sync", Severity.OK, text, subject="clock", answer=control)]
    if word == "no":
        off_en = "" if rows.get("NTP") == "yes" else ", and no time service is switched on"
        off_zh = "" if rows.get("NTP") == "yes" else "，且没有启用时间同步服务"
        severity = Severity.NOTE if rows.get("CanNTP") == "no" else Severity.WARN
        text = Words(f"The clock is not synchronised{off_en}.", f"时钟未同步{off_zh}。")
        return [Finding("time.sync", severity, text, subject="clock", next="timedatectl status", answer=control)]
    why = why_not(control, "timedatectl") or Words("timedatectl does not tell", "timedatectl 没有给出")
    if control is not None and "not been booted with systemd" in control.stderr:
        why = Words("systemd does not run here, and chrony does not either", "本机没有运行 systemd，也没有 chrony")
    return [not_checked(ID, Words("whether the clock is synchronised", "时钟是否同步"), why, control)]


def _by_chrony(rows: "dict[str, str]", answer: "Answer | None") -> Finding:
    if rows["Leap status"] != "Normal":
        text = Words(f"chrony says: {rows['Leap status']}.", f"chrony 报告：{rows['Leap status']}。")
        return Finding("time.sync", Severity.WARN, text, subject="clock", next="chronyc sources", answer=answer)
    fields = rows["System time"].split()
    offset = number_of(fields[0]) if fields else None
    if offset is None:
        why = Words("chrony does not tell the offset", "chrony 没有给出偏差")
        return not_checked(ID, Words("offset of the clock", "时钟偏差"), why, answer)
    severity = OFFSET.severity(offset)
    way_en, way_zh = ("slow", "慢") if "slow" in fields else ("fast", "快")
    tail_en = tail_zh = ""
    if severity != Severity.OK:
        word_en, word_zh = ("warning", "警告") if severity == Severity.WARN else ("critical", "严重")
        limit = OFFSET.crossed(severity)
        tail_en, tail_zh = f" ({word_en} at {limit:g} s)", f"（{limit:g} 秒起{word_zh}）"
    return Finding(
        "time.offset",
        severity,
        Words(
            f"The clock is synchronised and {offset:.6f} s {way_en}{tail_en}."
            if severity == Severity.OK
            else f"The clock is {offset:.3f} s {way_en}{tail_en}.",
            f"时钟已同步，偏{way_zh} {offset:.6f} 秒。"
            if severity == Severity.OK
            else f"时钟偏{way_zh} {offset:.3f} 秒{tail_zh}。",
        ),
        subject="clock",
        number=round(offset, 6),
        unit="s",
        threshold=OFFSET,
        next="chronyc sources" if severity != Severity.OK else "",
        answer=answer,
    )


def _zone(have: "Answers") -> Finding:
    answer = have.get("date")
    why = why_not(answer, "date", empty_is_fine=False)
    if why is not None or answer is None:
        return not_checked(ID, Words("time zone", "时区"), why or Words("date was not run", "没有运行 date"), answer)
    stamp, _, short = first_line(answer.stdout).partition(" ")
    if iso_s(stamp) is None or len(stamp) < 24:
        return not_checked(ID, Words("time zone", "时区"), unreadable("date"), answer)
    named = _rows(have.get("timedatectl"), "=").get("Timezone", "") or short
    offset = stamp[19:]
    now = stamp[:19].replace("T", " ")
    return Finding(
        "time.zone",
        Severity.OK,
        Words(f"It is {now} in the zone {named} ({offset}).", f"当前时间 {now}，时区 {named}（{offset}）。"),
        subject=named,
        answer=answer,
    )


def _rows(answer: "Answer | None", mark: str) -> "dict[str, str]":
    if answer is None or not answer.ended or answer.exit_code:
        return {}
    return {
        name.strip(): value.strip()
        for name, found, value in (line.partition(mark) for line in lines_of(answer.stdout))
        if found
    }
