"""Files that decide who comes in: the ssh server's, those of log-ins, networks and firewalls, and keys in homes.

Lexical, as `guard.judge.paths` is. `PATHS` and `NOT` are the table; the tests run `MUST` and `MUST_NOT` against it.
"""

from guard.judge import landing, paths
from guard.judge.levels import R1, R3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from guard.judge.engine import Judge
    from guard.judge.program import Ran

PATHS = (
    # the ssh server
    "/etc/ssh/", "/etc/default/ssh", "/etc/sysconfig/sshd", "/etc/dropbear/", "/usr/sbin/sshd", "/usr/lib/openssh/",
    "/etc/systemd/system/ssh", "/lib/systemd/system/ssh", "/usr/lib/systemd/system/ssh", "/etc/crypto-policies/",
    # who may log in, and how that is checked
    "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow", "/etc/pam.d/", "/etc/pam.conf", "/etc/security/",
    "/etc/nsswitch.conf", "/etc/shells", "/etc/nologin", "/run/nologin", "/var/run/nologin", "/etc/login.defs",
    "/etc/hosts.allow", "/etc/hosts.deny", "/etc/sssd/", "/etc/krb5.conf", "/etc/krb5.keytab", "/etc/nslcd.conf",
    "/etc/ld.so.preload", "/etc/authselect/", "/etc/sudoers", "/etc/sudo.conf", "/etc/doas.conf", "/etc/selinux/",
    "/run/sshd/", "/var/run/sshd/", "/lib/security/", "/lib64/security/", "/usr/lib/security/", "/usr/lib64/security/",
    # what a log-in runs
    "/etc/profile", "/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh/", "/etc/zshenv", "/etc/environment", "/bin/bash",
    "/usr/bin/bash", "/bin/sh", "/usr/bin/sh", "/bin/dash", "/usr/bin/dash", "/bin/login", "/usr/bin/login",
    "/usr/bin/sudo", "/bin/su", "/usr/bin/su", "/usr/bin/doas",
    # networks
    "/etc/network/", "/etc/netplan/", "/etc/NetworkManager/", "/etc/systemd/network/", "/etc/sysconfig/network",
    "/etc/dhcp/", "/etc/dhcpcd.conf", "/etc/wpa_supplicant/", "/etc/wireguard/", "/etc/openvpn/", "/etc/udev/rules.d/",
    "/proc/sys/net/", "/sys/class/net/",
    # firewalls
    "/etc/nftables", "/etc/iptables", "/etc/sysconfig/iptables", "/etc/sysconfig/ip6tables",
    "/etc/sysconfig/nftables", "/etc/ufw/", "/etc/default/ufw", "/etc/firewalld/", "/etc/shorewall/",
    "/etc/csf/", "/etc/pf.conf", "/etc/fail2ban/",
)  # fmt: skip
"""Beginnings of absolute paths; one that ends in a slash is a folder with all that is in it."""
NOT = ("/etc/ssh/ssh_config", "/etc/ssh/ssh_known_hosts", "/etc/security/pwquality", "/etc/systemd/system/sshfs")
"""Beginnings of what lies there and lets nobody in."""
_IN_SSH_FOLDER = ("authorized_keys", "rc", "environment")
"""What the server reads in a person's `.ssh` (sshd(8), "FILES"); the client's files lie beside it."""
_AT_LOG_IN = frozenset((
    ".profile", ".bashrc", ".bash_profile", ".bash_login", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".login",
    ".cshrc", ".tcshrc", ".kshrc", ".pam_environment",
))  # fmt: skip
"""What a person's shell runs at each log-in: an `exit` in it lets nobody in (bash(1), "INVOCATION")."""
_UNITS = (
    "ssh", "dropbear", "networking", "network", "NetworkManager", "systemd-networkd", "nftables", "ufw", "firewalld",
)  # fmt: skip
"""Beginnings of units whose links into a target's folder decide whether they start with the machine."""
_BACKUPS = ("~", ".bak", ".orig", ".old", ".save", ".example", ".sample", "-")
_COPIES = frozenset(("cp", "mv", "ln", "install", "tar", "zip", "7z", "cpio", "rsync", "scp", "sftp", "restic", "borg"))
"""Programs that read operands, and whose effects tell what they write."""
_GO_THROUGH = frozenset(("find", "fd", "git"))
"""Programs that change what they find below a folder."""

MUST = (
    "/etc/ssh/sshd_config", "/etc/ssh/sshd_config.d/10-x.conf", "/etc/ssh", "/etc/ssh/*", "/etc/s*", "/etc/passwd",
    "/etc/pam.d/sshd", "/etc/nftables.conf", "~/.ssh/authorized_keys", "/home/bob/.ssh",
    "/home/bob/.ssh/authorized_keys2", "/root/.ssh/*", "/home/*/.ssh/authorized_keys", "/etc/sudoers.d/bob",
    "/etc/hosts.deny", "/etc/netplan/01.yaml",
    "/proc/sys/net/ipv4/ip_forward", "/etc/systemd/system/ssh.service.d/x.conf",
    "/etc/pam.d/", "/etc/shadow", "/etc/nologin", "/etc/profile.d/x.sh", "~/.bashrc", "/home/bob/.profile",
    "/lib/x86_64-linux-gnu/security/pam_unix.so", "/usr/bin/sudo", "/bin/bash", "/run/sshd",
    "/etc/systemd/system/multi-user.target.wants/ssh.service",
)  # fmt: skip
MUST_NOT = (
    "/etc/ssh/ssh_config", "/etc/ssh/ssh_config.d/x.conf", "/etc/motd", "/etc/nginx/nginx.conf", "/etc/nginx/*",
    "~/.ssh/config", "~/.ssh/known_hosts", "/home/bob/.ssh/id_ed25519", "/srv/etc/ssh/sshd_config", "/etc/sshguard",
    "/etc/ssh/sshd_config.bak", "/etc/passwd-", "/home/bob/x", "/etc/hosts", "/usr/bin/ssh",
    "/etc/groups.txt", "/srv/.bashrc", "/usr/bin/sudoreplay", "/run/sshd.pid", "/usr/lib/security.txt",
    "/etc/systemd/system/multi-user.target.wants/nginx.service",
)  # fmt: skip


