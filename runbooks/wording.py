"""A report as text for people and for monitoring systems, in English and Chinese. Pure."""

import time

from runbooks.catalogue import BUILT_IN, OVERVIEW, Books
from runbooks.model import Severity, Words
from runbooks.report import error_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from runbooks.model import Finding
    from runbooks.report import Report

LABELS = {
    Severity.CRIT: Words("CRITICAL", "严重"),
    Severity.WARN: Words("WARNING", "警告"),
    Severity.NOTE: Words("note", "注意"),
    Severity.OK: Words("ok", "正常"),
    Severity.NOT_CHECKED: Words("not checked", "未检查"),
}
NAGIOS_WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")


def answer_text(report: "Report", *, now_s: float) -> str:
    """The whole answer: a headline, why these checks, what was found (worst first), what was not, what to do next.

    Args:
        now_s: Unix time of the question; shown in the local time zone with its offset.
    """
    zh = report.lang == "zh"
    lines = [headline(report, now_s=now_s), chosen_line(report)]
    error = error_of(report)
    if error is not None and report.plan.change is not None:
        end, between = ("。", "；") if zh else (".", ": ")
        lines += [f"{_begun(error['message'])}{between}{error['not_done']}{end}", _begun(error["hint"])]
    lines.append("")
    rows = [*report.findings, *report.not_checked]
    lines += table([(LABELS[row.severity].of(report.lang), row.text.of(report.lang)) for row in rows])
    lines.append("")
    if report.need_root:
        root = report.need_root
        lines.append(
            f"{root} 项检查需要 root。" if zh else f"{root} {'check needs' if root == 1 else 'checks need'} root."
        )
    for reason in report.unrecorded:
        lines.append(f"未写入记录：{reason}" if zh else f"Not recorded: {reason}")
    if not report.findings:
        lines.append(
            "没有一项检查得到结果，无法对本机下结论。"
            if zh
            else "Nothing could be checked, so nothing can be said about this machine."
        )
    lines += [sentence.of(report.lang) for sentence in report.since]
    if report.next:
        lines.append(f"下一步可看：{report.next}" if zh else f"Next look: {report.next}")
    if not report.plan.matched:
        lines += abilities(report.lang, report.books)
    while lines[-1] == "":
        lines.pop()
    return "\n".join(lines) + "\n"


def _begun(sentence: str) -> str:
    """The sentence with a capital letter first."""
    return sentence[:1].upper() + sentence[1:]


def headline(report: "Report", *, now_s: float) -> str:
    """`web-1: 1 critical, 2 warnings, 9 ok, 1 not checked (2026-12-01 04:57:25 +0000)`."""
    counts = {severity: report.count(severity) for severity in LABELS}
    when = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(now_s))
    if report.lang == "zh":
        names = (
            (Severity.CRIT, "项严重"),
            (Severity.WARN, "条警告"),
            (Severity.NOTE, "条注意"),
            (Severity.OK, "项正常"),
            (Severity.NOT_CHECKED, "项未检查"),
        )
        said = "，".join(f"{counts[severity]} {name}" for severity, name in names if counts[severity])
        return f"{report.host}：{said or '没有结果'}（{when}）"
    plural = {Severity.WARN: ("warning", "warnings"), Severity.NOTE: ("note", "notes")}
    parts = []
    for severity, label in (
        (Severity.CRIT, "critical"),
        (Severity.WARN, ""),
        (Severity.NOTE, ""),
        (Severity.OK, "ok"),
        (Severity.NOT_CHECKED, "not checked"),
    ):
        if counts[severity]:
            name = label or plural[severity][counts[severity] != 1]
            parts.append(f"{counts[severity]} {name}")
    return f"{report.host}: {', '.join(parts) or 'no result'} ({when})"


