"""Containers that restart in a loop, are unhealthy or ended with an error, and space that images hold."""

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import first_line, is_count, not_checked, number_of, spoke, unreadable, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "containers"
TITLE = Words("Containers", "容器")
ABOUT = Words(
    "containers that restart, are unhealthy or ended with an error; space of images",
    "反复重启、不健康或异常退出的容器；镜像占用",
)

BROKEN = Threshold(1, None, "containers", source="the engine's own state: restarting or unhealthy (docker ps(1))")
RECLAIMABLE = Threshold(20, None, "GiB", source="as much as a small disk; docker system df(1), RECLAIMABLE")
FORMAT = "{{.Names}}|{{.State}}|{{.Status}}|{{.Image}}"
SHOWN = 5
_SIZES = {"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The containers of docker, or of podman where there is no docker; then the space."""
    if "docker" not in have:
        return [Command("docker", ("docker", "ps", "-a", "--format", FORMAT), 6.0)]
    if have["docker"].exit_code == 127 and "podman" not in have:
        return [Command("podman", ("podman", "ps", "-a", "--format", FORMAT), 6.0)]
    engine = _engine(have)
    if why_not(have.get(engine), engine) is None and "space" not in have and not where.light:
        return [Command("space", (engine, "system", "df"), 8.0)]
    return []


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Broken ones, then those that ended with an error, the count, and the space."""
    engine = _engine(have)
    answer = have.get(engine)
    why = why_not(answer, engine)
    if why is not None or answer is None:
        if engine == "podman" and answer is not None and answer.exit_code == 127:
            why = Words("neither docker nor podman is installed here", "本机没有安装 docker 或 podman")
        return [not_checked(ID, TITLE, why or Words("docker was not run", "没有运行 docker"), answer)]
    rows = [fields for fields in (line.split("|", 3) for line in lines_of(answer.stdout)) if len(fields) == 4]
    if not rows and spoke(answer):
        return [not_checked(ID, TITLE, unreadable(engine), answer)]
    broken = [(name, _state(state, status)) for name, state, status, _ in rows if _state(state, status)]
    ended = [(name, code) for name, state, status, _ in rows if (code := _exit_code(state, status))]
    findings = []
    if broken:
        findings.append(_broken(broken, len(rows), engine, answer))
    if ended:
        listed = ", ".join(f"{name} ({code})" for name, code in ended[:SHOWN])
        killed = any(code == 137 for _, code in ended)
        hint_en, hint_zh = ("; 137 is a kill, often for memory", "；137 表示被杀，常因内存不足") if killed else ("", "")
        containers = "1 container" if len(ended) == 1 else f"{len(ended)} containers"
        findings.append(
            Finding(
                "containers.ended",
                Severity.NOTE,
                Words(
                    f"{containers} ended with an error: {listed}{hint_en}.",
                    f"{len(ended)} 个容器异常退出：{listed}{hint_zh}。",
                ),
                subject=ended[0][0],
                number=len(ended),
                next=f"{engine} logs --tail 50 {ended[0][0]}",
                answer=answer,
            )
        )
    running = sum(1 for row in rows if row[1] == "running" or row[2].startswith("Up"))
    text = Words(
        f"{running} of {len(rows)} containers run ({engine}).", f"{engine}：共 {len(rows)} 个容器，{running} 个在运行。"
    )
    findings.append(Finding("containers.running", Severity.OK, text, subject=engine, number=running, answer=answer))
    if not where.light:
        findings.append(_space(have.get("space"), engine))
    return findings


def _engine(have: "Answers") -> str:
    return "podman" if "podman" in have else "docker"


def _state(state: str, status: str) -> str:
    """`restarting`, `unhealthy` or `dead`; "" for a container that is well or ended."""
    if state in ("restarting", "dead") or status.startswith("Restarting"):
        return "dead" if state == "dead" else "restarting"
    return "unhealthy" if "(unhealthy)" in status else ""


def _exit_code(state: str, status: str) -> int:
    """The exit code of a container that ended by itself with an error; 0 for others. 143 is a stop in order."""
    if state == "restarting" or not status.startswith("Exited ("):
        return 0
    code = status[8:].partition(")")[0]
    return int(code) if is_count(code) and code not in ("0", "143") else 0


def _broken(broken: "list[tuple[str, str]]", total: int, engine: str, answer: "Answer | None") -> Finding:
    words = {"restarting": "反复重启", "unhealthy": "不健康", "dead": "已死"}
    listed = ", ".join(f"{name} ({state})" for name, state in broken[:SHOWN])
    listed_zh = "、".join(f"{name}（{words[state]}）" for name, state in broken[:SHOWN])
    are = "is" if len(broken) == 1 else "are"
    return Finding(
        "containers.broken",
        Severity.WARN,
        Words(
            f"{len(broken)} of {total} containers {are} not well: {listed}.",
            f"{total} 个容器中有 {len(broken)} 个异常：{listed_zh}。",
        ),
        subject=broken[0][0],
        number=len(broken),
        unit="containers",
        threshold=BROKEN,
        next=f"{engine} logs --tail 50 {broken[0][0]}",
        answer=answer,
    )


def _space(answer: "Answer | None", engine: str) -> Finding:
    why = why_not(answer, f"{engine} system df", empty_is_fine=False)
    what = Words("space of images and volumes", "镜像和卷占用的空间")
    if why is not None or answer is None:
        return not_checked(ID, what, why or Words("it was not asked", "没有查询"), answer)
    total = 0.0
    parts = []
    for line in lines_of(answer.stdout)[1:]:
        fields = line.split()
        sizes = [(field, size) for field in fields if (size := _bytes(field)) is not None]
        if len(sizes) >= 2:
            kind = line[: line.find(next(field for field in fields if is_count(field)))].strip()
            total += sizes[-1][1]
            parts.append(f"{kind} {sizes[-1][0]}")
    if not parts:
        return not_checked(
            ID,
            what,
            Words(f"unreadable: {first_line(answer.stdout)}", f"无法解析：{first_line(answer.stdout)}"),
            answer,
        )
    number = total / 1024**3
    severity = Severity.NOTE if RECLAIMABLE.severity(number) == Severity.WARN else Severity.OK
    return Finding(
        "containers.space",
        severity,
        Words(
            f"{number:.1f} GiB could be freed: {', '.join(parts)}.", f"可回收 {number:.1f} GiB：{'、'.join(parts)}。"
        ),
        subject=engine,
        number=round(number, 1),
        unit="GiB",
        threshold=RECLAIMABLE,
        next=f"{engine} system df -v" if severity != Severity.OK else "",
        answer=answer,
    )


def _bytes(field: str) -> "float | None":
    """A size such as `1.2GB` in bytes."""
    lower = field.lower()
    for unit in ("kb", "mb", "gb", "tb", "b"):
        if lower.endswith(unit):
            number = number_of(lower[: -len(unit)])
            return None if number is None else number * _SIZES[unit]
    return None
