"""What fills a file system: its largest folders and files."""

from guard.lines import lines_of
from runbooks.library import disk
from runbooks.model import Command, Finding, Severity, Words
from runbooks.mounts import is_quiet
from runbooks.reading import GIB, is_count, not_checked, number_of, says_permission, spoke, unreadable, why_not
from runbooks.space import SPACE, amount, quoted, space_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where
    from runbooks.mounts import Mount

ID = "bigfiles"
TITLE = Words("Largest files", "大文件")
ABOUT = Words(
    "the largest folders and files of the fullest file system, or below a path that you name",
    "最满文件系统（或指定路径）中最大的目录和文件",
)

LARGE_MIB = 100
"""Files from this size on are listed; smaller ones fill a disk only by number, and then `du` shows their folder."""
SHOWN = 5
TIME_S = 8.0
"""For `du` and for `find`, when this is one of at most MOST_BESIDE + 1 runbooks."""
SHARED_S = 1.5
"""The same beside more of them: a machine with a million files must not make everybody wait for this one."""
MOST_BESIDE = 2
"""As many as one question chooses."""


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """Finds the fullest file system as the disk runbook does, unless a path was named; then looks below it."""
    target = _target(have, where)
    if target is None:
        asked = disk.commands(have, where)
        return [command for command in asked if not command.key.startswith("df:")]
    time_s = _time_s(where)
    return [
        command
        for command in (
            Command("du", ("du", "-xkd1", target), time_s),
            Command(
                "find",
                ("find", target, "-xdev", "-type", "f", "-size", f"+{LARGE_MIB}M", "-printf", "%b %p\\n"),
                time_s,
            ),
        )
        if command.key not in have
    ]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Folders, then files."""
    target = _target(have, where)
    if target is None:
        why = why_not(have.get("mounts"), "grep") or why_not(have.get("df"), "df")
        return [
            not_checked(ID, TITLE, why or Words("no file system has an answer", "没有文件系统给出结果"), have.get("df"))
        ]
    findings = [*_folders(target, have.get("du"), where), *_files(target, have.get("find"), where)]
    for answer in (have.get("du"), have.get("find")):
        if answer is not None and answer.ended and says_permission(answer.stderr):
            why = Words("some folders may not be read", "部分目录无权读取")
            findings.append(
                not_checked(
                    ID, Words(f"all of {target}", f"{target} 的全部内容"), why, answer, needs_root=where.euid != 0
                )
            )
            break
    return findings


def _target(have: "Answers", where: "Where") -> "str | None":
    """The path of the question, else the fullest local file system; None while that is not known."""
    if where.paths:
        return where.paths[0]
    together = have.get("df")
    if together is None or not together.ended:
        return None
    rows = []
    for mount in disk.to_ask(have):
        row = space_in(together.stdout, mount.point)
        if row is not None and not mount.remote and mount.root == "/" and _is_worth(mount, row[3]):
            rows.append((row[3], row[0], mount.point))
    return max(rows)[2] if rows else None


def _is_worth(mount: "Mount", capacity: int) -> bool:
    """A file system in memory is searched only once it is full enough for a finding."""
    return not mount.memory or (SPACE.severity(capacity) != Severity.OK and not is_quiet(mount))


def _time_s(where: "Where") -> float:
    return TIME_S if where.beside <= MOST_BESIDE else SHARED_S


def _unfinished(where: "Where") -> "Words":
    """That the search was cut short, and how it gets longer."""
    time_s = _time_s(where)
    tail_en, tail_zh = ("", "")
    if time_s < TIME_S:
        tail_en, tail_zh = f"; asked alone it may take {TIME_S:g} s", f"；单独询问时可查 {TIME_S:g} 秒"
    return Words(f"not finished: stopped after {time_s:g} s{tail_en}", f"未查完：{time_s:g} 秒后停止{tail_zh}")


def _partial(answer: "Answer | None", where: "Where") -> "Words":
    """What to add to a sentence when the search was cut short."""
    if answer is None or answer.status != "timed_out":
        return Words("", "")
    said = _unfinished(where)
    return Words(f" ({said.en})", f"（{said.zh}）")


def _why_none(answer: "Answer | None", program: str, where: "Where", *, empty_is_fine: bool) -> "Words | None":
    """As `why_not`, but a search that was cut short is told as one."""
    if answer is not None and answer.status == "timed_out":
        return _unfinished(where)
    return why_not(answer, program, empty_is_fine=empty_is_fine)


def _folders(target: str, answer: "Answer | None", where: "Where") -> "list[Finding]":
    sizes: dict[str, int] = {}
    for line in lines_of(answer.stdout) if answer is not None else ():
        size, _, path = line.partition("\t")
        if is_count(size) and path.startswith("/"):
            sizes[path] = int(size) * 1024
    total = sizes.pop(target, None)
    what = Words(f"largest folders of {target}", f"{target} 中最大的目录")
    if not sizes:
        if answer is not None and answer.ended and total is not None:
            text = Words(
                f"{target} holds {amount(total)} and no folders.",
                f"{target} 共 {amount(total)}，没有子目录。",
            )
            return [
                Finding(
                    "bigfiles.folders", Severity.OK, text, subject=target, number=_gib(total), unit="GiB", answer=answer
                )
            ]
        why = _why_none(answer, "du", where, empty_is_fine=False) or Words("du is unreadable", "du 无法解析")
        return [not_checked(ID, what, why, answer)]
    ranked = sorted(sizes.items(), key=lambda pair: -pair[1])[:SHOWN]
    top = [pair for pair in ranked if pair[1] >= 1024**2] or ranked  # "/mnt 0 MiB" helps nobody
    held = sum(size for _, size in top)
    listed = ", ".join(f"{path} {amount(size)}" for path, size in top)
    share_en = share_zh = ""
    if total:
        share_en, share_zh = f" hold {100 * held / total:.0f}% of it", f"占 {100 * held / total:.0f}%"
    partial = _partial(answer, where)
    count_en = "1 folder" if len(top) == 1 else f"{len(top)} folders"
    if len(top) == 1:
        share_en = share_en.replace(" hold ", " holds ")
    all_en = f"{target} holds {amount(total)}; " if total else f"In {target}: "
    all_zh = f"{target} 共 {amount(total)}，" if total else f"{target} 中有 "
    return [
        Finding(
            "bigfiles.folders",
            Severity.OK,
            Words(
                f"{all_en}{count_en}{share_en}: {listed}{partial.en}.",
                f"{all_zh}{len(top)} 个目录{share_zh}：{listed}{partial.zh}。",
            ),
            subject=target,
            number=_gib(held),
            unit="GiB",
            next=f"du -xhd1 {quoted(top[0][0])}",
            answer=answer,
        )
    ]


def _files(target: str, answer: "Answer | None", where: "Where") -> "list[Finding]":
    files = []
    for line in lines_of(answer.stdout) if answer is not None else ():
        blocks, _, path = line.partition(" ")
        count = number_of(blocks)
        if count is not None and path.startswith("/"):
            files.append((int(count) * 512, path))  # find(1): %b counts blocks of 512 bytes, as they are on disk
    what = Words(f"largest files below {target}", f"{target} 下最大的文件")
    partial = _partial(answer, where)
    if not files:
        if spoke(answer):
            return [not_checked(ID, what, unreadable("find"), answer)]
        # find ends with 1 when it may not enter one folder: its silence is then not about all of them.
        why = _why_none(answer, "find", where, empty_is_fine=True)
        if why is not None:
            return [not_checked(ID, what, why, answer)]
        text = Words(
            f"No file below {target} has {LARGE_MIB} MiB or more.", f"{target} 下没有 {LARGE_MIB} MiB 以上的文件。"
        )
        return [Finding("bigfiles.files", Severity.OK, text, subject=target, number=0, answer=answer)]
    top = sorted(files, reverse=True)[:SHOWN]
    listed = ", ".join(f"{path} {amount(size)}" for size, path in top)
    count_en = "1 file has" if len(files) == 1 else f"{len(files)} files have"
    return [
        Finding(
            "bigfiles.files",
            Severity.OK,
            Words(
                f"{count_en} {LARGE_MIB} MiB or more: {listed}{partial.en}.",
                f"{len(files)} 个文件超过 {LARGE_MIB} MiB：{listed}{partial.zh}。",
            ),
            subject=top[0][1],
            number=_gib(sum(size for size, _ in files)),
            unit="GiB",
            answer=answer,
        )
    ]


def _gib(size_bytes: int) -> float:
    return round(size_bytes / GIB, 1)
