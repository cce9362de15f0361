"""Which name servers are set, and whether this machine finds its own name. It asks no name server."""

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import files_command, files_in, is_absent, not_checked, why_not

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
HOSTS = "/etc/hosts"
PATHS = (RESOLV, UPSTREAM, SWITCH, HOSTS)
STUBS = ("127.0.0.53", "127.0.0.54")
"""systemd-resolved's own addresses; the servers behind it are in UPSTREAM (systemd-resolved(8))."""


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The configuration only: a look-up would ask a name server, and runbooks send nothing."""
    if "files" in have:
        return []
    return [Command("files", files_command(PATHS), 3.0)]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Servers, own name, and that no server was asked."""
    answer = have.get("files")
    files = files_in(answer, PATHS)
    findings = [*_servers(files, answer), _own(files, answer, where)]
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
        and any(RESOLV in line and "ermission" in line for line in lines_of(answer.stderr))
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


def _own(files: "dict[str, str]", answer: "Answer | None", where: "Where") -> Finding:
    """Whether the machine finds its own name without a name server; sudo and mail programs ask for it at each start."""
    what = Words(f"the own name {where.host}", f"本机名 {where.host}")
    if HOSTS not in files:
        why = Words("there is no /etc/hosts", "没有 /etc/hosts")
        if not is_absent(answer, HOSTS):
            why = why_not(answer, "grep") or Words("/etc/hosts is empty", "/etc/hosts 为空")
        return not_checked(ID, what, why, answer)
    addresses = []
    for line in lines_of(files[HOSTS]):
        fields = line.partition("#")[0].split()
        if where.host.lower() in (name.lower() for name in fields[1:]):
            addresses.append(fields[0])
    if addresses:
        text = Words(
            f"{where.host} is {', '.join(addresses[:4])}.", f"{where.host} 的地址是 {'、'.join(addresses[:4])}。"
        )
        return Finding("dns.own-name", Severity.OK, text, subject=where.host, number=len(addresses), answer=answer)
    sources = [line.split() for line in lines_of(files.get(SWITCH, "")) if line.startswith("hosts:")]
    if sources and "myhostname" in sources[0]:
        text = Words(f"{where.host} is found by nss-myhostname.", f"{where.host} 由 nss-myhostname 解析。")
        return Finding("dns.own-name", Severity.OK, text, subject=where.host, answer=answer)
    return Finding(
        "dns.own-name",
        Severity.NOTE,
        Words(
            f"{where.host}, this machine's own name, is not in /etc/hosts: finding it needs a name server.",
            f"本机名 {where.host} 不在 /etc/hosts 中，解析它需要域名服务器。",
        ),
        subject=where.host,
        next="cat /etc/hosts",
        answer=answer,
    )


def _in(text: str) -> "list[str]":
    found = []
    for line in lines_of(text):
        fields = line.split()
        if len(fields) >= 2 and fields[0] == "nameserver":
            found.append(fields[1])
    return list(dict.fromkeys(found))
