"""Failed and restarting units of systemd, with their result and time."""

from guard.lines import lines_of
from runbooks.changes import UNITS
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import is_count, not_checked, says_no_systemd, spoke, unreadable, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from runbooks.model import Answer, Answers, Where

ID = "services"
TITLE = Words("Services", "服务")
ABOUT = Words("failed and restarting units of systemd", "systemd 中失败和反复重启的单元")

FAILED = Threshold(1, None, "units", source="systemctl(1): a failed unit stays listed until somebody looks")
STATES = {
    "running": Severity.OK,
    "initializing": Severity.NOTE,
    "starting": Severity.NOTE,
    "stopping": Severity.NOTE,
    "degraded": Severity.WARN,
    "maintenance": Severity.CRIT,
}
"""What `systemctl is-system-running` can say of a system that systemd runs (systemctl(1))."""
SAID = {
    "initializing": Words("early boot is not over", "启动尚在初期"),
    "starting": Words("the boot is not over", "启动尚未完成"),
    "stopping": Words("the machine is shutting down", "正在关机"),
    "degraded": Words("units have failed", "有单元失败"),
    "maintenance": Words("the rescue or emergency shell is active", "处于救援或紧急模式"),
}
DETAILED = 8
SHOWN = 5


LISTING = (
    "systemctl",
    "list-units",
    "--all",
    "--state=failed,auto-restart",
    "--no-legend",
    "--plain",
    "--no-pager",
)
DETAILS = "--property=Id,Result,ExecMainStatus,NRestarts,StateChangeTimestamp"
NAMED = "--property=Id,LoadState,ActiveState,SubState,UnitFileState,Result,ExecMainStatus,StateChangeTimestamp"


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The system's state, the failed units and those that the question names; then what happened to the failed."""
    if "units" not in have:
        asked = [Command("units", LISTING, 6.0), Command("state", ("systemctl", "is-system-running"), 6.0)]
        named = named_units(where.words)
        if named:
            asked.append(Command("named", ("systemctl", "show", NAMED, "--no-pager", "--", *named), 6.0))
        return asked
    units = [name for name, _ in units_in(have["units"])][:DETAILED]
    if units and "show" not in have:
        return [Command("show", ("systemctl", "show", DETAILS, "--no-pager", "--", *units), 6.0)]
    return []


def named_units(words: "Iterable[str]") -> "list[str]":
    """The units that the question's words name, at most four: names that people use, and `NAME.service` as it is."""
    found = []
    for word in words:
        if word in UNITS:
            found.append(f"{UNITS[word]}.service")
    return list(dict.fromkeys(found))[:4]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """One finding for the failed units together, one for those that restart in a loop, one for the system's state."""
    listing, state = have.get("units"), have.get("state")
    why = why_not(listing, "systemctl")
    if why is not None:
        if says_no_systemd(listing):
            why = Words("systemd does not run here", "本机没有运行 systemd")
        return [not_checked(ID, TITLE, why, listing)]
    units = units_in(listing)
    if not units and spoke(listing):
        return [not_checked(ID, TITLE, unreadable("systemctl"), listing)]
    failed = [name for name, sub in units if sub != "auto-restart"]
    looping = [name for name, sub in units if sub == "auto-restart"]
    details = _details(have.get("show"))
    findings = _named(have.get("named"), where)
    if failed:
        findings.append(_failed(failed, details, listing))
    if looping:
        findings.append(_looping(looping, details, listing))
    word = state.stdout.strip() if state is not None and state.ended else ""
    if word not in STATES:
        # Its exit code is 1 for every state but `running`, so the word counts, and only an unknown word is no answer.
        why = why_not(state, "systemctl is-system-running") or Words(f"it said {word!r}", f"返回了 {word!r}")
        findings.append(not_checked(ID, Words("state of the system", "系统状态"), why, state))
    elif STATES[word] != Severity.OK and not (word == "degraded" and failed):
        findings.append(
            Finding(
                "services.state",
                STATES[word],
                Words(f"systemd says: {SAID[word].en} ({word}).", f"systemd 报告：{SAID[word].zh}（{word}）。"),
                subject="systemd",
                next="systemctl list-jobs",
                answer=state,
            )
        )
    if not failed and not looping:
        findings.append(
            Finding(
                "services.failed",
                Severity.OK,
                Words("No unit has failed.", "没有失败的单元。"),
                subject="systemd",
                number=0,
                unit="units",
                threshold=FAILED,
                answer=listing,
            )
        )
    return findings


