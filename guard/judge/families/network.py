"""What looks at, changes and talks over the network. Source: iproute2, curl, bind and OpenSSH manuals."""

from guard.judge.levels import R2, R3
from guard.judge.options import Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, reader, table
from guard.judge.tables import names, starts

EXAMPLES = {
    "R0": ("ip addr", "ip a", "ip -br link show", "ip route get 1.1.1.1", "ip -s link", "ip neigh", "ip rule list",
        "ss -tlnp", "ss -s", "netstat -tulpn", "ifconfig", "ifconfig eth0", "route -n", "arp -an",
        "dig example.org", "dig +short x.org MX", "nslookup x.org", "host x.org",
        "ping -c 3 10.0.0.1", "traceroute x", "mtr -r x", "tcpdump -D", "whois x.org", "ethtool eth0",
        "bridge link", "nmcli device status", "ip netns list",),
    "R2": ("ip link set eth0 down", "ip addr add 1.1.1.1/8 dev eth0", "ip route del default",
        "ip a a 1.1.1.1/8 dev x", "ifconfig eth0 down", "ss -K", "tcpdump -z x -w f", "tcpdump -w f",
        "tc qdisc add dev show root x", "bridge fdb add show dev x", "dig $(cat f).x.org", "ip -batch f",
        "nmcli con up x", "ip netns exec x foo", "dig x.org @$S",),
    "R3": ("ip netns exec x rm -rf y", "ip addr flush dev eth0",),
}  # fmt: skip


_IP_READ = starts("""
    show list ls lst sh s l get g ge help monitor mon identify pids st showdump stats
""")
_IP_OBJECTS = names("""
    address addr addrlabel l2tp link maddress mroute mrule neigh neighbour neighbor netconf netns nexthop ntable
    ntbl route rule sr tap tcp_metrics tcpmetrics token tunnel tuntap vrf xfrm mptcp ioam stats maddr monitor a ad
    add l li lin r ro rou rout ru rul n ne nei nex m mo x fou macsec
""")


def _ip(call: Call) -> None:
    args = list(call.args)
    at = 0
    while at < len(args):
        value = args[at].value
        if value is None:
            call.opaque("an option that the text does not tell", args[at])
            return
        if not value.startswith("-"):
            break
        if value in ("-b", "-batch", "--batch", "-force") or (
            value.startswith(("-ba", "-fo", "-b")) and not value.startswith("-br")
        ):
            call.note(R2, "ip.batch", "runs a file of changes", args[at])
            return
        if value in ("-n", "-netns", "-f", "-family", "-rc", "-rcvbuf", "-l", "-loops", "-net", "-nets"):
            at += 1
        at += 1
    words = args[at:]
    if not words or (len(words) == 1 and words[0].value in ("help",)):
        return
    thing = words[0].value or "?"
    if thing not in _IP_OBJECTS and thing != "help":
        call.opaque("an object that is not known", words[0])
        return
    verb = words[1].value if len(words) > 1 else "show"
    if verb is None:
        call.opaque("a change that the text does not tell", words[1])
        return
    if thing in ("netns",) and verb in ("exec", "e", "ex", "exe"):
        call.note(R2, "ip.netns-exec", "runs a program in another network namespace")
        rest = words[2:]
        if len(rest) > 1:
            call.argv(rest[1:])
        return
    if thing == "vrf" and verb.startswith("e"):
        call.note(R2, "ip.vrf-exec", "runs a program in another routing domain")
        if len(words) > 3:
            call.argv(words[3:])
        return
    if thing == "xfrm" and len(words) > 2:
        call.note(R2, "ip.xfrm", "shows or changes keys of tunnels")
        return
    if thing.startswith("mo") or (verb in _IP_READ and not (verb == "s" and thing.startswith("l"))):
        return
    if thing in ("link", "l", "li", "lin") and verb == "s":
        # `ip link s` means set: beginnings are matched in the order of the source, and set comes first.
        call.note(R2, "ip.change", "changes an interface (s means set here)", words[1], "ip-link(8)")
        return
    if "flush".startswith(verb) and len(verb) > 0 and verb[0] == "f":
        call.note(R3, "ip.flush", "removes all addresses or routes that match", words[1], "ip(8)")
        return
    call.note(R2, "ip.change", f"changes the network ({thing} {verb})", words[1], "ip(8)")


