"""Which name servers are set, and whether this machine finds its own name. It asks no name server."""

from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import files_command, files_in, is_absent, is_count, not_checked, unreadable, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "dns"
TITLE = Words("DNS", "域名解析")
ABOUT = Words("name servers that are set, this machine's own name", "配置的域名服务器、本机主机名")

SERVERS = Threshold(1, 1, "servers", below=True, source="without a server in resolv.conf(5) only 127.0.0.1 is asked")
USED = 3
"""The C library asks the first three servers only (resolv.conf(5), MAXNS)."""

RESOLV, UPSTREAM, SWITCH = "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf", "/etc/nsswitch.conf"
PATHS = (RESOLV, UPSTREAM, SWITCH)
STUBS = ("127.0.0.53", "127.0.0.54")
"""systemd-resolved's own addresses; the servers behind it are in UPSTREAM (systemd-resolved(8))."""


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The configuration and a look-up of the own name, which the hosts file should answer."""
    if "files" in have:
        return []
    return [Command("files", files_command(PATHS), 3.0), Command("own", ("getent", "ahosts", where.host), 5.0)]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Servers, own name, and that no server was asked."""
    answer = have.get("files")
    files = files_in(answer, PATHS)
    findings = [*_servers(files, answer), _own(have.get("own"), where)]
    why = Words(
        "runbooks send nothing; try: getent ahosts NAME", "runbook 不发送任何数据，可自行执行：getent ahosts NAME"
    )
    findings.append(not_checked(ID, Words("whether the name servers answer", "域名服务器是否应答"), why))
    return findings


def _servers(files: "dict[str, str]", answer: "Answer | None") -> "list[Finding]":
    if RESOLV not in files and not is_absent(answer, RESOLV) and not (answer is not None and answer.ended):
        why = why_not(answer, "grep") or Words("it could not be read", "无法读取")
        return [not_checked(ID, Words(RESOLV, RESOLV), why, answer)]
    if (
        RESOLV not in files
        and answer is not None
        and any(RESOLV in line and "ermission" in line for line in answer.stderr.splitlines())
    ):
        return [not_checked(ID, Words(RESOLV, RESOLV), Words("permission denied", "权限不足"), answer, needs_root=True)]
    servers = _in(files.get(RESOLV, ""))
    behind = _in(files.get(UPSTREAM, "")) if servers and all(server in STUBS for server in servers) else servers
    if not servers or not behind:
        stub = bool(servers)
        return [
            Finding(
                "dns.servers",
                Severity.CRIT,
                Words(
                    "systemd-resolved has no name server to ask." if stub else f"No name server is set in {RESOLV}.",
                    "systemd-resolved 没有可用的上游域名服务器。" if stub else f"{RESOLV} 中没有设置域名服务器。",
                ),
                subject="resolv.conf",
                number=0,
                unit="servers",
                threshold=SERVERS,
                next="resolvectl status" if stub else f"cat {RESOLV}",
                answer=answer,
            )
        ]
    via_en = " by way of systemd-resolved" if behind is not servers else ""
    via_zh = "（经 systemd-resolved）" if behind is not servers else ""
    findings = [
        Finding(
            "dns.servers",
            Severity.OK,
            Words(f"Name servers{via_en}: {', '.join(behind)}.", f"域名服务器{via_zh}：{'、'.join(behind)}。"),
            subject="resolv.conf",
            number=len(behind),
            unit="servers",
            threshold=SERVERS,
            answer=answer,
        )
    ]
    if len(servers) > USED:
        findings.append(
            Finding(
                "dns.too-many",
                Severity.NOTE,
                Words(
                    f"{len(servers)} name servers are set; only the first {USED} are used.",
                    f"设置了 {len(servers)} 个域名服务器，只有前 {USED} 个会被使用。",
                ),
                subject="resolv.conf",
                number=len(servers),
                next=f"cat {RESOLV}",
                answer=answer,
            )
        )
    return findings


def _own(answer: "Answer | None", where: "Where") -> Finding:
    what = Words(f"the own name {where.host}", f"本机名 {where.host}")
    if answer is not None and answer.ended and answer.exit_code == 2 and not answer.interference:
        # getent(1): 2 is "not found"; sudo and mail programs then wait for a name server at each start.
        return Finding(
            "dns.own-name",
            Severity.NOTE,
            Words(f"{where.host}, this machine's own name, is not found.", f"找不到本机自己的主机名 {where.host}。"),
            subject=where.host,
            next="cat /etc/hosts",
            answer=answer,
        )
    if answer is not None and answer.ended and answer.exit_code == 2:
        why = Words(
            "it is not in /etc/hosts, and no name server is asked here", "不在 /etc/hosts 中，而此处不询问域名服务器"
        )
        return not_checked(ID, what, why, answer)
    why_or_none = why_not(answer, "getent", empty_is_fine=False)
    if why_or_none is not None:
        return not_checked(ID, what, why_or_none, answer)
    words = [line.split()[0] for line in (answer.stdout if answer else "").splitlines() if line.strip()]
    addresses = list(dict.fromkeys(word for word in words if _is_address(word)))
    if not addresses:
        return not_checked(ID, what, unreadable("getent"), answer)
    return Finding(
        "dns.own-name",
        Severity.OK,
        Words(f"{where.host} is {', '.join(addresses[:4])}.", f"{where.host} 的地址是 {'、'.join(addresses[:4])}。"),
        subject=where.host,
        number=len(addresses),
        answer=answer,
    )


def _is_address(word: str) -> bool:
    return (word.count(".") == 3 and is_count(word.replace(".", ""))) or (
        ":" in word and set(word) <= set("0123456789abcdef:.%")
    )


def _in(text: str) -> "list[str]":
    found = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 2 and fields[0] == "nameserver":
            found.append(fields[1])
    return list(dict.fromkeys(found))
