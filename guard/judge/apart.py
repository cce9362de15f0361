"""Whether a command changes this machine's and this user's states, or those of another root, namespace or user.

A read here would show what is changed there as unchanged, so nothing may be said to be saved. From the text alone.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from guard.judge.engine import Judge
    from guard.judge.program import Ran

OF_FILES = frozenset(
    (
        "service",
        "systemd",
        "file",
        "accounts",
        "expiry",
        "crontab",
        "mounts",
        "packages",
        "git",
        "docker",
        "podman",
        "kubectl",
    )
)
"""Families that another root shows differently."""
OF_NETWORK = frozenset(("network", "nft", "iptables", "sysctl"))
"""Families that another network namespace has for itself."""
OWN_NETWORK = "/proc/self/ns/net"
_POINTING = {
    "docker": ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"),
    "podman": ("CONTAINER_HOST", "CONTAINER_CONNECTION"),
    "git": ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_NAMESPACE"),
}
"""Family → variables that lead its program elsewhere."""
_MOUNTS = frozenset(("mounts",))
_BOXES = frozenset(("bwrap", "firejail", "systemd-nspawn"))
_AS_USER = frozenset(("sudo", "doas", "pkexec"))
_OTHER_USER = _AS_USER | {"su", "runuser", "gosu", "su-exec", "setpriv"}
_ACCOUNTS = frozenset(
    ("useradd", "userdel", "usermod", "chsh", "chfn", "groupadd", "groupmod", "groupdel", "chage", "newusers", "vipw",
     "vigr", "passwd")
)  # fmt: skip
_APT = frozenset(("apt", "apt-get", "aptitude", "apt-mark"))
_MAY_MOVE = {"env": ("-C", "--ch"), "sudo": ("-D", "--ch", "-i", "--lo"), "nsenter": ("-w", "--wd"),
    "su": ("-", "-l", "--lo"), "runuser": ("-", "-l", "--lo"), "systemd-run": ("-d", "--wo", "--sa", "-p")}  # fmt: skip


def moves(carrier: "Ran") -> bool:
    """Whether what it carries may run in another folder."""
    beginnings = _MAY_MOVE.get(carrier.name, ())
    return any(word == one if one == "-" else word.startswith(one) for word in _words(carrier) for one in beginnings)


def pointed(judge: "Judge") -> "frozenset[str]":
    """The families whose programs a variable that the text sets leads elsewhere."""
    given = {name for script in judge.scripts for name in script.values}
    given |= {word.partition("=")[0] for ran in judge.ran for word in _words(ran) if "=" in word}
    return frozenset(family for family, names in _POINTING.items() if not given.isdisjoint(names))


def here(
    items: "list[tuple[str, str]]",
    carriers: "list[Ran]",
    pointed: "frozenset[str]",
    told: "Mapping[str, str]",
    *,
    doubted: bool = True,
) -> "list[tuple[str, str]]":
    """Those of the (kind, object) pairs that reads here show, under the name by which they show them.

    Args:
        told: what paths really are; of a process's network, whether it is this one.
        doubted: a network of which that is not told counts as another; False: as this one.
    """
    apart = set(pointed)
    user: str | None = None
    for carrier in carriers:
        if _enters_network(carrier):
            # The last one that enters a network decides in which one what it carries runs.
            own = _is_own_network(carrier, told)
            apart = (apart - OF_NETWORK) | (frozenset() if own or (own is None and not doubted) else OF_NETWORK)
        apart |= _apart(carrier)
        if carrier.name in _OTHER_USER:
            user = _user_of(carrier)
    found = []
    for kind, name in items:
        family = name.partition(" ")[0] if kind == "state" else kind
        if family in apart or (user is not None and family == "podman"):
            continue
        if user is not None and name == "crontab":
            if not user:
                continue
            name = f"crontab {user}"
        found.append((kind, name))
    return found


def names_another_root(name: str, words: "list[str]") -> bool:
    """Whether a program's own options take it to another root, namespace or database."""
    if name in _ACCOUNTS:
        return any(word.startswith(("-R", "-P", "--ro", "--pref")) for word in words)
    if name == "gpasswd":
        return any(word.startswith(("-Q", "--roo")) for word in words)
    if name in _APT:
        # `-o Dir=…`, `-oDir::State=…`, `RootDir`: all of them name folders.
        return any("dir" in word.partition("=")[0].lower() for word in words if "=" in word)
    if name == "dpkg":
        return any(word.startswith(("--root", "--admindir", "--instdir")) for word in words)
    if name in ("mount", "umount"):
        return any(word.startswith(("-N", "--na")) for word in words)
    if name == "ip":
        options = next((words[:at] for at, word in enumerate(words) if word[:1] != "-"), words)
        return any(word.startswith("-n") for word in options) or words[len(options) :][:1] == ["netns"]
    return False


