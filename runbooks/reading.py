"""Turns answers into texts, files and reasons. Pure; shared by the runbooks.

The rule behind all of it: an exit code that is not zero, a missing program, a time-out and an empty answer of a
command that the sandbox hindered are reasons for "not checked", never for "fine".
"""

import time

from guard.lines import lines_of
from runbooks.model import Answer, Finding, Severity, Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

GIB = 1024**3
READ_FILES = ("grep", "-H", "")
"""`grep -H '' FILES` prints every line with its file's name and goes on when one is missing: one command for all."""


def files_command(paths: "Iterable[str]") -> "tuple[str, ...]":
    """The argv that prints all of `paths` so that `files_in` can take them apart again."""
    return (*READ_FILES, *paths)


def files_in(answer: "Answer | None", paths: "Iterable[str]") -> "dict[str, str]":
    """The contents of those of `paths` that the answer holds. A file that could not be read is left out."""
    if answer is None or not answer.ended:
        return {}
    found: dict[str, list[str]] = {}
    known = sorted(paths, key=len, reverse=True)
    for line in answer.stdout.split("\n"):
        for path in known:
            if line.startswith(path) and line[len(path) : len(path) + 1] == ":":
                found.setdefault(path, []).append(line[len(path) + 1 :])
                break
    return {path: "\n".join(lines) + "\n" for path, lines in found.items()}


def is_absent(answer: "Answer | None", path: str) -> bool:
    """The reader said that this file does not exist (and not: it was refused)."""
    lines = lines_of(answer.stderr) if answer is not None and answer.ended else []
    return any(f"{path}: No such file" in line for line in lines)


def why_not(answer: "Answer | None", program: str, *, empty_is_fine: bool = True) -> "Words | None":
    """Why this answer is not a fact, or None when it is one.

    Args:
        empty_is_fine: an empty output of an unhindered command is a fact ("no failed units").
    """
    if answer is None:
        return Words(f"{program} was not run", f"没有运行 {program}")
    if answer.status == "timed_out":
        return Words(f"{program} did not answer in time", f"{program} 超时未返回")
    if not answer.ended:
        because = answer.reason or answer.status
        return Words(f"{program} was not run: {because}", f"{program} 没有运行：{because}")
    hindered = hindered_by(answer)
    if answer.exit_code == 127:
        return Words(f"{program} is not installed here", f"本机没有安装 {program}")
    if answer.exit_code:
        said = first_line(answer.stderr) or first_line(answer.stdout)
        if hindered and not said:
            said = hindered.en
        tail = f": {said}" if said else ""
        return Words(
            f"{program} ended with code {answer.exit_code}{tail}",
            f"{program} 以代码 {answer.exit_code} 结束{tail.replace(': ', '：', 1)}",
        )
    if not answer.stdout.strip():
        if hindered:
            return Words(f"{program} said nothing, and {hindered.en}", f"{program} 没有输出，且{hindered.zh}")
        if not empty_is_fine:
            return Words(f"{program} said nothing", f"{program} 没有输出")
    return None


def hindered_by(answer: Answer) -> "Words | None":
    """What the sandbox refused to the command, in one clause, or None when it refused nothing."""
    if not answer.interference:
        return None
    first = answer.interference[0]
    what = f"{first.operation} {first.path}".strip()
    more = len(answer.interference) - 1
    tail_en, tail_zh = (f" and {more} more", f"等 {more + 1} 项操作") if more else ("", "")
    return Words(f"the sandbox refused {what}{tail_en}", f"沙箱拒绝了 {what}{tail_zh}")


def not_checked(
    runbook: str, what: Words, why: Words, answer: "Answer | None" = None, *, needs_root: bool = False
) -> Finding:
    """A finding that says that something was not checked, and why."""
    if answer is not None and not needs_root:
        needs_root = says_permission(answer.stderr) or says_permission(answer.stdout[:300])
    return Finding(
        f"{runbook}.not-checked",
        Severity.NOT_CHECKED,
        Words(f"{what.en}: {why.en}", f"{what.zh}：{why.zh}"),
        subject=what.en,
        answer=answer,
        needs_root=needs_root,
    )


_PERMISSION = (
    "permission denied",
    "operation not permitted",
    "must be root",
    "are you root",
    "not seeing messages from other users",
    "superuser",
    "access denied",
    "interactive authentication required",
)