def _named(answer: "Answer | None", where: "Where") -> "list[Finding]":
    """One finding for each unit that the question names."""
    names = named_units(where.words)
    if not names:
        return []
    why = why_not(answer, "systemctl", empty_is_fine=False)
    blocks = _details(answer)
    if why is not None:
        return [not_checked(ID, Words(", ".join(names), "、".join(names)), why, answer)]
    findings = []
    for name in names:
        rows = blocks.get(name, {})
        short, active, sub = name.removesuffix(".service"), rows.get("ActiveState", ""), rows.get("SubState", "")
        since = rows.get("StateChangeTimestamp", "")
        since_en, since_zh = (f" since {_when(since)}", f"，自 {_when(since)}") if since else ("", "")
        if rows.get("LoadState") == "not-found" or not active:
            severity = Severity.NOTE
            text = Words(f"There is no unit {name}.", f"没有单元 {name}。")
        elif active == "active":
            severity = Severity.OK
            text = Words(f"{short} is {sub or active}{since_en}.", f"{short} 正在运行（{sub or active}{since_zh}）。")
        elif active == "failed":
            severity = Severity.WARN
            shown = _shown(name, rows)
            text = Words(f"{shown.en} has failed.", f"{shown.zh}已失败。")
        else:
            # Stopped and not meant to start at boot is a choice; stopped though enabled is not.
            severity = (
                Severity.WARN if rows.get("UnitFileState") == "enabled" and active == "inactive" else Severity.NOTE
            )
            tail_en, tail_zh = (", though it is enabled", "，但设为开机启动") if severity == Severity.WARN else ("", "")
            text = Words(
                f"{short} is {active} ({sub}){since_en}{tail_en}.",
                f"{short} 未在运行：{active}（{sub}{since_zh}）{tail_zh}。",
            )
        findings.append(
            Finding(
                "services.named",
                severity,
                text,
                subject=name,
                threshold=None,
                next=f"systemctl status --no-pager -- {name}" if severity != Severity.OK else "",
                answer=answer,
            )
        )
    return findings


def _failed(failed: "list[str]", details: "dict[str, dict[str, str]]", answer: "Answer | None") -> Finding:
    shown = [_shown(name, details.get(name, {})) for name in failed[:SHOWN]]
    more = len(failed) - len(shown)
    units_en = "1 unit failed" if len(failed) == 1 else f"{len(failed)} units failed"
    return Finding(
        "services.failed",
        Severity.WARN,
        Words(
            f"{units_en}: {', '.join(text.en for text in shown)}{f' and {more} more' if more else ''}.",
            f"{len(failed)} 个单元失败：{'、'.join(text.zh for text in shown)}{f'，另有 {more} 个' if more else ''}。",
        ),
        subject=failed[0],
        number=len(failed),
        unit="units",
        threshold=FAILED,
        next=f"systemctl status --no-pager -- {failed[0]}",
        answer=answer,
    )


def _looping(looping: "list[str]", details: "dict[str, dict[str, str]]", answer: "Answer | None") -> Finding:
    count = details.get(looping[0], {}).get("NRestarts", "")
    counted = is_count(count) and int(count) > 0
    times_en = f" ({'' if len(looping) == 1 else looping[0] + ' '}{count} times so far)" if counted else ""
    times_zh = f"（{'' if len(looping) == 1 else looping[0] + ' '}已重启 {count} 次）" if counted else ""
    names_en, names_zh = ", ".join(looping[:SHOWN]), "、".join(looping[:SHOWN])
    return Finding(
        "services.restarting",
        Severity.WARN,
        Words(
            f"{'Restarts' if len(looping) == 1 else 'Restart'} in a loop: {names_en}{times_en}.",
            f"反复重启：{names_zh}{times_zh}。",
        ),
        subject=looping[0],
        number=len(looping),
        unit="units",
        threshold=FAILED,
        next=f"journalctl -u {looping[0]} -n 50 --no-pager",
        answer=answer,
    )


def units_in(answer: "Answer | None") -> "list[tuple[str, str]]":
    """Name and sub-state of each unit in a `systemctl list-units --plain --no-legend` listing."""
    found = []
    for line in lines_of(answer.stdout) if answer is not None and answer.ended else ():
        fields = line.replace("●", " ").split(None, 4)
        if len(fields) >= 4 and "." in fields[0]:
            found.append((fields[0], fields[3]))
    return found


def _details(answer: "Answer | None") -> "dict[str, dict[str, str]]":
    """The blocks of `systemctl show` by unit."""
    blocks: dict[str, dict[str, str]] = {}
    for block in answer.stdout.split("\n\n") if answer is not None and answer.ended else ():
        rows = dict(line.partition("=")[::2] for line in lines_of(block) if "=" in line)
        if rows.get("Id"):
            blocks[rows["Id"]] = rows
    return blocks


def _shown(name: str, detail: "dict[str, str]") -> Words:
    """`nginx.service (exit-code 1, 02:10)`, with what systemd knows."""
    short = name.removesuffix(".service")
    parts = []
    result = detail.get("Result", "")
    if result and result != "success":
        status = detail.get("ExecMainStatus", "")
        parts.append(f"{result} {status}" if result == "exit-code" and status not in ("", "0") else result)
    if detail.get("StateChangeTimestamp"):
        parts.append(_when(detail["StateChangeTimestamp"]))
    if not parts:
        return Words(short, short)
    return Words(f"{short} ({', '.join(parts)})", f"{short}（{'，'.join(parts)}）")


def _when(stamp: str) -> str:
    """`Tue 2026-12-01 02:10:33 UTC` without weekday and seconds."""
    fields = stamp.split()
    if len(fields) >= 3 and is_count(fields[1][:4]):
        return " ".join([fields[1], fields[2][:5], *fields[3:4]])
    return stamp
