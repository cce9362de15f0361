"""Which states that are no files a command changes: services, accounts, firewalls, networks, mounts, packages, refs.

Worked out from the record of commands that the walk left (`Judge.ran`) when somebody asks, without I/O. An item names a
state that `guard.hands.services` can read and put back; what has no item here has no known way back.
"""

from guard.judge.apart import OF_NETWORK, here, moves, names_another_root, pointed
from guard.judge.levels import R0

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.engine import Judge
    from guard.judge.program import Ran

SERVICE = "service"
"""Kind of an item that names a unit."""
STATE = "state"
"""Kind of every other item; its object is `FAMILY` or `FAMILY KEY`."""
ACCOUNTS, EXPIRY, CRONTAB, SYSCTL, NFT, IPTABLES = "accounts", "expiry", "crontab", "sysctl", "nft", "iptables"
NETWORK, MOUNTS, PACKAGES, GIT, DOCKER, PODMAN = "network", "mounts", "packages", "git", "docker", "podman"
KUBECTL = "kubectl"
SYSTEMD_LINKS, SYSTEMD_RUNNING = "systemd links", "systemd running"


def _names(names: str) -> "frozenset[str]":
    return frozenset(names.split())


_ACCOUNT_PROGRAMS = _names(
    "useradd adduser userdel deluser usermod chsh chfn groupadd addgroup groupmod groupdel delgroup gpasswd chage "
    "newusers vipw vigr"
)
_PASSWD_WORDS = frozenset(("-l", "--lock", "-u", "--unlock", "-n", "-x", "-w", "-i", "-e", "--expire"))
_ACCOUNT_VALUES = {
    "chage": "dEImMRPW",
    "usermod": "cdefgGlpRPsuvVwWZ",
    "userdel": "RP",
    "deluser": "",
    "passwd": "inrRPwx",
}
"""Short options that take a value, of the programs that change when an account ends."""
_ACCOUNT_FLAGS = _names(
    "--iso8601 --append --badname --lock --unlock --move-home --expire --delete --keep-tokens --quiet --remove --force "
    "--remove-home --remove-all-files --backup --system"
)
_RANGE_WORDS = ("-v", "-V", "-w", "-W", "--add-sub", "--del-sub")
_MEMBER_WORDS = frozenset(("-a", "--add", "-d", "--delete", "-M", "--members"))
_FIREWALL_FRONTS = {"ufw": "/etc/ufw", "firewall-cmd": "/etc/firewalld"}
_NETWORK_PROGRAMS = _names("ip ifconfig route ifup ifdown nmcli netplan brctl dhclient dhcpcd udhcpc networkctl")
_SHOWN = (("address", 1), ("addr", 1), ("link", 1), ("route", 1), ("rule", 2))
"""What of ip(8) the state of a network shows, and how many letters name it."""
_LINK_WORDS = _names(
    "up down mtu master nomaster arp txqueuelen txqlen address promisc alias addrgenmode multicast allmulticast"
)
"""What `ip link set` can set of it."""
_UNIT_STATES = (
    (("nftables", "iptables", "ip6tables", "netfilter-persistent", "firewalld", "ufw", "shorewall"), (NFT, IPTABLES)),
    (("networking", "network", "NetworkManager", "systemd-networkd", "dhcpcd", "ifup@", "wg-quick@"), (NETWORK,)),
)
"""What a unit makes of the kernel's state when it starts, stops or reloads, and its own run state does not tell."""
_UNIT_VERBS = _names(
    "start stop restart reload try-restart reload-or-restart try-reload-or-restart condrestart force-reload enable "
    "disable reenable mask unmask preset freeze thaw kill edit revert set-property reset-failed"
)
ONLY_LATER = frozenset(("enable", "reenable", "unmask", "preset", "reset-failed"))
"""Verbs that without `--now` change nothing that runs."""
_PACKAGES = 50
"""So many names of one command are looked at."""
_PACKAGE_VALUES = frozenset(("-o", "--option", "-c", "--config-file", "-t", "--target-release", "-a"))
_DROP_IN_VERBS = frozenset(("edit", "revert", "set-property"))
_TOPS = ("/etc/systemd", "/run/systemd")
"""Above the folders of drop-ins: for good, and for this boot."""
_LINK_VERBS = frozenset(("link", "set-default", "add-wants", "add-requires", "preset-all"))
"""Verbs that make or break links which no unit's own state shows."""
_TARGET_VERBS = frozenset(("isolate", "default", "rescue", "emergency"))
"""Verbs that start and stop whatever a target wants or does not."""
_ELSEWHERE = ("-H", "--host", "-M", "--machine", "--root", "--image", "--user", "--global")
_UNIT_VALUES = frozenset(("-t", "--type", "-p", "--property", "-s", "--signal", "-n", "--lines", "-o", "--output"))
_BEFORE_GIT = frozenset(("-c", "--namespace", "--config-env", "--attr-source"))
_CONTAINER_VERBS = frozenset(("start", "stop", "restart", "kill", "pause", "unpause"))
_CONTAINER_VALUES = frozenset(("-t", "--time", "-s", "--signal", "--timeout"))
_CLUSTER_PLACES = {"-n": "--namespace", "--namespace": "--namespace", "--context": "--context",
    "--cluster": "--cluster", "--user": "--user", "--kubeconfig": "--kubeconfig"}  # fmt: skip
