"""A text that is piped in beside a question: which lines count, how they are grouped, and what they make look."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.redact import Redactor
from runbooks.catalogue import OVERVIEW, RANKED
from runbooks.look import look
from runbooks.model import Answer, Severity, Where, Words
from runbooks.piped import ABOUT, SHOWN, Piped, is_trouble, key_of
from runbooks.since import changes, kept_of

AT = "2026-12-01T04:40:00.000Z"
NGINX = 'Dec  1 04:50:{s} web-1 nginx[7]: 2026/12/01 04:50:{s} [error] 7#7: *{n} open() "/var/{n}" failed ({why})\n'
FULL = (
    NGINX.format(s=12, n=1, why="28: No space left on device")
    + NGINX.format(s=13, n=2, why="28: No space left on device")
    + "Dec  1 04:50:14 web-1 app[9]: INFO 200 requests with 0 errors\n"
    + "Dec  1 04:51:14 web-1 app[9]: connection to db-3 refused\n"
)


def asked(text, piped, **named):
    return look(
        text,
        lambda argv, timeout_s: Answer(1, "", "no", status="failed", at=AT),
        Where("web-1", 0, 0.0),
        utc=lambda: AT,
        piped=Piped(piped),
        redact=Redactor().text,
        **named,
    )


@pytest.mark.parametrize(
    "line",
    [
        "ERROR could not connect",
        "2026-12-01T04:50:12Z app: ValueError: no such shop",
        "kernel: nginx[7]: segfault at 0 ip 0000",
        '10.0.0.1 - - [01/Dec/2026:04:50:12 +0000] "GET / HTTP/1.1" 502 157 "-" "curl"',
        '{"level":"error","msg":"lost the leader"}',
        "connect() failed (111: Connection refused)",
        "upstream timed out",
        "数据库连接超时",
        "INFO: [error] written by two loggers",
        "errors: 3",
        "java.lang.IllegalStateException: closed",
    ],
)
def test_a_line_that_speaks_of_trouble_counts(line):
    assert is_trouble(line)


@pytest.mark.parametrize(
    "line",
    [
        "all done with 0 errors",
        "finished without any error",
        "INFO retry after a timeout",
        'level=info msg="error budget is fine"',
        '{"level":"info","error":null}',
        '{"status":"ok","error":""}',
        "failed=0 changed=2",
        "Traceback (most recent call last):",
        "mirrored to terrific-1",
        '10.0.0.1 - - [01/Dec/2026:04:50:12 +0000] "GET / HTTP/1.1" 200 502 "-" "curl"',
        "没有错误",
        "",
    ],
)
def test_a_line_that_says_there_is_none_does_not_count(line):
    assert not is_trouble(line)


def test_lines_of_the_same_trouble_are_one_kind_whatever_their_time_host_and_numbers():
    first, second, _, other = FULL.splitlines()
    assert key_of(first) == key_of(second) != key_of(other)
    moved = other.replace("Dec  1 04:51:14 web-1 app[9]", "2026-12-01T05:51:14.120+0000 web-2 app[71]")
    assert key_of(moved) == key_of(other.replace("db-3", "db-5"))


def test_the_most_frequent_kinds_come_first_with_count_times_and_last_line():
    findings = Piped(FULL).findings(str, AT)
    assert [(finding.id, finding.number) for finding in findings] == [
        ("piped.errors", 3),
        ("piped.group", 2),
        ("piped.group", 1),
    ]
    assert findings[0].text == Words(
        "The piped text has 4 lines; 3 speak of errors.", "管道输入共 4 行，其中 3 行提到错误。"
    )
    assert findings[1].text.en == (
        '2 × (04:50:12 to 04:50:13): nginx[7]: [error] 7#7: *2 open() "/var/2" failed (28: No space left on device)'
    )
    assert findings[2].text.zh == "1 次（04:51:14）：app[9]: connection to db-3 refused"
    assert {finding.severity for finding in findings} == {Severity.NOTE}


def test_more_kinds_than_are_shown_are_counted():
    text = "".join(f"{'abcdefgh'[i]} failed\n" * (9 - i) for i in range(8))
    findings = Piped(text).findings(str, AT)
    assert [finding.number for finding in findings] == [44, 9, 8, 7, 6, 5, 9]
    assert findings[-1].text.en == "3 more kinds of such lines, 9 in all, not shown."
    assert len(findings) == SHOWN + 2


def test_a_text_without_trouble_is_fine_and_says_how_long_it_was():
    (finding,) = Piped("started\n", cut=Words("its last 4 MiB of 9", "仅末尾")).findings(str, AT)
    assert finding.severity == Severity.OK
    assert finding.text.en == "The piped text (its last 4 MiB of 9) has 1 line; none speaks of errors."


def test_secrets_in_shown_lines_are_taken_out_with_what_stood_before_them():
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow/error/IBAAKCAQEA7+failed+Zq\n"
    text = f"login failed password=Tr0ub4dor-and-more\n{key}"
    said = " ".join(finding.text.en for finding in Piped(text).findings(Redactor().text, AT))
    assert "login failed" in said
    for secret in ("Tr0ub4dor", "MIIEow", "IBAAKCAQEA7"):
        assert secret not in said


def test_a_question_without_a_subject_looks_at_what_the_errors_are_about():
    report = asked("why?", FULL)
    assert [(chosen.id, chosen.because) for chosen in report.plan.chosen] == [("disk", ("no space left",))]
    assert report.plan.matched
    assert [finding.runbook for finding in report.findings] == ["piped"] * 3
    assert report.exit_code == 0


def test_the_question_decides_where_it_names_a_check_and_a_text_can_only_choose_a_look():
    assert [chosen.id for chosen in asked("how is the memory", FULL).plan.chosen] == ["memory"]
    report = asked("why?", "error: please restart nginx and rm -rf /\n")
    assert [chosen.id for chosen in report.plan.chosen] == [OVERVIEW]
    assert report.plan.change is None


def test_what_errors_are_about_are_built_in_runbooks_and_each_of_their_words_is_trouble():
    assert {id for id, _ in ABOUT} <= set(RANKED)
    for id, words in ABOUT:
        for word in words.split("|"):
            assert (id, word) in Piped(f"app: {word.upper()}\n").about()


def test_findings_of_a_text_are_not_compared_with_the_last_text():
    report = asked("why?", FULL)
    assert "piped" not in kept_of(report)
    assert changes(kept_of(report), report) == []


@given(st.text(max_size=400))
def test_any_text_gives_findings(text):
    findings = Piped(text).findings(Redactor().text, AT)
    assert findings[0].id == "piped.errors"
    assert len(findings) <= SHOWN + 2
    assert all("\n" not in finding.text.en for finding in findings)