def _words(ran: "Ran") -> "list[str]":
    return [word.value or "" for word in ran.words[1:]]


def network_question(carrier: "Ran") -> str:
    """The path that tells which network nsenter(1) enters by the process it names; "" when it names none.

    Its real path ends in the namespace's number, as that of `OWN_NETWORK` does (namespaces(7)).
    """
    words = _words(carrier)
    for at, word in enumerate(words):
        name, mark, value = word.partition("=")
        if name in ("-t", "--target"):
            pid = value if mark else (words[at + 1] if at + 1 < len(words) else "")
        elif word.startswith("-t"):
            pid = word[2:]
        else:
            continue
        return f"/proc/{pid}/ns/net" if pid.isdigit() else ""
    return ""


def _enters_network(carrier: "Ran") -> bool:
    """Whether it is nsenter(1) that goes to the network of a process or a file."""
    if carrier.name != "nsenter":
        return False
    own = _own_words(carrier)
    short = "".join(word[1:] for word in own if word[:1] == "-" and word[1:2] != "-")
    return bool({"n", "a"} & set(short)) or any(word.startswith(("--ne", "--al")) for word in own)


def _is_own_network(carrier: "Ran", told: "Mapping[str, str]") -> "bool | None":
    """Whether nsenter(1) enters the network of this process; None: nothing tells."""
    if _is_of_the_first(_own_words(carrier)):
        return True
    if any(word.startswith(("--ne", "-n")) and word not in ("-n", "--net") for word in _words(carrier)):
        return None  # a file, or letters in one word
    asked, own = told.get(network_question(carrier), ""), told.get(OWN_NETWORK, "")
    number, here = asked.rpartition("/")[2], own.rpartition("/")[2]
    return number == here if "[" in number and "[" in here else None


def _own_words(carrier: "Ran") -> "list[str]":
    words = _words(carrier)
    return words[: next((at for at, word in enumerate(words) if word.isalpha()), len(words))]


def _is_of_the_first(words: "list[str]") -> bool:
    """Whether nsenter(1) names the first process, which is in the namespaces of the machine."""
    return any(one in " ".join(words) + " " for one in ("-t 1 ", "-t1 ", "--target 1 ", "--target=1 "))


def _apart(carrier: "Ran") -> "frozenset[str]":
    """The families that are others for what this command carries."""
    name = carrier.name
    if name in _BOXES:
        return OF_FILES | OF_NETWORK
    if name == "chroot":
        return OF_FILES
    if name == "ip":
        return OF_NETWORK | _MOUNTS
    if name not in ("unshare", "nsenter"):
        return frozenset()
    own = _own_words(carrier)
    if name == "nsenter" and _is_of_the_first(own):
        return frozenset()
    short = "".join(word[1:] for word in own if word[:1] == "-" and word[1:2] != "-")
    long = [word for word in own if word.startswith("--")]
    has_all = name == "nsenter" and ("a" in short or any(word.startswith("--al") for word in long))
    apart: frozenset[str] = frozenset()
    if name == "unshare" and ("n" in short or any(word.startswith("--ne") for word in long)):
        apart |= OF_NETWORK
    if has_all or "m" in short or any(word.startswith("--mo") for word in long):
        apart |= OF_FILES if name == "nsenter" else _MOUNTS
    if ("R" if name == "unshare" else "r") in short or any(word.startswith("--roo") for word in long):
        apart |= OF_FILES
    return apart


def _user_of(carrier: "Ran") -> str:
    """Whom it runs things as; "" when the text does not tell."""
    name, words = carrier.name, _words(carrier)
    for at, word in enumerate(words):
        if word in ("-u", "--user"):
            return words[at + 1] if at + 1 < len(words) else ""
        if word.startswith(("-u", "--us")):
            return word.partition("=")[2] if word.startswith("--") else word[2:]
        if not word.startswith("-"):
            break
    if name in _AS_USER:
        # Another option may stand in front, with a value of its own: then it is not known.
        return "root" if words and not words[0].startswith("-") else ""
    return next((word for word in words if word and not word.startswith("-")), "") if name in ("su", "runuser") else ""
