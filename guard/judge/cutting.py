"""Which changes can keep a person out: end the connection they are made over, or turn the next log-in away.

Worked out from what the walk left, when somebody asks, without I/O. Each `Cut` says why, and whether the plan saves
what would bring the way in back. `CUTS` holds the rules with commands that each must and must not match; the tests run
them.
"""

from itertools import pairwise

from guard.judge import cutpaths, cutwhole
from guard.judge.levels import R0
from guard.judge.paths import secret
from guard.judge.states import (
    ACCOUNTS,
    IPTABLES,
    NETWORK,
    NFT,
    ONLY_LATER,
    SERVICE,
    STATE,
    SYSCTL,
    Changed,
    changed,
    of_network,
    unit_verb,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from guard.judge.engine import Judge
    from guard.judge.program import Ran
    from guard.judge.shell.syntax import Word
    from guard.judge.states import Item


class Cut:
    """One way in which a change can keep a person out."""

    __slots__ = ("why", "saved")

    def __init__(self, why: str, saved: bool) -> None:
        self.why = why
        """What it changes, in a few words."""
        self.saved = saved
        """What brings it back is in the plan."""


class Rule:
    """One kind of program and state that cuts off, with its examples."""

    __slots__ = ("why", "names", "finds", "must", "must_not", "ends")

    def __init__(
        self,
        why: str,
        names: str,
        finds: "Callable[[Changed], bool]",
        must: "tuple[str, ...]",
        must_not: "tuple[str, ...]" = (),
        *,
        ends: bool = False,
    ) -> None:
        self.why = why
        self.ends = ends
        """It ends processes that the states which are saved do not bring back."""
        self.names = frozenset(names.split())
        """Names of programs; empty: `finds` looks at all."""
        self.finds = finds
        """Whether this command of one of these programs, which changes something, can cut off."""
        self.must = must
        self.must_not = must_not


_STATES = {
    NFT: "a firewall", IPTABLES: "a firewall", NETWORK: "the network", ACCOUNTS: "who may log in",
}  # fmt: skip
LATER = "it goes on or begins later: what it does after the end is not taken back"
"""Why a change that has a dead man may still cut off."""
NOT_READ = "it runs what is not read"
"""Why what is opaque may cut off."""

LOGIN_UNITS = ("ssh", "dropbear", "sssd", "systemd-logind", "dbus", "nslcd", "winbind")
NETWORK_UNITS = (
    "networking", "network", "NetworkManager", "systemd-networkd", "systemd-resolved", "dhcpcd", "wpa_supplicant",
    "ifup", "nftables", "iptables", "ip6tables", "netfilter-persistent", "firewalld", "ufw", "shorewall", "csf", "lfd",
    "wg-quick@", "openvpn", "tailscale", "strongswan", "ipsec", "zerotier", "cloudflared", "user@",
)  # fmt: skip
_ONLY_LETS_IN = frozenset(("start", "enable", "reenable", "unmask", "preset", "reset-failed", "thaw"))
"""Verbs that make a log-in service no less there. The same for a firewall may be what closes the door."""
_ADDS_TO_GROUPS = frozenset(("-a", "-G", "-aG", "--append", "--groups", "-c", "--comment"))
_WAYS_IN = (
    "openssh-server", "ssh", "dropbear", "sudo", "network-manager", "ifupdown", "netplan.io", "systemd", "libpam",
    "pam", "sssd", "firewalld", "ufw", "iptables-persistent", "wireguard", "openvpn", "tailscale", "NetworkManager",
)  # fmt: skip
_REMOVES = frozenset(
    ("remove", "purge", "erase", "autoremove", "del", "-r", "-P", "-e", "--remove", "--purge", "-R", "-Rs")
)
_ALL_UNITS = ("user.slice", "system.slice", "-.slice", "basic.target", "sysinit.target", "sockets.target",
    "multi-user.target", "graphical.target", "user-", "session-")  # fmt: skip
"""Units that others, with them the log-ins, go down with or are bound by."""
_BINDS = frozenset(("stop", "kill", "freeze", "mask", "set-property"))
_LIMITS = ("fs.file-max", "fs.nr_open", "kernel.pty.", "kernel.pid_max", "kernel.threads-max", "net.netfilter.",
    "net.nf_conntrack_max")  # fmt: skip
"""Beginnings of keys without which no connection or log-in begins."""
_RESCUE = frozenset(("isolate", "rescue", "emergency", "default"))
_STARTS = frozenset(("start", "restart", "reload-or-restart"))
_END_OTHERS = frozenset(("rescue", "emergency", "shutdown", "umount", "runlevel1"))
"""Targets whose start ends what lets people in, on a machine that stays on. Source: systemd.special(7)."""
_CLOUD_NETWORKS = ("security-group", "firewall", "network-acl", "nsg", "route", "security_group")
_CONTAINERS = frozenset(("docker", "podman", "nerdctl", "crictl", "ctr"))
_HOST_NETWORK = ("--net=host", "--network=host", "--pid=host", "--net=container", "--network=container")


def _words(changed: Changed) -> "list[str]":
    return [word.value or "" for word in changed.ran.words[1:]]


def _always(changed: Changed) -> bool:
    return True


def _families(*names: str) -> "Callable[[Changed], bool]":
    return lambda changed: any(kind == STATE and name.partition(" ")[0] in names for kind, name in changed.items)


def _by_init(changed: Changed) -> bool:
    """A service of another manager than systemd."""
    words = _words(changed)
    if changed.ran.name == "rc-service" or changed.ran.name == "invoke-rc.d":
        unit, verb = (*words, "", "")[:2]
    else:
        verb, unit = (*words, "", "")[:2]
    return _may_be(unit, NETWORK_UNITS) or (verb not in _ONLY_LETS_IN and _may_be(unit, LOGIN_UNITS))


def _hides_a_way_in(changed: Changed) -> bool:
    if changed.ran.name == "umount" and any(word in ("-a", "--all") for word in _words(changed)):
        return True
    words = [word for word in _words(changed) if word.startswith(("/", "~"))]
    return any(cutpaths.decides(word) or cutpaths.holds(word) for word in words)


def _of_a_cloud_firewall(changed: Changed) -> bool:
    return any(part in word for word in _words(changed) for part in _CLOUD_NETWORKS)


def _unit(changed: Changed) -> bool:
    verb = unit_verb(changed.ran)
    words = _words(changed)
    if verb in ONLY_LATER and "--now" not in words:
        return False
    for kind, unit in changed.items:
        if kind == SERVICE and _may_be(unit, NETWORK_UNITS):
            return True
        if kind == SERVICE and verb not in _ONLY_LETS_IN and _may_be(unit, LOGIN_UNITS):
            return True
    return False


def _may_be(unit: str, names: "tuple[str, ...]") -> bool:
    """Whether a unit, or a pattern of units, can be one of these."""
    if unit.startswith(names):
        return True
    end = min((at for at in map(unit.find, "*?[") if at >= 0), default=-1)
    return end >= 0 and any(name.startswith(unit[:end]) for name in names)


def _sysctl(changed: Changed) -> bool:
    for kind, name in changed.items:
        family, _, key = name.partition(" ")
        if kind == STATE and family == SYSCTL and _is_network_key(key):
            return True
    return False


def _limits(changed: Changed) -> bool:
    keys = [name.partition(" ") for kind, name in changed.items if kind == STATE]
    return any(family == SYSCTL and _is_limit(key) for family, _, key in keys)


def _is_limit(key: str) -> bool:
    """Whether a key, or all of them, can leave no room for a connection or a terminal."""
    return not key or key.startswith(_LIMITS)


def _is_network_key(key: str) -> bool:
    """Whether a key, or all of them, can change how packets go."""
    return not key or (key.startswith(("net.ipv4.", "net.ipv6.", "net.bridge.")) and ".tcp_" not in key)


def _account(changed: Changed) -> bool:
    name, words = changed.ran.name, _words(changed)
    if name == "passwd":
        return any(word in ("-l", "--lock", "-d", "--delete", "-e", "--expire", "-x", "-i", "-n") for word in words)
    if name == "usermod":
        options = {word.partition("=")[0] for word in words if word.startswith("-")}
        return not options <= _ADDS_TO_GROUPS or bool({"-G", "--groups"} & options and not {"-a", "--append"} & options)
    if name == "gpasswd":
        return not any(word in ("-a", "--add") for word in words)
    return True


def _kills_ssh(changed: Changed) -> bool:
    ran, words = changed.ran, changed.ran.words[1:]
    if ran.name == "kill":
        if any(word.value == "-1" and at for at, word in enumerate(words)):
            return True
        return any(_tells_ssh(word) for word in words)
    said = [word.value or "" for word in words]
    if ran.name == "pkill" and any(_matches_ssh(one, "-x" in said) for one in said):
        return True
    everybody = any(
        one in ("-u", "-U", "--euid", "--uid", "--user") and who in ("root", "0") for one, who in pairwise(said)
    )
    return everybody or any("ssh" in one for one in said) or any(word.value is None for word in words)


def _matches_ssh(pattern: str, whole: bool) -> bool:
    """Whether a pattern of pkill finds the ssh server too: `.`, `sh`."""
    if whole or not pattern or pattern.startswith("-"):
        return False
    return pattern in "sshd" or not any(letter.isalnum() for letter in pattern)


def _tells_ssh(word: "Word") -> bool:
    """Whether a process is named by a look for the ssh server: `$(pidof sshd)`, `$(lsof -t -i :22)`."""
    return any(map(cutwhole.looks_for_ssh, _inner(word)))


def _inner(word: "Word") -> "Iterator[str]":
    for part in word.parts:
        for node in () if isinstance(part, str) else part.runs:
            yield from (inside.value or "" for inside in getattr(node, "words", ()))


def _rescue(changed: Changed) -> bool:
    words = [word for word in _words(changed) if not word.startswith("-") or word.startswith("-.")]
    if changed.ran.name == "systemctl":
        if words and words[0] in _BINDS and any(word.startswith(_ALL_UNITS) for word in words[1:]):
            return True
        ends = any(word.removesuffix(".target") in _END_OTHERS for word in words[1:])
        return bool(words) and (words[0] in _RESCUE or (words[0] in _STARTS and ends))
    return bool(words) and words[0] in ("1", "s", "S", "single", "emergency", "rescue")


def _enforces(changed: Changed) -> bool:
    return not {"0", "permissive"} & {word.lower() for word in _words(changed)}


def _removes_a_way_in(changed: Changed) -> bool:
    words = _words(changed)
    named = [word for word in words if word.startswith(_WAYS_IN)]
    if any(word.endswith("-") for word in named):
        return True  # apt-get(8): a hyphen behind the name removes it
    if changed.ran.name in ("apt", "apt-get", "aptitude", "dnf", "yum") and words[:1] and "autoremove" in words:
        return True
    return not _REMOVES.isdisjoint(words) and bool(named)


def _says(*wanted: str) -> "Callable[[Changed], bool]":
    return lambda changed: any(word in wanted for word in _words(changed))


def _ends_sockets(changed: Changed) -> bool:
    return any(word == "--kill" or (word[:1] == "-" and word[1:2] != "-" and "K" in word) for word in _words(changed))


def _no_longer_starts(changed: Changed) -> bool:
    words = _words(changed)
    return any(word in ("remove", "disable", "del", "delete", "off", "--del") for word in words) and any(
        _may_be(word, (*LOGIN_UNITS, *NETWORK_UNITS)) for word in words
    )


CUTS: "tuple[Rule, ...]" = (
    Rule(
        "a firewall",
        "",
        _families("nft", "iptables"),
        ("nft -f f", "nft flush ruleset", "iptables-restore < f", "ip6tables -F", "ufw enable", "firewall-cmd --reload",
         "sudo iptables -P INPUT DROP", "bash -c 'iptables -F'"),
        ("nft list ruleset", "iptables -S", "ufw status", "firewall-cmd --list-all", "ssh web-1 iptables -F",
         "unshare -n iptables -F", "ip netns exec blue nft flush ruleset"),
    ),
    Rule(
        "a firewall",
        "ipset ebtables arptables pfctl shorewall csf fwconsole ufw-docker",
        _always,
        ("ipset flush", "ebtables -F"),
        ("ipset list",),
    ),
    Rule(
        "the network",
        "",
        _families("network"),
        ("ip link set eth0 down", "ip route del default", "ifconfig eth0 down", "ifdown eth0", "nmcli con down eth0",
         "netplan apply", "route del default", "dhclient -r eth0", "networkctl down eth0",
         "nsenter -t 1 -n ip link del e"),
        ("ip addr show", "ip -br link", "nmcli con show", "networkctl status", "ip -n blue link set eth0 down"),
    ),
    Rule(
        "the network",
        "wg wg-quick tc ethtool bridge iw iwconfig wpa_cli ovs-vsctl ovs-ofctl tailscale openvpn ipsec swanctl "
        "ifenslave nmtui teamdctl vconfig zerotier-cli rmmod",
        _always,
        ("wg-quick down wg0", "tc qdisc add dev eth0 root netem loss 100%", "tailscale down", "rmmod e1000e"),
        ("wg show", "tc qdisc show", "ethtool eth0"),
    ),
    Rule(
        "the network's settings in the kernel",
        "",
        _sysctl,
        ("sysctl -w net.ipv6.conf.all.disable_ipv6=1", "sysctl --system", "sysctl -w net.ipv4.conf.all.rp_filter=1"),
        ("sysctl -w vm.swappiness=1", "sysctl -w net.ipv4.tcp_syncookies=1", "sysctl -a"),
    ),
    Rule(
        "what connections and terminals have room in",
        "",
        _limits,
        ("sysctl -w net.netfilter.nf_conntrack_max=1", "sysctl -w fs.file-max=1", "sysctl kernel.pty.max=0",
         "sysctl --system"),
        ("sysctl -w vm.swappiness=1", "sysctl fs.file-max"),
    ),
    Rule(
        "the network",
        "bpftool",
        _says("attach"),
        ("bpftool net attach xdp id 1 dev eth0",),
        ("bpftool net list", "bpftool prog show"),
    ),
    Rule(
        "a firewall",
        "fail2ban-client",
        _says("banip", "ban", "start", "restart", "reload", "add"),
        ("fail2ban-client set sshd banip 192.0.2.1", "fail2ban-client reload"),
        ("fail2ban-client status sshd", "fail2ban-client set sshd unbanip 192.0.2.1"),
    ),
    Rule(
        "the sessions of those who are in",
        "loginctl",
        _says("terminate-user", "kill-user", "terminate-session", "kill-session", "terminate-seat"),
        ("loginctl terminate-user bob", "loginctl kill-user bob", "loginctl kill-session 3"),
        ("loginctl list-sessions", "loginctl enable-linger bob"),
        ends=True,
    ),
    Rule(
        "connections that stand",
        "ss tcpkill conntrack",
        lambda changed: changed.ran.name != "ss" or _ends_sockets(changed),
        ("ss -K dst 192.0.2.1", "ss -tK", "conntrack -F"),
        ("ss -tn", "ss -k"),
        ends=True,
    ),
    Rule(
        "a service that lets people in",
        "update-rc.d chkconfig rc-update insserv",
        _no_longer_starts,
        ("update-rc.d ssh remove", "update-rc.d ssh disable", "chkconfig sshd off", "rc-update del sshd"),
        ("update-rc.d nginx remove", "update-rc.d ssh defaults"),
    ),
    Rule(
        "a service that lets people in",
        "",
        _unit,
        ("systemctl stop ssh", "systemctl reload sshd", "systemctl restart ssh.socket", "service ssh restart",
         "systemctl stop 'ss*'", "systemctl restart nftables", "systemctl start firewalld",
         "systemctl disable --now ssh",
         "systemctl enable --now ufw", "systemctl restart NetworkManager", "systemctl stop wg-quick@wg0",
         "systemctl mask ssh"),
        ("systemctl start ssh", "systemctl enable ssh", "systemctl enable nftables", "systemctl stop nginx",
         "systemctl status ssh", "systemctl --user stop ssh"),
    ),
    Rule(
        "the ssh server's processes",
        "kill pkill killall skill",
        _kills_ssh,
        ("pkill sshd", "killall -9 sshd", "kill $(pidof sshd)", "kill $(cat /run/sshd.pid)", "kill -9 -1",
         "pkill -f \"$x\"", "pkill -u root",
         "pkill -f .", "pkill sh", "kill $(lsof -t -i :22)"),
        ("pkill nginx", "pkill -x sh", "kill $(lsof -t -i :80)", "kill 4711", "kill -1 4711", "kill $(pidof nginx)"),
    ),
    Rule(
        "the ssh server's processes",
        "killall5 fuser",
        _always,
        ("killall5 -9", "fuser -k 22/tcp"),
        ("fuser 22/tcp",),
    ),
    Rule(
        "a service that lets people in",
        "rc-service invoke-rc.d initctl",
        _by_init,
        ("rc-service sshd stop", "invoke-rc.d ssh restart", "initctl stop ssh", "rc-service networking restart"),
        ("rc-service nginx restart", "rc-service sshd start"),
    ),
    Rule(
        "what is mounted where",
        "mount umount",
        _hides_a_way_in,
        ("umount /home", "umount -a", "mount --bind /x /etc/ssh", "mount -o remount,ro /"),
        ("umount /mnt", "mount /dev/sdb1 /srv"),
    ),
    Rule(
        "a firewall or route of a cloud",
        "aws gcloud az doctl hcloud oci aliyun tccli openstack linode-cli",
        _of_a_cloud_firewall,
        ("aws ec2 revoke-security-group-ingress --group-id x", "gcloud compute firewall-rules delete x",
         "az network nsg rule delete -g a -n b"),
        ("aws s3 rm s3://a/b", "aws ec2 describe-security-groups"),
    ),
    Rule(
        "who may log in",
        "usermod userdel deluser passwd chsh chage gpasswd groupdel delgroup groupmod vipw vigr",
        _account,
        ("usermod -s /bin/false bob", "passwd -l bob", "usermod -L bob", "userdel bob", "chage -E 0 bob",
         "chsh -s /x bob",
         "usermod -G docker bob", "gpasswd -d bob sudo", "groupdel ssh-users"),
        ("useradd bob", "usermod -aG docker bob", "usermod -a -G docker bob", "passwd bob", "groupadd x",
         "gpasswd -a bob x"),
    ),
    Rule(
        "how a log-in is checked",
        "pam-auth-update authselect authconfig realm visudo pwunconv grpunconv pwconv grpconv faillock pam_tally2",
        _always,
        ("pam-auth-update --remove unix", "authselect select minimal", "realm leave", "pwunconv"),
        ("visudo -c",),
    ),
    Rule(
        "what runs at all",
        "systemctl init telinit",
        _rescue,
        ("systemctl isolate rescue.target", "systemctl rescue", "systemctl emergency", "init 1", "telinit S",
         "systemctl start rescue.target", "systemctl --no-block start shutdown", "systemctl stop user.slice",
         "systemctl stop system.slice", "systemctl stop -- -.slice",
         "systemctl set-property -- -.slice IPAddressDeny=any", "systemctl kill user-1000.slice"),
        ("systemctl daemon-reload", "reboot", "systemctl reboot", "init 6", "systemctl start reboot.target",
         "systemctl stop nginx"),
        ends=True,
    ),
    Rule(
        "a security policy",
        "setenforce setsebool semanage aa-enforce load_policy",
        _enforces,
        ("setenforce 1", "semanage port -d -t ssh_port_t -p tcp 2222"),
        ("setenforce 0", "getenforce"),
    ),
    Rule(
        "the packages of a way in",
        "apt apt-get aptitude dpkg dnf yum microdnf zypper rpm pacman apk",
        _removes_a_way_in,
        ("apt-get remove -y openssh-server", "apt purge sudo", "dpkg -r network-manager", "dnf remove firewalld",
         "apt-get install -y openssh-server-", "apt-get autoremove"),
        ("apt-get install openssh-server", "apt-get remove nginx", "apt-get upgrade"),
    ),
)  # fmt: skip


def cuts(judge: "Judge", planned: "list[Item]") -> "list[Cut]":
    """Every way in which the commands here can keep a person out, each once; in order.

    Args: planned: (kind, object) pairs that are saved before.
    """
    found: dict[str, bool] = {}

    def note(why: str, saved: bool) -> None:
        # One part that nothing brings back is enough to say so.
        found[why] = found.get(why, True) and saved

    for one in changed(judge):
        for rule in CUTS:
            if (not rule.names or one.ran.name in rule.names) and rule.finds(one):
                note(rule.why, not rule.ends and _comes_back(one, planned))
    for path in dict.fromkeys((*cutpaths.cutting(judge), *cutpaths.named(judge))):
        note(f"{path}, which decides who comes in", _is_saved(path, planned))
    for ran, within in _in_containers(judge):
        note(f"the network of this machine, through {within}: {ran.name}", False)
    if any(ran.name == "kill" and cutwhole.from_a_pipe(ran, judge) for ran in judge.ran):
        note("the ssh server's processes", False)
    for folder in cutwhole.unpacked_over(judge):
        note(f"what is unpacked below {folder}", False)
    if found and cutwhole.goes_on(judge):
        note(LATER, False)
    if any(finding[4] == "law 2" for finding in judge.findings):
        note(NOT_READ, False)
    return [Cut(why, saved) for why, saved in found.items()]


def _comes_back(one: Changed, planned: "list[Item]") -> bool:
    return bool(one.here) and not set(one.items) - set(one.here) and set(one.here) <= set(planned)


def cuts_of(paths: "Iterable[str]", items: "Iterable[Item]", lost: "Iterable[str]" = ()) -> "list[Cut]":
    """The same for a change that is told by what it puts in place, and not by a command.

    Args:
        items: (kind, object) of states that are no files.
        lost: those of the paths that do not come back.
    """
    gone = frozenset(lost)
    found = [
        Cut(f"{path}, which decides who comes in", path not in gone and not secret(path))
        for path in paths
        if cutpaths.decides(path)
    ]
    for kind, name in items:
        family, _, key = name.partition(" ")
        why = _STATES.get(family, "") if kind == STATE else ""
        if kind == SERVICE and _may_be(name, (*NETWORK_UNITS, *LOGIN_UNITS)):
            why = "a service that lets people in"
        if kind == STATE and family == SYSCTL and _is_network_key(key):
            why = "the network's settings in the kernel"
        if kind == STATE and family == SYSCTL and key and _is_limit(key):
            why = "what connections and terminals have room in"
        if why:
            found.append(Cut(why, True))
    return found


def _is_saved(path: str, planned: "list[Item]") -> bool:
    """Whether a file comes back; of what holds credentials no snapshot keeps the content."""
    whole = path.rstrip("/")
    return (
        not secret(path)
        and not path.startswith(("/proc/", "/sys/"))
        and any(
            kind not in (SERVICE, STATE)
            and (whole == name.rstrip("/") or (whole + "/").startswith(name.rstrip("/") + "/"))
            for kind, name in planned
        )
    )


def _in_containers(judge: "Judge") -> "Iterator[tuple[Ran, str]]":
    """Changes of a network from inside of containers that may share this machine's."""
    carriers: list[Ran] = []
    for ran in judge.ran:
        while carriers and carriers[-1].depth >= ran.depth:
            carriers.pop()
        if ran.away and ran.level > R0 and of_network(ran):
            for carrier in carriers:
                if carrier.name in _CONTAINERS and _may_share(carrier):
                    yield ran, carrier.name
        carriers.append(ran)


def _may_share(carrier: "Ran") -> bool:
    """One that is made here has a network of its own unless it says otherwise; of one that runs, nobody says."""
    words = [word.value or "" for word in carrier.words[1:]]
    if "exec" in words[:2]:
        return True
    joined = " ".join(words)
    return any(word.startswith(_HOST_NETWORK) for word in words) or any(
        f"{name.partition('=')[0]} {name.partition('=')[2]}" in joined for name in _HOST_NETWORK
    )
