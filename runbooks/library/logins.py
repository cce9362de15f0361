"""Who is logged in, and failed logins of the last hour by address."""

import time

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import is_count, iso_s, not_checked, says_permission, spoke, unreadable, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "logins"
TITLE = Words("Logins", "登录")
ABOUT = Words("who is logged in, failed logins of the last hour", "谁在登录，最近一小时的失败登录")

FAILED = Threshold(20, None, "/h", source="a person mistypes a few times; twenty an hour is a program")
ASKED_LINES = 500
WHO = ("who",)
LASTB = ("lastb", "-F", "-n", str(ASKED_LINES))
JOURNAL = (
    "journalctl",
    "--since=-1h",
    "--grep=Failed password|authentication failure|Invalid user",
    "-n",
    str(ASKED_LINES),
    "-o",
    "short-iso",
    "--no-pager",
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The sessions and the record of failed logins; the journal where there is no such record."""
    if "who" not in have:
        return [Command("who", WHO, 3.0), Command("lastb", LASTB, 5.0)]
    if why_not(have.get("lastb"), "lastb") is not None and "journal" not in have:
        return [Command("journal", JOURNAL, 6.0)]
    return []


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Failures first, then who is there."""
    return [_failures(have, where), *_sessions(have.get("who"))]


def _failures(have: "Answers", where: "Where") -> Finding:
    answer, journal = have.get("lastb"), have.get("journal")
    what = Words("failed logins", "失败的登录")
    if why_not(answer, "lastb") is None and answer is not None:
        rows = [row for row in map(_failed, lines_of(answer.stdout)) if row is not None]
        if not rows and spoke(answer, besides=("btmp begins",)):
            return not_checked(ID, what, unreadable("lastb"), answer)
        recent = [address for when, address in rows if where.now_s - 3600 <= when <= where.now_s + 60]
        return _count(recent, answer, at_least=len(recent) >= ASKED_LINES)
    if journal is not None and journal.ended and not says_permission(journal.stderr) and journal.exit_code in (0, 1):
        missing = "No journal files" in journal.stderr or (journal.exit_code == 1 and journal.stderr.strip())
        if not missing and not (journal.interference and not journal.stdout.strip()):
            lines = [line for line in lines_of(journal.stdout) if line and not line.startswith("-- ")]
            if lines and not any(iso_s(line.split(" ", 1)[0]) for line in lines):
                return not_checked(ID, what, unreadable("journalctl"), journal)
            return _count([_address(line) for line in lines], journal, at_least=len(lines) >= ASKED_LINES)
    denied = any(one is not None and says_permission(one.stderr) for one in (answer, journal))
    why = why_not(answer, "lastb") or Words("lastb does not tell", "lastb 没有给出")
    return not_checked(ID, what, why, answer, needs_root=denied)


def _count(addresses: "list[str]", answer: "Answer", *, at_least: bool) -> Finding:
    number = len(addresses)
    severity = FAILED.severity(number)
    counts: dict[str, int] = {}
    for address in addresses:
        counts[address] = counts.get(address, 0) + 1
    top = sorted(counts.items(), key=lambda pair: -pair[1])[:3]
    listed_en = f" from {len(counts)} {'address' if len(counts) == 1 else 'addresses'}" if counts else ""
    listed_en += f", most from {top[0][0]} ({top[0][1]})" if len(counts) > 1 else f" ({top[0][0]})" if counts else ""
    listed_zh = f"，来自 {len(counts)} 个地址" if counts else ""
    listed_zh += (
        f"，最多的是 {top[0][0]}（{top[0][1]} 次）" if len(counts) > 1 else f"（{top[0][0]}）" if counts else ""
    )
    least_en, least_zh = ("At least ", "至少 ") if at_least else ("", " ")
    limit_en = f" (warning at {FAILED.warn:g})" if severity != Severity.OK else ""
    limit_zh = f"（{FAILED.warn:g} 次起警告）" if severity != Severity.OK else ""
    logins = "failed login" if number == 1 else "failed logins"
    return Finding(
        "logins.failed",
        severity,
        Words(
            f"{least_en}{number} {logins} in the last hour{listed_en}{limit_en}.",
            f"最近一小时有{least_zh}{number} 次失败的登录{listed_zh}{limit_zh}。",
        ),
        subject=top[0][0] if top else "logins",
        number=number,
        unit="/h",
        threshold=FAILED,
        next="lastb -F -n 50" if severity != Severity.OK else "",
        answer=answer,
    )


def _sessions(answer: "Answer | None") -> "list[Finding]":
    why = why_not(answer, "who")
    if why is not None or answer is None:
        return [
            not_checked(
                ID, Words("who is logged in", "谁在登录"), why or Words("who was not run", "没有运行 who"), answer
            )
        ]
    people: list[tuple[str, str]] = []
    for line in lines_of(answer.stdout):
        fields = line.split()
        if len(fields) >= 4 and fields[3].count(":") >= 1 and is_count(fields[2][:1]):
            origin = fields[-1].strip("()") if fields[-1].startswith("(") else ""
            people.append((fields[0], origin))
    if not people and spoke(answer):
        return [not_checked(ID, Words("who is logged in", "谁在登录"), unreadable("who"), answer)]
    listed = ", ".join(dict.fromkeys(f"{name} from {origin}" if origin else name for name, origin in people))
    listed_zh = "、".join(dict.fromkeys(f"{name}（{origin}）" if origin else name for name, origin in people))
    findings = [
        Finding(
            "logins.now",
            Severity.OK,
            Words(
                f"{len(people)} {'session' if len(people) == 1 else 'sessions'} now: {listed}."
                if people
                else "Nobody is logged in on a terminal.",
                f"当前 {len(people)} 个会话：{listed_zh}。" if people else "当前没有终端登录。",
            ),
            subject="sessions",
            number=len(people),
            answer=answer,
        )
    ]
    remote = list(dict.fromkeys(origin for name, origin in people if name == "root" and _is_address(origin)))
    if remote:
        findings.append(
            Finding(
                "logins.root",
                Severity.NOTE,
                Words(f"root is logged in from {', '.join(remote)}.", f"root 正从 {'、'.join(remote)} 登录。"),
                subject="root",
                number=len(remote),
                next="last -F -n 20 root",
                answer=answer,
            )
        )
    return findings


def _is_address(origin: str) -> bool:
    return bool(origin) and not origin.startswith((":", "tmux(", "login"))


def _failed(line: str) -> "tuple[float, str] | None":
    """Time and address of a `lastb -F` line: `root ssh:notty 203.0.113.7 Tue Dec  1 04:12:01 2026 - …`."""
    fields = line.split()
    for at in range(2, len(fields) - 4):
        if fields[at + 1] in _MONTHS and fields[at + 3].count(":") == 2 and is_count(fields[at + 4]):
            try:
                hour, minute, second = (int(part) for part in fields[at + 3].split(":"))
                date = (int(fields[at + 4]), _MONTHS.index(fields[at + 1]) + 1, int(fields[at + 2]))
                when = time.mktime((*date, hour, minute, second, 0, 0, -1))
            except (ValueError, OverflowError):
                return None
            return when, fields[at - 1] if at > 2 else "local"
    return None


def _address(line: str) -> str:
    """The address in a log line: after `from`, or `rhost=`."""
    words = line.split()
    for at, word in enumerate(words):
        if word == "from" and at + 1 < len(words):
            return words[at + 1]
        if word.startswith("rhost=") and len(word) > 6:
            return word[6:]
    return "local"