def says_permission(text: str) -> bool:
    """The program complains that this user may not read something."""
    lower = text.lower()
    return any(words in lower for words in _PERMISSION)


def says_no_systemd(answer: "Answer | None") -> bool:
    """systemctl or timedatectl is missing, or says that systemd does not run this machine."""
    if answer is None or not answer.ended:
        return False
    said = f"{answer.stderr} {answer.stdout[:300]}".lower()
    return answer.exit_code == 127 or "not been booted with systemd" in said or "failed to connect to bus" in said


def spoke(answer: "Answer | None", *, besides: "tuple[str, ...]" = ()) -> bool:
    """The command printed something else than blank lines and lines that begin with one of `besides`."""
    lines = lines_of(answer.stdout) if answer is not None else []
    return any(line.strip() and not line.startswith(besides) for line in lines)


def unreadable(program: str) -> Words:
    """The reason for an output that is another program's or in another form: it is no answer, not even "nothing"."""
    return Words(f"{program} is unreadable", f"{program} 的输出无法解析")


def first_line(text: str, limit: int = 160) -> str:
    """The first line that is not blank, cut to `limit` characters."""
    for line in lines_of(text):
        if line.strip():
            line = line.strip()
            return line if len(line) <= limit else line[: limit - 1] + "…"
    return ""


def gib(size_bytes: float) -> str:
    """A size in GiB with one decimal, as the answers show memory and space."""
    return f"{size_bytes / GIB:.1f}"


def percent(number: float) -> str:
    """A percentage for a sentence: whole numbers without a decimal, others with one."""
    return f"{number:.0f}%" if abs(number - round(number)) < 0.05 else f"{number:.1f}%"


LARGEST = 1e20
"""No figure of a machine is larger: the kernel counts in 64 bits. What is, comes from a damaged output."""


def is_count(text: str) -> bool:
    """A whole number in ASCII digits that fits into 64 bits; `str.isdigit` would take `²` and any length."""
    return text.isascii() and text.isdigit() and len(text) <= 19


def number_of(text: str) -> "float | None":
    """The number in a field, or None for anything else: infinities, what is no number, what is too large for one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < LARGEST else None


def pressure(text: "str | None", kind: str, window: str) -> "float | None":
    """One figure of a pressure file (PSI): `kind` is `some` or `full`, `window` is `avg10`, `avg60` or `avg300`."""
    for line in lines_of(text or ""):
        name, _, rest = line.partition(" ")
        if name != kind:
            continue
        for field in rest.split():
            key, _, value = field.partition("=")
            if key == window:
                return number_of(value)
    return None


def vmstat_row(answer: "Answer | None") -> "dict[str, float] | None":
    """The last sample of `vmstat 1 2` by column, or None when it is another program's output or none."""
    if answer is None or not answer.ended or answer.exit_code:
        return None
    lines = [line.split() for line in lines_of(answer.stdout) if line.strip()]
    if len(lines) < 4 or "us" not in lines[1] or len(lines[1]) != len(lines[-1]):
        return None
    row = {}
    for name, value in zip(lines[1], lines[-1], strict=True):
        number = number_of(value)
        if number is None:
            return None
        row[name] = number
    return row


def iso_s(stamp: str) -> "float | None":
    """Unix time of an ISO stamp such as `2026-12-01T04:50:12+0000` or `…,123456+00:00` (dmesg writes a comma)."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(stamp.replace(",", ".")).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def local_stamp(at_s: float) -> str:
    """A moment for a sentence, in the local zone with its offset: `2026-12-01 04:12 +0000`."""
    return time.strftime("%Y-%m-%d %H:%M %z", time.localtime(at_s))


def age(seconds: float) -> "tuple[str, str]":
    """A span, rounded to the largest fitting unit, in English and Chinese: `("3 days", "3 天")`."""
    # Minutes are rounded first, so that 59.7 minutes are an hour and 23.8 hours a day, never "60 minutes".
    for size, most, en, zh in ((60, 59, "minute", "分钟"), (3600, 23, "hour", "小时"), (86_400, None, "day", "天")):
        count = int(max(0.0, seconds) / size + 0.5)
        if seconds < 60:
            break
        if most is None or count <= most:
            return f"{count} {en}{'' if count == 1 else 's'}", f" {count} {zh}"
    return "less than a minute", "不到一分钟"