def chosen_line(report: "Report") -> str:
    """Which runbooks were chosen, by which words, and what was left out."""
    zh, plan = report.lang == "zh", report.plan
    if not plan.matched:
        return (
            "问题里没有指明检查项，下面是概况。"
            if zh
            else "Nothing in the question names a check; here is the overview."
        )
    parts = []
    for chosen in plan.chosen:
        quoted = ("、" if zh else ", ").join(f"“{words}”" for words in chosen.because)
        title = title_of(chosen.id, report.books).of(report.lang)
        parts.append(title if not quoted else f"{title}（{quoted}）" if zh else f"{title} ({quoted})")
    line = f"检查项：{'、'.join(parts)}。" if zh else f"Looked at: {', '.join(parts)}."
    if plan.left_out:
        names = [title_of(id, report.books).of(report.lang) for id in plan.left_out]
        line += (
            f"一次最多三项，未看：{'、'.join(names)}。"
            if zh
            else f" Three at a time, so not looked at: {', '.join(names)}."
        )
    return line


def title_of(id: str, books: Books = BUILT_IN) -> Words:
    """A runbook's name for people."""
    return Words("overview", "概况") if id == OVERVIEW else books.load(id).TITLE


def abilities(lang: str, books: Books = BUILT_IN) -> "list[str]":
    """What can be checked, one line each."""
    zh = lang == "zh"
    lines = ["没有模型时可以检查：" if zh else "Without a model I can check:"]
    width = max(width_of(title_of(id, books).of(lang)) for id in books.known)
    for id in books.known:
        title = title_of(id, books).of(lang)
        lines.append(f"  {title}{' ' * (width - width_of(title))}  {books.load(id).ABOUT.of(lang)}")
    return lines


def table(rows: "Iterable[tuple[str, str]]") -> "list[str]":
    """Two columns, the first padded by display width, so that Chinese labels align too."""
    rows = list(rows)
    width = max((width_of(label) for label, _ in rows), default=0)
    return [f"  {label}{' ' * (width - width_of(label))}  {text}" for label, text in rows]


def width_of(text: str) -> int:
    """How many terminal columns a text takes: East Asian wide and fullwidth characters take two, marks none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def nagios_text(report: "Report") -> str:
    """A plugin's output: first line state, worst finding and figures; then the other findings, one a line.

    Source: Monitoring Plugins Development Guidelines, "Performance data".
    """
    state = NAGIOS_WORDS[report.nagios_code]
    name = ",".join(report.runbooks).upper()
    rows = [*report.findings, *report.not_checked]
    if report.nagios_code == 3 and report.not_checked:
        rows = [*report.not_checked, *report.findings]
    first = _plain(rows[0].text.of(report.lang)) if rows else "nothing was checked"
    figures = " ".join(figure for figure in map(_figure, report.findings) if figure)
    lines = [f"{name} {state} - {first}" + (f" | {figures}" if figures else "")]
    lines += [f"{LABELS[row.severity].of(report.lang)}: {_plain(row.text.of(report.lang))}" for row in rows[1:]]
    lines += [f"not recorded: {_plain(reason)}" for reason in report.unrecorded]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Without the bar, which separates figures from words in a plugin's output."""
    return text.replace("|", "/").replace("\n", " ")


_UNITS = {"%": "%", "s": "s", "GiB": "GB"}


def _figure(finding: "Finding") -> str:
    if finding.number is None:
        return ""
    label = (
        finding.subject
        if finding.id == "disk.space"
        else finding.id + (f":{finding.subject}" if finding.subject else "")
    )
    label = "".join(character for character in label if character.isprintable() and character not in "'=|")
    if " " in label:
        label = f"'{label}'"
    figure = f"{label}={finding.number:g}{_UNITS.get(finding.unit, '')}"
    limits = finding.threshold
    if limits is None:
        return figure
    colon = ":" if limits.below else ""  # "10:" alerts below 10 (Guidelines, "Threshold and ranges")
    warn = "" if limits.warn is None else f"{limits.warn:g}{colon}"
    crit = "" if limits.crit is None else f"{limits.crit:g}{colon}"
    return f"{figure};{warn};{crit}".rstrip(";")
