"""Failed and restarting units of systemd, with their result and time."""

from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import not_checked, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
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


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The system's state and the failed units; then what happened to the first of them."""
    if "units" not in have:
        listing = (
            "systemctl",
            "list-units",
            "--all",
            "--state=failed,auto-restart",
            "--no-legend",
            "--plain",
            "--no-pager",
        )
        return [Command("units", listing, 6.0), Command("state", ("systemctl", "is-system-running"), 6.0)]
    units = [name for name, _ in _units(have["units"])][:DETAILED]
    if units and "show" not in have:
        fields = "Id,Result,ExecMainStatus,NRestarts,StateChangeTimestamp"
        return [Command("show", ("systemctl", "show", f"--property={fields}", "--no-pager", "--", *units), 6.0)]
    return []


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """One finding for the failed units together, one for those that restart in a loop, one for the system's state."""
    listing, state = have.get("units"), have.get("state")
    why = why_not(listing, "systemctl")
    if why is not None:
        said = f"{listing.stderr} {listing.stdout}".lower() if listing else ""
        if (
            "not been booted with systemd" in said
            or "failed to connect to bus" in said
            or (listing and listing.exit_code == 127)
        ):
            why = Words("systemd does not run here", "本机没有运行 systemd")
        return [not_checked(ID, TITLE, why, listing)]
    units = _units(listing)
    failed = [name for name, sub in units if sub != "auto-restart"]
    looping = [name for name, sub in units if sub == "auto-restart"]
    details = _details(have.get("show"))
    findings = []
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
    if not findings:
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
    counted = count.isdigit() and int(count) > 0
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


def _units(answer: "Answer | None") -> "list[tuple[str, str]]":
    """Name and sub-state of each unit in a `systemctl list-units --plain --no-legend` listing."""
    found = []
    for line in answer.stdout.splitlines() if answer is not None and answer.ended else ():
        fields = line.replace("●", " ").split(None, 4)
        if len(fields) >= 4 and "." in fields[0]:
            found.append((fields[0], fields[3]))
    return found


def _details(answer: "Answer | None") -> "dict[str, dict[str, str]]":
    """The blocks of `systemctl show` by unit."""
    blocks: dict[str, dict[str, str]] = {}
    for block in answer.stdout.split("\n\n") if answer is not None and answer.ended else ():
        rows = dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line)
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
    if len(fields) >= 3 and fields[1][:4].isdigit():
        return " ".join([fields[1], fields[2][:5], *fields[3:4]])
    return stamp
