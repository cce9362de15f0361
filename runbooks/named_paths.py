"""Looks at the file system of each path that a question about space names. Pure.

The mount table alone does not answer "is /srv/shop full?": the path may lie deep in a mount, or not exist at all.
"""

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Words
from runbooks.mounts import IMAGE_TYPES, Mount
from runbooks.reading import is_absent, not_checked, number_of, why_not
from runbooks.space import space

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "disk"
FOR_PATH = "disk.path"
"""A file system that is looked at only because a path on it was named."""
MOST_PATHS = 4
TIME_S = 4.0


def commands(where: "Where") -> "list[Command]":
    """One `df` for each named path, since any of them may hang."""
    return [Command(f"path:{path}", ("df", "-PT", path), TIME_S) for path in _named(where)]


def answered(findings: "list[Finding]", have: "Answers", where: "Where") -> "list[Finding]":
    """The findings with the named paths first, and without other file systems that are fine.

    Where no path has an answer, all others stay.
    """
    findings = list(findings)
    first: dict[str, tuple[Finding, list[str]]] = {}
    missing: list[Finding] = []
    for path in _named(where):
        answer = have.get(f"path:{path}")
        row = _row(answer)
        if row is None:
            missing.append(_no_answer(path, answer))
            continue
        point = row[0].point
        if point not in first:
            of_mount = [one for one in findings if one.id == "disk.space" and one.subject == point]
            findings = [one for one in findings if one not in of_mount]
            first[point] = (of_mount[0] if of_mount else _alone(path, *row, answer)), []
        first[point][1].append(path)
    if first:
        findings = [one for one in findings if one.severity != Severity.OK]
    return [*(_said(paths, one, point) for point, (one, paths) in first.items()), *missing, *findings]


def _named(where: "Where") -> "tuple[str, ...]":
    return () if where.light else where.paths[:MOST_PATHS]


def _said(paths: "list[str]", finding: Finding, point: str) -> Finding:
    """The finding with the paths that were asked for in front."""
    paths = [path for path in paths if path.rstrip("/") != point.rstrip("/")]
    if not paths:
        return finding
    said, are = finding.text, "is" if len(paths) == 1 else "are"
    listed = " and ".join([", ".join(paths[:-1]), paths[-1]]) if len(paths) > 1 else paths[0]
    return finding.replace(
        text=Words(f"{listed} {are} on {point}, and {said.en}", f"{'、'.join(paths)} 位于 {point}：{said.zh}"),
    )


def _alone(path: str, mount: Mount, figures: "tuple[int, int, int, int]", answer: "Answer | None") -> Finding:
    """How full a file system is that is not looked at otherwise. An image is always full, which is no finding."""
    finding = space(mount, *figures, answer).replace(id=FOR_PATH, subject=path)
    if mount.type not in IMAGE_TYPES:
        return finding
    return finding.replace(
        severity=Severity.OK,
        threshold=None,
        next="",
        text=Words(
            f"{mount.point} is a read-only image ({mount.type}), which is always {figures[3]}% full.",
            f"{mount.point} 是只读镜像（{mount.type}），始终显示已用 {figures[3]}%。",
        ),
    )


def _row(answer: "Answer | None") -> "tuple[Mount, tuple[int, int, int, int]] | None":
    """The file system and its total, used and available KiB and percentage, from the last line of `df -PT PATH`."""
    lines = lines_of(answer.stdout) if answer is not None and answer.ended else []
    left, mark, point = (lines[-1] if len(lines) > 1 else "").partition("% /")
    fields = left.rsplit(None, 5)
    if not mark or len(fields) != 6:
        return None
    numbers = [number_of(field) for field in fields[2:]]
    if any(number is None for number in numbers):
        return None
    total, used, available, capacity = (int(number) for number in numbers if number is not None)
    return Mount(f"/{point}", fields[1], fields[0]), (total, used, available, capacity)


def _no_answer(path: str, answer: "Answer | None") -> Finding:
    if is_absent(answer, path) or (answer is not None and f"{path}': No such file" in answer.stderr):
        said = Words(f"{path} does not exist", f"{path} 不存在")
        return not_checked(ID, said, said, answer).replace(text=said)
    why = why_not(answer, "df") or Words("it has no size of its own (kernel)", "它没有自己的容量（内核）")
    return not_checked(ID, Words(path, path), why, answer)