"""Options that say which cluster and where in it; the read and the way back get them too."""
_CLUSTER_VALUES = _names(
    "-p --patch --type --patch-file --to-revision --grace-period "
    "--replicas --current-replicas --resource-version --timeout --request-timeout --field-manager"
)
_CLUSTER_FLAGS = _names("--overwrite --overwrite=true --record --record=true")
_CLUSTER_FIELDS = {"scale": "replicas", "set image": "images", "cordon": "unschedulable", "uncordon": "unschedulable",
    "label": "labels", "annotate": "annotations", "delete": "object", "patch": "object", "rollout undo": "object",
    "rollout restart": "object"}  # fmt: skip
_CLUSTER_OBJECTS = _names(
    "deploy deployment deployments sts statefulset statefulsets ds daemonset daemonsets svc service services cm "
    "configmap configmaps ing ingress ingresses cj cronjob cronjobs hpa horizontalpodautoscaler "
    "horizontalpodautoscalers pdb poddisruptionbudget poddisruptionbudgets netpol networkpolicy networkpolicies sa "
    "serviceaccount serviceaccounts"
)
"""Kinds of which the object is all there is: made anew from its text, it is there again."""

Item = tuple[str, str]


class Changed:
    """One command that changes something here, and the states that it changes."""

    __slots__ = ("ran", "items", "here")

    def __init__(self, ran: "Ran", items: "list[Item]", here: "list[Item]") -> None:
        self.ran = ran
        self.items = items
        """Those that may be this machine's."""
        self.here = here
        """Those that are, under the names by which they are read here."""


def states(judge: "Judge") -> "list[Item]":
    """The (kind, object) pairs of everything that is no file and that the commands here change, each once."""
    return list(dict.fromkeys(item for one in changed(judge) for item in one.here))


def changed(judge: "Judge") -> "list[Changed]":
    """Every command here that changes something, in order."""
    found: list[Changed] = []
    moved = any(ran.name in ("cd", "pushd", "popd", "chdir") for ran in judge.ran)
    elsewhere = any(name in script.values for script in judge.scripts for name in ("KUBECONFIG", "HOME"))
    astray = pointed(judge)
    carriers: list[Ran] = []
    for ran in judge.ran:
        while carriers and carriers[-1].depth >= ran.depth:
            carriers.pop()
        above = list(carriers)
        carriers.append(ran)
        if ran.level > R0 and not ran.away:
            # Under another user or configuration the same words lead to another cluster.
            if ran.name == KUBECTL and (ran.depth or elsewhere):
                continue
            items = _of_one(ran, moved or any(map(moves, above)))
            perhaps = here(items, above, astray, judge.told, doubted=False)
            found.append(Changed(ran, perhaps, here(items, above, astray, judge.told)))
    return _as_one(found)


def _as_one(found: "list[Changed]") -> "list[Changed]":
    """Packages are one state, whoever changes them: one item with the names of all."""
    names = [name for one in found for item in one.items if _of_packages(item) for name in item[1].split(" ")[1:]]
    whole = (STATE, " ".join((PACKAGES, *dict.fromkeys(names[:_PACKAGES]))))
    for one in found:
        one.items = [whole if _of_packages(item) else item for item in one.items]
        one.here = [whole if _of_packages(item) else item for item in one.here]
    return found


def _of_packages(item: "Item") -> bool:
    return item[0] == STATE and item[1].partition(" ")[0] == PACKAGES


