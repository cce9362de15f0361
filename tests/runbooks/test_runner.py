"""The runner: shared reads, time limits, hangs, broken parts. A fake clock where time matters, real threads always."""

from __future__ import annotations

import threading

import pytest

from guard.errors import StateBusy
from runbooks import runner
from runbooks.catalogue import RANKED
from runbooks.library import bigfiles
from runbooks.model import Answer, Severity, Where
from runbooks.reading import files_command
from tests.runbooks.replay import NOW_S

WHERE = Where("web-1", 0, NOW_S)
MOUNTS = (
    "/proc/self/mountinfo:28 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
    "/proc/self/mountinfo:71 28 0:61 / /mnt/gone rw,relatime - nfs4 nas:/x rw\n"
)
DF_ROOT = (
    "Filesystem Type 1024-blocks Used Available Capacity Mounted on\n/dev/sda1 ext4 40454436 6823456 31541364 18% /\n"
)


def utc() -> str:
    return "2026-12-01T04:40:00.000Z"


def of(argv, timeout_s) -> Answer:
    """A small machine with one NFS mount."""
    if argv[:3] == files_command(()):
        return Answer(0, MOUNTS if "mountinfo" in argv[3] else "", execution="e-1", at=utc())
    if argv[:2] == ("df", "-PT"):
        return Answer(0, DF_ROOT, execution="e-2", at=utc())
    return Answer(1, "", f"{argv[0]}: no", status="failed", at=utc())


def run(ids, ask, **named):
    return runner.run(ids, ask, WHERE, utc=utc, **named)