def _sockets(call: Call, parsed: Parsed) -> None:
    """Whose a socket is stands in the processes' descriptors, which the usual sandbox keeps from being seen."""
    for word in call.args:
        value = word.value or ""
        short = value[:1] == "-" and value[1:2] not in ("-", "") and set("pZzT") & set(value)
        if short or value in ("--processes", "--program", "--programs", "--threads", "--context", "--contexts"):
            call.need("observe")
            return


def _ifconfig(call: Call) -> None:
    named = False
    for word in call.args:
        value = word.value or "?"
        if named or (value.startswith("-") and value not in ("-a", "-s", "-v", "-l", "-L", "-m", "-V", "--help", "-r")):
            call.note(R2, "network.ifconfig", "changes an interface", word)
            return
        named = not value.startswith("-")


def _route(call: Call) -> None:
    for word in call.args:
        if word.value in ("add", "del", "delete", "flush", "change"):
            call.note(R2, "network.route", "changes the routes")
            return
        if (
            word.value is not None
            and not word.value.startswith("-")
            and word.value not in ("get", "default", "monitor")
        ):
            if not any(other.value == "get" for other in call.args):
                call.opaque("an operand that is not known", word)
            return


def _arp(call: Call) -> None:
    for word in call.args:
        value = word.value or "?"
        if value.startswith("-") and not value.startswith("--") and set(value[1:]) & set("dsf?"):
            call.note(R2, "network.arp", "changes the neighbour table", word)
        if value.startswith(("--s", "--de", "--fi")):
            call.note(R2, "network.arp", "changes the neighbour table", word)


def _dns(call: Call, parsed: Parsed) -> None:
    for word in parsed.operands:
        value = call.value(word)
        if value is None:
            call.note(
                R2,
                "network.dynamic",
                "the name that is asked for is not told by the text, so it can carry data out",
                word,
                "law 10",
            )
            return
        if value.startswith("@"):
            call.peer(value[1:], 53, "dns")
    if call.name in ("host", "nslookup") and len(parsed.operands) > 1:
        call.peer(call.value(parsed.operands[1]) or "?", 53, "dns")
    call.peer("", 53, "dns")


def _ping(call: Call, parsed: Parsed) -> None:
    for word in parsed.operands:
        value = call.value(word)
        if value is None:
            call.note(R2, "network.dynamic", "the peer is not told by the text", word, "law 10")
        else:
            call.peer(value, 0, "icmp")


_ETHTOOL_READS = names("""
    -a -c -g -i -d -e -k -n -u -P -S -T -x -l -m --show-pause --show-coalesce --show-ring --driver
    --show-features --show-offload --statistics --show-permaddr --show-time-stamping --show-channels
    --module-info --show-eee --show-fec --show-priv-flags --json -j --help -h --version --register-dump
    --show-rxfh --show-nfc -I --include-statistics
""")


def _ethtool(call: Call) -> None:
    values = [word.value or "?" for word in call.args]
    if any(value.startswith("-") and value not in _ETHTOOL_READS for value in values):
        call.note(R2, "network.ethtool", "changes the network card")


