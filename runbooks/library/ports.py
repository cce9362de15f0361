"""Who listens where, and which databases and control ports are open on every address."""

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Words
from runbooks.reading import is_count, not_checked, spoke, unreadable, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "ports"
TITLE = Words("Ports", "端口")
ABOUT = Words("who listens where, and what is open on every address", "谁在监听，哪些端口对所有地址开放")

# Services that are made for trusted networks: their default is no password or no encryption.
# Source: each project's own hardening guide; 2375 is root on the machine for whoever connects (docs.docker.com).
SENSITIVE = {
    2375: "Docker (no TLS)",
    2379: "etcd",
    2181: "ZooKeeper",
    3306: "MySQL",
    5432: "PostgreSQL",
    5900: "VNC",
    5984: "CouchDB",
    6379: "Redis",
    8086: "InfluxDB",
    9092: "Kafka",
    9200: "Elasticsearch",
    9300: "Elasticsearch",
    11211: "memcached",
    15672: "RabbitMQ management",
    27017: "MongoDB",
}
CRITICAL = frozenset((2375,))
EVERYWHERE = frozenset(("0.0.0.0", "*", "[::]", "::"))  # noqa: S104 - compared with, not bound
LOOPBACK = ("127.", "[::1]", "::1", "localhost")
SHOWN = 12
COMMAND = ("ss", "-Hltnup")


class Listener:
    """One listening socket."""

    __slots__ = ("protocol", "address", "port", "who")

    def __init__(self, protocol: str, address: str, port: int, who: str) -> None:
        self.protocol = protocol
        self.address = address
        self.port = port
        self.who = who
        """`nginx (pid 77)`, or "" when it could not be seen."""

    @property
    def everywhere(self) -> bool:
        return self.address.partition("%")[0] in EVERYWHERE

    @property
    def shown(self) -> str:
        name = self.who.partition(" (")[0]
        return f"{self.port}/{self.protocol}" + (f" {name}" if name else "")


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """One listing of TCP and UDP listeners with their processes."""
    return [] if "ss" in have else [Command("ss", COMMAND, 5.0)]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """The port that was asked about, sensitive ones on every address, then the whole list."""
    answer = have.get("ss")
    why = why_not(answer, "ss")
    if why is not None:
        return [not_checked(ID, TITLE, why, answer)]
    listeners = listeners_in(answer.stdout if answer else "")
    if not listeners and spoke(answer):
        return [not_checked(ID, TITLE, unreadable("ss"), answer)]
    findings = [_asked(port, listeners, answer) for port in where.numbers if 0 < port < 65_536]
    seen: set[int] = set()
    for one in listeners:
        if one.everywhere and one.port in SENSITIVE and one.protocol == "tcp" and one.port not in seen:
            seen.add(one.port)
            findings.append(_sensitive(one, answer))
    findings.append(_all(listeners, answer))
    if seen:
        why = Words(
            "a firewall or router may stand between; only a look from outside tells",
            "中间可能有防火墙或路由器，需从外部查看",
        )
        findings.append(not_checked(ID, Words("reachable from outside", "外部是否可达"), why))
    if any(not one.who for one in listeners):
        why = Words("the kernel does not show them to this user or in this sandbox", "内核不向当前用户或此沙箱显示")
        findings.append(
            not_checked(ID, Words("some process names", "部分进程名"), why, answer, needs_root=where.euid != 0)
        )
    return findings


def listeners_in(output: str) -> "list[Listener]":
    """The listeners in the output of `ss -Hltnup`, each once, by port."""
    found: dict[tuple[str, str, int, str], Listener] = {}
    for line in lines_of(output):
        fields = line.split(None, 6)
        if len(fields) < 6 or fields[0] not in ("tcp", "udp"):
            continue
        address, _, port = fields[4].rpartition(":")
        if is_count(port):
            one = Listener(fields[0], address, int(port), _who(fields[6] if len(fields) > 6 else ""))
            found.setdefault((one.protocol, address, one.port, one.who), one)
    return sorted(found.values(), key=lambda one: (one.port, one.protocol, one.address))


def _who(users: str) -> str:
    """`nginx (pid 77)` from `users:(("nginx",pid=77,fd=6),…)`."""
    _, mark, rest = users.partition('(("')
    name, quote, tail = rest.partition('"')
    if not mark or not quote:
        return ""
    pid = tail.partition("pid=")[2].partition(",")[0]
    return f"{name} (pid {pid})" if is_count(pid) else name


def _asked(port: int, listeners: "list[Listener]", answer: "Answer | None") -> Finding:
    here = [one for one in listeners if one.port == port]
    if not here:
        text = Words(f"Nothing listens on port {port}.", f"没有进程监听端口 {port}。")
    else:
        said_en = [f"{one.who or 'a process that is not shown'} on {one.address} ({one.protocol})" for one in here[:4]]
        said_zh = [f"{one.who or '未显示的进程'}，地址 {one.address}（{one.protocol}）" for one in here[:4]]
        text = Words(f"Port {port}: {'; '.join(said_en)}.", f"端口 {port}：{'；'.join(said_zh)}。")
    return Finding("ports.asked", Severity.OK, text, subject=str(port), number=port, answer=answer)


def _sensitive(one: Listener, answer: "Answer | None") -> Finding:
    name = SENSITIVE[one.port]
    by_en = f", by {one.who}" if one.who else ""
    by_zh = f"，进程 {one.who}" if one.who else ""
    return Finding(
        "ports.exposed",
        Severity.CRIT if one.port in CRITICAL else Severity.WARN,
        Words(
            f"{name} ({one.port}) listens on every address{by_en}.", f"{name}（{one.port}）在所有地址上监听{by_zh}。"
        ),
        subject=str(one.port),
        number=one.port,
        next=f"ss -ltnp 'sport = :{one.port}'",
        answer=answer,
    )


def _all(listeners: "list[Listener]", answer: "Answer | None") -> Finding:
    wide = list(dict.fromkeys(one.shown for one in listeners if not one.address.startswith(LOOPBACK)))
    local = list(dict.fromkeys(one.shown for one in listeners if one.address.startswith(LOOPBACK)))
    parts_en, parts_zh = [], []
    for names, en, zh in ((wide, "on the network", "面向网络"), (local, "only on this machine", "仅本机")):
        if names:
            more = len(names) - SHOWN
            parts_en.append(f"{en}: {', '.join(names[:SHOWN])}{f' and {more} more' if more > 0 else ''}")
            parts_zh.append(f"{zh}：{'、'.join(names[:SHOWN])}{f' 等 {len(names)} 个' if more > 0 else ''}")
    count = len(wide) + len(local)
    ports = "1 listening port" if count == 1 else f"{count} listening ports"
    return Finding(
        "ports.listening",
        Severity.OK,
        Words(
            f"{ports}; {'; '.join(parts_en)}." if listeners else "Nothing listens.",
            f"共 {count} 个监听端口；{'；'.join(parts_zh)}。" if listeners else "没有监听端口。",
        ),
        subject="ports",
        number=count,
        answer=answer,
    )
