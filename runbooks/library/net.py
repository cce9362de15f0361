"""Default route, links, dropped packets, retransmissions and the connection table, since the boot."""

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import (
    files_command,
    files_in,
    is_count,
    not_checked,
    number_of,
    percent,
    spoke,
    unreadable,
    why_not,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "net"
TITLE = Words("Network", "网络")
ABOUT = Words("default route, links, dropped packets, retransmissions", "默认路由、链路、丢包、重传")

ERRORS = Threshold(0.1, None, "%", source="a healthy wire has an error in less than 1 of 1,000 packets")
DROPS = Threshold(1, None, "%", source="the kernel also counts packets of protocols that nobody wants as dropped")
RESENT = Threshold(5, None, "%", source="TCP slows down markedly from here on (Mathis et al. 1997)")
TRACKED = Threshold(80, 95, "%", source="at 100 % new connections are dropped (nf_conntrack: table full)")
FEWEST = 1000
"""A share of fewer packets than this says nothing."""

DEV, SNMP, NETSTAT = "/proc/net/dev", "/proc/net/snmp", "/proc/net/netstat"
COUNT, MOST = "/proc/sys/net/netfilter/nf_conntrack_count", "/proc/sys/net/netfilter/nf_conntrack_max"
PATHS = (DEV, SNMP, NETSTAT, COUNT, MOST)
PHYSICAL = ("en", "eth", "wl", "ww", "ib", "bond", "team")
"""Names of links that carry the machine's own traffic (systemd.net-naming-scheme(7)); bridges and veths do not."""


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The kernel's counters, the links and the routes of both families."""
    if "files" in have:
        return []
    return [
        Command("files", files_command(PATHS), 3.0),
        Command("link", ("ip", "-o", "link"), 3.0),
        Command("route", ("ip", "route"), 3.0),
        Command("route6", ("ip", "-6", "route"), 3.0),
    ]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Way out, links, then shares of lost packets and segments."""
    files = files_in(have.get("files"), PATHS)
    links = _links(have.get("link"))
    findings = [*_route(have, links), *_down(have, links)]
    if DEV in files:
        findings += _lost(files[DEV], have.get("files"))
    else:
        why = why_not(have.get("files"), "grep") or Words(f"{DEV} is empty", f"{DEV} 为空")
        findings.append(not_checked(ID, Words("dropped packets", "丢包"), why, have.get("files")))
    findings += _tcp(files, have.get("files"))
    findings += _tracked(files, have.get("files"))
    outside = Words("runbooks send nothing", "runbook 不发送任何数据")
    findings.append(not_checked(ID, Words("whether the internet answers", "外网是否可达"), outside))
    return findings


def _links(answer: "Answer | None") -> "dict[str, tuple[list[str], str]]":
    """Flags and state by link name."""
    links = {}
    for line in lines_of(answer.stdout) if answer is not None and answer.ended and not answer.exit_code else ():
        _, _, rest = line.partition(": ")
        name, _, tail = rest.partition(": ")
        flags = tail.partition("<")[2].partition(">")[0].split(",")
        words = tail.split()
        state = words[words.index("state") + 1] if "state" in words[:-1] else ""
        if name:
            links[name.partition("@")[0]] = (flags, state)
    return links


def _ways(answer: "Answer | None") -> "list[tuple[str, str]] | None":
    """Gateway and link of each default route; None when the routes could not be read."""
    if why_not(answer, "ip") is not None or answer is None:
        return None
    if spoke(answer) and not any(line[:1].isalnum() for line in lines_of(answer.stdout)):
        return None
    ways = []
    for line in lines_of(answer.stdout):
        words = line.split()
        if words[:1] == ["default"]:
            link = words[words.index("dev") + 1] if "dev" in words[:-1] else ""
            ways.append((words[words.index("via") + 1] if "via" in words[:-1] else "", link))
    return ways


def _route(have: "Answers", links: "dict[str, tuple[list[str], str]]") -> "list[Finding]":
    four, six = _ways(have.get("route")), _ways(have.get("route6"))
    answer = have.get("route")
    if four is None:
        why = why_not(answer, "ip route") or unreadable("ip route")
        return [not_checked(ID, Words("default route", "默认路由"), why, answer)]
    ways = four or six or []
    if not ways:
        others = [name for name, (flags, _) in links.items() if "UP" in flags and "LOOPBACK" not in flags]
        severity = Severity.CRIT if others else Severity.NOTE
        text = Words("There is no default route.", "没有默认路由。")
        if not others:
            text = Words(
                "Only the loopback interface is up; there is no network.", "只有回环接口处于启用状态，没有网络。"
            )
        return [Finding("net.route", severity, text, subject="default", number=0, next="ip address", answer=answer)]
    gateway, link = ways[0]
    flags, state = links.get(link, ([], ""))
    via_en, via_zh = (f" via {gateway}", f"，网关 {gateway}") if gateway else ("", "")
    if links and link in links and ("NO-CARRIER" in flags or state == "DOWN"):
        return [
            Finding(
                "net.route",
                Severity.CRIT,
                Words(
                    f"The default route leaves by {link}{via_en}, and {link} has no link.",
                    f"默认路由经 {link}{via_zh}，而 {link} 没有链路。",
                ),
                subject=link,
                next=f"ip -s link show {link}",
                answer=answer,
            )
        ]
    more = len(ways) - 1
    return [
        Finding(
            "net.route",
            Severity.OK,
            Words(
                f"Default route by {link}{via_en}{f' and {more} more' if more else ''}.",
                f"默认路由经 {link}{via_zh}{f'，另有 {more} 条' if more else ''}。",
            ),
            subject=link,
            number=len(ways),
            answer=answer,
        )
    ]


def _down(have: "Answers", links: "dict[str, tuple[list[str], str]]") -> "list[Finding]":
    answer = have.get("link")
    if not links:
        why = why_not(answer, "ip link", empty_is_fine=False) or Words("ip link is unreadable", "ip link 无法解析")
        return [not_checked(ID, Words("links", "链路"), why, answer)]
    findings = []
    for name, (flags, _) in links.items():
        if name.startswith(PHYSICAL) and "UP" in flags and "NO-CARRIER" in flags:
            findings.append(
                Finding(
                    "net.link",
                    Severity.NOTE,
                    Words(f"{name} is switched on but has no link.", f"{name} 已启用但没有链路。"),
                    subject=name,
                    next=f"ip -s link show {name}",
                    answer=answer,
                )
            )
    return findings


def _lost(dev: str, answer: "Answer | None") -> "list[Finding]":
    findings, worst = [], None
    for line in lines_of(dev):
        name, colon, rest = line.partition(":")
        numbers = [number_of(field) for field in rest.split()]
        if not colon or len(numbers) < 12 or any(number is None for number in numbers):
            continue
        name = name.strip()
        (got, got_bad, got_lost), (sent, sent_bad, sent_lost) = numbers[1:4], numbers[9:12]
        for packets, bad, lost, way_en, way_zh in (
            (got or 0, got_bad or 0, got_lost or 0, "received", "接收"),
            (sent or 0, sent_bad or 0, sent_lost or 0, "sent", "发送"),
        ):
            if packets < FEWEST or name == "lo":
                continue
            for count, limits, kind, said_en, said_zh in (
                (bad, ERRORS, "net.errors", "were damaged", "出错"),
                (lost, DROPS, "net.drops", "were dropped", "被丢弃"),
            ):
                share = 100 * count / (packets + count)
                worst = max(worst or (0.0, ""), (share, name))
                if limits.severity(share) == Severity.WARN:
                    findings.append(
                        Finding(
                            kind,
                            Severity.WARN,
                            Words(
                                f"{name}: {percent(share)} of the packets {way_en} since the boot {said_en} "
                                f"(warning at {limits.warn:g}%).",
                                f"{name}：启动以来{way_zh}的数据包有 {percent(share)} {said_zh}"
                                f"（{limits.warn:g}% 起警告）。",
                            ),
                            subject=name,
                            number=round(share, 2),
                            unit="%",
                            threshold=limits,
                            next=f"ip -s -s link show {name}",
                            answer=answer,
                        )
                    )
    if not findings:
        share, name = worst or (0.0, "")
        text = Words("Too few packets so far to speak of losses.", "数据包太少，无法判断丢包。")
        if worst is not None:
            text = Words(
                f"At most {share:.2g}% of packets were damaged or dropped since the boot"
                f"{f' ({name})' if share else ''}.",
                f"启动以来数据包出错或被丢弃的比例最多 {share:.2g}%{f'（{name}）' if share else ''}。",
            )
        findings.append(
            Finding(
                "net.drops",
                Severity.OK,
                text,
                subject=name,
                number=round(share, 2),
                unit="%",
                threshold=DROPS,
                answer=answer,
            )
        )
    return findings


def _tcp(files: "dict[str, str]", answer: "Answer | None") -> "list[Finding]":
    tcp = _pairs(files.get(SNMP, ""), "Tcp")
    sent, resent = tcp.get("OutSegs", 0), tcp.get("RetransSegs", 0)
    findings = []
    if sent >= FEWEST:
        share = 100 * resent / sent
        severity = RESENT.severity(share)
        limit_en = f" (warning at {RESENT.warn:g}%)" if severity != Severity.OK else ""
        limit_zh = f"（{RESENT.warn:g}% 起警告）" if severity != Severity.OK else ""
        findings.append(
            Finding(
                "net.resent",
                severity,
                Words(
                    f"{share:.2g}% of TCP segments were sent again since the boot{limit_en}.",
                    f"启动以来 {share:.2g}% 的 TCP 分段被重传{limit_zh}。",
                ),
                subject="tcp",
                number=round(share, 2),
                unit="%",
                threshold=RESENT,
                next="nstat -az" if severity != Severity.OK else "",
                answer=answer,
            )
        )
    full = _pairs(files.get(NETSTAT, ""), "TcpExt").get("ListenOverflows", 0)
    if full:
        findings.append(
            Finding(
                "net.listen-overflows",
                Severity.NOTE,
                Words(
                    f"A listening program was too slow to accept {full:,} connections since the boot.",
                    f"启动以来有 {full:,} 个连接因监听程序来不及接受而溢出。",
                ),
                subject="tcp",
                number=full,
                next="ss -ltn",
                answer=answer,
            )
        )
    return findings


def _tracked(files: "dict[str, str]", answer: "Answer | None") -> "list[Finding]":
    count, most = number_of(files.get(COUNT, "").strip()), number_of(files.get(MOST, "").strip())
    if count is None or not most:
        return []  # no connection tracking here
    share = 100 * count / most
    severity = TRACKED.severity(share)
    if severity == Severity.OK:
        return []
    word_en, word_zh = ("warning", "警告") if severity == Severity.WARN else ("critical", "严重")
    limit = TRACKED.crossed(severity)
    return [
        Finding(
            "net.conntrack",
            severity,
            Words(
                f"The connection table is {percent(share)} full, {count:,.0f} of {most:,.0f} "
                f"({word_en} at {limit:g}%).",
                f"连接跟踪表已用 {percent(share)}，{count:,.0f} / {most:,.0f}（{limit:g}% 起{word_zh}）。",
            ),
            subject="conntrack",
            number=round(share, 1),
            unit="%",
            threshold=TRACKED,
            next="ss -s",
            answer=answer,
        )
    ]


def _pairs(text: str, prefix: str) -> "dict[str, int]":
    """The numbers of one protocol in the two-line form of /proc/net/snmp."""
    rows = [line.split()[1:] for line in lines_of(text) if line.startswith(f"{prefix}: ")]
    if len(rows) < 2 or len(rows[0]) != len(rows[1]):
        return {}
    return {name: int(value) for name, value in zip(rows[0], rows[1], strict=True) if is_count(value.lstrip("-"))}