def _nmcli(call: Call) -> None:
    words = [word.value or "?" for word in call.args]
    rest: list[str] = []
    skip = False
    for value in words:
        if skip:
            skip = False
        elif value in (
            "-f",
            "--fields",
            "-m",
            "--mode",
            "-c",
            "--colors",
            "-e",
            "--escape",
            "-g",
            "--get-values",
            "-w",
            "--wait",
        ):
            skip = True
        elif value in ("-a", "--ask", "-s") or value.startswith("--sh"):
            if value == "-s" or value.startswith("--sh"):
                call.note(R2, "network.secrets", "shows passwords", None, "law 4")
        elif not value.startswith("-"):
            rest.append(value)
    call.need("bus")
    if not rest or len(rest) == 1:
        if rest and rest[0].startswith("ag"):
            call.note(R2, "network.nmcli-agent", "asks for and hands out secrets")
        return
    verb = rest[1]
    if verb in ("show", "status", "list", "s", "sh", "permissions") or rest[1:] == ["logging"]:
        return
    if (verb == "wifi" and (len(rest) == 2 or rest[2] in ("list", "l"))) or (verb == "connectivity" and len(rest) == 2):
        return
    call.note(R2, "network.nmcli", "changes the network")


_CHRONY_READS = names("""
    tracking sources sourcestats activity ntpdata clients serverstats rtcdata help waitsync
""")


def _chrony(call: Call) -> None:
    verb = next((word.value for word in call.args if not (word.value or "").startswith("-")), None)
    several = any((word.value or "-m").startswith(("-m", "-f")) for word in call.args)
    if verb not in _CHRONY_READS or several:
        call.note(R2, "time.chrony", "changes how the clock is kept")


def _shown(call: Call) -> None:
    """bridge and tc: an object, then what to do with it; nothing or show is a read."""
    flags = [word.value or "?" for word in call.args if (word.value or "?").startswith(("-", "?"))]
    rest = [word.value or "?" for word in call.args if not (word.value or "?").startswith("-")]
    if any(flag.startswith(("-b", "-f", "?")) for flag in flags) or (
        len(rest) > 1 and rest[1] not in ("show", "list", "ls", "monitor", "get")
    ):
        call.note(R2, f"network.{call.name}", f"{call.name} changes the network")


def _finger(call: Call) -> None:
    for word in call.args:
        value = call.value(word)
        if value is None or "@" in value:
            call.note(R2, "network.finger", "asks another machine", word, "law 10")


def _balances(call: Call) -> bool:
    """ipvsadm: another action among the words or in a bundle, beside the listing."""
    for word in call.args:
        value = word.value or "-C"
        if value.startswith("--"):
            if value.startswith(("--cl", "--ze", "--ad", "--ed", "--de", "--re", "--se", "--st", "--sa")) and not (
                "--stats".startswith(value)
            ):
                return True
        elif value.startswith("-") and not set("CZDAERSade").isdisjoint(value[1:]):
            return True
    return False


def _ntpq(call: Call, parsed: Parsed) -> None:
    """ntpq: commands that only show."""
    for option in parsed.options:
        if option.name == "-c":
            text = call.value(option.value) if option.value is not None else None
            if text is None or (text.split() or ["?"])[0] not in _NTPQ_READS:
                call.note(R2, "time.ntpq", "a command that is not known to only show", option.word)


_NTPQ_READS = names("""
peers opeers lpeers lopeers apeers associations as rv readvar readlist rl pstats sysinfo sysstats kerninfo monstats "
"mrulist
iostats timerstats ifstats reslist pe ass clocklist cl clockvar cv lassociations passociations
""")