class Jumps:
    """A clock that stands still until a test moves it on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_reads_that_two_runbooks_share_run_once():
    asked = []

    def ask(argv, timeout_s):
        asked.append(tuple(argv))
        return of(argv, timeout_s)

    run(["disk", "memory", "cpu"], ask)
    assert len(asked) == len(set(asked))
    assert run(["disk"], ask).answers


def test_a_mount_that_hangs_is_named_and_the_others_are_answered():
    def ask(argv, timeout_s):
        if argv == ("df", "-PT", "/mnt/gone"):
            return Answer(None, status="timed_out", at=utc())
        return of(argv, timeout_s)

    findings = run(["disk"], ask).findings
    hung = [finding for finding in findings if finding.id == "disk.hung"]
    assert [finding.subject for finding in hung] == ["/mnt/gone"]
    assert "/mnt/gone does not answer" in hung[0].text.en
    assert [f.subject for f in findings if f.id == "disk.space"] == ["/"]


def test_a_read_that_never_comes_back_is_given_up_and_its_mount_is_named():
    clock, release = Jumps(), threading.Event()

    def ask(argv, timeout_s):
        if argv == ("df", "-PT", "/mnt/gone"):
            clock.now += timeout_s + runner.GRACE_S
            release.wait()
            return Answer(0, DF_ROOT)
        return of(argv, timeout_s)

    try:
        checked = run(["disk"], ask, monotonic=clock)
    finally:
        release.set()
    assert [f.subject for f in checked.findings if f.severity == Severity.CRIT] == ["/mnt/gone"]
    assert [a.reason for a in checked.answers if a.status == "timed_out"] == ["stuck in the kernel"]


def test_when_the_time_is_used_up_what_is_missing_says_so():
    clock = Jumps()

    def ask(argv, timeout_s):
        if argv[:3] == files_command(()) and "mountinfo" in argv[3]:
            clock.now += 3.6  # later than the end of all, sooner than this read is given up
        return of(argv, timeout_s)

    checked = run(["disk"], ask, monotonic=clock, total_s=4.0)
    assert [answer.status for answer in checked.answers] == ["succeeded", "cancelled", "cancelled", "cancelled"]
    assert {finding.severity for finding in checked.findings} == {Severity.NOT_CHECKED}
    assert any(runner.LATE in finding.text.en for finding in checked.findings)


def test_reads_begin_in_the_order_of_the_catalogue(monkeypatch):
    monkeypatch.setattr(runner, "AT_ONCE", 1)
    asked = []

    def ask(argv, timeout_s):
        asked.append(argv[0])
        return of(argv, timeout_s)

    run(["disk", "cpu", "services"], ask)
    assert asked.index("nproc") < asked.index("systemctl")
    assert asked[0] == "grep"
    assert asked.index("df") < asked.index("systemctl")


def test_no_read_gets_more_than_eight_seconds_or_what_is_left():
    limits = []

    def ask(argv, timeout_s):
        limits.append(timeout_s)
        return of(argv, timeout_s)

    run(["logs"], ask)
    run(["logs"], ask, total_s=3.0)
    assert limits[0] == runner.EACH_S
    assert all(limit <= 3.0 for limit in limits[-1:])


def test_at_most_four_reads_run_at_once():
    gate, peak, lock = threading.Semaphore(0), [0, 0], threading.Lock()

    def ask(argv, timeout_s):
        with lock:
            peak[0] += 1
            peak[1] = max(peak)
            if peak[0] == runner.AT_ONCE:
                for _ in range(1000):
                    gate.release()
        gate.acquire(timeout=0.5)
        with lock:
            peak[0] -= 1
        return of(argv, timeout_s)

    run(["disk", "memory", "cpu", "services", "logs"], ask)
    assert peak[1] == runner.AT_ONCE


@pytest.mark.parametrize(
    ("error", "said"), [(StateBusy("the log is locked"), "the log is locked"), (KeyError("x"), "KeyError")]
)
def test_a_guard_that_breaks_is_a_reason_and_not_an_end(error, said):
    def ask(argv, timeout_s):
        raise error

    findings = run(["disk", "services"], ask).findings
    assert {finding.severity for finding in findings} == {Severity.NOT_CHECKED}
    assert all(said in finding.text.en for finding in findings)


def test_a_parser_that_breaks_takes_no_other_runbook_with_it(monkeypatch):
    from runbooks.library import services

    def broken(have, where):
        raise IndexError("row 7")

    monkeypatch.setattr(services, "read", broken)
    findings = run(["disk", "services"], of).findings
    assert any(finding.id == "disk.space" for finding in findings)
    assert [f.text.en for f in findings if f.runbook == "services"] == [
        "Services: its answer could not be read (IndexError)"
    ]


def test_a_runbook_that_asks_for_ever_is_ended(monkeypatch):
    from runbooks.library import services
    from runbooks.model import Command

    monkeypatch.setattr(
        services, "commands", lambda have, where: [Command(f"k{len(have.keys())}", ("true", str(len(have.keys()))))]
    )
    assert len(run(["services"], of).answers) == runner.MOST_ROUNDS


def test_stopping_ends_the_run():
    release = threading.Event()

    def ask(argv, timeout_s):
        release.wait()
        return of(argv, timeout_s)

    try:
        with pytest.raises(runner.Stopped):
            run(["disk"], ask, stopped=lambda: True)
    finally:
        release.set()


def test_steps_are_told_from_begin_to_end_in_one_thread():
    steps, threads = [], set()

    def on_step(step):
        threads.add(threading.current_thread())
        steps.append((step.number, step.answer is not None))

    run(["disk", "memory"], of, on_step=on_step)
    assert threads == {threading.main_thread()}
    numbers = {number for number, _ in steps}
    for number in numbers:
        assert [ended for n, ended in steps if n == number] == [False, True]


def test_all_runbooks_end_within_the_total_time_though_each_read_uses_all_of_its_own(monkeypatch):
    monkeypatch.setattr(runner, "AT_ONCE", 1)
    clock, ends = Jumps(), []

    def ask(argv, timeout_s):
        ends.append(clock.now + timeout_s + runner.GRACE_S)
        clock.now += timeout_s + 0.4  # ended at its limit, and it took a moment to come back
        return Answer(None, status="timed_out", at=utc())

    findings = run(RANKED, ask, monotonic=clock).findings
    assert max(ends) <= 100.0 + runner.TOTAL_S
    assert clock.now <= 100.0 + runner.TOTAL_S
    assert {finding.runbook for finding in findings} == set(RANKED)
    assert not {finding.severity for finding in findings} & {Severity.OK, Severity.NOTE}


@pytest.mark.parametrize(("others", "limit_s"), [((), bigfiles.TIME_S), (RANKED, bigfiles.SHARED_S)])
def test_a_long_search_gets_less_time_beside_many_runbooks_and_says_that_it_is_not_finished(others, limit_s):
    limits = {}

    def ask(argv, timeout_s):
        if argv[0] not in ("du", "find") or "/var" not in argv:
            return of(argv, timeout_s)
        limits[argv[0]] = timeout_s
        return Answer(None, "512\t/var/lib\n" if argv[0] == "du" else "", status="timed_out", at=utc())

    ids = dict.fromkeys(("bigfiles", *others))
    checked = runner.run(list(ids), ask, WHERE.replace(paths=("/var",)), utc=utc)
    assert limits == {"du": limit_s, "find": limit_s}
    said = [finding.text for finding in checked.findings if finding.runbook == "bigfiles"]
    assert len(said) == 2
    for text in said:
        assert f"not finished: stopped after {limit_s:g} s" in text.en
        assert f"未查完：{limit_s:g} 秒后停止" in text.zh
        assert ("asked alone" in text.en) == bool(others)