def of_network(ran: "Ran") -> bool:
    """Whether the command changes a network or a firewall, wherever it runs."""
    return ran.name in _NETWORK_PROGRAMS or any(
        kind == STATE and name.partition(" ")[0] in OF_NETWORK for kind, name in _of_one(ran, False)
    )


def unit_verb(ran: "Ran") -> str:
    """What systemctl(1) or service(8) is to do with its units; "" for another program, or where that is not told."""
    words = [word.value or "" for word in ran.words[1:]]
    plain = _operands(words, _UNIT_VALUES)
    if ran.name == "systemctl":
        return plain[0] if plain else ""
    return plain[1] if ran.name == "service" and len(plain) > 1 else ""


def _of_one(ran: "Ran", moved: bool) -> "list[Item]":
    name, words = ran.name, [word.value or "" for word in ran.words[1:]]
    if names_another_root(name, words):
        return []
    if name == "systemctl":
        return _units(words)
    if name == "service" and words and words[0]:
        return [(SERVICE, words[0]), *_made_by(words[0])]
    # A password that is set leaves no trace that may be read.
    sets_password = name == "usermod" and any(word in ("-p", "--password") for word in words)
    locks = name == "passwd" and any(word in _PASSWD_WORDS for word in words)
    if (name in _ACCOUNT_PROGRAMS and not sets_password) or locks:
        return _accounts(name, words)
    if name == "crontab":
        return _crontab(words)
    if name == "sysctl":
        return _sysctl(words)
    if name == "nft":
        # Its `flush ruleset` also takes the tables of iptables.
        return [(STATE, NFT), (STATE, IPTABLES)]
    if name.startswith(("iptables", "ip6tables")):
        return [(STATE, IPTABLES)]
    if name in _FIREWALL_FRONTS:
        return [(STATE, NFT), (STATE, IPTABLES), ("file", _FIREWALL_FRONTS[name])]
    if name in _NETWORK_PROGRAMS:
        return [(STATE, NETWORK)] if name != "ip" or _is_shown(words) else []
    if name in ("mount", "umount"):
        return [(STATE, MOUNTS)]
    if name in ("apt", "apt-get", "aptitude", "apt-mark", "dpkg"):
        return [(STATE, " ".join((PACKAGES, *_packages(name, words))))]
    if name == "git":
        return _git(words, moved)
    if name in (DOCKER, PODMAN):
        return _containers(name, words)
    if name == KUBECTL:
        return _cluster(words)
    return []


def _packages(program: str, words: "list[str]") -> "list[str]":
    """The packages that a command names, at most `_PACKAGES` of them; none where it names them by a pattern."""
    plain = _operands(words, _PACKAGE_VALUES)
    if program != "dpkg":
        plain = plain[1:]
    # `web=1.0`, `web/stable`, `web-`; a file is named as dpkg-deb(1) names it.
    names = [
        word.rpartition("/")[2].partition("_")[0] if word.endswith(".deb") else word.partition("=")[0].partition("/")[0]
        for word in plain
    ]
    names = [name.removesuffix("-") for name in names]
    return [name for name in dict.fromkeys(names) if _is_package(name)][:_PACKAGES]


def _is_package(name: str) -> bool:
    """Whether it is a name as the policy has it: no pattern, no task, no option."""
    return name[:1].isalnum() and all(one.isascii() and (one.isalnum() or one in "+-.:") for one in name)


def _crontab(words: "list[str]") -> "list[Item]":
    user = ""
    for at, word in enumerate(words):
        if word.startswith("-u"):
            user = word[2:] or (words[at + 1] if at + 1 < len(words) else "")
            if not user:
                return []
    return [(STATE, f"{CRONTAB} {user}" if user else CRONTAB)]


def _is_elsewhere(word: str) -> bool:
    """Whether an option of systemctl, in any spelling, names another manager than the system's."""
    head = word.partition("=")[0]
    if head.startswith("--"):
        return len(head) > 3 and any(name.startswith(head) for name in _ELSEWHERE)
    return head.startswith(("-H", "-M"))


