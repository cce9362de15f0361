"""Timers of systemd whose work failed, what comes next, and what cron would run."""

from guard.lines import lines_of
from runbooks.library import services
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import is_count, not_checked, says_no_systemd, spoke, unreadable, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "timers"
TITLE = Words("Timers", "定时任务")
ABOUT = Words("timers whose work failed, what runs next, what cron would run", "失败的定时任务、下一个任务、cron 任务")

FAILED = Threshold(1, None, "timers", source="the unit that a timer starts is in the state failed (systemd.timer(5))")
LIST = ("systemctl", "list-timers", "--all", "--no-legend", "--no-pager")
FOLDERS = ("/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly")
LS = ("ls", "-1", *FOLDERS)
DAEMONS = ("ps", "-C", "cron,crond,anacron", "-o", "comm=")
STOCK = frozenset(
    ("e2scrub_all", "0hourly", "apt-compat", "dpkg", "man-db", "logrotate", "mlocate", "plocate", "popularity-contest")
)
"""Jobs that distributions bring along; where systemd runs they have timers of their own."""
SHOWN = 6


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The timers, the failed units (as the services runbook asks them), cron's folders and its daemon."""
    if "timers" in have:
        return []
    return [
        Command("timers", LIST, 6.0),
        Command("units", services.LISTING, 6.0),
        Command("cron", LS, 3.0),
        Command("daemon", DAEMONS, 3.0),
    ]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Timers, then cron."""
    return [*_timers(have), *_cron(have)]


def _timers(have: "Answers") -> "list[Finding]":
    answer, units = have.get("timers"), have.get("units")
    why = why_not(answer, "systemctl")
    if why is not None:
        why = Words("systemd does not run here", "本机没有运行 systemd") if says_no_systemd(answer) else why
        return [not_checked(ID, Words("timers of systemd", "systemd 定时器"), why, answer)]
    rows = [row for row in map(_row, lines_of(answer.stdout) if answer else ()) if row is not None]
    if not rows and spoke(answer):
        return [not_checked(ID, Words("timers of systemd", "systemd 定时器"), unreadable("systemctl"), answer)]
    findings = []
    why = why_not(units, "systemctl")
    if why is not None:
        findings.append(not_checked(ID, Words("whether their work failed", "任务是否失败"), why, units))
    else:
        broken = {name for name, _ in services.units_in(units)}
        failed = [(timer, unit) for timer, unit, _ in rows if unit in broken or timer in broken]
        if failed:
            findings.append(_failed(failed, units))
    if not rows:
        text = Words("systemd has no timers.", "systemd 没有定时器。")
        return [*findings, Finding("timers.list", Severity.OK, text, subject="timers", number=0, answer=answer)]
    timer, _, when = rows[0]
    next_en = f"; next: {timer}{f' at {when}' if when else ''}" if when else ""
    next_zh = f"；下一个：{timer}（{when}）" if when else ""
    timers = "1 timer" if len(rows) == 1 else f"{len(rows)} timers"
    text = Words(f"{timers}{next_en}.", f"共 {len(rows)} 个定时器{next_zh}。")
    return [*findings, Finding("timers.list", Severity.OK, text, subject="timers", number=len(rows), answer=answer)]


def _failed(failed: "list[tuple[str, str]]", answer: "Answer | None") -> Finding:
    listed = ", ".join(f"{timer} ({unit})" for timer, unit in failed[:SHOWN])
    listed_zh = "、".join(f"{timer}（{unit}）" for timer, unit in failed[:SHOWN])
    verb = "The work of 1 timer failed" if len(failed) == 1 else f"The work of {len(failed)} timers failed"
    return Finding(
        "timers.failed",
        Severity.WARN,
        Words(f"{verb}: {listed}.", f"{len(failed)} 个定时任务失败：{listed_zh}。"),
        subject=failed[0][0],
        number=len(failed),
        unit="timers",
        threshold=FAILED,
        next=f"systemctl status --no-pager -- {failed[0][1]}",
        answer=answer,
    )


def _row(line: str) -> "tuple[str, str, str] | None":
    """Timer, unit and next time of a `systemctl list-timers` row: its last two columns and its first ones."""
    fields = line.split()
    if len(fields) < 3 or not fields[-2].endswith(".timer"):
        return None
    when = " ".join(fields[1:3])[:16] if len(fields) > 6 and is_count(fields[1][:4]) else ""
    return fields[-2], fields[-1], when


def _cron(have: "Answers") -> "list[Finding]":
    answer, daemon = have.get("cron"), have.get("daemon")
    what = Words("jobs of cron", "cron 任务")
    if answer is None or not answer.ended:
        return [not_checked(ID, what, why_not(answer, "ls") or Words("ls was not run", "没有运行 ls"), answer)]
    denied = [line for line in lines_of(answer.stderr) if "ermission denied" in line]
    jobs = _jobs(answer.stdout)
    own = [job for job in jobs if job.rpartition("/")[2] not in STOCK]
    findings = []
    if denied:
        why = Words("some folders of cron may not be read", "部分 cron 目录无权读取")
        findings.append(not_checked(ID, what, why, answer, needs_root=True))
    if not jobs:
        return findings
    listed = ", ".join((own or jobs)[:SHOWN])
    more = len(own or jobs) - SHOWN
    more_en, more_zh = (f" and {more} more", f" 等，另有 {more} 个") if more > 0 else ("", "")
    # `ps -C` ends with 1 when there is no such process: an answer, unless it complains or is hindered.
    silent = daemon is not None and daemon.exit_code == 1 and not daemon.stderr.strip() and not daemon.interference
    if own and silent:
        findings.append(
            Finding(
                "timers.no-cron",
                Severity.NOTE,
                Words(
                    f"cron has jobs ({listed}{more_en}), but no cron daemon runs.",
                    f"有 cron 任务（{listed}{more_zh}），但没有 cron 守护进程在运行。",
                ),
                subject="cron",
                number=len(own),
                next="systemctl status --no-pager cron crond",
                answer=daemon,
            )
        )
    else:
        kind_en, kind_zh = " (all from the distribution)", "（均为发行版自带）"
        if own:
            kind_en, kind_zh = f", {len(own)} of them added here", f"，其中 {len(own)} 个为自行添加"
        jobs_en = "1 job" if len(jobs) == 1 else f"{len(jobs)} jobs"
        text = Words(
            f"cron has {jobs_en}{kind_en}: {listed}{more_en}.",
            f"cron 共 {len(jobs)} 个任务{kind_zh}：{listed}{more_zh}。",
        )
        findings.append(Finding("timers.cron", Severity.OK, text, subject="cron", number=len(jobs), answer=answer))
    return findings


def _jobs(listing: str) -> "list[str]":
    """Paths of the entries below cron's folders in `ls -1 FOLDER FOLDER …`."""
    folder, found = "", []
    for line in lines_of(listing):
        if line.endswith(":") and line[:-1] in FOLDERS:
            folder = line[:-1]
        elif line and folder and not line.startswith("."):
            found.append(f"{folder}/{line}")
    return found