PROGRAMS: dict[str, Program] = {
    "ip": custom(_ip, plain=True),
    **many("bridge tc", custom(lambda call: _shown(call), plain=True)),
    "ss": reader("-K,--kill!R2 -D,--diag:!write -F,--filter:!read -p,--processes -n,--numeric -l,--listening "
        "-t,--tcp -u,--udp -a,--all -s,--summary -e,--extended -i,--info -m,--memory -o,--options "
        "-r,--resolve -4,--ipv4 -6,--ipv6 -x,--unix -0,--packet -w,--raw -d,--dccp -S,--sctp "
        "-H,--no-header -O,--oneline -Z,--context -z,--contexts -N,--net: -E,--events -f,--family: "
        "-A,--query,--socket: -b,--bpf -B,--bound-inactive -T,--threads --tos --cgroup --vsock --xdp "
        "--tipc -M,--mptcp --inet-sockopt -h,--help -V,--version", operands="data", unknown="R2", check=_sockets),
    "netstat": reader("", operands="data", check=_sockets),
    "ifconfig": custom(_ifconfig, plain=True),
    **many("iwconfig", custom(_ifconfig, plain=True)),
    **many("ifup ifdown dhclient dhcpcd nmtui vconfig ifenslave ip-tunnel wg-quick strongswan ebtables "
        "arptables hciconfig", table("", operands="data", level="R2", text="changes the network")),
    "netplan": custom(lambda call: None if call.args and call.args[0].value in ("status", "info", "ip") else
        call.note(R2, "network.netplan", "changes the network")),
    "wg": custom(lambda call: None if not call.args or (call.args[0].value == "show" and not any(word.value in (
                    "private-key", "dump", "preshared-keys") for word in call.args)) else call.note(R2,
            "network.wireguard", "changes a tunnel or shows its keys")),
    "brctl": custom(lambda call: None if call.args and (call.args[0].value or "").startswith("show") else call.note(
            R2, "network.bridge", "changes a bridge")),
    "conntrack": custom(lambda call: None if any(word.value in ("-L", "-S", "-C", "-G", "--dump", "--stats",
                "--count") for word in call.args) and not any((word.value or "-z").startswith(("-z", "-D", "-U",
                    "-I", "-F", "-Lz", "-LD",
                    "--ze", "--de", "--up", "--cr", "--fl")) for word in call.args) else call.note(R2,
            "network.conntrack",
            "changes the connection table"), plain=False),
    "ipvsadm": custom(lambda call: None if not call.args or (not _balances(call) and any((word.value or "").startswith(
        ("-L", "-l", "--list")) for word in call.args)) else call.note(R2, "network.ipvs", "changes load balancing")),
    "rfkill": custom(lambda call: None if not call.args or call.args[0].value in ("list", "event") else call.note(R2,
            "network.rfkill", "switches radios")),
    "route": custom(_route, plain=True),
    "arp": custom(_arp, plain=True),
    "nmcli": custom(_nmcli),
    "ethtool": custom(_ethtool),
    "mii-tool": reader("-F:!R2 -A:!R2 -R!R2 -r!R2 -w -l -v -V", operands="data"),
    "drill": reader("-w:!write -q:!write -f:!read -i:!read -k:!read -y:!secret -o: -p: -s -u -c: -d: -D -T -S -V: "
    "-v -h -Q "
        "-4 -6 -b -C -I: -r: -t -a -x", operands="data", check=_dns, plain=False, unknown="R2"),
    **many("dig nslookup host kdig delv", reader(
            "-f:!R2 -k:!R2 -y:!secret -b: -p: -t: -c: -q: -x: -4 -6 -i -m -u -v -r -R: -W: -N: -a -C -l!R2 -s "
            "-w -T -d -D -A -V -h -B -E -I -P -U -S -n -e -type: -query: -querytype: -class: -cl: -port: -timeout: "
            "-retry: -debug -nodebug -d2 -nod2 -recurse -norecurse -vc -novc -domain: -search -nosearch -sil -fail "
            "-nofail -ndots: -all -set --help --version", operands="data", check=_dns, plain=False)),
    **many("whois", reader("-h,--host:!R2 -p,--port:!R2 -H -r -a -A -b -B -c -C -d -F -g: -G -i: -I -K -l -L -m -M -q: "
            "-Q -R -s: -S -t: -T: -v: -x --verbose --no-recursion --help --version", operands="data", check=_dns,
            plain=False)),
    "arping": reader("-c: -i: -I: -w: -W: -f -q -v -b -D -A!R2 -U!R2 -S:!R2 -s: -P!R2 -V -h -r -R -p -d -0 -a -e -u "
    "-z -T: -t: -C:",
        operands="data", check=_ping, plain=False, unknown="R2"),
    **many("traceroute traceroute6 tcptraceroute", reader(
            "-4 -6 -d -F -f: -g: -I -T -i: -m: -N: -n -p: -t: -l: -w: -z: -q: -r -s: -U -V -A -e -M:!R2 -O: -D -S -E "
            "--sport: --fwmark: --mtu --back --help -P,--protocol: -UL -b -c -x -v --debug --dont-fragment --first: "
            "--gateway: --icmp --tcp --udp --dccp --udplite --interface: --module:!R2 --max-hops: --sim-queries: "
            "--port: "
            "--tos: --flowlabel: --wait: --queries: --source: --sendwait: --extensions --as-path-lookups --version "
            "--resolve-hostnames --type:", operands="data", check=_ping, plain=False)),
    **many("ping ping6 fping tracepath mtr", reader(
            "-f!R2 --flood!R2 -c,--count,--report-cycles: -i,--interval: -w: -W: -s,--psize: -I: -t: -m: -n "
            "-4 -6 -q -v -r,--report -T -U -p: -M: -Q: -S: -l: -b -A -D -a -h -V -d -F:!read -e -z -N: -o: "
            "-g: -G: -P: -3 -B -C -E -H -J -k: -K: -L -O -R -u,--udp -x,--xml -X: -y:,--ipinfo: -Z,--timeout: "
            "-j,--json --csv -l,--raw -p,--split -z,--aslookup -b,--show-ips -n,--no-dns -w,--report-wide "
            "-o,--order: -e,--mpls --address: --first-ttl: --max-ttl: --max-unknown: --tcp --sctp --localport: "
            "--gracetime: --curses --gtk --displaymode: --interface: --filename:!read --count: --ttl: --timeout: "
            "--deadline: "
            "--numeric --quiet --verbose --size: --audible --adaptive --help --version --timestamp --alive --unreach "
            "--elapsed --stats --addr --vcount: --loop --period: --retry: --reduce: --backoff: --bind --iface: --src: "
            "--tos: --netdata --outage --random --squiet: --timestamp-format: --check-source --fast-reachable: "
            "--dontfrag --generate --file:!read --ipv4 --ipv6 --rdns --name --oiface:", operands="data", check=_ping,
                plain=False)),
    "chronyc": custom(lambda call: _chrony(call)),
    "ntpq": reader("-c,--command: -p,--peers -n,--numeric -4,--ipv4 -6,--ipv6 -w,--wide -d -V,--version -h,--help "
    "-r,--raw "
        "-k:!secret -a: -i,--interactive!R2", operands="data", plain=False, unknown="R2", check=lambda call,
            parsed: _ntpq(call,
            parsed)),
    **many("ntpstat ntptime", reader("-r -c -h,--help -V,--version -m,--maxerror", operands="none", plain=False,
        unknown="R2")),
    **many("tcpdump", reader(
            "-D,--list-interfaces -w:!write -z:!exec -r:!read -F:!read -i,--interface: -c: -n -nn -v -vv -vvv "
            "-e -A -X -XX -x -q -s: -S -t -tt -ttt -tttt -G: -C: -W: -Z: -l -p -K -L -h --version --print -B: "
            "-E:!R2 -T: -y: -j: -J -Q: -V:!read -m: -M:!secret -N -O -R -U -u -b -d -dd -# -H --count",
            operands="data", check=lambda call, parsed: None if any(parsed.has(n) for n in ("-D", "-r", "-d", "-h",
                    "--version", "-L", "-J")) else call.note(R2, "network.capture",
                "reads what others send over the network", None, "tcpdump(8)"), plain=False, unknown="R2")),
    "ssh-keyscan": reader("-p: -t: -T: -4 -6 -H -v -f:!R2 -D", operands="data", check=_ping, plain=False),
    "finger": custom(lambda call: _finger(call)),
}  # fmt: skip