def _units(words: "list[str]") -> "list[Item]":
    if any(map(_is_elsewhere, words)):
        return []
    plain = _operands(words, _UNIT_VALUES)
    if plain and plain[0] in _LINK_VERBS:
        return [(STATE, SYSTEMD_LINKS)]
    if plain and plain[0] in _TARGET_VERBS:
        return [(STATE, SYSTEMD_RUNNING)]
    if not plain or plain[0] not in _UNIT_VERBS:
        return []
    verb, units = plain[0], plain[1:]
    if verb == "set-property":
        units = units[:1]
    found: list[Item] = [(SERVICE, unit) for unit in units if unit]
    if verb not in ONLY_LATER or "--now" in words:
        found += [item for unit in units for item in _made_by(unit)]
    if verb in _DROP_IN_VERBS:
        for unit in units:
            full = unit if "." in unit else f"{unit}.service"
            for top in _TOPS if verb == "revert" else _TOPS[1:] if "--runtime" in words else _TOPS[:1]:
                found += [("file", f"{top}/{place}/{full}.d") for place in ("system", "system.control")]
                found.append(("file", f"{top}/system/{full}"))
    return found


def _made_by(unit: str) -> "list[Item]":
    return [(STATE, one) for names, made in _UNIT_STATES if unit.startswith(names) for one in made]


def _accounts(name: str, words: "list[str]") -> "list[Item]":
    if name in ("vipw", "vigr") and words:
        # Their options lead to the files with the hashes.
        return []
    if name == "gpasswd" and not (words and words[0] in _MEMBER_WORDS and len(words) == 3):
        # Who looks after a group, and its password, stand where the hashes are.
        return []
    if name == "groupmod" and any(word.startswith(("-p", "--pas")) for word in words):
        return []
    found: list[Item] = [(STATE, ACCOUNTS)]
    if name in ("chage", "userdel", "deluser") or (name in ("usermod", "passwd") and any(map(_ends_account, words))):
        one = _account_of(name, words)
        if not one:
            return []
        found.append((STATE, f"{EXPIRY} {one}"))
    if name in ("userdel", "deluser") or (name == "usermod" and any(word.startswith(_RANGE_WORDS) for word in words)):
        found += [("file", "/etc/subuid"), ("file", "/etc/subgid")]
    user = words[-1] if words and words[-1] and not words[-1].startswith("-") else ""
    if name in ("useradd", "adduser", "userdel", "deluser") and user.replace("-", "").replace("_", "").isalnum():
        home = _value_of(words, ("-d", "--home-dir", "--home")) or f"/home/{user}"
        if name in ("useradd", "adduser") or any(word in ("-r", "--remove", "--remove-home") for word in words):
            found += [("file", home), ("file", f"/var/mail/{user}")]
    return found


def _ends_account(word: str) -> bool:
    """Whether an option may say when an account or its password ends."""
    return word.startswith("--e") or (word.startswith("-") and not word.startswith("--") and "e" in word)


def _account_of(name: str, words: "list[str]") -> str:
    """The account that a command names; "" where that is not plain."""
    valued, plain, skip = _ACCOUNT_VALUES.get(name, ""), [], False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("--"):
            skip = "=" not in word and word not in _ACCOUNT_FLAGS and word != "--"
        elif word.startswith("-"):
            at = next((at for at, letter in enumerate(word) if letter in valued and at), 0)
            skip = at > 0 and at == len(word) - 1
        else:
            plain.append(word)
    one = plain[0] if len(plain) == 1 else ""
    return one if one.replace("-", "").replace("_", "").replace(".", "").isalnum() else ""


def _is_shown(words: "list[str]") -> bool:
    """Whether what ip(8) is to change is of the state that is read of a network: else there is no way back of it."""
    plain = _operands(words, frozenset(("-f", "-family", "-n", "-netns", "-rc", "-rcvbuf", "-l", "-loops")))
    if not plain:
        # A batch, or what is not told.
        return False
    about, rest = plain[0], plain[1:]
    if not any(len(about) >= least and whole.startswith(about) for whole, least in _SHOWN):
        return False
    if not "link".startswith(about):
        return not {"nhid", "encap"} & set(rest)
    if rest[:1] and "set".startswith(rest[0]):
        rest = rest[1:]
        rest = rest[2:] if rest[:1] == ["dev"] else rest[1:]
        at = 0
        while at < len(rest):
            if not rest[at]:
                # A word that the text does not tell; what the others set is shown.
                return True
            if rest[at] not in _LINK_WORDS:
                return False
            at += 1 if rest[at] in ("up", "down", "nomaster") else 2
        return True
    return bool(rest) and any(whole.startswith(rest[0]) for whole in ("add", "delete"))