def decides(path: str) -> bool:
    """Whether a file, folder or shell pattern of this name is one that decides who comes in, or can be."""
    at = min((at for at in map(path.find, "*?[") if at >= 0), default=-1)
    if at > 0:
        return _pattern(path, path[:at])
    name = path.rstrip("/")
    if "/.ssh" in name:
        inside = name.partition("/.ssh")[2]
        return inside == "" or inside[1:].startswith(_IN_SSH_FOLDER)
    if name.startswith(NOT) or name.endswith(_BACKUPS):
        return False
    folder, _, last = name.rpartition("/")
    if last in _AT_LOG_IN and _is_home(folder):
        return True
    if folder.endswith((".wants", ".requires")) and folder.startswith("/etc/systemd/") and last.startswith(_UNITS):
        return True
    if folder.endswith("/security") and folder.startswith(("/lib/", "/usr/lib/")) and last.startswith("pam_"):
        return True
    return any(_is_at(name, known) for known in PATHS)


def _is_at(name: str, known: str) -> bool:
    if known.endswith("/"):
        return (name + "/").startswith(known)
    rest = name[len(known) :]
    return name.startswith(known) and not rest[:1].isalnum()


def _pattern(pattern: str, fixed: str) -> bool:
    if "/.ssh/" in pattern:
        inside = pattern.rpartition("/.ssh/")[2]
        return any(paths.glob_match(inside, name) for name in _IN_SSH_FOLDER) or inside.startswith(_IN_SSH_FOLDER)
    if any(known.endswith("/") and fixed.startswith(known) for known in PATHS):
        return not fixed.startswith(NOT)
    depth = pattern.rstrip("/").count("/")
    for known in PATHS:
        whole = known.rstrip("/")
        if whole.count("/") == depth and paths.glob_match(pattern.rstrip("/"), whole):
            return True
    return False


def holds(folder: str) -> bool:
    """Whether what decides who comes in lies below this folder, so that its own rights count: `/etc`, a home."""
    name = folder.rstrip("/")
    return name in ("/home", "/Users") or _is_home(name) or is_above(name)


def is_above(folder: str) -> bool:
    """Whether one of the system's own such files lies below this folder."""
    name = folder.rstrip("/")
    return any(known.startswith(name + "/") for known in PATHS)


def _is_home(folder: str) -> bool:
    if folder in ("/root", "/var/root") or (folder.startswith("~") and "/" not in folder):
        return True
    return folder.rpartition("/")[0] in ("/home", "/Users")


def cutting(judge: "Judge") -> "Iterator[str]":
    """The paths that decide who comes in and that the commands here write, remove or give other rights."""
    holder: dict[int, Ran] = {}
    for ran in judge.ran:
        # Those that it carries stand behind it, so the last one is the command itself.
        holder.update(dict.fromkeys(range(ran.first_effect, ran.end_effect), ran))
    for at, (kind, name) in enumerate(judge.effects):
        by = holder.get(at)
        if not name.startswith(("/", "~")) or (by is not None and by.away):
            continue
        if kind not in ("write", "delete", "privilege"):
            continue
        if decides(name) or (holds(name) and (kind != "write" or (by is not None and _puts_one(by, name)))):
            yield name


def named(judge: "Judge") -> "Iterator[str]":
    """Such paths among the words of commands that change something and do not tell what: whoever names one may mean it.

    What is only read, and what carries another command, does not count.
    """
    for at, ran in enumerate(judge.ran):
        carries = at + 1 < len(judge.ran) and judge.ran[at + 1].depth > ran.depth
        if ran.level < R1 or ran.away or carries or ran.name in _COPIES:
            continue
        read = {name for kind, name in judge.effects[ran.first_effect : ran.end_effect] if "read" in kind}
        takes_all = ran.level >= R3 or ran.name in _GO_THROUGH
        for word in ran.words[1:]:
            value = word.value or ""
            value = value.partition("=")[2] if value.startswith("-") else value
            for place in judge.places(value) if "/" in value else ():
                if place not in read and (decides(place) or (takes_all and holds(place))):
                    yield place


def _puts_one(ran: "Ran", folder: str) -> bool:
    """Whether what is put into a folder may be such a file."""
    if ran.name in ("mkdir", "touch"):
        return False
    words = ran.words[1:]
    if ran.name not in ("cp", "mv", "install", "ln") or any(word.value is None for word in words):
        return True
    names = [landing.last_name(word.value or "") for word in words if not (word.value or "").startswith("-")]
    sources = [name for name in names if name != landing.last_name(folder)]
    place = folder.rstrip("/")
    return any(not name or decides(f"{place}/{name}") or holds(f"{place}/{name}") for name in sources)
