"""What is different from the last time that a runbook ran. Pure; the shell keeps what `kept_of` gives.

A change is another severity of the same thing, something new that is not fine, or something bad that is gone. A number
that moves within its severity is no change: it would bury the others.
"""

from runbooks.catalogue import UnknownRunbook
from runbooks.model import WORST_FIRST, Severity, Words
from runbooks.named_paths import FOR_PATH
from runbooks.names import NAMES, name_of
from runbooks.reading import iso_s, local_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from runbooks.catalogue import Books
    from runbooks.model import Finding
    from runbooks.report import Report

FORMAT = 1
MOST_BYTES = 256 * 1024
SHOWN = 5
PIPED = "piped"
"""Findings about a text that came with the question (`runbooks.piped`), which are not about this machine."""
_NAMES = {
    Severity.OK: Words("ok", "正常"),
    Severity.NOTE: Words("a note", "注意"),
    Severity.WARN: Words("a warning", "警告"),
    Severity.CRIT: Words("critical", "严重"),
}


def kept_of(report: "Report") -> "dict[str, dict[str, Any]]":
    """What to keep of each runbook that gave findings, as a JSON object by its id."""
    kept: dict[str, dict[str, Any]] = {}
    for finding in report.findings:
        if finding.runbook == PIPED or finding.id == FOR_PATH:
            continue  # another text, or another path, each time
        entry = kept.setdefault(finding.runbook, {"format": FORMAT, "at": report.at, "findings": []})
        entry["findings"].append({"id": finding.id, "subject": finding.subject, "severity": finding.severity})
    return kept


def changes(before: "Mapping[str, Any]", report: "Report") -> "list[Words]":
    """What has changed since earlier runs, a sentence for each time; one "no change" if none of all that was looked at.

    A runbook that runs for the first time has nothing to be compared with: then "no change" would cover it wrongly.

    Args:
        before: what was kept, by runbook; anything that is not in the form of `kept_of` is left out.
    """
    by_time: dict[str, list[Words]] = {}
    now: dict[str, list[Finding]] = {}
    for finding in report.findings:
        now.setdefault(finding.runbook, []).append(finding)
    unchecked = {finding.runbook for finding in report.not_checked}
    is_covered = True
    for runbook, findings in now.items():
        old = _read(before.get(runbook))
        if old is None:
            is_covered = is_covered and all(one.runbook == PIPED or one.id == FOR_PATH for one in findings)
            continue
        at, severities = old
        said = by_time.setdefault(at, [])
        said += _of(severities, findings, report.books, gone=runbook not in unchecked and not report.light)
    changed = {at: said for at, said in by_time.items() if said}
    # With a change somewhere, "no change" elsewhere is noise; without any, the oldest time covers them all.
    told = changed or (dict(sorted(by_time.items())[:1]) if is_covered else {})
    return [sentence for at, said in sorted(told.items()) if (sentence := _sentence(at, said)) is not None]


def _of(
    before: "Mapping[tuple[str, str], str]", findings: "Iterable[Finding]", books: "Books", *, gone: bool
) -> "list[Words]":
    said, seen = [], set()
    for finding in findings:
        key = finding.id, finding.subject
        seen.add(key)
        old = before.get(key)
        what = _what(key, books)
        if finding.id == FOR_PATH:
            continue
        if old is None and finding.severity in (Severity.WARN, Severity.CRIT):
            name = _NAMES[finding.severity]
            said.append(Words(f"new: {what.en} ({name.en})", f"新出现：{what.zh}（{name.zh}）"))
        elif old is not None and old != finding.severity:
            was, now = _NAMES[old], _NAMES[finding.severity]
            said.append(Words(f"{what.en}: {was.en} before, now {now.en}", f"{what.zh}由{was.zh}变为{now.zh}"))
    for key, severity in before.items():
        if gone and key not in seen and severity in (Severity.WARN, Severity.CRIT):
            what, name = _what(key, books), _NAMES[severity]
            said.append(Words(f"gone: {what.en} ({name.en} before)", f"已消失：{what.zh}（此前{name.zh}）"))
    return said


def _what(key: "tuple[str, str]", books: "Books") -> Words:
    """The thing in words: ids are for programs."""
    title = None
    if key[0] not in NAMES:
        try:
            title = books.load(key[0].partition(".")[0]).TITLE
        except UnknownRunbook:
            pass  # kept of a runbook that is gone meanwhile
    return name_of(*key, title)


def _sentence(at: str, said: "list[Words]") -> "Words | None":
    when_s = iso_s(at)
    if when_s is None:
        return None
    when = local_stamp(when_s)
    if not said:
        return Words(f"No change since {when}.", f"自 {when} 以来没有变化。")
    more = len(said) - SHOWN
    more_en, more_zh = (f" and {more} more", f"，另有 {more} 项") if more > 0 else ("", "")
    return Words(
        f"Changed since {when}: {'; '.join(words.en for words in said[:SHOWN])}{more_en}.",
        f"自 {when} 以来的变化：{'；'.join(words.zh for words in said[:SHOWN])}{more_zh}。",
    )


def _read(entry: "Any") -> "tuple[str, dict[tuple[str, str], str]] | None":
    """Time and severities of a kept entry; None for anything else, such as a newer format."""
    if not isinstance(entry, dict) or entry.get("format") != FORMAT or not isinstance(entry.get("at"), str):
        return None
    rows = entry.get("findings")
    if not isinstance(rows, list):
        return None
    found = {}
    for row in rows:
        if isinstance(row, dict) and row.get("severity") in WORST_FIRST and row.get("severity") in _NAMES:
            found[str(row.get("id")), str(row.get("subject"))] = str(row["severity"])
    return entry["at"], found