def _sysctl(words: "list[str]") -> "list[Item]":
    keys = [word.partition("=")[0].strip() for word in words if "=" in word and not word.startswith("-")]
    if not keys or any(word in ("-p", "--load", "--system") or word.startswith("-p") for word in words):
        return [(STATE, SYSCTL)]
    return [(STATE, f"{SYSCTL} {_dotted(key)}") for key in keys]


def _dotted(key: str) -> str:
    """The key as sysctl(8) prints it: with slashes first, the two separators change their places."""
    slash, dot = key.find("/"), key.find(".")
    if slash < 0 or 0 <= dot < slash:
        return key
    return key.translate({ord("/"): ".", ord("."): "/"})


def _git(words: "list[str]", moved: bool) -> "list[Item]":
    if any(word.startswith(("--git-dir", "--work-tree")) for word in words):
        return []
    place, at = "", 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-C":
            folder = words[at + 1] if at + 1 < len(words) else ""
            if not folder:
                return []
            place = folder if folder.startswith("/") or not place else f"{place.rstrip('/')}/{folder}"
        at += 2 if words[at] == "-C" or words[at] in _BEFORE_GIT else 1
    if moved and not place.startswith("/"):
        return []
    return [(STATE, f"{GIT} {place or '.'}")]


def _containers(name: str, words: "list[str]") -> "list[Item]":
    if words and words[0] == "container":
        words = words[1:]
    if not words or words[0] not in _CONTAINER_VERBS:
        return []
    return [(STATE, f"{name} {one}") for one in _operands(words[1:], _CONTAINER_VALUES) if one]


def _cluster(words: "list[str]") -> "list[Item]":
    """Items `kubectl FIELD KIND/NAME [ENTRY]... [--OPTION=VALUE]...`; none for what is not one named object or more."""
    if not all(words):
        # A word that the text does not tell may be anything, an option too.
        return []
    plain, where = [], []
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        if not word.startswith("-"):
            plain.append(word)
            continue
        name, mark, value = word.partition("=")
        if word in _CLUSTER_FLAGS:
            continue
        if name not in _CLUSTER_PLACES and name not in _CLUSTER_VALUES:
            return []
        if not mark:
            value, at = (words[at] if at < len(words) else ""), at + 1
        if name in _CLUSTER_PLACES:
            # Reads run in /, where a path that is relative leads elsewhere.
            if not value or (name == "--kubeconfig" and not value.startswith("/")):
                return []
            where.append(f"{_CLUSTER_PLACES[name]}={value}")
    verb = " ".join(plain[:2]) if plain[:1] in (["set"], ["rollout"]) else "".join(plain[:1])
    field, plain = _CLUSTER_FIELDS.get(verb, ""), plain[len(verb.split()) :]
    objects, entries = _cluster_objects(plain, "node" if field == "unschedulable" else "")
    names: list[str] = []
    if field == "object" and not all(one.partition("/")[0].partition(".")[0] in _CLUSTER_OBJECTS for one in objects):
        return []
    if field in ("labels", "annotations"):
        names = [entry.partition("=")[0] if "=" in entry else entry.removesuffix("-") for entry in entries]
    pieces = [*objects, *names, *where]
    if not field or any(not piece or len(piece.split()) != 1 or "," in piece for piece in pieces):
        return []
    return [(STATE, " ".join((KUBECTL, field, one, *names, *where))) for one in objects]


def _cluster_objects(plain: "list[str]", kind: str) -> "tuple[list[str], list[str]]":
    """The objects as KIND/NAME, from both ways to write them, and the entries (`a=b`, `a-`) behind."""
    if not kind and plain and "/" not in plain[0].partition("=")[0]:
        kind, plain = plain[0], plain[1:]
    end = next((at for at, word in enumerate(plain) if "=" in word or word.endswith("-")), len(plain))
    objects = [word if "/" in word else f"{kind}/{word}" for word in plain[:end]]
    return objects, plain[end:]


def _operands(words: "list[str]", valued: "frozenset[str]") -> "list[str]":
    """The words that are no options and no values of these."""
    plain, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in valued:
            skip = True
        elif not word.startswith("-"):
            plain.append(word)
    return plain


def _value_of(words: "list[str]", names: "tuple[str, ...]") -> str:
    for at, word in enumerate(words):
        name, mark, value = word.partition("=")
        if name in names:
            return value if mark else (words[at + 1] if at + 1 < len(words) else "")
    return ""
