"""Pending updates, how old the package lists are, and whether a restart is due. It refreshes nothing."""

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import age, files_command, files_in, not_checked, number_of, spoke, unreadable, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "updates"
TITLE = Words("Updates", "更新")
ABOUT = Words(
    "pending updates, age of the package lists, whether a restart is due", "待装更新、软件源列表新旧、是否需要重启"
)

SECURITY = Threshold(1, None, "packages", source="a published fix is a published hole")
LISTS = Threshold(7, None, "days", source="distributions publish security fixes several times a week")

RELEASE, REQUIRED, PACKAGES = "/etc/os-release", "/var/run/reboot-required", "/var/run/reboot-required.pkgs"
PATHS = (RELEASE, REQUIRED, PACKAGES)
APT = ("apt", "list", "--upgradable")
APT_LISTS = ("find", "/var/lib/apt/lists", "-maxdepth", "1", "-name", "*Release", "-printf", "%C@ %f\\n")
"""When a list was fetched: its change time. Its modification time is the server's."""
DNF = ("dnf", "-C", "-q", "check-update")
DNF_SECURITY = ("dnf", "-C", "-q", "updateinfo", "list", "--security")
KERNELS = ("ls", "-1", "/boot")
UNAME = ("uname", "-r")
DEBIAN, REDHAT = frozenset(("debian", "ubuntu")), frozenset(("rhel", "fedora", "centos", "rocky", "almalinux"))


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """What distribution this is and which kernels there are; then its package manager, from its cache only."""
    if "files" not in have:
        return [
            Command("files", files_command(PATHS), 3.0),
            Command("uname", UNAME, 3.0),
            Command("kernels", KERNELS, 3.0),
        ]
    kinds = _kinds(have)
    if kinds & DEBIAN:
        asked = [Command("apt", APT, 8.0), Command("lists", APT_LISTS, 3.0)]
    elif kinds & REDHAT:
        asked = [Command("dnf", DNF, 8.0), Command("security", DNF_SECURITY, 8.0)]
    else:
        return []
    return [command for command in asked if command.key not in have]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Pending packages, then the age of what that was judged by, then restarts."""
    kinds = _kinds(have)
    if kinds & DEBIAN:
        findings = [*_apt(have.get("apt")), *_age(have.get("lists"), where)]
    elif kinds & REDHAT:
        findings = _dnf(have.get("dnf"), have.get("security"))
    else:
        why = why_not(have.get("files"), "grep") if not kinds else None
        why = why or Words("this runbook knows apt and dnf only", "此 runbook 只支持 apt 和 dnf")
        findings = [not_checked(ID, Words("pending updates", "待装更新"), why, have.get("files"))]
    return [*findings, *_restart(have)]


def _kinds(have: "Answers") -> "set[str]":
    words: set[str] = set()
    for line in lines_of(files_in(have.get("files"), PATHS).get(RELEASE, "")):
        name, _, value = line.partition("=")
        if name in ("ID", "ID_LIKE"):
            words.update(value.strip().strip("\"'").split())
    return words


def _apt(answer: "Answer | None") -> "list[Finding]":
    why = why_not(answer, "apt", empty_is_fine=False)
    if why is not None or answer is None:
        what = Words("pending updates", "待装更新")
        return [not_checked(ID, what, why or Words("apt was not run", "没有运行 apt"), answer)]
    rows = [line for line in lines_of(answer.stdout) if "[upgradable from:" in line]
    if not rows and spoke(answer, besides=("Listing",)):
        return [not_checked(ID, Words("pending updates", "待装更新"), unreadable("apt"), answer)]
    fixes = [line.partition("/")[0] for line in rows if "-security" in line.partition("/")[2].partition(" ")[0]]
    return [_pending(len(rows), fixes, "apt list --upgradable", answer)]


def _dnf(updates: "Answer | None", security: "Answer | None") -> "list[Finding]":
    what = Words("pending updates", "待装更新")
    # dnf(8): 100 means that there are updates, 0 that there are none.
    if (
        updates is None
        or not updates.ended
        or updates.exit_code not in (0, 100)
        or (updates.exit_code == 0 and updates.interference)
    ):
        return [not_checked(ID, what, why_not(updates, "dnf") or Words("dnf does not tell", "dnf 没有给出"), updates)]
    rows = 0
    for line in lines_of(updates.stdout):
        if line.startswith("Obsoleting"):
            break
        rows += len(line.split()) == 3
    if not rows and spoke(updates):
        return [not_checked(ID, what, unreadable("dnf"), updates)]
    findings = []
    fixes: list[str] = []
    why = why_not(security, "dnf updateinfo")
    if why is None and security is not None:
        listed = [line.split() for line in lines_of(security.stdout)]
        fixes = list(dict.fromkeys(fields[2] for fields in listed if len(fields) == 3))
    else:
        findings.append(
            not_checked(ID, Words("which of them are security fixes", "其中哪些是安全更新"), why or what, security)
        )
    return [_pending(rows, fixes, "dnf -C check-update", updates), *findings]


def _pending(count: int, fixes: "list[str]", look: str, answer: "Answer | None") -> Finding:
    severity = SECURITY.severity(len(fixes))
    if severity == Severity.OK and count:
        severity = Severity.NOTE
    some = f": {', '.join(fixes[:5])}{f' and {len(fixes) - 5} more' if len(fixes) > 5 else ''}" if fixes else ""
    some_zh = f"：{'、'.join(fixes[:5])}{f' 等 {len(fixes)} 个' if len(fixes) > 5 else ''}" if fixes else ""
    updates = "1 update is" if count == 1 else f"{count} updates are"
    return Finding(
        "updates.pending",
        severity,
        Words(
            f"{updates} pending, {len(fixes)} of them for security{some}." if count else "No update is pending.",
            f"有 {count} 个待装更新，其中安全更新 {len(fixes)} 个{some_zh}。" if count else "没有待装更新。",
        ),
        subject="packages",
        number=len(fixes) if fixes else count,
        unit="packages",
        threshold=SECURITY,
        next=look if severity != Severity.OK else "",
        answer=answer,
    )


def _age(answer: "Answer | None", where: "Where") -> "list[Finding]":
    what = Words("age of the package lists", "软件源列表的新旧")
    stamps = []
    for line in lines_of(answer.stdout) if answer is not None and answer.ended else ():
        stamp = number_of(line.partition(" ")[0])
        if stamp is not None:
            stamps.append(stamp)
    if not stamps:
        why = why_not(answer, "find") or Words(
            "there are none: apt update was never run", "没有列表：从未执行过 apt update"
        )
        return [not_checked(ID, what, why, answer)]
    days = (where.now_s - max(stamps)) / 86_400
    old_en, old_zh = age(where.now_s - max(stamps))
    severity = Severity.NOTE if LISTS.severity(days) == Severity.WARN else Severity.OK
    late_en = "; newer updates may exist (nothing was refreshed)" if severity == Severity.NOTE else ""
    late_zh = "，可能已有更新的版本（未刷新）" if severity == Severity.NOTE else ""
    return [
        Finding(
            "updates.lists",
            severity,
            Words(f"The package lists are {old_en} old{late_en}.", f"软件源列表是{old_zh}前的{late_zh}。"),
            subject="lists",
            number=round(days, 1),
            unit="days",
            threshold=LISTS,
            answer=answer,
        )
    ]


def _restart(have: "Answers") -> "list[Finding]":
    files = files_in(have.get("files"), PATHS)
    if REQUIRED in files or PACKAGES in files:
        packages = list(dict.fromkeys(files.get(PACKAGES, "").split()))
        for_en = f" for {', '.join(packages[:5])}" if packages else ""
        for_zh = f"（{'、'.join(packages[:5])}）" if packages else ""
        return [_due(Words(f"A restart of the machine is due{for_en}.", f"需要重启机器{for_zh}。"), have.get("files"))]
    answer, listing = have.get("uname"), have.get("kernels")
    running = answer.stdout.strip() if answer is not None and answer.ended else ""
    why = why_not(answer, "uname") or why_not(listing, "ls")
    if len(running.split()) > 1:
        why = unreadable("uname")
    if why is not None or not running:
        what = Words("whether a newer kernel waits for a restart", "是否有新内核等待重启")
        return [not_checked(ID, what, why or Words("uname said nothing", "uname 没有输出"), listing)]
    installed = [name[8:] for name in (listing.stdout if listing else "").split() if name.startswith("vmlinuz-")]
    installed = [name for name in installed if "rescue" not in name]
    newest = max(installed, key=_version, default="")
    if running in installed and _version(newest) > _version(running):
        text = Words(
            f"Kernel {running} runs, {newest} is installed: a restart is due.",
            f"正在运行内核 {running}，已安装 {newest}：需要重启。",
        )
        return [_due(text, listing)]
    return [
        Finding(
            "updates.kernel",
            Severity.OK,
            Words(f"Kernel {running} runs.", f"正在运行内核 {running}。"),
            subject=running,
            answer=answer,
        )
    ]


def _due(text: Words, answer: "Answer | None") -> Finding:
    return Finding("updates.restart", Severity.WARN, text, subject="restart", next="uname -r", answer=answer)


def _version(name: str) -> "list[tuple[int, str]]":
    """Sorts `6.1.0-18` after `6.1.0-9`: numbers as numbers, the rest as text."""
    parts: list[tuple[int, str]] = []
    digits = letters = ""
    for character in name + ".":
        if character.isascii() and character.isdigit():
            digits += character
        else:
            if digits:
                parts.append((int(digits), ""))
                digits = ""
            letters = character
            if letters.isalpha():
                parts.append((-1, letters))
    return parts
