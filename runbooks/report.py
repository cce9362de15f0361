"""What a set of checks found, as a value: counts, order, the next look, exit codes, JSON. Pure."""

from guard.types import Value
from runbooks.catalogue import BUILT_IN, Books
from runbooks.model import Finding, Severity, Words, worst_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from runbooks.model import Answer
    from runbooks.planner import Plan

FORMAT = 1


class Report(Value):
    """The answer to one question."""

    __slots__ = (
        "host",
        "at",
        "brain",
        "plan",
        "findings",
        "not_checked",
        "executions",
        "unrecorded",
        "light",
        "since",
        "books",
    )
    host: str
    at: str
    """RFC 3339, UTC, milliseconds: when the question was taken."""
    brain: str
    plan: "Plan"
    findings: "tuple[Finding, ...]"
    """Worst first, without those that were not checked."""
    not_checked: "tuple[Finding, ...]"
    executions: "tuple[str, ...]"
    """Ids of the recorded reads, in order."""
    unrecorded: "tuple[str, ...]"
    """Why reads were not recorded, each reason once; empty when all were."""
    light: bool
    """Second samples were left out (an overview)."""
    since: "tuple[Words, ...]"
    """What has changed since the last time, a sentence for each earlier time (`runbooks.since`)."""
    books: Books
    """What could be chosen from: where names and titles come from."""

    def __init__(
        self,
        host: str,
        at: str,
        brain: str,
        plan: "Plan",
        findings: "Iterable[Finding]",
        not_checked: "Iterable[Finding]",
        executions: "Iterable[str]",
        unrecorded: "Iterable[str]" = (),
        light: bool = False,
        since: "Iterable[Words]" = (),
        books: Books = BUILT_IN,
    ) -> None:
        self.host = host
        self.at = at
        self.brain = brain
        self.plan = plan
        self.findings = tuple(findings)
        self.not_checked = tuple(not_checked)
        self.executions = tuple(executions)
        self.unrecorded = tuple(unrecorded)
        self.light = light
        self.since = tuple(since)
        self.books = books

    @property
    def lang(self) -> str:
        return self.plan.lang

    @property
    def runbooks(self) -> "list[str]":
        return [chosen.id for chosen in self.plan.chosen]

    def count(self, severity: str) -> int:
        """How many findings have this severity."""
        where = self.not_checked if severity == Severity.NOT_CHECKED else self.findings
        return sum(1 for finding in where if finding.severity == severity)

    @property
    def worst(self) -> str:
        """The worst severity; NOT_CHECKED when nothing at all could be checked."""
        return self.findings[0].severity if self.findings else Severity.NOT_CHECKED

    @property
    def next(self) -> str:
        """The command to look at next: that of the worst finding that has one; "" when all is well."""
        return next((finding.next for finding in self.findings if finding.next), "")

    @property
    def need_root(self) -> int:
        """How many checks an ordinary user could not make."""
        return sum(1 for finding in self.not_checked if finding.needs_root)

    @property
    def exit_code(self) -> int:
        """0 answered · 3 a change was asked for · 8 nothing could be checked. Findings do not count."""
        if self.plan.change is not None:
            return 3
        return 0 if self.findings else 8

    @property
    def nagios_code(self) -> int:
        """0 OK · 1 WARNING · 2 CRITICAL · 3 UNKNOWN, as monitoring plugins end (Monitoring Plugins Guidelines)."""
        if self.worst == Severity.CRIT:
            return 2
        if self.worst == Severity.WARN:
            return 1
        checked = {finding.runbook for finding in self.findings}
        blind = {finding.runbook for finding in self.not_checked} - checked
        return 3 if blind or not self.findings else 0


def report_of(
    host: str, at: str, brain: str, plan: "Plan", findings: "Iterable[Finding]", answers: "Iterable[Answer]"
) -> Report:
    """Sorts findings and gathers what is to be said about their records."""
    findings, answers = worst_first(findings), list(answers)
    reasons = [answer.reason or "the reason is not known" for answer in answers if answer.ended and not answer.recorded]
    return Report(
        host,
        at,
        brain,
        plan,
        [finding for finding in findings if finding.severity != Severity.NOT_CHECKED],
        [finding for finding in findings if finding.severity == Severity.NOT_CHECKED],
        dict.fromkeys(answer.execution for answer in answers if answer.execution),
        dict.fromkeys(reasons),
    )


def error_of(report: Report) -> "dict[str, str] | None":
    """Why this is not the answer that was asked for, in the three parts of guard.errors; None when it is."""
    change, lang = report.plan.change, report.lang
    if change is not None:
        message = Words(
            f"this would be a change ({change.verb}); without a model opsagent only looks",
            f"这是一项变更（{change.verb}）；没有配置模型时 opsagent 只查看",
        )
        hint = Words(
            "a person can run the command, or ask for approval: opsx exec -- CMD",
            "可由人执行，或申请批准：opsx exec -- CMD",
        )
        if change.command:
            hint = Words(
                f"the command would be: {change.command} · to keep it for approval: opsx exec -- {change.command}",
                f"对应的命令是：{change.command} · 提交审批：opsx exec -- {change.command}",
            )
        not_done = Words("nothing was changed", "没有做任何更改")
        code = "change.offline"
    elif not report.findings:
        message = Words("nothing could be checked", "没有一项检查得到结果")
        not_done = Words("nothing can be said about this machine", "无法对本机下结论")
        hint = Words("read the reasons under not_checked", "原因见“未检查”各行")
        code = "nothing_checked"
    else:
        return None
    return {"code": code, "message": message.of(lang), "not_done": not_done.of(lang), "hint": hint.of(lang)}


def finding_json(finding: Finding, host: str, lang: str) -> "dict[str, Any]":
    """One finding on the wire (docs/runbooks.md, "finding")."""
    return {
        "runbook": finding.runbook,
        "id": finding.id,
        "severity": finding.severity,
        "subject": finding.subject,
        "number": finding.number,
        "unit": finding.unit,
        "threshold": finding.threshold.as_json() if finding.threshold else None,
        "text": finding.text.of(lang),
        "host": host,
        "at": finding.at,
        "execution": finding.execution,
    }


def not_checked_json(finding: Finding, lang: str) -> "dict[str, Any]":
    """One thing that was not checked, with the reason."""
    return {
        "runbook": finding.runbook,
        "what": finding.subject,
        "text": finding.text.of(lang),
        "needs_root": finding.needs_root,
        "execution": finding.execution,
    }


def report_json(report: Report, answer: str) -> "dict[str, Any]":
    """The one object of `-p --json`."""
    return {
        "format": FORMAT,
        "host": report.host,
        "at": report.at,
        "brain": report.brain,
        "answer": answer,
        "runbooks": report.runbooks,
        "findings": [finding_json(finding, report.host, report.lang) for finding in report.findings],
        "not_checked": [not_checked_json(finding, report.lang) for finding in report.not_checked],
        "executions": list(report.executions),
        "requests": [],
        "error": error_of(report),
        "next": report.next or None,
    }
