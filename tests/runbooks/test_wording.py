"""Reports as text: width of Chinese columns, order, plugin output, the sentences that must not be missing."""

from __future__ import annotations

from runbooks.changes import Change
from runbooks.model import Answer, Finding, Severity, Threshold, Words
from runbooks.planner import Chosen, Plan
from runbooks.report import error_of, report_json, report_of
from runbooks.wording import answer_text, nagios_text, table, width_of

NOW_S = 1_796_100_000.0
LIMIT = Threshold(85, 95, "%", source="test")
AVAILABLE = Threshold(10, 5, "%", below=True, source="test")


def finding(severity, subject="/", id="disk.space", number=50, threshold=LIMIT, next="", needs_root=False):
    text = Words(f"{subject} is at {number}%.", f"{subject} 为 {number}%。")
    return Finding(
        id,
        severity,
        text,
        subject=subject,
        number=number,
        unit="%",
        threshold=threshold,
        next=next,
        needs_root=needs_root,
    )


def report(*findings, lang="en", change=None, matched=True, answers=(), left_out=()):
    plan = Plan([Chosen("disk", ["disk"])], left_out, matched, change, lang)
    return report_of("web-1", "2026-12-01T04:40:00.000Z", "offline", plan, findings, answers)


def lines(*findings, **named):
    return answer_text(report(*findings, **named), now_s=NOW_S).splitlines()


def test_width_counts_wide_characters_twice_and_marks_not_at_all():
    assert width_of("disk") == 4
    assert width_of("磁盘") == 4
    assert width_of("e\u0301") == 1
    assert width_of("ＡＢ") == 4


def test_columns_align_by_display_width():
    rows = table([("严重", "a"), ("未检查", "b"), ("ok", "c")])
    assert [width_of(row[: row.rindex(row[-1])]) for row in rows] == [10, 10, 10]


def test_the_worst_comes_first_and_only_the_worst_names_the_next_look():
    shown = lines(
        finding(Severity.OK, "/a"),
        finding(Severity.WARN, "/b", next="du -xhd1 /b"),
        finding(Severity.CRIT, "/c", next="du -xhd1 /c"),
        finding(Severity.NOT_CHECKED, "/d"),
    )
    assert shown[0].startswith("web-1: 1 critical, 1 warning, 1 ok, 1 not checked (2026-12-01 ")
    order = [line.split()[-4] for line in shown if " is at " in line]
    assert order == ["/c", "/b", "/a", "/d"]
    assert [line for line in shown if line.startswith("Next look")] == ["Next look: du -xhd1 /c"]


def test_chinese_is_chinese_to_the_last_line():
    shown = lines(
        finding(Severity.WARN, next="du -xhd1 /"),
        finding(Severity.NOT_CHECKED, needs_root=True),
        lang="zh",
        left_out=("logs",),
    )
    assert shown[0].startswith("web-1：1 条警告，1 项未检查（")
    assert "检查项：磁盘（“disk”）。一次最多三项，未看：日志。" in shown
    assert "1 项检查需要 root。" in shown
    assert "下一步可看：du -xhd1 /" in shown


def test_checks_that_need_root_are_counted():
    two = [finding(Severity.NOT_CHECKED, needs_root=True), finding(Severity.NOT_CHECKED, needs_root=True)]
    assert "2 checks need root." in lines(finding(Severity.OK), *two)
    assert not any("root" in line for line in lines(finding(Severity.OK), finding(Severity.NOT_CHECKED)))


def test_every_reason_why_nothing_was_recorded_is_said_once():
    full = Answer(0, "x", recorded=False, reason="No space left on device")
    assert lines(finding(Severity.OK), answers=[full, full]).count("Not recorded: No space left on device") == 1
    assert "未写入记录：No space left on device" in lines(finding(Severity.OK), answers=[full], lang="zh")
    assert not any("recorded" in line.lower() for line in lines(finding(Severity.OK), answers=[Answer(0, "x")]))


def test_nothing_checked_is_an_error_with_code_8():
    got = report(finding(Severity.NOT_CHECKED))
    assert got.exit_code == 8
    assert error_of(got)["code"] == "nothing_checked"
    assert "Nothing could be checked, so nothing can be said about this machine." in answer_text(got, now_s=NOW_S)


def test_a_change_is_named_and_not_made():
    got = report(finding(Severity.OK), change=Change("restart", "systemctl restart nginx"))
    text = answer_text(got, now_s=NOW_S)
    assert got.exit_code == 3
    assert "This would be a change (restart); without a model opsagent only looks: nothing was changed." in text
    assert "opsx exec -- systemctl restart nginx" in text
    assert report_json(got, text)["error"]["code"] == "change.offline"


def test_findings_do_not_change_the_exit_code_of_an_answer():
    assert report(finding(Severity.CRIT)).exit_code == 0


def test_an_unknown_question_lists_what_can_be_checked():
    shown = lines(finding(Severity.OK), matched=False)
    assert "Without a model I can check:" in shown
    assert any(line.startswith("  Disk ") and "inodes" in line for line in shown)


def test_plugin_output_has_state_sentence_and_figures_on_the_first_line():
    got = report(
        finding(Severity.OK, "/", number=36),
        finding(Severity.WARN, "/srv/my data|x", number=91),
        finding(Severity.OK, "memory", id="memory.available", number=48.5, threshold=AVAILABLE),
    )
    first, *rest = nagios_text(got).splitlines()
    assert first == (
        "DISK WARNING - /srv/my data/x is at 91%. | "
        "'/srv/my datax'=91%;85;95 /=36%;85;95 memory.available:memory=48.5%;10:;5:"
    )
    assert rest == ["ok: / is at 36%.", "ok: memory is at 48.5%."]


def test_plugin_codes_follow_the_worst_and_blindness_is_unknown():
    codes = {
        (Severity.OK,): 0,
        (Severity.NOTE, Severity.OK): 0,
        (Severity.WARN, Severity.NOT_CHECKED): 1,
        (Severity.WARN, Severity.CRIT): 2,
        (Severity.OK, Severity.NOT_CHECKED): 0,
        (Severity.NOT_CHECKED,): 3,
    }
    assert {key: report(*map(finding, key)).nagios_code for key in codes} == codes
    other = finding(Severity.NOT_CHECKED, id="services.not-checked")
    assert report(finding(Severity.OK), other).nagios_code == 3
    assert nagios_text(report(finding(Severity.OK), other)).startswith("DISK UNKNOWN - ")
